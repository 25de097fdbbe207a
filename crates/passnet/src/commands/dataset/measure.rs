//! Whole models run on the native engine, for the statistics of what they compute on the way.

use clap::Args;
use passnet_dataset::measure::Measure;
use passnet_engine::native::Wrappers;
use passnet_engine::native::executor::{NodeTime, Observer, Program, Step};
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::tensor::{Budget, Tensor};
use passnet_engine::{Precision, RunOptions, Value};
use passnet_graph::print::print_tensor_metas;
use passnet_graph::stats::{REPLAYED_SPREAD, Seen, Stat};
use passnet_graph::{FileName, GraphFiles, GraphFolder, NodeId};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const SEED: u64 = 123;
/// What a run may hold for each million elements that the arguments may have.
const MEMORY_PER_MILLION: usize = 64 << 20;

/// Whether models are run, and which.
#[derive(Debug, Args)]
pub(super) struct MeasureArgs {
    /// Run whole models that fit on the native engine, and describe what pieces are given by what is seen there
    #[arg(long)]
    measure: bool,

    /// Million elements that the arguments of a model may have together, to be run
    #[arg(long, default_value_t = 50, value_name = "N", requires = "measure")]
    measure_elements: u64,

    /// Seconds that the run of a model may take; what is not done by then is not measured, so a limit that is reached makes
    /// the result depend on the machine
    #[arg(long, default_value_t = 120, value_name = "SECONDS", requires = "measure")]
    measure_seconds: u64,
}

impl MeasureArgs {
    /// Hands on how models are measured, if they are.
    pub(super) fn with<T>(&self, work: impl FnOnce(Option<Measure<'_>>) -> T) -> T {
        let run = |files: &GraphFiles, folder: &GraphFolder| self.run(files, folder);
        let limits = format!("{} {}", self.measure_elements, self.measure_seconds);
        work(self.measure.then(|| Measure::new(&run, &limits)))
    }

    /// What a run shows of every intermediate, or why there is no run.
    fn run(&self, files: &GraphFiles, folder: &GraphFolder) -> Result<Vec<Seen>, String> {
        let elements = folder.metas.iter().map(|meta| meta.elements().unsigned_abs());
        let elements = elements.fold(0, u64::saturating_add);
        let most = self.measure_elements.saturating_mul(1_000_000);
        if elements > most {
            return Err(format!("its arguments have {elements} elements, more than {most}"));
        }
        let millions = usize::try_from(self.measure_elements).unwrap_or(usize::MAX);
        let memory = millions.max(1).saturating_mul(MEMORY_PER_MILLION);
        let program = Program::compile(&folder.graph, Precision::AsWritten, &Wrappers::default());
        let program = program.map_err(|error| error.to_string())?.one_by_one();
        let inputs = Budget::new(memory)
            .scope(|| draw_inputs(&as_recorded(files, folder), &folder.graph, SEED, None));
        let inputs = inputs.map_err(|error| error.to_string())?;
        let limit = Duration::from_secs(self.measure_seconds);
        let mut watcher = Watcher::new(folder, limit);
        let options = RunOptions { seed: SEED, memory_limit: memory, ..RunOptions::default() };
        program.run_observed(&inputs, &options, &mut watcher).map_err(|error| error.to_string())?;
        match watcher.is_late {
            true => Err(format!("it takes more than {} s", self.measure_seconds)),
            false => Ok(watcher.seen),
        }
    }
}

/// The files with inputs that are drawn with the spread that is recorded: a replay draws with a part of it.
fn as_recorded(files: &GraphFiles, folder: &GraphFolder) -> GraphFiles {
    let mut metas = folder.metas.clone();
    for meta in &mut metas {
        meta.std = meta.std.map(|std| std / REPLAYED_SPREAD);
    }
    let files = files.clone().with(FileName::WeightMeta, print_tensor_metas(&metas));
    files.with(FileName::InputMeta, "")
}

/// Looks at every result.
struct Watcher<'a> {
    nodes: HashMap<&'a str, NodeId>,
    seen: Vec<Seen>,
    began: Instant,
    limit: Duration,
    is_late: bool,
}

impl<'a> Watcher<'a> {
    fn new(folder: &'a GraphFolder, limit: Duration) -> Self {
        let nodes = folder.graph.nodes().iter().enumerate();
        Watcher {
            nodes: nodes.map(|(index, node)| (&*node.name, NodeId::new(index))).collect(),
            seen: Vec::new(),
            began: Instant::now(),
            limit,
            is_late: false,
        }
    }

    fn note(&mut self, node: NodeId, path: Vec<usize>, tensor: &Tensor) {
        if let Some(stat) = stat_of(tensor) {
            self.seen.push(Seen { node, path, stat });
        }
    }
}

impl Observer for Watcher<'_> {
    const ACTIVE: bool = true;

    fn node(&mut self, step: &Step, time: &NodeTime<'_>) {
        self.is_late |= self.began.elapsed() > self.limit;
        let Some(&node) = self.nodes.get(&*step.name) else { return };
        match time.result {
            Value::Tensor(tensor) => self.note(node, Vec::new(), tensor),
            Value::Sequence(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Value::Tensor(tensor) = item {
                        self.note(node, vec![index], tensor);
                    }
                }
            }
            _ => {}
        }
    }

    fn ends_at(&self, _: &Step) -> bool {
        self.is_late
    }
}

