//! `passnet dataset decompose`

use super::measure::MeasureArgs;
use super::{StoreArgs, show_sweep, sweep_json};
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::progress::Bar;
use clap::{Args, ValueEnum};
use passnet_dataset::decompose::kernels::{Counts, DecomposeError, NativeFusion};
use passnet_dataset::decompose::run::{DecomposeReport, Method, decompose};
use passnet_dataset::decompose::typical::TypicalOptions;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct DecomposeArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// How to choose the pieces
    #[arg(long, value_enum)]
    kind: PieceArg,

    #[command(flatten)]
    choice: PieceChoice,

    #[command(flatten)]
    measure: MeasureArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum PieceArg {
    /// Every operation alone
    SoleOp,
    /// Op sequences that the corpus repeats
    Typical,
    /// Ops that a compiler fuses into one kernel
    Fusible,
}

/// How each method chooses.
#[derive(Debug, Args)]
pub(super) struct PieceChoice {
    /// Typical: longest window that one fold replaces
    #[arg(long, default_value_t = 64, value_name = "OPS")]
    window: usize,

    /// Typical: folds at most
    #[arg(long, default_value_t = 17, value_name = "N")]
    folds: usize,

    /// Typical: shortest piece
    #[arg(long, default_value_t = 4, value_name = "OPS")]
    min_ops: usize,

    /// Typical: pieces of this length and longer are cut further
    #[arg(long, default_value_t = 64, value_name = "OPS")]
    max_ops: usize,

    /// Fusible: `native` for the built-in fusion model, or a folder of recorded kernel counts (`GRAPH.json` or
    /// `GRAPH/*.json`)
    #[arg(long, value_name = "native|DIR", default_value = "native")]
    counts: PathBuf,
}

impl PieceChoice {
    pub(super) fn method(&self, kind: PieceArg) -> Result<Method<'static>, CommandError> {
        match kind {
            PieceArg::SoleOp => Ok(Method::SoleOp),
            PieceArg::Typical => Ok(Method::Typical(TypicalOptions {
                window: self.window,
                folds: self.folds,
                min_ops: self.min_ops,
                max_ops: self.max_ops,
            })),
            PieceArg::Fusible if self.counts.as_os_str() == "native" => {
                Ok(Method::Fusible(Counts::Model(&NativeFusion)))
            }
            PieceArg::Fusible if self.counts.is_dir() => {
                Ok(Method::Fusible(Counts::Recorded(self.counts.clone())))
            }
            PieceArg::Fusible => Err(CommandError::input(format!(
                "`{}` is not a folder of recorded kernel counts",
                self.counts.display()
            ))),
        }
    }
}

pub fn run(args: DecomposeArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let method = args.choice.method(args.kind)?;
    let mut store = args.store.write()?;
    let workers = args.store.workers.count();
    let report = args
        .measure
        .with(|measure| decompose(&mut store, &method, measure, workers, &Bar::new()))?;
    if output.is_json() {
        output.json(&to_json(&report))?;
        return Ok(Outcome::Done);
    }
    if !report.folds.is_empty() {
        output.line(format!("{} folds, {} ranges", report.folds.len(), report.ranges))?;
    }
    show_sweep(output, &report.sweep)?;
    Ok(Outcome::Done)
}

pub(super) fn to_json(report: &DecomposeReport) -> Value {
    let folds: Vec<Value> = report
        .folds
        .iter()
        .map(|fold| {
            json!({
                "length": fold.length, "count": fold.count, "score": fold.score(),
                "replaced_length": fold.replaced_length, "replaced_count": fold.replaced_count,
            })
        })
        .collect();
    let mut value = sweep_json(&report.sweep);
    value["folds"] = folds.into();
    value["ranges"] = report.ranges.into();
    value
}

impl From<DecomposeError> for CommandError {
    fn from(error: DecomposeError) -> Self {
        match error {
            DecomposeError::Store(error) => error.into(),
            DecomposeError::Counts(error) => error.into(),
            DecomposeError::TooManyOps(error) => CommandError::input(error.to_string()),
        }
    }
}
