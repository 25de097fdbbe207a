//! One task of a run: its graphs before and after the rewrite, what was found about each, all runs on it.

use super::links::Links;
use super::route::Route;
use super::shared::{count, link, list, optional_ratio, run_of, verdict};
use super::{Page, Pages, drawing, plots};
use crate::Error;
use crate::bundle::{Bundle, PassFiles, parse_model, pass_files};
use crate::store::Entry;
use passnet_bench::candidate::Candidate;
use passnet_bench::report::html::markup::Markup;
use passnet_bench::report::html::{chart, checks, source};
use passnet_bench::report::{GraphRecord, ratio_text};
use passnet_graph::{FileName, Graph, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Rows of other runs.
const OTHER_ROWS: usize = 200;
/// Graphs of a task that are shown in full.
const SHOWN: usize = 40;

/// The results of one task, from the bundle of its run.
pub(super) struct TaskRun {
    pub entry: Entry,
    pub name: String,
    pub bundle: Bundle,
    pub graphs: Vec<GraphRecord>,
}

/// `None` where the run or the task is not there.
pub(super) fn read(pages: &Pages<'_>, id: &str, task: usize) -> Result<Option<TaskRun>, Error> {
    let Some(entry) = pages.store.entry(id)? else { return Ok(None) };
    let detail = pages.store.detail(&entry)?;
    let Some(name) = detail.tasks.get(task).map(|group| group.name.clone()) else {
        return Ok(None);
    };
    let Some(bundle) = pages.store.bundle(&entry.digest)? else { return Ok(None) };
    // Names that samples of several folders share are told apart by all events together.
    let run = run_of(&bundle)?;
    let graphs = run.graphs.into_iter().filter(|graph| graph.event.sample == name).collect();
    Ok(Some(TaskRun { entry, name, bundle, graphs }))
}

pub(super) fn write(
    pages: &Pages<'_>,
    links: &Links,
    id: &str,
    task: usize,
) -> Result<Option<Page>, Error> {
    let Some(found) = read(pages, id, task)? else { return Ok(None) };
    let mut out = Markup::default();
    out.element("h1", &[], &found.name);
    out.open("p", &[]);
    out.text("A task of the run ");
    link(links, &Route::Run(found.entry.id.clone()), &found.entry.name, &mut out);
    out.text(&format!(", {}. ", count(found.graphs.len(), "graph")));
    let has_passes = found.graphs.iter().any(|graph| !pass_files(graph).is_empty());
    if has_passes {
        link(links, &Route::Pass(id.to_string(), task), "Its passes", &mut out);
    }
    out.close("p");
    drawings(&found, &mut out);
    found.graphs.iter().take(SHOWN).for_each(|graph| graph_section(graph, &mut out));
    models(&found, &mut out);
    others(pages, links, &found, &mut out)?;
    let title = format!("{} in {}", found.name, found.entry.name);
    Ok(Some(Page { title, body: out }))
}

/// The graph before and after, for the first graph of each shape of code.
fn drawings(found: &TaskRun, out: &mut Markup) {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut candidates: BTreeMap<PassFiles, Option<Candidate>> = BTreeMap::new();
    for record in &found.graphs {
        let Some(graph) = model(found, record) else { continue };
        let operations: Vec<String> =
            graph.calls().map(|(_, call)| call.target.op_name().into_owned()).collect();
        if !seen.insert(operations.join(" ")) || seen.len() > 3 {
            continue;
        }
        let files = pass_files(record);
        let candidate = candidates.entry(files).or_insert_with_key(|files| {
            let text = |digest: &str| found.bundle.blob(digest).ok();
            files.load(false, text).ok().and_then(Result::ok)
        });
        let after = candidate.as_ref().and_then(|passes| passes.rewrite(&graph).ok());
        out.open("div", &[("class", "pair")]);
        // What a pass puts in keeps the name of the last that it took out.
        let is_gone = |name: &str| {
            let stays = |after: &Graph| {
                let mut same = after.ids().filter(|id| &*after.node(*id).name == name);
                same.any(|id| !is_replacement(after, id))
            };
            after.as_ref().is_some_and(|after| !stays(&after.graph))
        };
        let path = &record.event.evaluation.judged.graph;
        let title = format!("{path}, as it is");
        drawing::draw(&title, &graph, &|id| is_gone(&graph.node(id).name), out);
        if let Some(after) = &after {
            let after = &after.graph;
            let is_new = |id| is_replacement(after, id);
            drawing::draw("The same, rewritten by the passes", after, &is_new, out);
        }
        out.close("div");
    }
}

/// Whether a node calls the wrapper of a pass.
fn is_replacement(graph: &Graph, id: NodeId) -> bool {
    graph.call(id).is_some_and(|call| call.target.replacement().is_some())
}

fn model(found: &TaskRun, record: &GraphRecord) -> Option<Graph> {
    let digest = record.artefact(FileName::Model.as_str())?;
    parse_model(found.bundle.blob(digest).ok()?).ok()
}

fn graph_section(graph: &GraphRecord, out: &mut Markup) {
    let evaluation = &graph.event.evaluation;
    let judged = &evaluation.judged;
    out.element("h2", &[], &judged.graph);
    out.open("p", &[]);
    verdict(judged.verdict.kind.name(), out);
    if let (Some(speedup), Some(interval)) = (judged.speedup, &evaluation.interval) {
        let decided = evaluation.decision.map_or("", |decision| decision.name());
        out.text(&format!(
            " · speed-up {} ({} to {}), {decided}",
            ratio_text(speedup),
            ratio_text(interval.low),
            ratio_text(interval.high)
        ));
    }
    if let (Some(share), Some(least)) = (evaluation.roofline_share(), evaluation.roofline_ms) {
        let least = ratio_text(least);
        out.text(&format!(" · {:.0} % of the roofline, which is {least} ms", share * 100.0));
    }
    if let Some(right) = judged.ladder.first_right() {
        out.text(&format!(" · right from t = {right}"));
    }
    if let Some(accuracy) = evaluation.accuracy {
        out.text(&format!(
            " · worst distance from the float64 result in tolerances: eager {}, candidate {}",
            ratio_text(accuracy.eager),
            ratio_text(accuracy.candidate)
        ));
    }
    if let Some(interval) = &evaluation.interval {
        out.void("br", &[]);
        chart::interval_bar("speed-up", interval, out);
    }
    out.close("p");
    let evidence = judged.verdict.evidence.iter().map(ToString::to_string);
    let remarks = evaluation.remarks.iter().map(|remark| format!("remark: {remark}"));
    let notes: Vec<String> = evidence.chain(remarks).collect();
    list(notes.iter().map(String::as_str), out);
    plots::samples(&evaluation.eager_ms, &evaluation.candidate_ms, evaluation.roofline_ms, out);
    if !evaluation.checks.is_empty() {
        checks(&evaluation.checks, out);
    }
}

/// Every model's text once.
fn models(found: &TaskRun, out: &mut Markup) {
    let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for graph in &found.graphs {
        if let Some(digest) = graph.artefact(FileName::Model.as_str()) {
            texts.entry(digest).or_default().push(&graph.event.evaluation.judged.graph);
        }
    }
    if texts.is_empty() {
        return;
    }
    out.element("h2", &[], "Source of the graphs");
    for (digest, graphs) in texts.into_iter().take(SHOWN) {
        out.open("details", &[]);
        out.element("summary", &[], &format!("model.py of {}", graphs.join(", ")));
        match found.bundle.blob(digest) {
            Ok(text) => source(&String::from_utf8_lossy(&text), out),
            Err(error) => out.element("p", &[("class", "soft")], &error.message),
        }
        out.close("details");
    }
}

fn others(
    pages: &Pages<'_>,
    links: &Links,
    found: &TaskRun,
    out: &mut Markup,
) -> Result<(), Error> {
    let rows = pages.store.runs_on_task(&found.entry.benchmark, &found.name, OTHER_ROWS)?;
    out.element("h2", &[], "All runs on this task");
    out.open_table(
        "Standing runs on the same benchmark set, by graph and device",
        &["graph", "device", "run", "verdict", "speed-up", "at least", "at most"],
    );
    for row in rows {
        out.open("tr", &[]);
        out.element("th", &[("scope", "row")], &row.graph);
        out.element("td", &[("class", "text")], &row.class);
        out.open("td", &[]);
        link(links, &Route::Run(row.entry.clone()), &row.name, out);
        out.close("td");
        out.open("td", &[]);
        verdict(&row.verdict, out);
        out.close("td");
        for number in [row.speedup, row.low, row.high] {
            out.element("td", &[("class", "n")], &optional_ratio(number));
        }
        out.close("tr");
    }
    out.close_table();
    Ok(())
}
