//! `passnet dataset benchmark`

use super::StoreArgs;
use crate::commands::engine::EngineArgs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use clap::Args;
use passnet_bench::admission::Admission;
use passnet_dataset::benchmark::{
    BenchmarkOptions, BenchmarkReport, HiddenPart, KindReport, Shown, benchmark, set_version,
};
use passnet_dataset::sample::least::LeastGraphs;
use passnet_dataset::store::Store;
use passnet_engine::EngineName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

    /// Graphs of a task, at least: tasks of which fewer pass are left out; `6,fusible=8` where a kind has its own number
    #[arg(long, default_value = "1", value_name = "N")]
    least_graphs: LeastGraphs,

    /// Which version of the benchmark the set calls itself
    #[arg(long, value_name = "TEXT")]
    set_version: Option<String>,

    /// A second store, for the hidden part: a fifth of the candidates, drawn by the SHA-256 of a phrase and the task's id
    #[arg(long, value_name = "FILE", requires = "phrase")]
    hidden: Option<PathBuf>,

    /// The phrase that draws the hidden part; without `--hidden` nothing is set aside
    #[arg(long, value_name = "TEXT", requires = "hidden")]
    phrase: Option<String>,

    /// Million elements that the arguments of a graph may have together
    #[arg(long, default_value_t = 64, value_name = "N")]
    most_elements: usize,

    /// Seconds that a run of a graph may take on each engine: slower ones are left out
    #[arg(long, default_value_t = 10, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    most_seconds: u64,

    /// With `--engine torch`, graphs must also run there and give outputs of the same types
    #[command(flatten)]
    engine: EngineArgs,
}

pub fn run(args: BenchmarkArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    if args.hidden.as_ref() == Some(&args.out) {
        return Err(CommandError::input("`--out` and `--hidden` name the same file"));
    }
    for file in [Some(&args.out), args.hidden.as_ref()].into_iter().flatten() {
        if file.exists() {
            return Err(CommandError::input(format!("{} is there already", file.display())));
        }
    }
    let store = args.store.read()?;
    let workers = args.store.workers.count();
    args.engine.check()?;
    let most_time = Duration::from_secs(args.most_seconds);
    let other = match args.engine.choice().engine {
        EngineName::Native => None,
        EngineName::Torch => Some(args.engine.start_one_within(most_time)?),
    };
    let most_elements = args.most_elements.saturating_mul(1_000_000);
    let admission = Admission { most_elements, most_time, other };
    let open = |file: &Path| Store::open_for_writing(file, workers);
    let mut out = open(&args.out)?;
    let mut hidden = args.hidden.as_deref().map(open).transpose()?;
    let options = BenchmarkOptions {
        tasks: args.tasks,
        graphs: args.graphs,
        least_graphs: args.least_graphs,
        workers,
    };
    let phrase = args.phrase.as_deref().unwrap_or_default();
    let part = hidden.as_mut().map(|out| HiddenPart { out, phrase });
    let judge = |files: &_| admission.judge(files);
    let report = benchmark(&store, &mut out, part, &judge, options, &Bar::new())?;
    for mut set in [Some(out), hidden].into_iter().flatten() {
        if let Some(version) = &args.set_version {
            set_version(&mut set, version)?;
        }
        set.compact(&Bar::new())?;
        set.seal()?;
    }
    if output.is_json() {
        let value = serde_json::to_value(&report).map_err(|e| CommandError::bug(e.to_string()))?;
        output.json(&value)?;
    } else {
        show(output, &report)?;
    }
    Ok(Outcome::Done)
}

fn show(output: &mut Output, report: &BenchmarkReport) -> Result<(), CommandError> {
    show_part(output, &report.kinds)?;
    if !report.hidden.is_empty() {
        output.line("the hidden part:")?;
        show_part(output, &report.hidden)?;
    }
    output.line("(rare: in at most one task of a hundred)")?;
    for (reason, graphs) in &report.refused {
        output.line(format!("{graphs} graphs left out: {reason}"))?;
    }
    let structures = report.training_structures;
    output.line(format!("none of {structures} structures of training tasks is in the set"))
}

fn show_part(
    output: &mut Output,
    kinds: &BTreeMap<&'static str, KindReport>,
) -> Result<(), CommandError> {
    let mut shown = table([
        "kind",
        "candidates",
        "tried",
        "passed",
        "tasks",
        "graphs",
        "operations",
        "rare operations",
        "transitions",
    ]);
    let of = |count: Shown| format!("{} of {}", count.shown, count.all);
    for (kind, line) in kinds {
        shown.add_row([
            (*kind).to_string(),
            line.candidates.to_string(),
            line.tried.to_string(),
            line.passed.to_string(),
            line.tasks.to_string(),
            line.graphs.to_string(),
            of(line.operations),
            of(line.rare_operations),
            of(line.transitions),
        ]);
    }
    output.table(&shown)
}
