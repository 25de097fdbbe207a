//! More than two runs.

use super::{MAX_ROWS, and_more, count, percent, seals_json};
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_bench::report::{
    Matrix, MatrixCell, MatrixRun, MatrixTask, RankedGroup, RunRecord, leaderboard, matrix,
    printable, ratio_text,
};
use passnet_bench::score::Parameters;
use serde_json::json;

pub(super) fn show(
    runs: &[RunRecord],
    parameters: Parameters,
    out: &mut Output,
) -> Result<(), CommandError> {
    let groups = leaderboard(runs, parameters);
    if groups.iter().all(|group| group.standings.is_empty()) {
        return Err(CommandError::input("no graph is in all of these runs")
            .with_hint("compare runs over the same samples"));
    }
    if out.is_json() {
        return out.json(&json!({
            "b": parameters.b,
            "p": parameters.p,
            "leaderboard": groups,
            "matrix": matrix(runs, parameters),
            "seals": seals_json(runs),
        }));
    }
    if groups.len() > 1 {
        out.line(format!(
            "These runs are of {} kinds, which are not ranked side by side.",
            groups.len()
        ))?;
        out.line("")?;
    }
    for (index, group) in groups.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        print_group(group, out)?;
    }
    print_matrix(&matrix(runs, parameters), out)
}

/// Tasks in which a run differs from the first by more than noise.
fn print_matrix(found: &Matrix, out: &mut Output) -> Result<(), CommandError> {
    let [first, _, ..] = found.runs.as_slice() else { return Ok(()) };
    let differing: Vec<&MatrixTask> =
        found.tasks.iter().filter(|task| task.differences > 0).collect();
    out.line("")?;
    out.line(format!(
        "{} in which a run differs from {} by more than noise: mean speed-up, graphs that are better (+) and worse (-).",
        count(differing.len(), "task"),
        printable(&first.run)
    ))?;
    if differing.is_empty() {
        return Ok(());
    }
    // What an unlike run took says nothing about the first; only its verdicts are held against those.
    let unlike = |run: &MatrixRun| if run.unlike { " (unlike)" } else { "" };
    let names = found.runs.iter().map(|run| format!("{}{}", printable(&run.run), unlike(run)));
    let mut rows = table(["task".to_string(), "graphs".into()].into_iter().chain(names));
    for task in differing.iter().take(MAX_ROWS) {
        let cell = |cell: &Option<MatrixCell>| match cell {
            None => "not run".to_string(),
            Some(cell) => {
                let mut text = cell.geometric_mean.map_or("none right".into(), ratio_text);
                for (sign, graphs) in [('+', cell.better), ('-', cell.worse)] {
                    if graphs > 0 {
                        text.push_str(&format!(" {sign}{graphs}"));
                    }
                }
                text
            }
        };
        let heads = [printable(&task.task), task.differences.to_string()];
        rows.add_row(heads.into_iter().chain(task.cells.iter().map(cell)));
    }
    out.table(&rows)?;
    and_more(differing.len(), out)
}

fn print_group(group: &RankedGroup, out: &mut Output) -> Result<(), CommandError> {
    for conditions in &group.conditions {
        out.line(printable(&conditions.describe()))?;
    }
    for difference in &group.differences {
        out.line(printable(&format!("unlike the first: {difference}")))?;
    }
    if group.standings.is_empty() {
        return out.line("no graph is in all of these runs");
    }
    let mut rows = table([
        "rank",
        "run",
        "AS",
        "99 % interval",
        "graphs right",
        "tasks right",
        "fast_1",
        "speed-up",
        "left out",
    ]);
    for standing in &group.standings {
        let summary = &standing.score.summary;
        let interval = &standing.interval;
        rows.add_row([
            standing.rank.to_string(),
            printable(&standing.run),
            format!("{:.4}", standing.score.aggregated),
            format!("{} to {}", ratio_text(interval.low), ratio_text(interval.high)),
            percent(summary.correctness_rate),
            percent(standing.task_correctness_rate),
            percent(summary.fast_1),
            summary.geometric_mean.map_or("-".into(), |mean| format!("{mean:.4}")),
            standing.left_out.to_string(),
        ]);
    }
    out.table(&rows)?;
    out.line("")?;
    let shared = group.standings.windows(2).any(|pair| pair[0].rank == pair[1].rank);
    let shared =
        if shared { " Runs that cannot be told from the best of a rank share it." } else { "" };
    out.line(format!("Over {} that all runs have.{shared}", count(group.graphs, "graph")))?;
    for standing in group.standings.iter().filter(|standing| standing.compat > 0) {
        out.line(format!(
            "{}: {} of the compatibility tier, not timed, counted as failed.",
            printable(&standing.run),
            count(standing.compat, "graph")
        ))?;
    }
    Ok(())
}
