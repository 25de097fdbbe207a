//! More than two runs.

use super::{count, percent};
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_bench::report::{RunRecord, leaderboard, printable};
use passnet_bench::score::Parameters;
use serde_json::json;

pub(super) fn show(
    runs: &[RunRecord],
    parameters: Parameters,
    out: &mut Output,
) -> Result<(), CommandError> {
    let standings = leaderboard(runs, parameters);
    if standings.is_empty() {
        return Err(CommandError::input("no graph is in all of these runs")
            .with_hint("compare runs over the same samples"));
    }
    if out.is_json() {
        return out
            .json(&json!({ "b": parameters.b, "p": parameters.p, "leaderboard": standings }));
    }
    let mut rows =
        table(["", "run", "AS", "graphs right", "tasks right", "fast_1", "speed-up", "left out"]);
    for (place, standing) in standings.iter().enumerate() {
        let summary = &standing.score.summary;
        rows.add_row([
            (place + 1).to_string(),
            printable(&standing.run),
            format!("{:.4}", standing.score.aggregated),
            percent(summary.correctness_rate),
            percent(standing.task_correctness_rate),
            percent(summary.fast_1),
            summary.geometric_mean.map_or("-".into(), |mean| format!("{mean:.4}")),
            standing.left_out.to_string(),
        ]);
    }
    out.table(&rows)?;
    out.line("")?;
    let graphs = standings[0].score.summary.graphs;
    out.line(format!("Over {} that all runs have.", count(graphs, "graph")))?;
    for standing in standings.iter().filter(|standing| standing.compat > 0) {
        out.line(format!(
            "{}: {} of the compatibility tier, not timed, counted as failed.",
            printable(&standing.run),
            count(standing.compat, "graph")
        ))?;
    }
    Ok(())
}
