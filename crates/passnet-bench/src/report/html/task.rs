//! One task: its graphs, what was found about each, and the texts behind them.

use super::super::{GraphRecord, RunRecord, ratio_text};
use super::markup::Markup;
use super::parts::{list, verdict};
use super::{chart, source};
use crate::evaluate::{Check, CheckAnswer};
use crate::score::{Parameters, Score, ScoredGraph};
use passnet_graph::FileName;
use std::collections::BTreeMap;

/// Larger texts are left out.
const MAX_TEXT_BYTES: u64 = 1 << 20;

/// Where a task is on the page.
pub(super) fn anchor(index: usize) -> String {
    format!("task-{}", index + 1)
}

pub(super) fn write(
    run: &RunRecord,
    index: usize,
    name: &str,
    graphs: &[&GraphRecord],
    parameters: Parameters,
    page: &mut Markup,
) {
    let id = anchor(index);
    page.open("section", &[("aria-labelledby", &id)]);
    page.element("h2", &[("id", &id)], name);
    let scored: Vec<ScoredGraph> = graphs.iter().map(|graph| graph.scored()).collect();
    if let Some(score) = Score::of(&scored, parameters) {
        let summary = score.summary;
        let speed = summary.geometric_mean.map(|mean| format!(", speed-up {}", ratio_text(mean)));
        let text = format!(
            "AS {}, {} of {} graphs right{}.",
            ratio_text(score.aggregated),
            summary.correct,
            summary.graphs,
            speed.unwrap_or_default()
        );
        page.element("p", &[], &text);
    }
    page.open_table(
        "The bar is the 99 % interval of the speed-up. Accuracy is the worst distance from the \
         float64 result, in tolerances at t = -5.",
        &[
            "graph",
            "verdict",
            "speed-up",
            "roofline",
            "right from",
            "accuracy",
            "checks",
            "evidence and remarks",
        ],
    );
    graphs.iter().for_each(|graph| graph_row(graph, page));
    page.close_table();
    texts(run, graphs, page);
    page.open("p", &[]);
    page.element("a", &[("href", "#tasks")], "All tasks");
    page.close("p");
    page.close("section");
}

fn graph_row(graph: &GraphRecord, page: &mut Markup) {
    let evaluation = &graph.event.evaluation;
    let judged = &evaluation.judged;
    page.open("tr", &[]);
    page.element("th", &[("scope", "row")], &judged.graph);
    page.open("td", &[]);
    verdict(judged.verdict.kind.name(), page);
    if !graph.event.evaluation.tier.is_plan() {
        page.element("span", &[("class", "note")], " compatibility tier, not timed");
    }
    page.close("td");
    page.open("td", &[]);
    match (judged.speedup, &evaluation.interval) {
        (Some(speedup), Some(interval)) => {
            let decision = evaluation.decision.map(|decision| format!(" ({})", decision.name()));
            page.text(&format!("{}{}", ratio_text(speedup), decision.unwrap_or_default()));
            page.void("br", &[]);
            chart::interval_bar("speed-up", interval, page);
        }
        (speedup, _) => page.text(&speedup.map_or("-".into(), ratio_text)),
    }
    page.close("td");
    let share = evaluation.roofline_share();
    page.element("td", &[], &share.map_or("-".into(), |share| format!("{:.0} %", share * 100.0)));
    let right = judged.ladder.first_right().map_or("never".into(), |t| format!("t = {t}"));
    page.element("td", &[], &right);
    let accuracy = evaluation.accuracy.map_or("-".into(), |accuracy| {
        format!(
            "eager {}, candidate {}",
            ratio_text(accuracy.eager),
            ratio_text(accuracy.candidate)
        )
    });
    page.element("td", &[], &accuracy);
    page.open("td", &[]);
    checks(&evaluation.checks, page);
    page.close("td");
    page.open("td", &[]);
    notes(graph, page);
    page.close("td");
    page.close("tr");
}

fn answer_name(answer: CheckAnswer) -> &'static str {
    match answer {
        CheckAnswer::Passed => "passed",
        CheckAnswer::Failed => "failed",
        CheckAnswer::Advice => "advice",
        CheckAnswer::Skipped => "skipped",
    }
}

fn check_text(check: &Check) -> String {
    let detail = match check.detail.is_empty() {
        true => String::new(),
        false => format!(" ({})", check.detail),
    };
    format!("{}: {}{detail}", check.name, answer_name(check.answer))
}

/// The checks of one graph: what did not pass is in sight, the rest can be opened.
pub fn checks(checks: &[Check], page: &mut Markup) {
    if checks.is_empty() {
        page.text("-");
        return;
    }
    let told = |wanted: bool, page: &mut Markup| {
        let chosen = checks.iter().filter(|check| (check.answer == CheckAnswer::Passed) == wanted);
        let texts: Vec<String> = chosen.map(check_text).collect();
        list(texts.iter().map(String::as_str), page);
    };
    told(false, page);
    let passed = checks.iter().filter(|check| check.answer == CheckAnswer::Passed).count();
    page.open("details", &[]);
    page.element("summary", &[], &format!("{passed} of {} checks passed", checks.len()));
    told(true, page);
    page.close("details");
}

fn notes(graph: &GraphRecord, page: &mut Markup) {
    let evaluation = &graph.event.evaluation;
    let rewrites = evaluation.rewrites.iter().map(|done| {
        let places = if done.count == 1 { "place" } else { "places" };
        format!("{} rewrote {} {places}", done.pass, done.count)
    });
    let evidence = evaluation.judged.verdict.evidence.iter().map(ToString::to_string);
    let remarks = evaluation.remarks.iter().map(|remark| format!("remark: {remark}"));
    let left_out = (!evaluation.left_out.is_empty())
        .then(|| format!("eager alone ran what nothing needs: {}", evaluation.left_out.join(", ")));
    let all: Vec<String> = evidence.chain(remarks).chain(rewrites).chain(left_out).collect();
    if all.is_empty() {
        page.text("-");
        return;
    }
    list(all.iter().map(String::as_str), page);
}

/// Pass files and models, each text once.
fn texts(run: &RunRecord, graphs: &[&GraphRecord], page: &mut Markup) {
    let mut passes: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let mut models: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for graph in graphs {
        let path = graph.event.evaluation.judged.graph.as_str();
        for (position, (name, digest)) in graph.event.artefacts.iter().enumerate() {
            let is_model = position == 0 && name == FileName::Model.as_str();
            let texts = if is_model { &mut models } else { &mut passes };
            texts.entry((name, digest)).or_default().push(path);
        }
    }
    for ((name, digest), _) in passes {
        text(run, &format!("Pass file {name}"), digest, page);
    }
    for ((_, digest), paths) in models {
        text(run, &format!("Model of {}", paths.join(", ")), digest, page);
    }
}

fn text(run: &RunRecord, title: &str, digest: &str, page: &mut Markup) {
    page.open("details", &[]);
    page.element("summary", &[], title);
    match run.text(digest, MAX_TEXT_BYTES) {
        Some(text) => source(&text, page),
        None => page.element(
            "p",
            &[("class", "soft")],
            "The text is not in the run's store, is damaged or is too large.",
        ),
    }
    page.close("details");
}
