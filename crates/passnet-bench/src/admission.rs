//! Does a graph belong into a benchmark: does it run, and does it compute something? The reasons are few, to be counted.

use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::tensor::Budget;
use passnet_engine::native::{NativeEngine, Tensor, Wrappers};
use passnet_engine::{Engine, EngineError, ErrorKind, Precision, RunOptions, Value, dump};
use passnet_graph::ops::{Class, Op};
use passnet_graph::{GraphFiles, GraphFolder, read};
use std::time::{Duration, Instant};

/// What a run may hold. A graph with small arguments may still make tensors so large that it takes minutes and all of
/// a machine's memory, as windows over a long text do; such a graph is no task for a quick evaluation.
const MEMORY: usize = 512 << 20;
/// Two draws of inputs.
const SEEDS: [u64; 2] = [123, 124];
const TOO_LONG: &str = "takes too long";

/// What a graph must stand to be admitted.
#[derive(Debug)]
pub struct Admission {
    /// A graph whose arguments have more elements takes too long to evaluate.
    pub most_elements: usize,
    /// A graph that takes the native engine as long takes too long to evaluate, too. The other engine has a limit of its own,
    /// which ends a call: a wait for its worker, which threads share, is not the graph's time.
    pub most_time: Duration,
    /// An engine beside the native one in which the graph must give outputs of the same types.
    pub other: Option<Box<dyn Engine>>,
}

impl Admission {
    /// Why the graph is not admitted, in one of few texts.
    pub fn judge(&self, files: &GraphFiles) -> Result<(), String> {
        let folder = read::read_folder(files).map_err(|_| "cannot be read")?;
        let sizes = folder.metas.iter().map(|meta| elements(&meta.shape));
        if sizes.fold(0, usize::saturating_add) > self.most_elements {
            return Err("too large".into());
        }
        let idle = [Class::View, Class::Creation];
        let works = |op: Op| !idle.contains(&op.class());
        if !folder.graph.calls().any(|(_, call)| call.op().is_some_and(works)) {
            return Err("launches nothing".into());
        }
        let begin = Instant::now();
        let first = outputs(&NativeEngine, files, &folder, SEEDS[0])?;
        if begin.elapsed() >= self.most_time {
            return Err(TOO_LONG.into());
        }
        let second = outputs(&NativeEngine, files, &folder, SEEDS[1])?;
        if first.iter().map(looks_constant).collect::<Result<Vec<_>, _>>()?.iter().all(|is| *is) {
            return Err("every output is constant".into());
        }
        if bytes(&first)? == bytes(&second)? {
            return Err("outputs do not depend on what is drawn".into());
        }
        let Some(other) = &self.other else { return Ok(()) };
        let theirs = outputs(other.as_ref(), files, &folder, SEEDS[0])
            .map_err(|reason| format!("{}: {reason}", other.name()))?;
        let types = |all: &[Tensor]| -> Vec<_> {
            all.iter().map(|tensor| (tensor.dtype(), tensor.shape().to_vec())).collect()
        };
        match types(&first) == types(&theirs) {
            true => Ok(()),
            false => Err(format!("{}: outputs of other types", other.name())),
        }
    }
}

fn elements(shape: &[i64]) -> usize {
    let sizes = shape.iter().map(|size| usize::try_from(*size).unwrap_or(0));
    sizes.fold(1, usize::saturating_mul)
}

/// All tensors that the graph gives for one draw.
fn outputs(
    engine: &dyn Engine,
    files: &GraphFiles,
    folder: &GraphFolder,
    seed: u64,
) -> Result<Vec<Tensor>, String> {
    let fails = |error: EngineError| match error.kind {
        ErrorKind::Timeout => TOO_LONG.to_string(),
        kind => format!("does not run: {}", kind.name()),
    };
    let prepared =
        engine.prepare(&folder.graph, Precision::AsWritten, &Wrappers::default()).map_err(fails)?;
    let drawn: Vec<Value> = Budget::new(MEMORY)
        .scope(|| draw_inputs(files, &folder.graph, seed, None))
        .map_err(|_| "inputs cannot be drawn")?;
    let options = RunOptions { seed, memory_limit: MEMORY, ..RunOptions::default() };
    let values = prepared.run(&drawn, &options).map_err(fails)?;
    dump::output_tensors(&values).map_err(|error| error.to_string())
}

