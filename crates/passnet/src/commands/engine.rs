//! Where graphs run: the options that several commands share.

use crate::error::CommandError;
use clap::{Args, ValueEnum};
use passnet_engine::native::NativeEngine;
use passnet_engine::torch::{TorchEngine, WorkerOptions};
use passnet_engine::{Engine, Tier};
use std::path::PathBuf;
use std::time::Duration;

/// File name of the native plan runner.
const RUNNER: &str = "libpassnet_runner.so";
/// How long one call of a graph may take.
const CALL_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct EngineArgs {
    /// Where graphs run
    #[arg(long, value_enum, default_value_t = EngineArg::Native)]
    pub engine: EngineArg,

    /// Device of the torch engine
    #[arg(long, default_value = "cpu", value_parser = ["cpu", "cuda"])]
    pub device: String,

    /// A Python with PyTorch, for the torch engine
    #[arg(long, env = "PASSNET_PYTHON", default_value = "python3", value_name = "PATH")]
    pub python: PathBuf,

    /// The native plan runner of the torch engine; else the one beside this program
    #[arg(long, env = "PASSNET_RUNNER", value_name = "FILE")]
    pub runner: Option<PathBuf>,

    /// How passes may run: `compat` lets those that cannot become launch plans run in a sandboxed PyTorch, labelled
    /// so, not timed and not scored (torch engine)
    #[arg(long, value_enum, default_value_t = TierArg::Plan)]
    pub tier: TierArg,

    /// GiB that the torch engine's worker may hold
    #[arg(long, default_value_t = 32, value_name = "GIB")]
    pub worker_memory: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    /// Our own, on the CPU, in this process
    Native,
    /// PyTorch, in a process of its own
    Torch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TierArg {
    /// As launch plans only
    Plan,
    /// In a sandboxed PyTorch, where no plan can be made
    Compat,
}

impl From<TierArg> for Tier {
    fn from(tier: TierArg) -> Tier {
        match tier {
            TierArg::Plan => Tier::Plan,
            TierArg::Compat => Tier::Compat,
        }
    }
}

impl EngineArgs {
    /// Refuses what only the torch engine does where another was chosen: nothing runs elsewhere than was asked.
    pub fn check(&self) -> Result<(), CommandError> {
        const HINT: &str = "the native engine replays plans on the CPU; `passnet doctor` says what this machine has";
        let refused = |asked: String| {
            Err(CommandError::input(format!("`{asked}` needs `--engine torch`")).with_hint(HINT))
        };
        match self.engine {
            EngineArg::Native if self.tier == TierArg::Compat => refused("--tier compat".into()),
            EngineArg::Native if self.device != "cpu" => {
                refused(format!("--device {}", self.device))
            }
            _ => Ok(()),
        }
    }

    pub fn start(&self) -> Result<Box<dyn Engine>, CommandError> {
        self.check()?;
        match self.engine {
            EngineArg::Native => Ok(Box::new(NativeEngine)),
            EngineArg::Torch => Ok(Box::new(self.start_torch()?)),
        }
    }

    fn start_torch(&self) -> Result<TorchEngine, CommandError> {
        let options = WorkerOptions {
            python: self.python.clone(),
            runner: self.runner.clone().or_else(beside_this_program),
            cache: cache_folder(),
            device: self.device.clone(),
            threads: 0,
            memory_limit: self.worker_memory << 30,
            call_limit: CALL_LIMIT,
            tier: self.tier.into(),
        };
        TorchEngine::start(options).map_err(|error| CommandError::Lacking {
            message: error.to_string(),
            hint: "name a Python with PyTorch by `--python PATH` or PASSNET_PYTHON; `passnet doctor` says what \
                   this machine has"
                .into(),
        })
    }
}

/// Where compiled kernels are kept between runs.
fn cache_folder() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let root = named("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| named("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    root.join("passnet").join("cubins")
}

/// The plan runner, where it was installed with this program.
pub fn beside_this_program() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.join(RUNNER);
    path.is_file().then_some(path)
}
