//! The passes of one task of a run: source, rules, plans, what is known of their kernels, where else they match.

use super::links::Links;
use super::route::Route;
use super::shared::{count, link};
use super::task::{self, TaskRun};
use super::{Page, Pages, drawing, highlight};
use crate::Error;
use crate::bundle::{PassFiles, parse_model, pass_files};
use crate::inspect::{InspectedPass, Plan, Surroundings, inspect};
use passnet_bench::report::html::markup::Markup;
use passnet_graph::{FileName, Graph, GraphFiles};
use std::collections::BTreeSet;

/// Graphs of the dataset in which a pattern is looked for.
const CORPUS: usize = 400;
/// Matching graphs that are named.
const NAMED: usize = 60;
/// Graphs of the task for which plans are made.
const PLANNED: usize = 4;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    id: &str,
    task: usize,
) -> Result<Option<Page>, Error> {
    let Some(found) = task::read(pages, id, task)? else { return Ok(None) };
    let sets: BTreeSet<PassFiles> =
        found.graphs.iter().map(pass_files).filter(|files| !files.is_empty()).collect();
    if sets.is_empty() {
        return Ok(None);
    }
    let mut out = Markup::default();
    out.element("h1", &[], &format!("Passes for {}", found.name));
    out.open("p", &[]);
    out.text("Of the run ");
    link(links, &Route::Run(found.entry.id.clone()), &found.entry.name, &mut out);
    out.text("; ");
    link(links, &Route::Task(id.to_string(), task), "what they achieved", &mut out);
    out.close("p");
    let corpus: Vec<(String, Graph)> = pages
        .store
        .corpus_models(CORPUS)?
        .into_iter()
        .filter_map(|(path, model)| Some((path, parse_model(model.into_bytes()).ok()?)))
        .collect();
    let around = Surroundings {
        graphs: whole_graphs(pages, &found),
        corpus: &corpus,
        may_run: pages.is_static,
    };
    for files in &sets {
        one_set(&found, files, &around, &mut out);
    }
    let title = format!("Passes for {} in {}", found.name, found.entry.name);
    Ok(Some(Page { title, body: out }))
}

/// Graphs of the task that this site has itself.
fn whole_graphs(pages: &Pages<'_>, found: &TaskRun) -> Vec<GraphFiles> {
    let Some(tasks) = pages.tasks else { return Vec::new() };
    let whole = found.graphs.iter().filter_map(|graph| {
        let model = graph.artefact(FileName::Model.as_str())?;
        tasks.graph(&found.name, &graph.event.evaluation.judged.graph, model)
    });
    whole.take(PLANNED).collect()
}

fn one_set(found: &TaskRun, files: &PassFiles, around: &Surroundings<'_>, out: &mut Markup) {
    let text = |digest: &str| found.bundle.blob(digest).ok();
    match inspect(files, text, around) {
        Err(error) => out.element("p", &[("class", "wrong")], &error.message),
        Ok(inspection) => {
            for error in &inspection.errors {
                out.element("p", &[("class", "wrong")], error);
            }
            inspection.passes.iter().for_each(|pass| one_pass(pass, around, out));
        }
    }
    out.element("h2", &[], "Source");
    for (name, digest) in &files.files {
        out.element("h3", &[], name);
        match found.bundle.blob(digest) {
            Ok(text) => highlight::source(&String::from_utf8_lossy(&text), out),
            Err(error) => out.element("p", &[("class", "soft")], &error.message),
        }
    }
}

fn one_pass(pass: &InspectedPass, around: &Surroundings<'_>, out: &mut Markup) {
    out.element("h2", &[], &pass.name);
    for error in &pass.errors {
        out.element("p", &[("class", "wrong")], error);
    }
    if let Some(pattern) = &pass.pattern {
        drawing::draw("What it replaces", pattern, &|_| false, out);
    }
    out.element("h3", &[], "Integrity rules");
    if pass.rules.is_empty() {
        out.element("p", &[("class", "right")], "No rule has anything to say.");
    } else {
        out.open_table("What the rules say", &["rule", "how bad", "where", "what"]);
        for finding in &pass.rules {
            out.row(&[
                finding.rule.to_string(),
                format!("{:?}", finding.severity).to_lowercase(),
                format!("{}:{}", finding.file, finding.line),
                finding.message.clone(),
            ]);
        }
        out.close_table();
    }
    out.element("h3", &[], "Launch plans");
    if pass.plans.is_empty() {
        let why = match around.graphs.is_empty() {
            true => "Plans follow from types, and this site does not have the task's own files.",
            false => "It matches none of the graphs that were tried.",
        };
        out.element("p", &[("class", "soft")], why);
    }
    pass.plans.iter().for_each(|plan| one_plan(plan, around.may_run, out));
    elsewhere(pass, around, out);
}

fn one_plan(plan: &Plan, is_watched: bool, out: &mut Markup) {
    let places = count(plan.sites, "place");
    out.element("p", &[], &format!("{}, {places}:", plan.graph));
    out.open("pre", &[("tabindex", "0")]);
    out.element("code", &[], &plan.steps.join("\n"));
    out.close("pre");
    let bounds = match plan.is_proved {
        true => "Every access is proved to stay inside its buffer, for all data.",
        false => "Bounds are not proved for all data; runs are watched.",
    };
    out.element("p", &[], bounds);
    if !is_watched {
        return;
    }
    if plan.findings.is_empty() {
        out.element("p", &[("class", "right")], "A watched run of its kernels found nothing.");
        return;
    }
    out.open("ul", &[]);
    for finding in &plan.findings {
        let how = if finding.proved { "proved" } else { "observed" };
        let text = format!(
            "{} [{}] {}:{} ({how})",
            finding.message, finding.rule, finding.file, finding.line
        );
        out.element("li", &[], &text);
    }
    out.close("ul");
}

fn elsewhere(pass: &InspectedPass, around: &Surroundings<'_>, out: &mut Markup) {
    if around.corpus.is_empty() {
        return;
    }
    out.element("h3", &[], "Where else it matches");
    out.element(
        "p",
        &[],
        &format!("In {} of {} graphs of the dataset.", pass.matches.len(), around.corpus.len()),
    );
    out.open("ul", &[]);
    for (graph, places) in pass.matches.iter().take(NAMED) {
        out.element("li", &[], &format!("{graph}: {}", count(*places, "place")));
    }
    out.close("ul");
}
