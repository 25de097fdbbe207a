//! The Python files of the learning loop, carried in this binary, and the processes they run in.

use super::LearnArgs;
use crate::commands::doctor::python;
use crate::error::CommandError;
use crate::output::warn;
use passnet_agent::model::LocalModel;
use passnet_engine::python_files;
use passnet_engine::torch::package::Package;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: &[(&str, &str)] = &python_files![
    "passnet/__init__.py",
    "passnet/learn/__init__.py",
    "passnet/learn/__main__.py",
    "passnet/learn/decode.py",
    "passnet/learn/job.py",
    "passnet/learn/lora.py",
    "passnet/learn/packing.py",
    "passnet/learn/reply.py",
    "passnet/learn/train.py",
    "passnet/learn/weights.py",
];

/// Progress of a training is told this often.
const TOLD: Duration = Duration::from_secs(10);

/// A training, as `python/passnet/learn/job.py` reads it.
#[derive(Debug, Serialize)]
pub(super) struct TrainJob<'a> {
    pub(super) model: &'a Path,
    pub(super) device: &'a str,
    pub(super) data: &'a [PathBuf],
    pub(super) out: &'a Path,
    pub(super) adapter: Option<&'a Path>,
    pub(super) rank: u32,
    pub(super) alpha: f64,
    pub(super) learning_rate: f64,
    pub(super) epochs: u32,
    pub(super) length: u32,
    pub(super) blocks_per_step: u32,
    pub(super) seed: u64,
    pub(super) checkpoint_steps: u32,
}

/// Replies, as the same file reads it.
#[derive(Debug, Serialize)]
pub(super) struct ReplyJob<'a> {
    pub(super) model: &'a Path,
    pub(super) device: &'a str,
    pub(super) adapter: Option<&'a Path>,
    pub(super) max_new_tokens: u32,
    pub(super) max_length: u32,
    pub(super) temperature: f64,
    pub(super) seed: u64,
}

/// What a training tells of itself.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Told {
    Begin { steps: u64, first: u64, examples: u64, too_long: u64, tokens: u64, learned: u64 },
    Step { step: u64, steps: u64, loss: f64, seconds_left: f64 },
}

/// The package laid out, and the Python that runs it.
#[derive(Debug)]
pub(super) struct Python {
    package: Package,
    program: PathBuf,
    jobs: PathBuf,
}

impl Python {
    pub(super) fn new(args: &LearnArgs, jobs: PathBuf) -> Result<Python, CommandError> {
        let choice = args.engine.choice();
        let named = (choice.python.as_os_str() != "python3").then_some(choice.python.as_path());
        let program = python::choose(named).map_err(lacking)?;
        std::fs::create_dir_all(&jobs)?;
        let python = Python { package: Package::lay_out(FILES)?, program, jobs };
        let mut look = python.command();
        look.args(["-c", "import torch, transformers, safetensors"]).stdin(Stdio::null());
        let found = look.output().map_err(|error| lacking(error.to_string()))?;
        match found.status.success() {
            true => Ok(python),
            false => Err(lacking(format!(
                "`{}` does not import torch, transformers and safetensors",
                python.program.display()
            ))),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("PYTHONPATH", self.package.folder())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("HF_HUB_OFFLINE", "1")
            .env("TOKENIZERS_PARALLELISM", "false");
        command
    }

    fn job(&self, kind: &str, name: &str, job: &impl Serialize) -> Result<Command, CommandError> {
        let path = self.jobs.join(format!("{name}.json"));
        let text =
            serde_json::to_string_pretty(job).map_err(|e| CommandError::bug(e.to_string()))?;
        std::fs::write(&path, text)?;
        let mut command = self.command();
        command.args(["-m", "passnet.learn", kind]).arg(path);
        Ok(command)
    }

    /// Trains to the end; from a checkpoint where there is one.
    pub(super) fn train(&self, name: &str, job: &TrainJob<'_>) -> Result<(), CommandError> {
        let mut command = self.job("train", name, job)?;
        // Its input stays open as long as we live: when it closes, the training ends too.
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let failed = |error: String| lacking(format!("{name}: {error}"));
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let input = child.stdin.take();
        let mut last: Option<Instant> = None;
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).lines() {
                let Ok(told) = serde_json::from_str::<Told>(&line?) else { continue };
                tell(name, &told, &mut last);
            }
        }
        let status = child.wait()?;
        drop(input);
        match status.success() {
            true => Ok(()),
            false => Err(failed(format!("the training ended early ({status})"))),
        }
    }

    /// A model that replies until it is dropped.
    pub(super) fn reply(
        &self,
        name: &str,
        job: &ReplyJob<'_>,
        batch: usize,
    ) -> Result<LocalModel, CommandError> {
        let command = self.job("reply", name, job)?;
        LocalModel::start(command, batch).map_err(|error| lacking(format!("{name}: {error}")))
    }
}

fn tell(name: &str, told: &Told, last: &mut Option<Instant>) {
    match told {
        Told::Begin { steps, first, examples, too_long, tokens, learned } => {
            let again = if *first > 0 { format!(", from step {first} on") } else { String::new() };
            let left_out =
                if *too_long > 0 { format!(", {too_long} left out") } else { String::new() };
            warn(&format!(
                "{name}: {examples} conversations{left_out}, {tokens} tokens, {learned} of them to learn, {steps} steps{again}"
            ));
        }
        Told::Step { step, steps, loss, seconds_left } => {
            if last.is_none_or(|last| last.elapsed() > TOLD) || step == steps {
                *last = Some(Instant::now());
                warn(&format!(
                    "{name}: step {step} of {steps}, loss {loss:.3}, {seconds_left:.0} s left"
                ));
            }
        }
    }
}

pub(super) fn lacking(message: String) -> CommandError {
    CommandError::Lacking {
        message,
        hint: "the same command goes on where it stopped; a Python with PyTorch and transformers is named by \
               `--python PATH` or PASSNET_PYTHON"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::FILES;
    use std::path::Path;

    #[test]
    fn every_file_of_the_package_is_carried() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/passnet/learn");
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            let name = format!("passnet/learn/{}", path.file_name().unwrap().to_string_lossy());
            assert!(path.is_dir() || FILES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }
}
