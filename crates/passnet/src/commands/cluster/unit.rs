//! What every worker does, whatever its units are.

use crate::error::CommandError;
use passnet_bench::sample::{self, Sample};
use passnet_engine::Identity;
use serde_json::Value;
use std::path::Path;

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

/// The bundled tasks: the same race on every node.
pub fn bundled() -> Result<Vec<Sample>, CommandError> {
    let folders = sample::find(&[crate::embedded::material("tasks")?])?;
    Ok(folders.iter().map(|folder| Sample::read(folder)).collect::<Result<_, _>>()?)
}
