//! One run.

use super::{MAX_ROWS, and_more, count, percent, print_place, seal_json};
use crate::commands::curve::print_curve;
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_bench::report::{
    GraphRow, Histogram, RunRecord, RunReport, ScoreGroup, printable, ratio_text,
};
use passnet_bench::score::Parameters;
use passnet_bench::tolerance::BASELINE;
use serde_json::{Value, json};

const BAR_WIDTH: f64 = 40.0;

pub(super) fn show(
    run: &RunRecord,
    parameters: Parameters,
    out: &mut Output,
) -> Result<(), CommandError> {
    let Some(report) = RunReport::of(run, parameters) else { return Ok(()) };
    if out.is_json() {
        return out.json(&json_of(run, &report, parameters)?);
    }
    print_conditions(run, &report, out)?;
    out.line("")?;
    print_summary(&report, parameters, out)?;
    out.line("")?;
    print_curve(&report.score.es, out)?;
    out.line("")?;
    print_histogram(&report.histogram, out)?;
    for (title, groups) in [
        ("task", &report.groups.task),
        ("dtype", &report.groups.dtype),
        ("category", &report.groups.category),
        ("operation", &report.groups.operation),
    ] {
        print_groups(title, groups, out)?;
    }
    print_slowest(run, &report, out)?;
    print_least_accurate(run, &report, out)?;
    print_failures(&report, out)
}

fn json_of(
    run: &RunRecord,
    report: &RunReport,
    parameters: Parameters,
) -> Result<Value, CommandError> {
    let value = |result: serde_json::Result<Value>| {
        result.map_err(|error| CommandError::bug(error.to_string()))
    };
    let mut object = json!({
        "run": run.name,
        "complete": run.is_complete,
        "start": run.start,
        "conditions": run.conditions(),
        "seal": seal_json(run),
        "b": parameters.b,
        "p": parameters.p,
    });
    let graphs: Vec<GraphRow<'_>> =
        run.graphs.iter().map(|graph| GraphRow::of(&graph.event)).collect();
    let report = value(serde_json::to_value(report))?;
    if let (Some(object), Value::Object(report)) = (object.as_object_mut(), report) {
        object.extend(report);
        object.insert("graphs".into(), value(serde_json::to_value(graphs))?);
    }
    Ok(object)
}

fn print_conditions(
    run: &RunRecord,
    report: &RunReport,
    out: &mut Output,
) -> Result<(), CommandError> {
    let state = if run.is_complete { "complete" } else { "stopped before its end" };
    out.line(format!(
        "{}: {} of {}, {state}",
        printable(&run.name),
        count(run.graphs.len(), "graph"),
        count(report.tasks, "task")
    ))?;
    print_place(run, out)?;
    let noise = run.graphs.iter().map(|graph| graph.noise_floor).fold(0.0, f64::max);
    out.line(format!("noise floor {}", percent(noise)))
}

fn print_summary(
    report: &RunReport,
    parameters: Parameters,
    out: &mut Output,
) -> Result<(), CommandError> {
    let summary = &report.score.summary;
    let reference = report.reference_as.map_or("none".into(), |score| format!("{score:.4}"));
    out.line(format!(
        "AS        {:.4}   (b = {}, p = {}; as the reference counts: {reference})",
        report.score.aggregated, parameters.b, parameters.p
    ))?;
    out.line(format!(
        "correct   {} of {} graphs at t = {BASELINE} ({}), {} of tasks in full",
        summary.correct,
        summary.graphs,
        percent(summary.correctness_rate),
        percent(report.task_correctness_rate)
    ))?;
    let fast: Vec<String> =
        report.fast.iter().map(|fast| format!("fast_{} {}", fast.p, percent(fast.share))).collect();
    out.line(format!("fast      {}", fast.join(", ")))?;
    if let Some(mean) = summary.geometric_mean {
        out.line(format!("speed-up  {mean:.3} (geometric mean of the correct graphs)"))?;
    }
    let decisions = report.decisions;
    out.line(format!(
        "decided   {} faster, {} tied, {} slower",
        decisions.faster, decisions.tie, decisions.slower
    ))?;
    out.line(format!(
        "time      {:.1} s, of these {:.1} s in timed calls",
        report.seconds, report.measured_seconds
    ))
}

