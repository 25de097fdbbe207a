//! What does units on a node: for each command a worker, and what they share.

use super::input::{passes_of, read_task};
use super::tasks::{PASSES, RUN};
use crate::error::CommandError;
use passnet_bench::bench::Bench;
use passnet_bench::run::RunStore;
use passnet_bench::sample::{self, Sample};
use passnet_engine::Identity;
use serde_json::Value;
use std::path::Path;
use std::sync::Mutex;

/// What the program does with units of one command.
pub trait UnitWorker {
    /// Where results come from.
    fn identity(&self) -> Identity;

    /// The same as the driver stores it, with what else it needs to know.
    fn about(&self) -> Value {
        serde_json::to_value(self.identity()).unwrap_or_default()
    }

    /// What a race of eager against itself shows here; `None` where nothing is timed.
    fn noise(&self) -> Option<f64> {
        None
    }

    /// Does one unit: files in, at a path from where the process is, files out, and words. The error says why the machine
    /// could not.
    fn perform(&mut self, words: &Value, input: &Path, out: &Path) -> Result<Value, String>;
}

/// Judges passes that come with their task.
pub struct BenchWorker {
    pub bench: Bench<'static>,
}

impl BenchWorker {
    /// Races eager against itself first.
    pub fn new(mut bench: Bench<'static>) -> Result<BenchWorker, CommandError> {
        bench.options.noise_floor = bench.measure_noise(&bundled()?);
        Ok(BenchWorker { bench })
    }

    /// Judges a task into a run of its own.
    pub fn judge(&self, sample: &Sample, passes: &Path, out: &Path) -> Result<(), String> {
        let said = |error: passnet_bench::event_log::LogError| error.to_string();
        let mut store = RunStore::scratch(&out.join(RUN)).map_err(said)?;
        store.append(&self.bench.start()).map_err(said)?;
        let judged = self.bench.sample(sample, passes, Some(&Mutex::new(store))).map_err(said)?;
        match judged.not_judged.first() {
            None => Ok(()),
            Some(lost) => Err(format!("{} was not judged: {}", lost.graph, lost.reason)),
        }
    }
}

impl UnitWorker for BenchWorker {
    fn identity(&self) -> Identity {
        self.bench.engine.identity()
    }

    fn noise(&self) -> Option<f64> {
        Some(self.bench.options.noise_floor)
    }

    fn perform(&mut self, _: &Value, input: &Path, out: &Path) -> Result<Value, String> {
        self.judge(&read_task(input)?, &passes_of(input), out)?;
        Ok(Value::Null)
    }
}

/// Where a solved task's passes go.
pub fn solved_passes(out: &Path) -> std::path::PathBuf {
    out.join(PASSES)
}

/// The task of a unit.
pub fn task_of(input: &Path) -> Result<Sample, String> {
    read_task(input)
}

/// The bundled tasks: the same race on every node.
pub fn bundled() -> Result<Vec<Sample>, CommandError> {
    let folders = sample::find(&[crate::embedded::material("tasks")?])?;
    Ok(folders.iter().map(|folder| Sample::read(folder)).collect::<Result<_, _>>()?)
}
