//! The extractor as a process: our Python package under the user's Python.

use super::package::FILES;
use super::{CaptureArgs, Catalogue};
use crate::commands::doctor::python;
use crate::error::CommandError;
use passnet_dataset::parallel;
use passnet_engine::torch::package::Package;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// What became of one model, as `results.jsonl` has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    pub id: String,
    pub outcome: String,
    /// A few words to count failures by.
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub graphs: u64,
    /// Why the graph broke, where it did.
    #[serde(default)]
    pub breaks: Vec<String>,
    #[serde(default)]
    pub seconds: f64,
}

impl Record {
    pub fn is_captured(&self) -> bool {
        self.outcome == "captured"
    }
}

/// Runs the extractor to its end; its progress goes to our stderr. What it did is in `results.jsonl`.
pub fn capture(
    models: &[String],
    catalogue: &[Catalogue],
    out: &Path,
    args: &CaptureArgs,
) -> Result<(), CommandError> {
    let python = python::choose(args.python.as_deref()).map_err(lacking)?;
    let package = Package::lay_out(FILES)?;
    let mut command = Command::new(&python);
    command.args(["-m", "passnet.extract"]).args(models).arg("--out").arg(out);
    if !catalogue.is_empty() {
        let names: Vec<&str> = catalogue.iter().map(|one| one.package()).collect();
        command.arg("--catalogue").arg(names.join(",")).args(["--only", &args.only]);
    }
    let jobs = args.jobs.unwrap_or_else(parallel::default_workers);
    command.args(["--jobs", &jobs.to_string()]);
    command.args(["--time-limit", &args.time_limit.to_string()]);
    command.args(["--memory-limit-mb", &args.memory_limit.to_string()]);
    if let Some(seconds) = args.seconds {
        command.args(["--seconds", &seconds.to_string()]);
    }
    for (asked, option) in [
        (args.retry_failed, "--retry-failed"),
        (args.dynamic, "--dynamic"),
        (args.full_graph, "--fullgraph"),
    ] {
        if asked {
            command.arg(option);
        }
    }
    command
        .env("PYTHONPATH", search_path(package.folder()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // The order of sets of strings would differ between runs.
        .env("PYTHONHASHSEED", "0")
        .env("HF_HUB_OFFLINE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let status = command
        .status()
        .map_err(|error| lacking(format!("`{}` does not run: {error}", python.display())))?;
    match status.code() {
        Some(0 | 1) if out.join(RESULTS).is_file() => Ok(()),
        Some(2) => Err(CommandError::input("the extractor refused the request (see above)")),
        _ => Err(lacking(format!("the extractor under `{}` failed: {status}", python.display()))),
    }
}

const RESULTS: &str = "results.jsonl";

/// The last record of each model; lines that are no records (a kill tears one) are passed over.
pub fn records(out: &Path) -> Result<BTreeMap<String, Record>, CommandError> {
    let file = std::fs::File::open(out.join(RESULTS))?;
    let mut found = BTreeMap::new();
    for line in BufReader::new(file).split(b'\n') {
        if let Ok(record) = serde_json::from_slice::<Record>(&line?) {
            found.insert(record.id.clone(), record);
        }
    }
    Ok(found)
}

/// Our package first, then what the user had.
pub(in crate::commands) fn search_path(package: &Path) -> OsString {
    let mut path = package.as_os_str().to_owned();
    if let Some(before) = std::env::var_os("PYTHONPATH").filter(|value| !value.is_empty()) {
        path.push(":");
        path.push(before);
    }
    path
}

pub(in crate::commands) fn lacking(message: String) -> CommandError {
    CommandError::Lacking {
        message,
        hint: "name a Python with PyTorch by `--python PATH` or PASSNET_PYTHON; \
               `passnet doctor` shows what is there"
            .into(),
    }
}
