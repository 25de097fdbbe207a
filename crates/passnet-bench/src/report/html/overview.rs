//! The run as a whole: the first screen of a page.

use super::super::{RunRecord, RunReport, ScoreGroup, WORST, ratio_text};
use super::chart;
use super::markup::Markup;
use super::parts::{count, facts, headline, optional_ratio, percent};
use super::task::anchor;
use crate::score::Parameters;
use crate::tolerance::BASELINE;

pub(super) fn write(
    run: &RunRecord,
    report: &RunReport,
    parameters: Parameters,
    page: &mut Markup,
) {
    page.open("header", &[]);
    page.element("h1", &[], &format!("PassNet run {}", run.name));
    conditions(run, page);
    page.close("header");
    first_numbers(report, page);
    numbers(run, report, parameters, page);
    page.open("div", &[("class", "pair")]);
    page.open("figure", &[]);
    chart::curves(&[(&run.name, report.score.es.iter().collect())], page);
    page.element(
        "figcaption",
        &[],
        "ES(t): the mean speed-up where failures at level t count as b; looser levels to the right \
         forgive more. Above the dashed line the passes are faster than eager.",
    );
    page.close("figure");
    page.open("figure", &[]);
    chart::histogram(&report.histogram, page);
    page.element("figcaption", &[], "Speed-ups of the graphs that are right.");
    page.close("figure");
    page.close("div");
    tasks(run, report, page);
    for (title, head, groups) in [
        ("By type of the first float input", "dtype", &report.groups.dtype),
        ("By category", "category", &report.groups.category),
        (
            "By operation (a graph counts under each of its own)",
            "operation",
            &report.groups.operation,
        ),
    ] {
        group_table(title, head, groups, page);
    }
    offenders(run, report, page);
    failures(report, page);
}

fn conditions(run: &RunRecord, page: &mut Markup) {
    let Some(start) = &run.start else { return };
    let state = if run.is_complete { "complete" } else { "stopped before its end" };
    let noise = run.graphs.iter().map(|graph| graph.noise_floor).fold(0.0, f64::max);
    for conditions in run.conditions() {
        page.element("p", &[("class", "soft")], &format!("{}.", conditions.describe()));
    }
    page.element(
        "p",
        &[("class", "soft")],
        &format!(
            "{} against eager, noise floor {}, {state}, {}.",
            start.compiler,
            percent(noise),
            run.seal.state()
        ),
    );
}

fn first_numbers(report: &RunReport, page: &mut Markup) {
    let summary = &report.score.summary;
    let right = format!("correct ({} of {})", summary.correct, count(summary.graphs, "graph"));
    let mut numbers = vec![
        (ratio_text(report.score.aggregated), "AS".to_string()),
        (percent(summary.correctness_rate), right),
        (percent(report.task_correctness_rate), "tasks in full".into()),
        (optional_ratio(summary.geometric_mean), "G-mean of the right".into()),
    ];
    let fast = report.fast.iter();
    numbers.extend(fast.map(|fast| (percent(fast.share), format!("fast_{}", fast.p))));
    headline(&numbers, page);
}

fn numbers(run: &RunRecord, report: &RunReport, parameters: Parameters, page: &mut Markup) {
    let summary = &report.score.summary;
    let reference = report.reference_as.map_or("none".into(), |score| format!("{score:.4}"));
    let fast: Vec<String> =
        report.fast.iter().map(|fast| format!("fast_{} {}", fast.p, percent(fast.share))).collect();
    let decisions = report.decisions;
    let rows = [
        (
            "AS",
            format!("{:.4} (b = {}, p = {})", report.score.aggregated, parameters.b, parameters.p),
        ),
        ("AS as the reference counts", reference),
        (
            "Correct",
            format!(
                "{} of {} graphs at t = {BASELINE} ({}); {} of {} tasks in full",
                summary.correct,
                summary.graphs,
                percent(summary.correctness_rate),
                percent(report.task_correctness_rate),
                report.tasks
            ),
        ),
        ("Fast", fast.join(", ")),
        (
            "Speed-up",
            summary.geometric_mean.map_or("no graph is right".into(), |mean| {
                format!("{mean:.3} (geometric mean of the correct graphs)")
            }),
        ),
        (
            "Decided",
            format!(
                "{} faster, {} tied, {} slower",
                decisions.faster, decisions.tie, decisions.slower
            ),
        ),
        (
            "Time",
            format!(
                "{:.1} s for {} graphs, of these {:.1} s in timed calls",
                report.seconds,
                run.graphs.len(),
                report.measured_seconds
            ),
        ),
    ];
    facts(&rows, page);
}

fn cells(group: &ScoreGroup) -> Vec<String> {
    let summary = &group.summary;
    vec![
        summary.graphs.to_string(),
        summary.correct.to_string(),
        ratio_text(group.aggregated),
        percent(summary.fast_1),
        optional_ratio(summary.geometric_mean),
    ]
}

const COLUMNS: [&str; 5] = ["graphs", "correct", "AS", "fast_1", "speed-up"];

fn tasks(run: &RunRecord, report: &RunReport, page: &mut Markup) {
    page.element("h2", &[("id", "tasks")], "Tasks");
    page.open_table("Each task leads to its graphs", &[&["task"], &COLUMNS[..]].concat());
    // Groups by task and samples are both in the order of their names.
    for (index, (group, _)) in report.groups.task.iter().zip(run.samples()).enumerate() {
        page.open("tr", &[]);
        page.open("th", &[("scope", "row")]);
        page.element("a", &[("href", &format!("#{}", anchor(index)))], &group.name);
        page.close("th");
        for cell in cells(group) {
            page.element("td", &[], &cell);
        }
        page.close("tr");
    }
    page.close_table();
}

fn group_table(title: &str, head: &str, groups: &[ScoreGroup], page: &mut Markup) {
    if groups.is_empty() {
        return;
    }
    page.open_table(title, &[&[head], &COLUMNS[..]].concat());
    for group in groups {
        page.row(&[vec![group.name.clone()], cells(group)].concat());
    }
    page.close_table();
}

fn offenders(run: &RunRecord, report: &RunReport, page: &mut Markup) {
    page.element("h2", &[("id", "worst")], "Worst offenders");
    page.open_table(&format!("The {WORST} slowest graphs that are right"), &["graph", "speed-up"]);
    for graph in report.slowest.iter().filter_map(|name| run.graph(name)) {
        page.row(&[graph.name().to_string(), graph.right_speedup().map_or("-".into(), ratio_text)]);
    }
    page.close_table();
    page.open_table(
        &format!(
            "The {WORST} furthest from the float64 result beyond eager's own error, in tolerances at t = {BASELINE}"
        ),
        &["graph", "eager", "candidate"],
    );
    for graph in report.least_accurate.iter().filter_map(|name| run.graph(name)) {
        if let Some(accuracy) = graph.event.evaluation.accuracy {
            page.row(&[
                graph.name().to_string(),
                ratio_text(accuracy.eager),
                ratio_text(accuracy.candidate),
            ]);
        }
    }
    page.close_table();
}

fn failures(report: &RunReport, page: &mut Markup) {
    page.element("h2", &[("id", "failures")], "Failures");
    if report.failures.is_empty() {
        page.element("p", &[], "Every graph is right.");
    }
    for group in &report.failures {
        let title = format!("{}: {}", group.verdict, group.graphs.len());
        page.open_table(&title, &["graph", "evidence"]);
        for failure in &group.graphs {
            page.row(&[failure.name.to_string(), failure.evidence.join("; ")]);
        }
        page.close_table();
    }
}
