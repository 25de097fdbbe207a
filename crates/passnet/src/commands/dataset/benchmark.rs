//! `passnet dataset benchmark`

use super::StoreArgs;
use crate::commands::engine::EngineArgs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use clap::Args;
use passnet_bench::admission::Admission;
use passnet_dataset::benchmark::{BenchmarkOptions, BenchmarkReport, Shown, benchmark};
use passnet_dataset::store::Store;
use passnet_engine::EngineName;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct BenchmarkArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// The store file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Tasks of each kind
    #[arg(long, default_value_t = 200, value_name = "N")]
    tasks: usize,

    /// Graphs of a task, at most; other dtypes and sizes first
    #[arg(long, default_value_t = 12, value_name = "N")]
    graphs: usize,

    /// Million elements that the arguments of a graph may have together
    #[arg(long, default_value_t = 64, value_name = "N")]
    most_elements: usize,

    /// With `--engine torch`, graphs must also run there and give outputs of the same types
    #[command(flatten)]
    engine: EngineArgs,
}

pub fn run(args: BenchmarkArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    if args.out.exists() {
        let message = format!("{} is there already", args.out.display());
        return Err(CommandError::input(message));
    }
    let store = args.store.read()?;
    let workers = args.store.workers.count();
    args.engine.check()?;
    let other = match args.engine.choice().engine {
        EngineName::Native => None,
        EngineName::Torch => Some(args.engine.start_one()?),
    };
    let admission =
        Admission { most_elements: args.most_elements.saturating_mul(1_000_000), other };
    let mut out = Store::open_for_writing(&args.out, workers)?;
    let options = BenchmarkOptions { tasks: args.tasks, graphs: args.graphs, workers };
    let report =
        benchmark(&store, &mut out, &|files| admission.judge(files), options, &Bar::new())?;
    out.compact(&Bar::new())?;
    out.seal()?;
    if output.is_json() {
        let value = serde_json::to_value(&report).map_err(|e| CommandError::bug(e.to_string()))?;
        output.json(&value)?;
    } else {
        show(output, &report)?;
    }
    Ok(Outcome::Done)
}

fn show(output: &mut Output, report: &BenchmarkReport) -> Result<(), CommandError> {
    let mut shown = table([
        "kind",
        "candidates",
        "passed",
        "tasks",
        "graphs",
        "operations",
        "rare operations",
        "transitions",
    ]);
    let of = |count: Shown| format!("{} of {}", count.shown, count.all);
    for (kind, line) in &report.kinds {
        shown.add_row([
            (*kind).to_string(),
            line.candidates.to_string(),
            line.passed.to_string(),
            line.tasks.to_string(),
            line.graphs.to_string(),
            of(line.operations),
            of(line.rare_operations),
            of(line.transitions),
        ]);
    }
    output.table(&shown)?;
    output.line("(rare: in at most one task of a hundred)")?;
    for (reason, graphs) in &report.refused {
        output.line(format!("{graphs} graphs left out: {reason}"))?;
    }
    let structures = report.training_structures;
    output.line(format!("none of {structures} structures of training tasks is in the set"))
}
