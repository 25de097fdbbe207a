//! Where graphs run: the options that several commands share.

use crate::cache::cache_folder;
use crate::embedded;
use crate::error::CommandError;
use crate::output::warn;
use crate::paths::{any_path, named};
use clap::{Args, ValueEnum};
use passnet_engine::choice::Refused;
use passnet_engine::{Engine, EngineChoice, EngineName, Tier};
use std::path::PathBuf;
use std::time::Duration;

/// File name of the native plan runner.
const RUNNER: &str = "libpassnet_runner.so";
/// Where a plan runner comes from.
pub const RUNNER_HINT: &str = "a release build of passnet carries it; beside another build put what `cargo build -p passnet-runner` makes \
     (libpassnet_runner.so), or name it by PASSNET_RUNNER";

/// What is not given is left to [`EngineChoice`], or to the run that goes on.
#[derive(Debug, Args)]
pub struct EngineArgs {
    /// Where graphs run [default: native]
    #[arg(long, value_enum)]
    engine: Option<EngineArg>,

    /// Device of the torch engine [default: cpu]
    #[arg(long, value_parser = ["cpu", "cuda"])]
    device: Option<String>,

    /// GPUs by number, a worker for each; results are as from one (torch engine on cuda)
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    devices: Vec<u32>,

    /// A Python with PyTorch, for the torch engine [default: python3]
    #[arg(long, env = "PASSNET_PYTHON", value_name = "PATH", value_parser = any_path())]
    python: Option<PathBuf>,

    /// The native plan runner of the torch engine; else the one that this program carries, or that lies beside it
    #[arg(long, env = "PASSNET_RUNNER", value_name = "FILE", value_parser = any_path())]
    runner: Option<PathBuf>,

    /// How passes may run: `compat` lets those that cannot become launch plans run in a sandboxed PyTorch, labelled
    /// so, not timed and not scored (torch engine) [default: plan]
    #[arg(long, value_enum)]
    tier: Option<TierArg>,

    /// GiB that a worker of the torch engine may hold [default: 32]
    #[arg(long, value_name = "GIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    worker_memory: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EngineArg {
    /// Our own, on the CPU, in this process
    Native,
    /// PyTorch, in a process of its own
    Torch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TierArg {
    /// As launch plans only
    Plan,
    /// In a sandboxed PyTorch, where no plan can be made
    Compat,
}

impl EngineArgs {
    /// What is asked for.
    pub fn choice(&self) -> EngineChoice {
        self.over(&EngineChoice::default())
    }

    /// What is asked for, and where nothing is said what was asked for before.
    pub fn over(&self, before: &EngineChoice) -> EngineChoice {
        EngineChoice {
            engine: match self.engine {
                Some(EngineArg::Native) => EngineName::Native,
                Some(EngineArg::Torch) => EngineName::Torch,
                None => before.engine,
            },
            device: self.device.clone().unwrap_or_else(|| before.device.clone()),
            devices: match self.devices.is_empty() {
                true => before.devices.clone(),
                false => self.devices.clone(),
            },
            tier: match self.tier {
                Some(TierArg::Plan) => Tier::Plan,
                Some(TierArg::Compat) => Tier::Compat,
                None => before.tier,
            },
            python: named(self.python.as_deref()).unwrap_or(&before.python).into(),
            runner: named(self.runner.as_deref())
                .map(PathBuf::from)
                .or_else(|| before.runner.clone()),
            worker_memory: self.worker_memory.unwrap_or(before.worker_memory),
            call_limit: before.call_limit,
        }
    }

    /// Refuses what the engine asked for does not do.
    pub fn check(&self) -> Result<(), CommandError> {
        check(&self.choice())
    }

    /// The engines asked for: one, or one for each GPU.
    pub fn start(&self) -> Result<Vec<Box<dyn Engine>>, CommandError> {
        start(&self.choice())
    }

    /// The engines asked for, for a command that runs passes on them.
    pub fn start_for_passes(&self) -> Result<Vec<Box<dyn Engine>>, CommandError> {
        start_for_passes(&self.choice())
    }

    /// The engine asked for, where several would have nothing to share.
    pub fn start_one(&self) -> Result<Box<dyn Engine>, CommandError> {
        start_one(&self.choice())
    }

    /// The same for a command that runs passes on it.
    pub fn start_one_for_passes(&self) -> Result<Box<dyn Engine>, CommandError> {
        check_runner(&self.choice())?;
        self.start_one()
    }

    /// The engine asked for, with a limit of its own for one call of a graph.
    pub fn start_one_within(&self, call_limit: Duration) -> Result<Box<dyn Engine>, CommandError> {
        start_one(&EngineChoice { call_limit, ..self.choice() })
    }
}

fn start_one(choice: &EngineChoice) -> Result<Box<dyn Engine>, CommandError> {
    if choice.devices.len() > 1 {
        let error = CommandError::input("this command works on one GPU");
        return Err(error.with_hint("name one with `--devices`"));
    }
    let first = start(choice)?.into_iter().next();
    first.ok_or_else(|| CommandError::bug("no engine was started"))
}

fn check(choice: &EngineChoice) -> Result<(), CommandError> {
    let refused = |Refused { message, hint }| CommandError::input(message).with_hint(hint);
    choice.check().map_err(refused)
}

/// Starts the engines of a choice.
pub fn start(choice: &EngineChoice) -> Result<Vec<Box<dyn Engine>>, CommandError> {
    check(choice)?;
    choice.start(&cache_folder().join("cubins"), own_runner()).map_err(|error| {
        CommandError::Lacking {
            message: error.to_string(),
            hint: "name a Python with PyTorch by `--python PATH` or PASSNET_PYTHON; `passnet doctor` says what \
                   this machine has"
                .into(),
        }
    })
}

/// As [`start`], for a command that runs passes.
pub fn start_for_passes(choice: &EngineChoice) -> Result<Vec<Box<dyn Engine>>, CommandError> {
    check_runner(choice)?;
    start(choice)
}

/// Refuses to run passes without a plan runner: for every graph it would turn out that it cannot be judged.
fn check_runner(choice: &EngineChoice) -> Result<(), CommandError> {
    let runs_plans = choice.engine == EngineName::Torch && choice.tier == Tier::Plan;
    if runs_plans && choice.runner.is_none() && own_runner().is_none() {
        return Err(CommandError::Lacking {
            message: format!("the torch engine runs passes with {RUNNER}, and there is none"),
            hint: RUNNER_HINT.into(),
        });
    }
    Ok(())
}

/// The plan runner: the one that this program carries, or the one that was built beside it.
pub fn own_runner() -> Option<PathBuf> {
    match embedded::runner() {
        Some(Ok(path)) => return Some(path),
        Some(Err(error)) => warn(&format!("note: the plan runner cannot be unpacked: {error}")),
        None => {}
    }
    let path = std::env::current_exe().ok()?.parent()?.join(RUNNER);
    path.is_file().then_some(path)
}