/// Mean, spread and extremes; of elements that are not all finite, as those of a mask, nothing.
fn stat_of(tensor: &Tensor) -> Option<Stat> {
    if !tensor.dtype().is_float() && !tensor.dtype().is_integer() {
        return None;
    }
    let elements = tensor.to_vec::<f64>().ok()?;
    (!elements.is_empty()).then(|| Stat::of_elements(elements.iter().copied())).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_dataset::decompose::run::{Method, decompose};
    use passnet_dataset::describe::describe;
    use passnet_dataset::import::{ImportOptions, import};
    use passnet_dataset::source::{self, Limits};
    use passnet_dataset::store::{Kind, Store};
    use passnet_dataset::vary::run::{VaryOptions, vary};
    use passnet_engine::Engine;
    use passnet_engine::native::NativeEngine;
    use passnet_graph::read::{TensorMeta, read_folder};
    use passnet_work::progress::Silent;
    use std::num::NonZeroUsize;

    /// The softmax of products: what is derived of its spread is far from what comes out.
    const MODEL: &str = "import torch

class GraphModule(torch.nn.Module):
    def forward(self, L_x_, L_self_weight_):
        product = torch.matmul(L_x_, L_self_weight_)
        chance = torch.softmax(product, -1)
        parts = chance.chunk(2, -1)
        left = parts[0]
        right = parts[1]
        scaled = left * 3.0
        total = scaled + right
        total += 1.0
        last = torch.sqrt(total)
        return (last,)
";

    fn meta(name: &str, shape: [i64; 2], std: f64) -> TensorMeta {
        let mut meta = TensorMeta::new(name, shape.to_vec(), passnet_graph::DType::Float32);
        (meta.mean, meta.std) = (Some(0.5), Some(std));
        meta
    }

    fn args(elements: u64) -> MeasureArgs {
        MeasureArgs { measure: true, measure_elements: elements, measure_seconds: 1_000_000 }
    }

    fn model(place: &std::path::Path) {
        let folder = place.join("samples/zoo/net");
        std::fs::create_dir_all(&folder).unwrap();
        let metas = [meta("L_x_", [64, 32], 2.0), meta("L_self_weight_", [32, 16], 1.0)];
        std::fs::write(folder.join("model.py"), MODEL).unwrap();
        std::fs::write(folder.join("weight_meta.py"), print_tensor_metas(&metas)).unwrap();
        std::fs::write(folder.join("graph_net.json"), "{}").unwrap();
    }

    /// A store with the model in it.
    fn imported(place: &std::path::Path) -> Store {
        model(place);
        let source = source::open(&place.join("samples"), Limits::default()).unwrap();
        let mut store = Store::open_for_writing(&place.join("store"), NonZeroUsize::MIN).unwrap();
        import(&mut store, source, describe, ImportOptions::default(), &Silent).unwrap();
        store
    }

    #[test]
    fn what_a_piece_is_given_is_described_as_a_run_of_the_model_shows_it() {
        let place = tempfile::TempDir::new().unwrap();
        let mut store = imported(place.path());
        let options = VaryOptions { kinds: vec![Kind::SoleOp], ..VaryOptions::default() };
        args(1).with(|measure| {
            let one = NonZeroUsize::MIN;
            let cut = decompose(&mut store, &Method::SoleOp, measure, one, &Silent).unwrap();
            let reasons = cut.sweep.reasons.values().map(|reason| &reason.example.reason);
            assert!(reasons.clone().all(|why| !why.contains("not measured")), "{:?}", cut.sweep);
            vary(&mut store, &options, measure, one, &Silent).unwrap();
        });

        // The same model, run as it is, with what is used on the way as outputs.
        let record = store.of_kind(Kind::Full).unwrap().remove(0);
        let files = store.load(&record).unwrap();
        let shown = MODEL.replace("(last,)", "(product, chance, right, scaled)");
        let shown = files.clone().with(FileName::Model, shown);
        let folder = read_folder(&shown).unwrap();
        let inputs = draw_inputs(&as_recorded(&shown, &folder), &folder.graph, SEED, None).unwrap();
        let precision = Precision::AsWritten;
        let run = NativeEngine.prepare(&folder.graph, precision, &Wrappers::default()).unwrap();
        let outputs = run.run(&inputs, &RunOptions::default()).unwrap();
        let expected: Vec<Stat> = outputs
            .iter()
            .map(|value| match value {
                Value::Tensor(tensor) => stat_of(tensor).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        let names = ["product", "chance", "right", "scaled"];
        let mut found = 0;
        for record in store.of_kind(Kind::SoleOp).unwrap() {
            let piece = read_folder(&store.load(&record).unwrap()).unwrap();
            for meta in &piece.metas {
                let original = meta.original_name.as_deref().unwrap();
                let Some(index) = names.iter().position(|name| *name == original) else { continue };
                let near = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-5;
                let Stat { mean, std, .. } = expected[index];
                assert!(near(meta.mean, mean) && near(meta.std, std), "{}: {meta:?}", record.path);
                found += 1;
            }
        }
        // Each in the piece after it and in that piece's half-precision variants.
        assert!(found >= 3 * names.len(), "{found}");
        assert!(expected[0].std > 10.0, "inputs have their recorded spread: {:?}", expected[0]);
    }

    #[test]
    fn a_model_that_is_too_large_is_not_run_and_that_is_said() {
        let place = tempfile::TempDir::new().unwrap();
        let mut store = imported(place.path());
        let mut cut = |args: MeasureArgs| {
            args.with(|measure| {
                let one = NonZeroUsize::MIN;
                decompose(&mut store, &Method::SoleOp, measure, one, &Silent).unwrap().sweep
            })
        };
        let (large, fits) = (cut(args(0)), cut(args(1)));
        let said = "not measured: its arguments have 2560 elements, more than 0";
        assert!(large.reasons.values().any(|reason| reason.example.reason == said), "{large:?}");
        assert!(large.made > 0);
        // Other limits are another way of cutting.
        assert_eq!((fits.done_before, fits.refused + 1), (0, large.refused));
    }
}
