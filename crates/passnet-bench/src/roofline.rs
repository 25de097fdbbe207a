//! How fast could it be? The time the device takes to move a graph's inputs and outputs once, or to do its arithmetic,
//! whichever is longer. Nothing that computes the graph is faster, however it is written.

use crate::evaluate::Evaluation;
use passnet_engine::Engine;
use passnet_graph::infer::infer_folder;
use passnet_graph::ops::flops;
use passnet_graph::read::GraphFolder;
use passnet_graph::{Arg, DType, NodeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What a graph has to do at the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Of all inputs and outputs.
    pub bytes: u64,
    /// Multiplications and additions.
    pub flops: u64,
}

impl Work {
    /// `None` where a type is not known.
    pub fn of(folder: &GraphFolder) -> Option<Work> {
        let graph = &folder.graph;
        let types = infer_folder(folder);
        let tensor = |id: NodeId| types.value(id).as_tensor();
        let elements = |id: NodeId| tensor(id).and_then(|it| u64::try_from(it.elements()).ok());
        let size = |id: NodeId| elements(id)?.checked_mul(tensor(id)?.dtype.size() as u64);
        let inputs = (0..graph.placeholder_count()).map(NodeId::new);
        let outputs = graph.outputs.iter().filter_map(Arg::as_node);
        let bytes = inputs.chain(outputs).try_fold(0u64, |sum, id| sum.checked_add(size(id)?))?;
        let shape = |arg: &Arg| {
            let shape = &tensor(arg.as_node()?)?.shape;
            shape.iter().map(|dim| u64::try_from(dim.size).ok()).collect::<Option<Vec<u64>>>()
        };
        let mut sum = 0u64;
        for (id, call) in graph.calls() {
            let Ok(bound) = call.bind() else { continue };
            let shapes: Vec<_> = bound.values.iter().map(|value| shape(value.arg()?)).collect();
            sum = sum.saturating_add(flops(bound.op, &shapes, elements(id).unwrap_or(0)));
        }
        Some(Work { bytes, flops: sum })
    }
}

/// Sizes are measured in powers of two; larger ones are as the largest.
const SMALLEST: u32 = 12;
const LARGEST: u32 = 27;

/// What one device reaches, measured as far as it was asked for.
#[derive(Debug, Default)]
pub struct Roofline {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Seconds to move a byte, by the power of two.
    copies: BTreeMap<u32, Option<f64>>,
    /// By the name of the type.
    products: BTreeMap<&'static str, Option<f64>>,
}

impl Roofline {
    /// Milliseconds that the work of a timed graph takes at the least; `None` where the engine cannot measure its device.
    pub fn milliseconds(&self, engine: &dyn Engine, evaluation: &Evaluation) -> Option<f64> {
        let work = evaluation.work.filter(|_| evaluation.interval.is_some())?;
        // A graph without floats computes nothing that a product of matrices could be compared with.
        let dtype = DType::from_name(&evaluation.dtype).unwrap_or(DType::Float32);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let size = work.bytes.max(1).ilog2().clamp(SMALLEST, LARGEST);
        let per_byte = *known.copies.entry(size).or_insert_with(|| {
            engine.copy_seconds(1 << size).map(|seconds| seconds / (1u64 << size) as f64)
        });
        let products = known.products.entry(dtype.name());
        let rate = *products.or_insert_with(|| engine.flops_per_second(dtype));
        Some((work.bytes as f64 * per_byte?).max(work.flops as f64 / rate?) * 1e3)
    }
}
