//! `passnet report`: what stored runs found.

pub mod agent;
mod compare;
pub(crate) mod files;
mod leaderboard;
mod single;

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_agent::run::{RunFolder, is_agent_run};
use passnet_bench::report::{RunRecord, printable};
use passnet_bench::run::is_run;
use passnet_bench::score::Parameters;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
One run      its score, ES(t), speed-ups, groups, worst offenders and failures
Two runs     what got faster, slower, right or wrong from the first to the second, and whether that
             is more than noise
More runs    a leaderboard over the graphs that all of them have, and the tasks in which a run differs
             from the first by more than noise
Runs of other devices, versions or depths of checking are never ranked side by side; runs that cannot be
told from the best of a rank share it. Lines that were changed, and speed-ups that the timings beside
them do not give, are named, and the exit code is 1
A run of an agent counts with the best attempt at each task; what its model achieved comes first

Examples:
  passnet bench bench/tasks --passes bench/passes --out runs/one
  passnet report runs/one --html one.html
  passnet report runs/one runs/two")]
pub struct ReportArgs {
    /// Run folders that `passnet bench --out` or `passnet agent run --out` wrote
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Write one page that needs nothing else: pictures, tasks, graphs, the passes' text, an agent's attempts step by step
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write validation.log and aggregated_score.json of a run as the reference would, and print
    /// what it prints; with several tasks, each in a folder of its own
    #[arg(long, value_name = "DIR", conflicts_with = "html")]
    reference_files: Option<PathBuf>,

    /// What a failed graph scores (above 0, at most 1)
    #[arg(long, default_value_t = 0.1, value_name = "B", allow_negative_numbers = true)]
    b: f64,

    /// Penalty on slow-downs: a speed-up s below 1 counts as s^(p+1)
    #[arg(long, default_value_t = 0.0, value_name = "P", allow_negative_numbers = true)]
    p: f64,
}

/// A report that could be made is a success, whatever it says, unless the run itself does not hold.
pub fn run(args: ReportArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let parameters = Parameters::checked(args.b, args.p).map_err(CommandError::input)?;
    if args.reference_files.is_none() {
        agent::show(&args.runs, parameters, out)?;
        if args.runs.iter().all(|path| has_no_settled_task(path)) {
            if let Some(path) = &args.html {
                files::write_page(&[], &args.runs, path, parameters)?;
            }
            out.flush()?;
            return Ok(Outcome::Done);
        }
    }
    let runs: Vec<RunRecord> =
        args.runs.iter().map(|path| read_run(path)).collect::<Result<_, _>>()?;
    if let Some(folder) = &args.reference_files {
        let [run] = runs.as_slice() else {
            return Err(CommandError::input("`--reference-files` takes one run"));
        };
        files::write_reference_files(run, folder, parameters, out)?;
        out.flush()?;
        return Ok(outcome(&runs));
    }
    if let Some(path) = &args.html {
        files::write_page(&runs, &args.runs, path, parameters)?;
    }
    match runs.as_slice() {
        [run] => single::show(run, parameters, out)?,
        [before, after] => compare::show(before, after, parameters, out)?,
        runs => leaderboard::show(runs, parameters, out)?,
    }
    if !out.is_json() {
        runs.iter().try_for_each(|run| print_doubts(run, out))?;
    }
    out.flush()?;
    Ok(outcome(&runs))
}

fn outcome(runs: &[RunRecord]) -> Outcome {
    Outcome::failed_if(runs.iter().any(|run| !run.doubts.is_empty()))
}

/// Where a run's results come from, and whether it is sealed.
pub fn print_place(run: &RunRecord, out: &mut Output) -> Result<(), CommandError> {
    let places = run.conditions();
    for conditions in &places {
        out.line(printable(&conditions.describe()))?;
    }
    if places.len() > 1 {
        out.line(format!("note: its results come from {} places", places.len()))?;
    }
    let seal = &run.seal;
    out.line(match (seal.state(), seal.unsealed) {
        ("broken", _) => format!("broken: {} (see below)", count(seal.broken.len(), "line")),
        ("unsealed", lines) => format!("unsealed: {} from before seals", count(lines, "line")),
        (state, _) => format!("{state}: {}", count(seal.sealed, "line")),
    })
}

/// What does not hold in a run.
pub fn print_doubts(run: &RunRecord, out: &mut Output) -> Result<(), CommandError> {
    if run.doubts.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(format!("What does not hold in {}:", printable(&run.name)))?;
    for doubt in run.doubts.iter().take(MAX_ROWS) {
        out.line(format!("  {}", printable(&doubt.to_string())))?;
    }
    and_more(run.doubts.len(), out)
}

/// The same for machines.
pub fn seal_json(run: &RunRecord) -> Value {
    json!({ "state": run.seal.state(), "lines": run.seal, "doubts": run.doubts })
}

/// Of several runs, by name.
fn seals_json(runs: &[RunRecord]) -> Value {
    let named = runs.iter().map(|run| json!({ "run": run.name, "seal": seal_json(run) }));
    Value::Array(named.collect())
}

/// Whether an agent works here that has not finished any task yet: there are metrics, but no results.
fn has_no_settled_task(path: &Path) -> bool {
    let best = RunFolder::reader(path).best_run();
    is_agent_run(path) && RunRecord::read(&best).map_or(true, |run| run.graphs.is_empty())
}

fn read_run(path: &Path) -> Result<RunRecord, CommandError> {
    if is_agent_run(path) {
        let run = read_run(&RunFolder::reader(path).best_run())?;
        return Ok(RunRecord { name: path.display().to_string(), ..run });
    }
    if !is_run(path) {
        let message = format!("{}: no run here", path.display());
        return Err(CommandError::input(message)
            .with_hint("a run is a folder that `passnet bench SAMPLES --out DIR` wrote"));
    }
    let run = RunRecord::read(path)?;
    if run.graphs.is_empty() {
        return Err(no_results(path));
    }
    Ok(run)
}

/// A run that was stopped before its first graph.
pub fn no_results(path: &Path) -> CommandError {
    CommandError::input(format!("{}: the run has no results yet", path.display()))
        .with_hint("the `passnet bench` command that began it goes on with it")
}

/// Rows shown to people before the rest is only counted.
const MAX_ROWS: usize = 40;

fn and_more(rows: usize, out: &mut Output) -> Result<(), CommandError> {
    match rows.checked_sub(MAX_ROWS) {
        None | Some(0) => Ok(()),
        Some(more) => out.line(format!("  … and {more} more; `--json` prints all")),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `1 graph`, `2 graphs`.
fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}
