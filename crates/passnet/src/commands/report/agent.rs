//! Runs of agents: what each model achieved, side by side.

use super::{count, percent};
use crate::error::CommandError;
use crate::output::{Output, table};
use passnet_agent::metrics::{At, Metrics};
use passnet_agent::run::{is_agent_run, read_attempts};
use passnet_bench::report::printable;
use passnet_bench::score::Parameters;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Steps at which progress is shown.
const STEPS: [usize; 6] = [1, 2, 5, 10, 20, 50];

/// The metrics of those folders that an agent wrote.
pub(super) fn show(
    paths: &[PathBuf],
    parameters: Parameters,
    out: &mut Output,
) -> Result<(), CommandError> {
    let mut runs = Vec::new();
    for path in paths.iter().filter(|path| is_agent_run(path)) {
        let attempts =
            read_attempts(path).map_err(|error| CommandError::input(error.to_string()))?;
        if let Some(metrics) = Metrics::of(&attempts, parameters) {
            runs.push((path.display().to_string(), metrics));
        }
    }
    if runs.is_empty() {
        return Ok(());
    }
    if out.is_json() {
        let one = |(run, metrics): &(String, Metrics)| json!({ "run": run, "metrics": metrics });
        return out.json(&json!({ "agents": runs.iter().map(one).collect::<Vec<Value>>() }));
    }
    print_metrics(&runs, out)?;
    out.line("")
}

/// One column of numbers for each run; many attempts and steps in few rows.
pub fn print_metrics(runs: &[(String, Metrics)], out: &mut Output) -> Result<(), CommandError> {
    let mut header = vec![String::new()];
    header.extend(runs.iter().map(|(run, _)| printable(run)));
    let mut rows = table(header);
    let mut row = |name: String, value: &dyn Fn(&Metrics) -> String| {
        let mut cells = vec![name];
        cells.extend(runs.iter().map(|(_, metrics)| value(metrics)));
        rows.add_row(cells);
    };
    row("model".into(), &|m| printable(&m.model));
    row("tasks".into(), &|m| m.tasks.to_string());
    if runs.iter().any(|(_, metrics)| !metrics.set_aside.is_empty()) {
        row("set aside: eager fails".into(), &|m| m.set_aside.len().to_string());
    }
    row("attempts".into(), &|m| match m.unfinished {
        0 => m.attempts.to_string(),
        unfinished => format!("{} ({unfinished} unfinished)", m.attempts),
    });
    let most = runs.iter().map(|(_, metrics)| metrics.pass_at.len()).max().unwrap_or(0);
    for k in (1..=most).filter(|k| k.is_power_of_two() || *k == most) {
        let at = |values: &[At]| values.iter().find(|at| at.k == k).map(|at| at.value);
        let share = |values: &[At]| at(values).map_or("-".into(), percent);
        row(format!("pass@{k}"), &|m| share(&m.pass_at));
        row(format!("fast@{k}"), &|m| share(&m.fast_at));
        row(format!("AS, best of {k}"), &|m| {
            at(&m.best_of).map_or("-".into(), |v| format!("{v:.4}"))
        });
    }
    let last = runs.iter().map(|(_, metrics)| metrics.over_steps.len()).max().unwrap_or(0);
    for step in STEPS.into_iter().filter(|step| *step < last).chain((last > 0).then_some(last)) {
        // An attempt that ended keeps what it had.
        row(format!("AS after step {step}"), &|m| {
            let at = m.over_steps.get(step - 1).or(m.over_steps.last());
            at.map_or("-".into(), |at| format!("{:.4}", at.value))
        });
    }
    row("steps".into(), &|m| m.steps.to_string());
    row("evaluations".into(), &|m| m.evaluations.to_string());
    row("tokens in".into(), &|m| match m.cached_tokens {
        0 => m.input_tokens.to_string(),
        cached => format!("{} ({cached} cached)", m.input_tokens),
    });
    row("tokens out".into(), &|m| m.output_tokens.to_string());
    row("cost".into(), &|m| m.cost.map_or("-".into(), |cost| format!("{cost:.4}")));
    row("cost per task".into(), &|m| {
        m.cost_per_task.map_or("-".into(), |cost| format!("{cost:.4}"))
    });
    out.table(&rows)?;
    for (run, metrics) in runs {
        let list = |counts: &std::collections::BTreeMap<String, usize>| {
            counts.iter().map(|(name, n)| format!("{n} {name}")).collect::<Vec<_>>().join(", ")
        };
        out.line("")?;
        out.line(format!("{}: ended by {}", printable(run), list(&metrics.ends)))?;
        if !metrics.set_aside.is_empty() {
            let names: Vec<String> = metrics.set_aside.iter().map(|name| printable(name)).collect();
            out.line(format!("  set aside: eager fails: {}", names.join(", ")))?;
        }
        let failed: usize = metrics.failures.values().sum();
        if failed > 0 {
            out.line(format!(
                "  {} unsolved: {}",
                count(failed, "attempt"),
                list(&metrics.failures)
            ))?;
        }
    }
    Ok(())
}
