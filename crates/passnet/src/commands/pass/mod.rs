//! `passnet pass`: everything about passes that needs no execution.

mod apply;
mod check;
mod explain;
mod matching;
mod prepare;
mod trace;

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum PassCommand {
    /// Check passes: do they load and trace, and do they keep the integrity rules
    #[command(after_help = "\
Examples:
  passnet pass check bench/passes/swiglu
  passnet pass check examples/passes/rms_norm_gate/rms_norm_gate.py --json
  passnet pass check --rules                what every rule looks for, and why

Exit code 1 means that a pass has errors or is refused by a rule.")]
    Check(check::CheckArgs),
    /// Show what `pattern` and `replacement_args` mean as graphs
    #[command(after_help = "\
Examples:
  passnet pass trace examples/passes/rms_norm_gate/rms_norm_gate.py
  passnet pass trace bench/passes/swiglu --json       pattern, arguments and wrapper of every pass

Exit code 1 means that a pass cannot be loaded or traced; the error says at which line, and why.")]
    Trace(trace::TraceArgs),
    /// Say where passes match, and how widely they apply
    #[command(after_help = "\
Examples:
  passnet pass match bench/passes/swiglu --in bench/tasks/swiglu/graphs
  passnet pass match examples/passes/rms_norm_gate --in graphs.tar.zst        over a whole corpus
  passnet pass match examples/passes/rms_norm_gate --in graphs.tar.zst --summary --json
  passnet pass match examples/passes/rms_norm_gate --in examples/graphs --json        one JSON object for each pass and graph
  passnet pass match examples/passes/rms_norm_gate --in examples/graphs --semantics reference     what torch.fx would find

Exit code 1 means that a pass matches nowhere.")]
    Match(matching::MatchArgs),
    /// Rewrite graphs with passes and print them
    #[command(after_help = "\
Examples:
  passnet pass apply bench/passes/swiglu --in bench/tasks/swiglu/graphs
  passnet pass apply bench/passes/swiglu --in bench/tasks/swiglu/graphs --out rewritten        one folder for each graph
  passnet pass apply bench/passes/swiglu --in bench/tasks/swiglu/graphs --input-passes examples/passes/rms_norm_gate

Passes apply in the order of their list, each until it matches nowhere any more. Exit code 1 means that no pass
changed a graph, or that a pass has errors.")]
    Apply(apply::ApplyArgs),
    /// Say why a pass does not match a graph, and what to change
    #[command(after_help = "\
Examples:
  passnet pass explain examples/passes/rms_norm_gate --in examples/graphs/masked_softmax
  passnet pass explain examples/passes/rms_norm_gate --in examples/graphs/masked_softmax --json          for an agent
  passnet pass explain examples/passes/rms_norm_gate --in examples/graphs/masked_softmax --commutative

In the table `=` marks operations that fit and `!` those that do not. Exit code 1 means that a pass does not match.")]
    Explain(explain::ExplainArgs),
}

/// Which passes, and how they are read.
#[derive(Debug, Args)]
pub struct Passes {
    /// Pass folders or pass files
    #[arg(required = true, value_name = "PASS")]
    pub passes: Vec<PathBuf>,

    /// A folder of passes that apply first (`const_pass_dir` of a sample)
    #[arg(long, value_name = "DIR")]
    pub input_passes: Option<PathBuf>,

    /// Keep at most this many passes, as the reference does (it uses 100)
    #[arg(long, value_name = "N")]
    pub pattern_limit: Option<usize>,

    /// Keep at most this many replacement functions, as the reference does (it uses 1)
    #[arg(long, value_name = "N")]
    pub function_limit: Option<usize>,
}

/// How patterns are matched.
#[derive(Debug, Args)]
pub struct Matching {
    /// Whose idea of a match
    #[arg(long, value_enum, default_value_t = Semantics::Default)]
    pub semantics: Semantics,

    /// Let `maximum(a, b)` match `maximum(b, a)`, which may return another zero; sums and products always do
    #[arg(long)]
    pub commutative: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Semantics {
    /// By meaning, and never across an effect that would change the result
    Default,
    /// As torch.fx does it for the reference
    Reference,
}

/// `1 graph`, `2 graphs`.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

pub fn run(command: PassCommand, output: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        PassCommand::Check(args) => check::run(args, output),
        PassCommand::Trace(args) => trace::run(args, output),
        PassCommand::Match(args) => matching::run(args, output),
        PassCommand::Apply(args) => apply::run(args, output),
        PassCommand::Explain(args) => explain::run(args, output),
    }
}
