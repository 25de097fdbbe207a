//! `passnet graph run`

use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::paths::for_each_graph_with;
use clap::{Args, ValueEnum};
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::tensor::Budget;
use passnet_engine::native::{NativeEngine, Program, Tensor, Wrappers, inputs};
use passnet_engine::{Engine, EngineError, ErrorKind, Precision, RunOptions, Value, dump};
use passnet_graph::check::missing_metadata;
use passnet_graph::{DType, Diagnostic, GraphFiles, GraphFolder, read};
use passnet_work::parallel;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub struct RunArgs {
    /// Graph folders, `model.py` files, trees of them, or `.tar.zst` archives
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Seed of the generator that draws inputs and random operations
    #[arg(long, default_value_t = inputs::DEFAULT_SEED)]
    seed: u64,

    /// Draw float32 inputs in another float type
    #[arg(long, value_name = "DTYPE", value_parser = float_type)]
    dtype: Option<DType>,

    /// Compute in float64 wherever the graph or its inputs name a float type
    #[arg(long)]
    oracle: bool,

    /// Which engine runs the graphs
    #[arg(long, value_enum, default_value_t = EngineName::Native)]
    engine: EngineName,

    /// Write inputs and outputs of the one graph to a safetensors file
    #[arg(long, value_name = "FILE", conflicts_with = "dump_dir")]
    dump: Option<PathBuf>,

    /// Write inputs and outputs of every graph to a file of its own in this folder; `--json` says which
    #[arg(long, value_name = "DIR")]
    dump_dir: Option<PathBuf>,

    /// Prepare every graph but do not run it: says which hold an operation that the engine lacks
    #[arg(long)]
    dry_run: bool,

    /// Run every graph again and again for this long, one graph at a time, and tell the best and the median time
    #[arg(long, value_name = "SECONDS")]
    time: Option<f64>,

    /// The most memory one graph may hold, in GiB
    #[arg(long, value_name = "GIB", default_value_t = 16)]
    memory_limit: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum EngineName {
    /// The CPU engine of this program
    Native,
}

fn float_type(name: &str) -> Result<DType, String> {
    DType::from_name(name)
        .filter(|dtype| dtype.is_float())
        .ok_or_else(|| "expected float16, bfloat16, float32 or float64".into())
}

/// How one graph went.
struct Report {
    result: Result<Vec<Summary>, Failure>,
    elapsed: Duration,
    timing: Option<Timing>,
    dump: Option<PathBuf>,
}

/// What many runs of one graph took.
struct Timing {
    runs: usize,
    best: Duration,
    median: Duration,
    /// The most memory a run held beside its inputs.
    peak_bytes: usize,
}

enum Failure {
    Unreadable(Vec<Diagnostic>),
    Inputs(String),
    Engine(EngineError),
    Dump(std::io::Error),
}

/// What a table can show of an output.
struct Summary {
    shape: Vec<usize>,
    dtype: DType,
    range: Option<[f64; 3]>,
    checksum: String,
}

pub fn run(args: RunArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    if let Some(folder) = &args.dump_dir {
        std::fs::create_dir_all(folder)?;
    }
    let mut tally = Tally::default();
    let workers = match args.time {
        Some(_) => NonZeroUsize::MIN,
        None => parallel::default_workers(),
    };
    for_each_graph_with(
        workers,
        &args.paths,
        |files| run_graph(&args, files),
        |path, report| {
            if args.dump.is_some() && tally.graphs > 0 {
                return Err(CommandError::input(
                    "`--dump` takes one graph, the paths hold several",
                )
                .with_hint("use `--dump-dir` for a tree of graphs"));
            }
            tally.count(&report);
            if args.dry_run && report.result.is_ok() && !output.is_json() {
                return output.line(format!("{path}: can run"));
            }
            show(output, path, &report)
        },
    )?;
    if !output.is_json() && tally.graphs > 1 {
        tally.show(output, args.dry_run)?;
    }
    output.flush()?;
    Ok(Outcome::failed_if(tally.ran < tally.graphs))
}

fn run_graph(args: &RunArgs, files: &GraphFiles) -> Report {
    let mut report =
        Report { result: Ok(Vec::new()), elapsed: Duration::ZERO, timing: None, dump: None };
    report.result = try_run(args, files, &mut report);
    report
}

fn try_run(
    args: &RunArgs,
    files: &GraphFiles,
    report: &mut Report,
) -> Result<Vec<Summary>, Failure> {
    let folder = read::read_folder(files).map_err(Failure::Unreadable)?;
    let precision = if args.oracle { Precision::Double } else { Precision::AsWritten };
    let engine = match args.engine {
        EngineName::Native => NativeEngine,
    };
    let prepared =
        engine.prepare(&folder.graph, precision, &Wrappers::default()).map_err(Failure::Engine)?;
    if args.dry_run {
        return match missing_metadata(&files.path, &folder) {
            Some(error) => Err(Failure::Unreadable(vec![error])),
            None => Ok(Vec::new()),
        };
    }
    let memory_limit = usize::from(args.memory_limit) << 30;
    let drawn = Budget::new(memory_limit)
        .scope(|| draw_inputs(files, &folder.graph, args.seed, args.dtype))
        .map_err(|error| Failure::Inputs(error.to_string()))?;
    let target = dump_path(args, &files.path);
    // The graph may write into its inputs; what is dumped is what it was given.
    let given = if target.is_some() { copies(&drawn)? } else { Vec::new() };
    let start = Instant::now();
    let outputs = prepared
        .run(&drawn, &RunOptions { seed: args.seed, memory_limit, ..RunOptions::default() })
        .map_err(Failure::Engine)?;
    report.elapsed = start.elapsed();
    if let Some(seconds) = args.time {
        let timing = time_runs(args, &folder, precision, &drawn, seconds);
        report.timing = Some(timing.map_err(Failure::Engine)?);
    }
    let tensors = dump::output_tensors(&outputs).map_err(failed)?;
    if let Some(target) = target {
        write_dump(&target, &folder, &given, &tensors).map_err(Failure::Dump)?;
        report.dump = Some(target);
    }
    tensors.iter().map(|tensor| summarise(tensor).map_err(failed)).collect()
}

/// The engine's own loop, with inputs that are drawn already and memory that is warm.
fn time_runs(
    args: &RunArgs,
    folder: &GraphFolder,
    precision: Precision,
    inputs: &[Value],
    seconds: f64,
) -> Result<Timing, EngineError> {
    let program = Program::compile(&folder.graph, precision, &Wrappers::default())?;
    let budget = Budget::new(usize::from(args.memory_limit) << 30);
    let options = RunOptions { seed: args.seed, ..RunOptions::default() };
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || begin.elapsed() < limit {
        let start = Instant::now();
        drop(program.run_within(&budget, inputs, &options, &mut ())?);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(Timing {
        runs: times.len(),
        best: times[0],
        median: times[times.len() / 2],
        peak_bytes: budget.peak(),
    })
}

fn failed(error: passnet_engine::native::TensorError) -> Failure {
    Failure::Engine(EngineError::graph(ErrorKind::from(&error), error.to_string()))
}

fn copies(values: &[Value]) -> Result<Vec<Value>, Failure> {
    let copy = |value: &Value| match value {
        Value::Tensor(tensor) => tensor.copy().map(Value::Tensor),
        other => Ok(other.clone()),
    };
    values.iter().map(|value| copy(value).map_err(failed)).collect()
}

fn dump_path(args: &RunArgs, path: &str) -> Option<PathBuf> {
    let in_folder = |folder: &PathBuf| {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        folder.join(format!("{:016x}.safetensors", hasher.finish()))
    };
    args.dump.clone().or_else(|| args.dump_dir.as_ref().map(in_folder))
}

fn write_dump(
    target: &Path,
    folder: &GraphFolder,
    inputs: &[Value],
    outputs: &[Tensor],
) -> std::io::Result<()> {
    let names = folder.graph.placeholders().iter().map(|node| &*node.name);
    let named: Vec<(&str, Tensor)> = names
        .zip(inputs)
        .filter_map(|(name, value)| Some((name, value.as_tensor()?.clone())))
        .collect();
    dump::write(target, &named, outputs)
}

fn summarise(tensor: &Tensor) -> passnet_engine::native::Result<Summary> {
    let bytes = tensor.to_bytes()?;
    let checksum = blake3::hash(&bytes).to_hex()[..16].to_string();
    let range = if tensor.numel() == 0 || tensor.dtype().is_complex() {
        None
    } else {
        let values = tensor.to_vec::<f64>()?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some([least, values.iter().sum::<f64>() / values.len() as f64, most])
    };
    Ok(Summary { shape: tensor.shape().to_vec(), dtype: tensor.dtype(), range, checksum })
}

impl Failure {
    /// The word that groups failures, and what exactly went wrong.
    fn describe(&self) -> (&'static str, String) {
        match self {
            Failure::Unreadable(errors) => {
                ("unreadable", errors.first().map(ToString::to_string).unwrap_or_default())
            }
            Failure::Inputs(message) => ("inputs", message.clone()),
            Failure::Engine(error) => (error.kind.name(), error.to_string()),
            Failure::Dump(error) => ("dump", error.to_string()),
        }
    }

    fn to_json(&self) -> Json {
        let (kind, message) = self.describe();
        match self {
            Failure::Engine(error) => json!({
                "kind": kind,
                "node": error.node,
                "operation": error.operation,
                "line": error.line,
                "message": error.message,
            }),
            Failure::Unreadable(errors) => {
                json!({ "kind": kind, "message": message, "errors": errors })
            }
            _ => json!({ "kind": kind, "message": message }),
        }
    }
}

fn show(output: &mut Output, path: &str, report: &Report) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&to_json(path, report));
    }
    match &report.result {
        Ok(outputs) => {
            output.line(format!("{path}: ok, {:.2} ms", milliseconds(report.elapsed)))?;
            if let Some(timing) = &report.timing {
                output.line(format!(
                    "  {} runs: best {:.3} ms, median {:.3} ms, {:.1} MiB beside the inputs",
                    timing.runs,
                    milliseconds(timing.best),
                    milliseconds(timing.median),
                    timing.peak_bytes as f64 / f64::from(1 << 20)
                ))?;
            }
            let mut rows = table(["output", "shape", "dtype", "min", "mean", "max", "checksum"]);
            for (index, summary) in outputs.iter().enumerate() {
                let number =
                    |at: usize| summary.range.map_or("-".into(), |r| format!("{:.6}", r[at]));
                rows.add_row([
                    index.to_string(),
                    format!("{:?}", summary.shape),
                    summary.dtype.name().into(),
                    number(0),
                    number(1),
                    number(2),
                    summary.checksum.clone(),
                ]);
            }
            output.table(&rows)
        }
        Err(failure) => {
            let (kind, message) = failure.describe();
            output.line(format!("{path}: {kind}: {message}"))
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn to_json(path: &str, report: &Report) -> Json {
    let mut record = json!({ "path": path, "ok": report.result.is_ok() });
    match &report.result {
        Ok(outputs) => {
            record["milliseconds"] = milliseconds(report.elapsed).into();
            if let Some(timing) = &report.timing {
                record["timing"] = json!({
                    "runs": timing.runs,
                    "best": milliseconds(timing.best),
                    "median": milliseconds(timing.median),
                    "peak_bytes": timing.peak_bytes,
                });
            }
            let describe = |summary: &Summary| {
                // JSON has no infinities or NaN.
                let number = |at: usize| summary.range.map(|r| r[at]).filter(|v| v.is_finite());
                json!({
                    "shape": summary.shape,
                    "dtype": summary.dtype.name(),
                    "min": number(0),
                    "mean": number(1),
                    "max": number(2),
                    "checksum": summary.checksum,
                })
            };
            record["outputs"] = outputs.iter().map(describe).collect();
        }
        Err(failure) => record["error"] = failure.to_json(),
    }
    if let Some(dump) = &report.dump {
        record["dump"] = dump.display().to_string().into();
    }
    record
}

/// Counts of a tree of graphs.
#[derive(Default)]
struct Tally {
    graphs: usize,
    ran: usize,
    /// Failures by kind and operation.
    failures: BTreeMap<(&'static str, String), usize>,
}

impl Tally {
    fn count(&mut self, report: &Report) {
        self.graphs += 1;
        match &report.result {
            Ok(_) => self.ran += 1,
            Err(failure) => {
                let operation = match failure {
                    Failure::Engine(error) => error.operation.clone(),
                    _ => String::new(),
                };
                *self.failures.entry((failure.describe().0, operation)).or_default() += 1;
            }
        }
    }

    fn show(&self, output: &mut Output, dry_run: bool) -> Result<(), CommandError> {
        let done = if dry_run { "can run" } else { "ran" };
        output.line(format!("{} graphs, {} {done}", self.graphs, self.ran))?;
        if self.failures.is_empty() {
            return Ok(());
        }
        let mut rows = table(["failed", "reason", "operation"]);
        let mut sorted: Vec<_> = self.failures.iter().collect();
        sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for ((kind, operation), count) in sorted {
            rows.add_row([count.to_string(), (*kind).to_string(), operation.clone()]);
        }
        output.table(&rows)
    }
}
