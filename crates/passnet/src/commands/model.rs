//! `passnet model bench` and `passnet explain-model`: whole models, in a process of Python's.

use super::doctor::python;
use super::extract::package::FILES as EXTRACTOR;
use super::extract::python::{lacking, search_path};
use super::library::LibraryPlace;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::paths::{any_path, named};
use clap::{Args, Subcommand};
use passnet_engine::python_files;
use passnet_engine::torch::package::{Package, WORKER};
use passnet_library::Trust;
use serde_json::{Map, Value as Json};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const BACKEND: &[(&str, &str)] = &python_files![
    "passnet/backend/__init__.py",
    "passnet/backend/bench.py",
    "passnet/backend/compiled.py",
    "passnet/backend/cuda_graph.py",
    "passnet/backend/explain.py",
    "passnet/backend/fastest.py",
    "passnet/backend/frozen.py",
    "passnet/backend/graph_text.py",
    "passnet/backend/inductor.py",
    "passnet/backend/models.py",
    "passnet/backend/options.py",
    "passnet/backend/reporting.py",
    "passnet/backend/rewriting.py",
    "passnet/backend/server.py",
    "passnet/backend/site.py",
    "passnet/backend/solving.py",
    "passnet/backend/timing.py",
    "passnet/backend/verification.py",
    "passnet/parity/__init__.py",
    "passnet/parity/yardstick.py",
];

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Time a model as eager PyTorch, through TorchInductor and with the library's passes, in turns, outputs compared
    #[command(after_help = "\
Examples:
  passnet model bench my_model.py:factory
  passnet model bench timm:resnet50 hf:bert --batch 1,16 --device cuda --dtype bfloat16
  passnet model bench hf:bert --ways eager,inductor-reduce-overhead,passnet-cudagraph --json

Weights are random; nothing is downloaded. Exit code 1 means that an output is wrong, or that a model does not run.")]
    Bench(BenchArgs),
}

/// Which model, where, and with what.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// Device, `cpu` or `cuda` [default: cuda where there is one]
    #[arg(long, value_parser = ["cpu", "cuda"])]
    device: Option<String>,

    /// Type of the weights and of float inputs [default: bfloat16 on a GPU, float32 else]
    #[arg(long, value_parser = ["float16", "bfloat16", "float32"])]
    dtype: Option<String>,

    /// Which passes are used: those with evidence for the device, others after they were judged, or all
    #[arg(long, value_parser = Trust::NAMES)]
    trust: Option<String>,

    /// An option of the backend as `NAME=JSON`, such as `trust=\"all\"`; may be given again
    #[arg(long = "option", value_name = "NAME=JSON")]
    options: Vec<String>,

    /// A Python with PyTorch [default: python3]
    #[arg(long, env = "PASSNET_PYTHON", value_name = "PATH", value_parser = any_path())]
    python: Option<PathBuf>,

    #[command(flatten)]
    place: LibraryPlace,
}

#[derive(Debug, Args)]
pub struct BenchArgs {
    /// `FILE.py:factory`, `timm:NAME` or `hf:MODEL_TYPE[,setting=value…]`
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<String>,

    /// Batch sizes
    #[arg(long, default_value = "1", value_name = "N,…")]
    batch: String,

    /// Only these ways [default: all that the device has]
    #[arg(long, value_name = "WAY,…")]
    ways: Option<String>,

    /// Seconds of timing for each way
    #[arg(long, default_value_t = 2.0, value_name = "S")]
    seconds: f64,

    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  passnet explain-model my_model.py:factory
  passnet explain-model hf:bert --batch 16 --option 'trust=\"all\"' --json
  passnet explain-model timm:resnet50 --html resnet50.html      the model's graph, on a page that needs nothing else")]
pub struct ExplainArgs {
    /// `FILE.py:factory`, `timm:NAME` or `hf:MODEL_TYPE[,setting=value…]`
    #[arg(value_name = "MODEL")]
    spec: String,

    /// Batch size
    #[arg(long, default_value_t = 1, value_name = "N")]
    batch: usize,

    /// Write a page with the model's graph: what was replaced, by which pass, its times, what was left and why
    #[arg(long, value_name = "PAGE")]
    html: Option<PathBuf>,

    #[command(flatten)]
    model: ModelArgs,
}

pub fn run(command: ModelCommand, output: &mut Output) -> Result<Outcome, CommandError> {
    let ModelCommand::Bench(args) = command;
    let mut arguments = args.models;
    arguments.extend(["--batch".into(), args.batch]);
    arguments.extend(["--seconds".into(), args.seconds.to_string()]);
    if let Some(ways) = args.ways {
        arguments.extend(["--ways".into(), ways]);
    }
    start("passnet.backend.bench", arguments, &args.model, output)
}

pub fn explain(args: ExplainArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let mut arguments = vec![args.spec, "--batch".into(), args.batch.to_string()];
    if let Some(page) = args.html {
        arguments.extend(["--html".into(), page.display().to_string()]);
    }
    start("passnet.backend.explain", arguments, &args.model, output)
}

/// Runs a module of our package to its end; it prints for itself.
fn start(
    module: &str,
    mut arguments: Vec<String>,
    model: &ModelArgs,
    output: &mut Output,
) -> Result<Outcome, CommandError> {
    for (name, value) in [("--device", &model.device), ("--dtype", &model.dtype)] {
        if let Some(value) = value {
            arguments.extend([name.to_string(), value.clone()]);
        }
    }
    arguments.extend(["--options".into(), options(model)?.to_string()]);
    if output.is_json() {
        arguments.push("--json".into());
    }
    output.flush()?;
    let python = python::choose(named(model.python.as_deref())).map_err(lacking)?;
    let files: Vec<(&str, &str)> =
        EXTRACTOR.iter().chain(BACKEND).chain(&WORKER).copied().collect();
    let package = Package::lay_out(&files)?;
    let status = Command::new(&python)
        .args(["-m", module])
        .args(&arguments)
        .env("PYTHONPATH", search_path(package.folder()))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("HF_HUB_OFFLINE", "1")
        .env("PASSNET_PROGRAM", std::env::current_exe()?)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| lacking(format!("`{}` does not run: {error}", python.display())))?;
    match status.code() {
        Some(0) => Ok(Outcome::Done),
        Some(1) => Ok(Outcome::SomethingFailed),
        Some(2) => Err(CommandError::input("the request was refused (see above)")),
        _ => Err(lacking(format!("Python under `{}` failed: {status}", python.display()))),
    }
}

/// The backend's options: those given, and the library.
fn options(model: &ModelArgs) -> Result<Json, CommandError> {
    let mut options = Map::new();
    options.insert("library".into(), model.place.open().folder().display().to_string().into());
    if let Some(trust) = &model.trust {
        options.insert("trust".into(), trust.as_str().into());
    }
    for given in &model.options {
        let (name, value) = given.split_once('=').ok_or_else(|| {
            let error = CommandError::input(format!("`{given}` is not NAME=JSON"));
            error.with_hint("for example `--option trust='\"all\"'`")
        })?;
        // A bare word is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Json::String(value.into()));
        options.insert(name.to_string(), value);
    }
    Ok(Json::Object(options))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_of_the_backend_is_carried() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/passnet/backend");
        for item in std::fs::read_dir(folder).unwrap() {
            let path = item.unwrap().path();
            let name = format!("passnet/backend/{}", path.file_name().unwrap().display());
            assert!(
                !path.is_file() || BACKEND.iter().any(|(known, _)| *known == name),
                "not carried: {name}"
            );
        }
    }
}
