//! More than two runs.

use super::{count, percent, seals_json};
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_bench::report::{RankedGroup, RunRecord, leaderboard, printable, ratio_text};
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
    Ok(())
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
