//! Which engine is asked for: what a command line says, and what a run remembers of it.

use crate::engine::{Engine, EngineError, ErrorKind, Tier};
use crate::native::NativeEngine;
use crate::torch::{TorchEngine, WorkerOptions};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one call of a graph may take, where nothing else is asked for.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// The engines that can be asked for by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineName {
    /// Our own, on the CPU, in this process.
    #[default]
    Native,
    /// PyTorch, in a process of its own.
    Torch,
}

/// An engine and where it computes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineChoice {
    /// Which engine.
    pub engine: EngineName,
    /// `cpu` or `cuda`.
    pub device: String,
    /// The GPUs, each with an engine of its own; empty for the first one.
    pub devices: Vec<u32>,
    /// How wrappers run.
    pub tier: Tier,
    /// A Python with PyTorch.
    pub python: PathBuf,
    /// The native plan runner; `None` for the one beside the program.
    pub runner: Option<PathBuf>,
    /// GiB that a worker may hold.
    pub worker_memory: u64,
    /// How long one call of a graph may take in a worker; a run does not remember it.
    #[serde(skip)]
    pub call_limit: Duration,
}

impl Default for EngineChoice {
    fn default() -> Self {
        EngineChoice {
            engine: EngineName::Native,
            device: "cpu".into(),
            devices: Vec::new(),
            tier: Tier::Plan,
            python: "python3".into(),
            runner: None,
            worker_memory: 32,
            call_limit: CALL_LIMIT,
        }
    }
}

/// A choice that asks for what the engine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why there is no such engine here.
    pub message: String,
    /// What to do about it.
    pub hint: &'static str,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl std::error::Error for Refused {}

impl EngineChoice {
    /// Refuses what the engine does not do: nothing runs elsewhere than was asked.
    pub fn check(&self) -> Result<(), Refused> {
        const NATIVE: &str = "the native engine replays plans on the CPU; `passnet doctor` says what this machine has";
        let refused = |message: String, hint| Err(Refused { message, hint });
        let is_native = self.engine == EngineName::Native;
        if is_native && self.tier == Tier::Compat {
            return refused("`--tier compat` needs `--engine torch`".into(), NATIVE);
        }
        if is_native && self.device != "cpu" {
            return refused(format!("`--device {}` needs `--engine torch`", self.device), NATIVE);
        }
        if self.devices.is_empty() {
            return Ok(());
        }
        if self.device != "cuda" {
            let hint = "they are numbers of GPUs; on a CPU one worker uses all cores";
            return refused("`--devices` needs `--engine torch --device cuda`".into(), hint);
        }
        if self.tier == Tier::Compat {
            let hint =
                "a sandboxed PyTorch takes the first GPU that it finds; leave `--devices` out";
            return refused("`--devices` does not go with `--tier compat`".into(), hint);
        }
        let mut seen = BTreeSet::new();
        match self.devices.iter().find(|gpu| !seen.insert(**gpu)) {
            Some(gpu) => refused(
                format!("`--devices` names GPU {gpu} twice"),
                "timing is exclusive: one worker for each GPU",
            ),
            None => Ok(()),
        }
    }

    /// The same with paths that mean the same from every directory.
    #[must_use]
    pub fn with_absolute_paths(mut self) -> EngineChoice {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
        // A bare name is looked up on the path, wherever that is.
        if self.python.components().count() > 1 {
            self.python = absolute(&self.python);
        }
        self.runner = self.runner.as_deref().map(absolute);
        self
    }

