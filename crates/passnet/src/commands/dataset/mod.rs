//! `passnet dataset`: from whole models to tasks, in one store file.

mod benchmark;
mod build;
mod build_report;
mod decompose;
mod dedup;
mod export;
mod find;
mod import;
mod measure;
mod running;
mod sample;
mod split;
mod stats;
mod stats_page;
mod vary;
mod verify;

use crate::commands::extract::CaptureArgs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::{Args, Subcommand, ValueEnum};
use passnet_dataset::store::{Kind, Store, StoreError};
use passnet_dataset::sweep::SweepReport;
use passnet_graph::Diagnostic;
use passnet_work::parallel;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum DatasetCommand {
    /// Run the whole pipeline: extract, import, decompose, dedup, vary, sample, split
    #[command(after_help = "\
Examples:
  passnet dataset build --from graphs.tar.zst --store corpus.pnds
  passnet dataset build --from-catalogue all --models captured/ --store corpus.pnds --report report.html
  passnet dataset build --from-catalogue all --shard 0/8 --models parts/0 --store corpus.pnds   captures one of eight parts
  passnet merge captured/0 captured/1 --out captured/all       then the first command with `--models captured/all`

Run it again after an interruption: it continues. The same source gives the same store content.")]
    Build(Box<build::BuildArgs>),
    /// Bring graphs from folder trees, archives, a PassNet checkout or tables into a store
    #[command(after_help = "\
Examples:
  passnet dataset import graphs.tar.zst --store corpus.pnds
  passnet dataset import PassNet/ --store published.pnds       a checkout, or a download of its data
  passnet dataset export published.pnds --out back/            the same files again

A folder that `export --format hub` wrote, or one of its tables, comes back as it was, tasks included. What others wrote with
pyarrow or `datasets` is read as well.

A checkout has `graphs` and `samples`, `graph_lists` or `sample_lists`. Its graphs keep their paths, its samples become
tasks with their published uids and sides, and all other files of these folders are kept as they are. Links are not
followed out of it.

Exit code 1 means that something could not be read or was refused; the rest is in the store.")]
    Import(import::ImportArgs),
    /// Say where in a store a pass matches, or which graphs have certain operations
    #[command(after_help = "\
Examples:
  passnet dataset find bench/set/evaluation.pnds --pass examples/passes/rms_norm_gate
  passnet dataset find bench/set/evaluation.pnds --op softmax,matmul --kind fusible
  passnet dataset find bench/set/evaluation.pnds --op softmax --json --limit 100

An index of operations leaves out what cannot match; a store with many graphs keeps it. Of graphs that differ in sizes
alone one is read. Exit code 1 means that a pass matches nowhere, or that no graph has the operations.")]
    Find(find::FindArgs),
    /// Count what a store holds: kinds, families, dtypes, unique graphs, operations, sizes
    #[command(after_help = "\
Examples:
  passnet dataset stats bench/set/evaluation.pnds
  passnet dataset stats bench/set/evaluation.pnds --html store.html        the same in pictures, one page
  passnet dataset stats bench/set/evaluation.pnds --kind fusible --json")]
    Stats(stats::StatsArgs),
    /// Collapse equal graphs; the first by path stays and inherits the places of the others
    #[command(after_help = "\
Examples:
  passnet dataset dedup corpus.pnds --dry-run            what would collapse into what
  passnet dataset dedup corpus.pnds --level literals     shapes and dtypes do not count")]
    Dedup(dedup::DedupArgs),
    /// Cut whole models into pieces
    #[command(after_help = "\
Examples:
  passnet dataset decompose corpus.pnds --kind typical
  passnet dataset decompose corpus.pnds --kind fusible --counts counts/   recorded kernel counts")]
    Decompose(decompose::DecomposeArgs),
    /// Make shape and dtype variants of pieces
    Vary(vary::VaryArgs),
    /// Group pieces into tasks
    #[command(after_help = "\
Examples:
  passnet dataset sample corpus.pnds
  passnet dataset sample corpus.pnds --run        without pieces that the native engine refuses")]
    Sample(sample::SampleArgs),
    /// Choose evaluation tasks by coverage; the rest is for training, without overlap
    Split(split::SplitArgs),
    /// Check the five constraints that every graph of the dataset must meet
    #[command(after_help = "\
The constraints: runnable, serialisable, decomposable, analysable, custom operations available. Runnable means that every
operation fits its operands; with `--run` graphs of moderate size are run, too, with inputs drawn as they are recorded.
Exit code 1 means that at least one graph does not meet one of them.")]
    Verify(verify::VerifyArgs),
    /// Put evaluation tasks that run and compute something into a small store of their own
    #[command(after_help = "\
Examples:
  passnet dataset split corpus.pnds --evaluation 300
  passnet dataset benchmark corpus.pnds --tasks 200 --engine torch --out evaluation.pnds
  passnet dataset export evaluation.pnds --out evaluation/ && passnet bench evaluation/samples

Graphs are run twice by the native engine, with different inputs, and with `--engine torch` by PyTorch as well. Left
out are graphs that do not run, that are too large or hold more than 512 MiB, that launch nothing, and those whose
outputs are constant, not numbers, or the same for other inputs.

A set of fusible, typical and single-operation tasks is in the repository: bench/set/evaluation.pnds.")]
    Benchmark(benchmark::BenchmarkArgs),
    /// Write graphs and tasks as other tools read them: PassNet's folders, or a folder for the Hugging Face hub
    #[command(after_help = "\
Examples:
  passnet dataset export corpus.pnds --out dataset/ --kind fusible
  passnet dataset export published.pnds --out back/                     a checkout that was imported, byte for byte
  passnet dataset export corpus.pnds --out tables/ --format hub         for `datasets.load_dataset`

Tables are Parquet: `data/graphs/SPLIT-*.parquet` and `data/tasks/SPLIT.parquet`, named by the card `README.md`. The splits
are `train`, `test` (evaluation), `withheld` and `other`. `passnet dataset import tables/` brings them back, equal by content.
Whole models are written where `--kind` names `full`.")]
    Export(export::ExportArgs),
}

