//! The passes of one task of a run: source, rules, plans, what is known of their kernels, where else they match.

use super::links::Links;
use super::route::Route;
use super::shared::{count, link};
use super::task::{self, TaskRun};
use super::{Page, Pages, drawing};
use crate::Error;
use crate::inspect::{InspectedPass, Inspection, Plan, Surroundings, inspect};
use crate::tasks::TaskIndex;
use crate::watch::Subject;
use passnet_bench::report::GraphRecord;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::source;
use serde::Serialize;
use std::sync::Arc;

/// Matching graphs that are named.
const NAMED: usize = 60;

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    id: &str,
    task: usize,
) -> Result<Option<Page>, Error> {
    let Some(found) = task::read(pages, id, task)? else { return Ok(None) };
    let sets = looked_at(pages, &found)?;
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
    sets.iter().for_each(|set| one_set(&found, set, links, &mut out));
    let title = format!("Passes for {} in {}", found.name, found.entry.name);
    Ok(Some(Page { title, body: out }))
}

/// One set of passes, and what can be said about it.
#[derive(Debug, Serialize)]
pub(crate) struct LookedAt {
    /// Names and digests of the files.
    files: Vec<(String, String)>,
    /// Graphs of the task for which plans were made, and of the dataset in which patterns were looked for.
    planned: usize,
    searched: usize,
    /// Why its kernels could not be watched here.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_watched: Option<String>,
    #[serde(flatten)]
    inspection: Inspection,
}

/// The same for machines; `None` where there is no such task.
pub(crate) fn inspected(
    pages: &Pages<'_>,
    id: &str,
    task: usize,
) -> Result<Option<Vec<LookedAt>>, Error> {
    match task::read(pages, id, task)? {
        Some(found) => looked_at(pages, &found).map(Some),
        None => Ok(None),
    }
}

fn looked_at(pages: &Pages<'_>, found: &TaskRun) -> Result<Vec<LookedAt>, Error> {
    let nothing = TaskIndex::default();
    let results: Vec<&GraphRecord> = found.graphs.iter().collect();
    let subjects = Subject::of(pages.tasks.unwrap_or(&nothing), &found.name, &results);
    let corpus = match subjects.is_empty() {
        true => Arc::default(),
        false => pages.store.corpus_models()?,
    };
    let mut sets = Vec::new();
    for subject in subjects {
        // On a disk the runs are the owner's own. A server leaves kernels to a sandboxed process and shows what that saw.
        let watched = match pages.is_static {
            true => None,
            false => pages.store.watched(&subject.key())?,
        };
        let Subject { files, graphs } = subject;
        let planned = graphs.len();
        let around = Surroundings { graphs, corpus: &corpus, may_run: pages.is_static };
        let text = |digest: &str| found.bundle.blob(digest).ok();
        let mut inspection = inspect(&files, text, &around).unwrap_or_else(|error| Inspection {
            errors: vec![error.message],
            ..Inspection::default()
        });
        let not_watched = watched.as_ref().and_then(|watched| watched.error.clone());
        if let Some(watched) = watched {
            watched.join(&mut inspection);
        }
        let (files, searched) = (files.files, corpus.len());
        sets.push(LookedAt { files, planned, searched, not_watched, inspection });
    }
    Ok(sets)
}

fn one_set(found: &TaskRun, set: &LookedAt, links: &Links, out: &mut Markup) {
    for error in &set.inspection.errors {
        out.element("p", &[("class", "wrong")], error);
    }
    if let Some(error) = &set.not_watched {
        let text = format!("The kernels could not be watched here: {error}.");
        out.element("p", &[("class", "soft")], &text);
    }
    set.inspection.passes.iter().for_each(|pass| one_pass(pass, set, links, out));
    out.element("h2", &[], "Source");
    for (name, digest) in &set.files {
        out.element("h3", &[], name);
        match found.bundle.blob(digest) {
            Ok(text) => source(&String::from_utf8_lossy(&text), out),
            Err(error) => out.element("p", &[("class", "soft")], &error.message),
        }
    }
}

fn one_pass(pass: &InspectedPass, set: &LookedAt, links: &Links, out: &mut Markup) {
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
        let why = match set.planned == 0 {
            true => "Plans follow from types, and this site does not have the task's own files.",
            false => "It matches none of the graphs that were tried.",
        };
        out.element("p", &[("class", "soft")], why);
    }
    pass.plans.iter().for_each(|plan| one_plan(plan, out));
    elsewhere(pass, set.searched, links, out);
}

fn one_plan(plan: &Plan, out: &mut Markup) {
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
    let Some(findings) = &plan.watched else {
        out.element("p", &[("class", "soft")], "Its kernels were not watched here.");
        return;
    };
    if findings.is_empty() {
        out.element("p", &[("class", "right")], "A watched run of its kernels found nothing.");
        return;
    }
    out.open_table(
        "What a watched run of its kernels found",
        &["rule", "how bad", "where", "what", "how it is known"],
    );
    for finding in findings {
        let how = if finding.is_proved { "proved for all data" } else { "seen in one run" };
        out.row(&[
            finding.rule.clone(),
            finding.severity.clone(),
            format!("{}:{}", finding.file, finding.line),
            finding.message.clone(),
            how.to_string(),
        ]);
    }
    out.close_table();
}

fn elsewhere(pass: &InspectedPass, searched: usize, links: &Links, out: &mut Markup) {
    if searched == 0 {
        return;
    }
    out.element("h3", &[], "Where else it matches");
    out.element(
        "p",
        &[],
        &format!("In {} of {searched} graphs of the dataset.", pass.matches.len()),
    );
    out.open("ul", &[]);
    for found in pass.matches.iter().take(NAMED) {
        out.open("li", &[]);
        link(links, &Route::Graph(found.number), &found.graph, out);
        out.text(&format!(": {}", count(found.places, "place")));
        out.close("li");
    }
    if let Some(more) = pass.matches.len().checked_sub(NAMED).filter(|more| *more > 0) {
        out.element("li", &[("class", "soft")], &format!("and {more} more"));
    }
    out.close("ul");
}
