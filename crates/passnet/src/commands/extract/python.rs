//! The extractor as a process: our Python package under the user's Python.

use super::package::FILES;
use super::{CaptureArgs, Chosen};
use crate::commands::doctor::python;
use crate::error::CommandError;
use passnet_engine::torch::package::Package;
use passnet_work::parallel;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

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
pub fn capture(chosen: Chosen<'_>, out: &Path, args: &CaptureArgs) -> Result<(), CommandError> {
    capture_chosen(&arguments(chosen, args), out, args)
}

/// As [`capture`], for the models of a list that [`list`] wrote, or a part of it.
pub(super) fn capture_list(
    path: &Path,
    out: &Path,
    args: &CaptureArgs,
) -> Result<(), CommandError> {
    capture_chosen(&["--list".into(), path.into()], out, args)
}

/// Writes which models are asked for, one JSON object a line.
pub(super) fn list(
    chosen: Chosen<'_>,
    path: &Path,
    args: &CaptureArgs,
) -> Result<(), CommandError> {
    let extractor = Extractor::find(args)?;
    let mut command = extractor.command();
    command.args(arguments(chosen, args));
    extractor.finish(command.arg("--list-only").arg("--out").arg(path), path)
}

/// What says which models.
fn arguments(chosen: Chosen<'_>, args: &CaptureArgs) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = chosen.models.iter().map(OsString::from).collect();
    if !chosen.catalogue.is_empty() {
        let names: Vec<String> = chosen.catalogue.iter().map(|one| one.source()).collect();
        arguments.extend(["--catalogue".into(), names.join(",").into()]);
    }
    if let Some(place) = chosen.configs {
        arguments.extend(["--configs".into(), place.into()]);
    }
    if arguments.len() > chosen.models.len() {
        arguments.extend(["--only".into(), (&args.only).into()]);
    }
    if let Some(path) = chosen.list {
        arguments.extend(["--list".into(), path.into()]);
    }
    arguments
}

/// The options that say how models are captured.
fn limits(command: &mut Command, args: &CaptureArgs) {
    command.args(["--time-limit", &args.time_limit.to_string()]);
    command.args(["--memory-limit-mb", &args.memory_limit.to_string()]);
    for (asked, option) in [
        (args.retry_failed, "--retry-failed"),
        (args.dynamic, "--dynamic"),
        (args.full_graph, "--fullgraph"),
    ] {
        if asked {
            command.arg(option);
        }
    }
}

/// An extractor that waits for models: a line of JSON with an entry and a folder in, its record out. The process has
/// PyTorch loaded and captures each model in a copy of itself.
pub(in crate::commands) struct Server {
    process: Child,
    answers: BufReader<ChildStdout>,
    /// Removed when nobody needs it any more.
    _extractor: Extractor,
}

impl Server {
    /// Starts it, and gives the version of PyTorch that it captures with.
    pub(in crate::commands) fn start(args: &CaptureArgs) -> Result<(Server, String), CommandError> {
        let extractor = Extractor::find(args)?;
        let mut command = extractor.command();
        limits(command.arg("--serve").args(["--out", "."]), args);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| lacking(format!("`{}`: {error}", extractor.python.display())))?;
        let Some(answers) = process.stdout.take().map(BufReader::new) else {
            return Err(CommandError::bug("the extractor has no pipes"));
        };
        let mut server = Server { process, answers, _extractor: extractor };
        let version = server.hear().map_err(lacking)?;
        Ok((server, version["torch"].as_str().unwrap_or("unknown").to_string()))
    }

    /// Captures one model into a folder.
    pub(in crate::commands) fn capture(&mut self, entry: &Value, out: &Path) -> Result<(), String> {
        let Some(questions) = self.process.stdin.as_mut() else { return Err("no pipe".into()) };
        writeln!(questions, "{}", json!({"entry": entry, "out": out}))
            .and_then(|()| questions.flush())
            .map_err(|error| format!("the extractor is gone: {error}"))?;
        self.hear().map(drop)
    }

    fn hear(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) | Err(_) => Err("the extractor ended".into()),
            Ok(_) => serde_json::from_str(&line).map_err(|error| error.to_string()),
        }
    }
}

fn capture_chosen(chosen: &[OsString], out: &Path, args: &CaptureArgs) -> Result<(), CommandError> {
    let extractor = Extractor::find(args)?;
    let mut command = extractor.command();
    command.args(chosen).arg("--out").arg(out);
    let jobs = args.jobs.unwrap_or_else(parallel::default_workers);
    command.args(["--jobs", &jobs.to_string()]);
    limits(&mut command, args);
    if let Some(seconds) = args.seconds {
        command.args(["--seconds", &seconds.to_string()]);
    }
    extractor.finish(&mut command, &out.join(RESULTS))
}

/// The user's Python with our package.
struct Extractor {
    python: PathBuf,
    package: Package,
}

impl Extractor {
    fn find(args: &CaptureArgs) -> Result<Extractor, CommandError> {
        let python = python::choose(args.python.as_deref()).map_err(lacking)?;
        Ok(Extractor { python, package: Package::lay_out(FILES)? })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.python);
        command
            .args(["-m", "passnet.extract"])
            .env("PYTHONPATH", search_path(self.package.folder()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // The order of sets of strings would differ between runs.
            .env("PYTHONHASHSEED", "0")
            .env("HF_HUB_OFFLINE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Runs it to its end, which leaves a file.
    fn finish(&self, command: &mut Command, leaves: &Path) -> Result<(), CommandError> {
        let python = self.python.display();
        let status = command
            .status()
            .map_err(|error| lacking(format!("`{python}` does not run: {error}")))?;
        match status.code() {
            Some(0 | 1) if leaves.is_file() => Ok(()),
            Some(2) => Err(CommandError::input("the extractor refused the request (see above)")),
            _ => Err(lacking(format!("the extractor under `{python}` failed: {status}"))),
        }
    }
}

pub const RESULTS: &str = "results.jsonl";

/// The last record of each model; lines that are no records (a kill tears one) are passed over.
pub fn records(out: &Path) -> Result<BTreeMap<String, Record>, CommandError> {
    let lines = record_lines(out)?.into_iter();
    Ok(lines.map(|(id, (record, _))| (id, record)).collect())
}

/// As [`records`], each with its line.
pub fn record_lines(out: &Path) -> Result<BTreeMap<String, (Record, Vec<u8>)>, CommandError> {
    let mut found = BTreeMap::new();
    let path = out.join(RESULTS);
    if !path.exists() {
        return Ok(found);
    }
    for line in BufReader::new(std::fs::File::open(path)?).split(b'\n') {
        let line = line?;
        if let Ok(record) = serde_json::from_slice::<Record>(&line) {
            found.insert(record.id.clone(), (record, line));
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