impl DatasetCommand {
    /// How the command captures models, where it does.
    pub(super) fn capture(&self) -> Option<&CaptureArgs> {
        match self {
            DatasetCommand::Build(args) => Some(&args.capture),
            _ => None,
        }
    }
}

pub fn run(command: DatasetCommand, output: &mut Output) -> Result<Outcome, CommandError> {
    let outcome = match command {
        DatasetCommand::Benchmark(args) => benchmark::run(args, output),
        DatasetCommand::Build(args) => build::run(*args, output),
        DatasetCommand::Find(args) => find::run(args, output),
        DatasetCommand::Import(args) => import::run(args, output),
        DatasetCommand::Stats(args) => stats::run(args, output),
        DatasetCommand::Dedup(args) => dedup::run(args, output),
        DatasetCommand::Decompose(args) => decompose::run(args, output),
        DatasetCommand::Vary(args) => vary::run(args, output),
        DatasetCommand::Sample(args) => sample::run(args, output),
        DatasetCommand::Split(args) => split::run(args, output),
        DatasetCommand::Verify(args) => verify::run(args, output),
        DatasetCommand::Export(args) => export::run(args, output),
    }?;
    output.flush()?;
    Ok(outcome)
}

/// The store a command works on, and with how many threads.
#[derive(Debug, Args)]
struct StoreArgs {
    /// The store file
    #[arg(value_name = "STORE")]
    store: PathBuf,

    #[command(flatten)]
    workers: Workers,
}

impl StoreArgs {
    fn read(&self) -> Result<Store, CommandError> {
        Ok(Store::open(&self.store)?)
    }

    /// Opens an existing store to write to it.
    fn write(&self) -> Result<Store, CommandError> {
        // Only `import` and `build` make stores: a mistyped name must not.
        drop(Store::open(&self.store)?);
        Ok(Store::open_for_writing(&self.store, self.workers.count())?)
    }
}

#[derive(Debug, Args)]
struct Workers {
    /// Threads to use (default: one for each core)
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
}

impl Workers {
    fn count(&self) -> NonZeroUsize {
        self.workers.unwrap_or_else(parallel::default_workers)
    }
}

/// Kinds of graphs, as the command line names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KindArg {
    /// Whole models
    Full,
    /// Single operations
    SoleOp,
    /// Pieces that recur
    Typical,
    /// Pieces that compilers fuse
    Fusible,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Self {
        match kind {
            KindArg::Full => Kind::Full,
            KindArg::SoleOp => Kind::SoleOp,
            KindArg::Typical => Kind::Typical,
            KindArg::Fusible => Kind::Fusible,
        }
    }
}

/// The kinds asked for, or `all` when none is named.
fn kinds(named: &[KindArg], all: &[Kind]) -> Vec<Kind> {
    if named.is_empty() { all.to_vec() } else { named.iter().map(|kind| (*kind).into()).collect() }
}

/// Kinds of pieces.
const PIECES: [Kind; 3] = [Kind::SoleOp, Kind::Typical, Kind::Fusible];

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        CommandError::Located(vec![Diagnostic::from(&error)])
    }
}

/// What a sweep did, as JSON.
fn sweep_json(report: &SweepReport) -> Value {
    let reasons: Vec<Value> = sorted_reasons(report)
        .into_iter()
        .map(|(kind, reason)| {
            json!({
                "reason": kind, "count": reason.count,
                "example": {"what": reason.example.what, "reason": reason.example.reason},
            })
        })
        .collect();
    json!({
        "graphs": report.graphs, "done_before": report.done_before, "made": report.made,
        "repeats": report.repeats, "refused": report.refused, "reasons": reasons,
    })
}

fn sorted_reasons(report: &SweepReport) -> Vec<(&String, &passnet_dataset::sweep::Reason)> {
    let mut reasons: Vec<_> = report.reasons.iter().collect();
    reasons.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(b.0)));
    reasons
}

/// Reasons shown to people; the rest is in the JSON.
const REASONS_SHOWN: usize = 20;

/// What a sweep did, for people.
fn show_sweep(output: &mut Output, report: &SweepReport) -> Result<(), CommandError> {
    output.line(format!(
        "{} graphs ({} done before): {} made, {} repeats, {} refused",
        report.graphs, report.done_before, report.made, report.repeats, report.refused
    ))?;
    let reasons = sorted_reasons(report);
    if reasons.is_empty() {
        return Ok(());
    }
    let mut shown = table(["refused", "reason", "for example"]);
    for (_, reason) in reasons.iter().take(REASONS_SHOWN) {
        let example = &reason.example;
        shown.add_row([reason.count.to_string(), example.reason.clone(), example.what.clone()]);
    }
    output.table(&shown)?;
    if reasons.len() > REASONS_SHOWN {
        output.line(format!("and {} more kinds of reasons", reasons.len() - REASONS_SHOWN))?;
    }
    Ok(())
}
