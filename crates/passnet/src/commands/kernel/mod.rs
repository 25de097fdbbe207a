//! `passnet kernel`: check, plan and run the kernels of a pass without a GPU.

mod case;
mod check;
mod plan;
mod run;

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::{Args, Subcommand, ValueEnum};
use passnet_graph::{Device, DeviceKind};
use passnet_kernel::plan::TensorSpec;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum KernelCommand {
    /// Look for out-of-bounds accesses, races, unwritten outputs and more
    #[command(after_help = "\
Examples:
  passnet kernel check bench/passes/swiglu --graph bench/tasks/swiglu/graphs    for the shapes at which the passes match
  passnet kernel check bench/passes/swiglu/swiglu.py      for the inputs that its first comments describe
  passnet kernel check --self-check crates/passnet-kernel/tests/checks    against the files' own `# expect:` lines

Exit code 1 means that a kernel has errors, or that a self-check missed one or found one too many.")]
    Check(check::CheckArgs),
    /// Show the launch plan and the tile IR of each kernel
    Plan(plan::PlanArgs),
    /// Run the kernels on the CPU
    Run(run::RunArgs),
}

/// Which passes, and for which inputs.
#[derive(Debug, Args)]
#[command(after_help = "\
Without a graph a file says in its first comments what its wrapper takes:
  # wrapper: fused_add
  # input: x float32 [64, 100] normal
  # input: index int64 [16] int 0 64
  # value: 1e-5")]
pub struct Inputs {
    /// Pass folders or pass files
    #[arg(required = true, value_name = "PASS")]
    passes: Vec<PathBuf>,

    /// Graph folders, trees of them, or archives: plan for the shapes at which each pass matches there
    #[arg(long = "graph", num_args = 1.., value_name = "DIR")]
    graphs: Vec<PathBuf>,

    /// Where the wrapper's arguments appear to be. Passes are written for a GPU, and `passnet bench` shows them one,
    /// wherever their kernels run
    #[arg(long, value_enum, default_value_t = DeviceArg::Cuda)]
    device: DeviceArg,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceArg {
    Cuda,
    Cpu,
}

impl From<DeviceArg> for Device {
    fn from(device: DeviceArg) -> Device {
        match device {
            DeviceArg::Cuda => TensorSpec::DEVICE,
            DeviceArg::Cpu => Device { kind: DeviceKind::Cpu, index: None },
        }
    }
}

pub fn run(command: KernelCommand, out: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        KernelCommand::Check(args) => check::run(&args, out),
        KernelCommand::Plan(args) => plan::run(&args, out),
        KernelCommand::Run(args) => run::run(&args, out),
    }
}