/// Whether all elements are the same; one alone tells nothing. What is not a number is an error.
fn looks_constant(tensor: &Tensor) -> Result<bool, String> {
    if !tensor.dtype().is_float() {
        let bytes = tensor.to_bytes().map_err(|error| error.to_string())?;
        let mut elements = bytes.chunks(tensor.dtype().size());
        let first = elements.next();
        return Ok(bytes.len() > tensor.dtype().size() && elements.all(|one| Some(one) == first));
    }
    let values = tensor.to_vec::<f64>().map_err(|error| error.to_string())?;
    if values.iter().any(|value| value.is_nan()) {
        return Err("an output is not a number".into());
    }
    Ok(values.len() > 1 && values.iter().all(|value| Some(value) == values.first()))
}

fn bytes(tensors: &[Tensor]) -> Result<Vec<Vec<u8>>, String> {
    tensors.iter().map(|tensor| tensor.to_bytes().map_err(|error| error.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::FileName;

    /// A graph of one float32 argument `x` with that many elements.
    fn verdict_within(most_time: Duration, elements: usize, body: &str) -> Result<(), String> {
        let model = format!(
            "import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n        {body}\n"
        );
        let meta = format!(
            "class Program_weight_tensor_meta_x:\n    name = \"x\"\n    shape = [{elements}]\n    \
             dtype = \"torch.float32\"\n    device = \"cpu\"\n    mean = 0.0\n    std = 1.0\n    data = None\n"
        );
        let files = GraphFiles::new("graph")
            .with(FileName::Model, model)
            .with(FileName::WeightMeta, meta)
            .with(FileName::InputMeta, "");
        Admission { most_elements: 1_000, most_time, other: None }.judge(&files)
    }

    fn verdict(elements: usize, body: &str) -> Result<(), String> {
        verdict_within(Duration::MAX, elements, body)
    }

    fn refusal(elements: usize, body: &str) -> String {
        verdict(elements, body).err().unwrap_or_default()
    }

    #[test]
    fn a_graph_must_compute_something() {
        assert_eq!(verdict(8, "y = torch.exp(x)\n        return (y,)"), Ok(()));
        assert_eq!(refusal(8, "y = x.view(2, 4)\n        return (y,)"), "launches nothing");
        let constant = "y = x * 0\n        z = torch.exp(y)\n        return (z,)";
        assert_eq!(refusal(8, constant), "every output is constant");
        let drawn = "y = torch.arange(8)\n        z = y + 1\n        return (z,)";
        assert_eq!(refusal(8, drawn), "outputs do not depend on what is drawn");
        let infinite = "y = x - x\n        z = y / y\n        return (z,)";
        assert_eq!(refusal(8, infinite), "an output is not a number");
    }

    #[test]
    fn a_graph_must_be_done_in_time() {
        let body = "y = torch.exp(x)\n        return (y,)";
        assert_eq!(verdict_within(Duration::ZERO, 8, body), Err("takes too long".into()));
    }

    #[test]
    fn a_graph_must_be_small() {
        assert_eq!(refusal(1_001, "y = torch.exp(x)\n        return (y,)"), "too large");
        let grows = "y = x.expand(400000000)\n        z = y + 1\n        return (z,)";
        assert_eq!(refusal(1, grows), "does not run: memory");
        assert_eq!(
            refusal(8, "y = x.view(3, 3)\n        z = y + 1\n        return (z,)"),
            "does not run: shape"
        );
    }
}