    /// Starts the engine, or one for each GPU, all of one kind: their results are as from one. Compiled kernels are kept in
    /// `cache`; `runner` is the plan runner where the choice names none.
    pub fn start(
        &self,
        cache: &Path,
        runner: Option<PathBuf>,
    ) -> Result<Vec<Box<dyn Engine>>, EngineError> {
        if self.engine == EngineName::Native {
            return Ok(vec![Box::new(NativeEngine)]);
        }
        let gpus: Vec<Option<u32>> = match self.devices.is_empty() {
            true => vec![None],
            false => self.devices.iter().copied().map(Some).collect(),
        };
        let start = |gpu: &Option<u32>| {
            TorchEngine::start(WorkerOptions {
                python: self.python.clone(),
                runner: self.runner.clone().or_else(|| runner.clone()),
                cache: cache.to_path_buf(),
                device: self.device.clone(),
                gpu: *gpu,
                threads: 0,
                memory_limit: self.worker_memory << 30,
                call_limit: self.call_limit,
                tier: self.tier,
            })
        };
        // Importing PyTorch takes seconds; the workers do it side by side.
        let started: Vec<Result<TorchEngine, EngineError>> = std::thread::scope(|scope| {
            let starting: Vec<_> = gpus.iter().map(|gpu| scope.spawn(|| start(gpu))).collect();
            starting
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(lost())))
                .collect()
        });
        let mut engines: Vec<Box<dyn Engine>> = Vec::new();
        for engine in started {
            engines.push(Box::new(engine?));
        }
        are_alike(&engines)?;
        Ok(engines)
    }
}

fn lost() -> EngineError {
    EngineError::graph(ErrorKind::Internal, "the thread that starts a worker stopped")
}

/// Engines whose results may stand in one run.
fn are_alike(engines: &[Box<dyn Engine>]) -> Result<(), EngineError> {
    let Some(first) = engines.first().map(|engine| engine.identity()) else { return Ok(()) };
    for other in &engines[1..] {
        if let Some(difference) = first.differences(&other.identity()).first() {
            let (one, two) = (&difference.one, &difference.two);
            let text = format!("the GPUs of one run must be alike, but these are {one} and {two}");
            return Err(EngineError::graph(ErrorKind::Arguments, text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(choice: &EngineChoice) -> String {
        choice.check().unwrap_err().to_string()
    }

    #[test]
    fn nothing_runs_elsewhere_than_was_asked() {
        let native = EngineChoice::default();
        assert_eq!(native.check(), Ok(()));
        let torch = EngineChoice { engine: EngineName::Torch, ..native.clone() };
        let cuda = EngineChoice { device: "cuda".into(), ..torch.clone() };
        for fine in [
            torch.clone(),
            cuda.clone(),
            EngineChoice { devices: vec![0, 1], ..cuda.clone() },
            EngineChoice { tier: Tier::Compat, ..cuda.clone() },
        ] {
            assert_eq!(fine.check(), Ok(()), "{fine:?}");
        }
        for (choice, part) in [
            (EngineChoice { tier: Tier::Compat, ..native.clone() }, "`--tier compat` needs"),
            (EngineChoice { device: "cuda".into(), ..native.clone() }, "`--device cuda` needs"),
            (EngineChoice { devices: vec![0], ..native }, "`--devices` needs"),
            (EngineChoice { devices: vec![0, 1], ..torch }, "on a CPU one worker uses all cores"),
            (EngineChoice { devices: vec![1, 0, 1], ..cuda.clone() }, "names GPU 1 twice"),
            (EngineChoice { devices: vec![1], tier: Tier::Compat, ..cuda }, "`--tier compat`"),
        ] {
            assert!(refusal(&choice).contains(part), "{choice:?}: {}", refusal(&choice));
        }
    }

    #[test]
    fn a_remembered_choice_means_the_same_from_every_directory() {
        let choice = EngineChoice {
            python: "venv/bin/python".into(),
            runner: Some("libpassnet_runner.so".into()),
            ..EngineChoice::default()
        };
        let absolute = choice.with_absolute_paths();
        assert!(absolute.python.is_absolute() && absolute.runner.is_some_and(|p| p.is_absolute()));
        let by_name = EngineChoice::default().with_absolute_paths();
        assert_eq!(by_name.python, Path::new("python3"), "looked up on the path");
        let text = serde_json::to_string(&by_name).unwrap();
        assert_eq!(serde_json::from_str::<EngineChoice>(&text).unwrap(), by_name);
        assert_eq!(serde_json::from_str::<EngineChoice>("{}").unwrap(), EngineChoice::default());
    }
}
