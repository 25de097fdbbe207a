//! `passnet graph`: look at graphs, and run them.

mod check;
mod cuda;
mod hash;
mod ops;
mod profile;
mod run;
mod show;

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum GraphCommand {
    /// Show graphs as tables of operations, or print them in canonical style
    #[command(after_help = "\
Examples:
  passnet graph show examples/graphs/conv_bn_relu
  passnet graph show examples/graphs/conv_bn_relu --infer      with the shape and dtype of every value
  passnet graph show examples/graphs/conv_bn_relu --print      as canonical model.py
  passnet graph show examples/graphs/conv_bn_relu --profile    with the time every operation takes
  passnet graph show examples/graphs/conv_bn_relu --profile --device cuda   the kernels of eager PyTorch on a GPU")]
    Show(show::ShowArgs),
    /// Check that graphs are well formed: syntax, operations, metadata, shapes
    #[command(after_help = "\
Examples:
  passnet graph check examples/graphs          every graph below a folder
  passnet graph check graphs.tar.zst --json    an archive, one JSON object a line

Exit code 1 means that at least one graph has errors.")]
    Check(Paths),
    /// Print the three identity digests of graphs
    #[command(after_help = "\
`structure` covers operations and topology, `literals` adds literal arguments, `full` adds the shapes and
dtypes of the inputs. None depends on names, on the order of independent statements, on argument order or
on textual style.

Example:
  passnet graph hash examples/graphs --json | sort -k4      equal graphs come one after the other")]
    Hash(Paths),
    /// Count the operations graphs use
    #[command(after_help = "\
Examples:
  passnet graph ops examples/graphs/conv_bn_relu
  passnet graph ops graphs.tar.zst --by spelling")]
    Ops(ops::OpsArgs),
    /// Run graphs on inputs drawn from their metadata
    #[command(after_help = "\
Examples:
  passnet graph run examples/graphs/conv_bn_relu
  passnet graph run examples/graphs/conv_bn_relu --dump conv.safetensors
  passnet graph run examples/graphs --dtype bfloat16 --json     a tree of graphs, one JSON object a line
  passnet graph run examples/graphs/conv_bn_relu --oracle       everything in float64

Inputs are drawn as the reference draws them, bit by bit as PyTorch's CPU generator does for the same seed.
Exit code 1 means that at least one graph did not run.")]
    Run(run::RunArgs),
}

#[derive(Debug, Args)]
pub struct Paths {
    /// Graph folders, `model.py` files, trees of them, or `.tar.zst` archives
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
}

pub fn run(command: GraphCommand, output: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        GraphCommand::Show(args) => show::run(args, output),
        GraphCommand::Check(args) => check::run(args, output),
        GraphCommand::Hash(args) => hash::run(args, output),
        GraphCommand::Ops(args) => ops::run(args, output),
        GraphCommand::Run(args) => run::run(args, output),
    }
}
