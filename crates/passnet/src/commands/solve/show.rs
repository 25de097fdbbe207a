//! What `passnet solve` prints: the tasks with their passes, what stays in the graphs, and the judgement where there is one.

use super::{Origin, Solved};
use crate::commands::bench::print_results;
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_bench::bench::Judged;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Reasons for nodes that stay, at most.
const MOST_REASONS: usize = 12;

pub(super) fn show(
    solved: &[Solved],
    judged: &Judged,
    run: Option<&Path>,
    place: &Origin,
    out: &mut Output,
) -> Result<(), CommandError> {
    let is_judged = !judged.events.is_empty() || !judged.not_judged.is_empty();
    if out.is_json() {
        let tasks: Vec<_> = solved
            .iter()
            .map(|solved| match &solved.result {
                Ok(explanation) => json!({ "task": solved.name, "solution": explanation }),
                Err(error) => json!({ "task": solved.name, "error": error }),
            })
            .collect();
        out.json(&json!({ "identity": place.identity, "tasks": tasks }))?;
    } else {
        show_tasks(solved, out)?;
        show_totals(solved, out)?;
        show_left(solved, out)?;
        if is_judged {
            out.line("")?;
        }
    }
    if is_judged {
        print_results(run, &place.identity, place.noise_floor, judged, out)?;
    }
    Ok(())
}

/// A row for each task that was solved, and why the others were not.
fn show_tasks(solved: &[Solved], out: &mut Output) -> Result<(), CommandError> {
    let mut rows = table(["task", "passes", "fused", "left", "piece speed-up", "seconds"]);
    for solved in solved {
        let Ok(explanation) = &solved.result else { continue };
        let fused: usize = explanation.passes.iter().map(|pass| pass.nodes.len()).sum();
        let speedups: Vec<String> = explanation
            .passes
            .iter()
            .map(|pass| match pass.measured_speedup {
                _ if pass.passthrough => "neutral".into(),
                Some(speedup) => format!("{speedup:.2}"),
                None => "-".into(),
            })
            .collect();
        rows.add_row([
            solved.name.chars().take(16).collect::<String>(),
            explanation.passes.len().to_string(),
            fused.to_string(),
            explanation.left.len().to_string(),
            speedups.join(" "),
            format!("{:.2}", explanation.seconds),
        ]);
    }
    out.table(&rows)?;
    for solved in solved {
        if let Err(error) = &solved.result {
            out.line(format!("{}: not solved: {error}", solved.name))?;
        }
    }
    Ok(())
}

/// How many tasks were solved, how long one took, and for how many nothing wins.
fn show_totals(solved: &[Solved], out: &mut Output) -> Result<(), CommandError> {
    let mut seconds: Vec<f64> =
        solved.iter().filter_map(|s| s.result.as_ref().ok()).map(|e| e.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or(0.0);
    let done = seconds.len();
    out.line(format!("{done} of {} tasks solved, median {median:.2} s each", solved.len()))?;
    let nothing_wins = |s: &&Solved| s.result.as_ref().is_ok_and(|e| e.wins == Some(false));
    let neutral = solved.iter().filter(nothing_wins).count();
    if neutral > 0 {
        out.line(format!(
            "{neutral} of them without a gain: nothing wins, their passes are neutral or lose least"
        ))?;
    }
    Ok(())
}

/// Why nodes stay in the graphs, the most frequent reasons first.
fn show_left(solved: &[Solved], out: &mut Output) -> Result<(), CommandError> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for explanation in solved.iter().filter_map(|s| s.result.as_ref().ok()) {
        for left in &explanation.left {
            *reasons.entry(format!("{}: {}", left.operation, left.reason)).or_insert(0) += 1;
        }
    }
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), reason.clone()));
    for (reason, count) in reasons.iter().take(MOST_REASONS) {
        out.line(format!("  left alone {count:>4}  {reason}"))?;
    }
    Ok(())
}