/// One bar per bin; eager lies between two of them.
fn print_histogram(histogram: &Histogram, out: &mut Output) -> Result<(), CommandError> {
    out.line("speed-up        graphs")?;
    let largest = histogram.largest().max(1) as f64;
    for bin in &histogram.bins {
        if bin.low == Some(1.0) {
            out.line(format!("{:>14}  ------  1 = eager", ""))?;
        }
        let filled = (bin.count as f64 / largest * BAR_WIDTH).ceil() as usize;
        let row = format!("{:>14}  {:>6}  {}", bin.label(), bin.count, "█".repeat(filled));
        out.line(row.trim_end())?;
    }
    Ok(())
}

fn print_groups(title: &str, groups: &[ScoreGroup], out: &mut Output) -> Result<(), CommandError> {
    if groups.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let mut rows = table([title, "graphs", "correct", "AS", "fast_1", "speed-up"]);
    for group in groups.iter().take(MAX_ROWS) {
        let summary = &group.summary;
        rows.add_row([
            printable(&group.name),
            summary.graphs.to_string(),
            summary.correct.to_string(),
            ratio_text(group.aggregated),
            percent(summary.fast_1),
            summary.geometric_mean.map_or("-".into(), ratio_text),
        ]);
    }
    out.table(&rows)?;
    and_more(groups.len(), out)
}

fn print_slowest(
    run: &RunRecord,
    report: &RunReport,
    out: &mut Output,
) -> Result<(), CommandError> {
    if report.slowest.is_empty() {
        return Ok(());
    }
    out.line("")?;
    let mut rows = table(["slowest right graphs", "speed-up", "99 % interval", "decided"]);
    for graph in report.slowest.iter().filter_map(|name| run.graph(name)) {
        let evaluation = &graph.event.evaluation;
        let interval = evaluation.interval.map_or("-".into(), |interval| {
            format!("{} to {}", ratio_text(interval.low), ratio_text(interval.high))
        });
        rows.add_row([
            printable(&graph.name().to_string()),
            graph.right_speedup().map_or("-".into(), ratio_text),
            interval,
            evaluation.decision.map_or("-".into(), |decision| decision.name().to_string()),
        ]);
    }
    out.table(&rows)
}

fn print_least_accurate(
    run: &RunRecord,
    report: &RunReport,
    out: &mut Output,
) -> Result<(), CommandError> {
    if report.least_accurate.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(format!(
        "Furthest from the float64 result, beyond eager's own error (in tolerances at t = {BASELINE}):"
    ))?;
    let mut rows = table(["graph", "eager", "candidate", "right from"]);
    for graph in report.least_accurate.iter().filter_map(|name| run.graph(name)) {
        let evaluation = &graph.event.evaluation;
        let Some(accuracy) = evaluation.accuracy else { continue };
        let right = evaluation.judged.ladder.first_right();
        rows.add_row([
            printable(&graph.name().to_string()),
            ratio_text(accuracy.eager),
            ratio_text(accuracy.candidate),
            right.map_or("-".into(), |t| format!("t = {t}")),
        ]);
    }
    out.table(&rows)
}

fn print_failures(report: &RunReport, out: &mut Output) -> Result<(), CommandError> {
    for group in &report.failures {
        out.line("")?;
        out.line(format!("{}: {}", group.verdict, count(group.graphs.len(), "graph")))?;
        for failure in group.graphs.iter().take(MAX_ROWS) {
            out.line(format!("  {}", printable(&failure.name.to_string())))?;
            for evidence in &failure.evidence {
                out.line(format!("    {}", printable(evidence)))?;
            }
        }
        and_more(group.graphs.len(), out)?;
    }
    Ok(())
}
