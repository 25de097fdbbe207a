//! `passnet dataset benchmark`

use super::StoreArgs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::benchmark::{BenchmarkOptions, benchmark};
use passnet_dataset::store::Store;
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::tensor::Budget;
use passnet_engine::native::{NativeEngine, Wrappers};
use passnet_engine::{Engine, Precision, RunOptions, dump};
use passnet_graph::ops::Class;
use passnet_graph::{GraphFiles, GraphFolder, read};
use std::path::PathBuf;

/// A graph whose arguments have more elements takes too long to evaluate.
const MOST_ELEMENTS: usize = 64 << 20;
const MEMORY: usize = 4 << 30;
/// Two draws of inputs.
const SEEDS: [u64; 2] = [123, 124];

#[derive(Debug, Args)]
pub struct BenchmarkArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// The store file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Tasks of each kind
    #[arg(long, default_value_t = 200, value_name = "N")]
    tasks: usize,

    /// Graphs of a task, at most; other dtypes and sizes first
    #[arg(long, default_value_t = 12, value_name = "N")]
    graphs: usize,
}

pub fn run(args: BenchmarkArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    if args.out.exists() {
        let message = format!("{} is there already", args.out.display());
        return Err(CommandError::input(message));
    }
    let store = args.store.read()?;
    let workers = args.store.workers.count();
    let mut out = Store::open_for_writing(&args.out, workers)?;
    let options = BenchmarkOptions { tasks: args.tasks, graphs: args.graphs, workers };
    let report = benchmark(&store, &mut out, &judge, options, &Bar::new())?;
    out.compact(&Bar::new())?;
    if output.is_json() {
        let value = serde_json::to_value(&report).map_err(|e| CommandError::bug(e.to_string()))?;
        output.json(&value)?;
        return Ok(Outcome::Done);
    }
    let mut shown = table(["kind", "candidates", "passed", "tasks", "graphs"]);
    for (kind, line) in &report.kinds {
        let counts = [line.candidates, line.passed, line.tasks, line.graphs];
        let cells = counts.iter().map(ToString::to_string);
        shown.add_row(std::iter::once((*kind).to_string()).chain(cells).collect::<Vec<_>>());
    }
    output.table(&shown)?;
    for (reason, graphs) in &report.refused {
        output.line(format!("{graphs} graphs left out: {reason}"))?;
    }
    Ok(Outcome::Done)
}

/// Does a graph run, and does it compute something? The reasons are few, to be counted.
fn judge(files: &GraphFiles) -> Result<(), String> {
    let folder = read::read_folder(files).map_err(|_| "cannot be read")?;
    let size = |shape: &[i64]| -> usize {
        let sizes = shape.iter().map(|size| usize::try_from(*size).unwrap_or(0));
        sizes.fold(1, usize::saturating_mul)
    };
    let elements = folder.metas.iter().map(|meta| size(&meta.shape)).fold(0, usize::saturating_add);
    if elements > MOST_ELEMENTS {
        return Err("too large".into());
    }
    let idle = [Class::View, Class::Creation];
    let works = |op: passnet_graph::ops::Op| !idle.contains(&op.class());
    if !folder.graph.calls().any(|(_, call)| call.op().is_some_and(works)) {
        return Err("launches nothing".into());
    }
    let [first, second] = SEEDS.map(|seed| outputs(files, &folder, seed));
    let (first, second) = (first?, second?);
    if first == second {
        return Err("outputs do not depend on what is drawn".into());
    }
    Ok(())
}

/// The bytes of all outputs.
fn outputs(files: &GraphFiles, folder: &GraphFolder, seed: u64) -> Result<Vec<Vec<u8>>, String> {
    let prepared = NativeEngine
        .prepare(&folder.graph, Precision::AsWritten, &Wrappers::default())
        .map_err(|error| format!("does not run: {}", error.kind.name()))?;
    let drawn = Budget::new(MEMORY)
        .scope(|| draw_inputs(files, &folder.graph, seed, None))
        .map_err(|_| "inputs cannot be drawn")?;
    let options = RunOptions { seed, memory_limit: MEMORY, ..RunOptions::default() };
    let values = prepared
        .run(&drawn, &options)
        .map_err(|error| format!("does not run: {}", error.kind.name()))?;
    let tensors = dump::output_tensors(&values).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for tensor in &tensors {
        if tensor.dtype().is_float() {
            let values = tensor.to_vec::<f64>().map_err(|error| error.to_string())?;
            if values.iter().any(|value| value.is_nan()) {
                return Err("an output is not a number".into());
            }
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if values.len() > 1 && least == most && tensors.len() == 1 {
                return Err("the output is constant".into());
            }
        }
        all.push(tensor.to_bytes().map_err(|error| error.to_string())?);
    }
    Ok(all)
}
