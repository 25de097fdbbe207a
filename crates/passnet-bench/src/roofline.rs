//! How fast could it be? The time the device takes to move a graph's inputs and outputs once, or to do its arithmetic,
//! whichever is longer. Nothing that computes the graph is faster, however it is written.

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
    /// Seconds to move a power of two of bytes.
    copies: BTreeMap<u32, Option<f64>>,
    /// By the name of the type.
    products: BTreeMap<&'static str, Option<f64>>,
}

impl Roofline {
    /// Milliseconds that work in a type takes at the least; `None` where the engine cannot measure its device.
    pub fn milliseconds(&self, engine: &dyn Engine, work: Work, dtype: DType) -> Option<f64> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let moving = known.copying(engine, work.bytes.max(1))?;
        let products = known.products.entry(dtype.name());
        let rate = *products.or_insert_with(|| engine.flops_per_second(dtype));
        Some(moving.max(work.flops as f64 / rate?) * 1e3)
    }
}

/// What a device reaches, for people and for models that write kernels for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Read and written by a copy that is too large for caches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// Of the smallest copy: no kernel takes the device less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_seconds: Option<f64>,
    /// Multiplications and additions a second of a product of matrices, by the name of the type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flops_per_second: Vec<(String, f64)>,
}

impl Rates {
    /// The types that tasks compute in.
    const DTYPES: [DType; 3] = [DType::Float32, DType::Float16, DType::BFloat16];

    /// Copies and multiplies for some milliseconds.
    pub fn measure(engine: &dyn Engine) -> Rates {
        let seconds = |size: u32| engine.copy_seconds(1 << size);
        let product = |dtype: DType| Some((dtype.name().into(), engine.flops_per_second(dtype)?));
        Rates {
            bytes_per_second: seconds(LARGEST).map(|seconds| (1u64 << LARGEST) as f64 / seconds),
            least_seconds: seconds(SMALLEST),
            flops_per_second: Rates::DTYPES.into_iter().filter_map(product).collect(),
        }
    }
}

impl Known {
    /// Seconds to move so many bytes: between measured sizes on a line, because a small copy takes as long as a smaller
    /// one; beyond the largest in proportion.
    fn copying(&mut self, engine: &dyn Engine, bytes: u64) -> Option<f64> {
        let mut measured =
            |size| *self.copies.entry(size).or_insert_with(|| engine.copy_seconds(1 << size));
        let size = bytes.ilog2().clamp(SMALLEST, LARGEST);
        let at = measured(size)?;
        let share = bytes as f64 / (1u64 << size) as f64;
        if share <= 1.0 || size == LARGEST {
            return Some(at * share);
        }
        // Timings are noisy: more bytes do not take less time.
        let next = measured(size + 1)?.max(at);
        Some(at + (next - at) * (share - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;
    use passnet_engine::native::Wrappers;
    use passnet_engine::{EngineError, ErrorKind, Precision, Prepared};
    use passnet_graph::Graph;
    use passnet_graph::read::read_folder;
    use std::path::Path;

    /// A device that begins within a microsecond, moves a byte in a nanosecond and computes a billion times a second.
    #[derive(Debug)]
    struct Device;

    impl Engine for Device {
        fn name(&self) -> &'static str {
            "device"
        }

        fn copy_seconds(&self, bytes: u64) -> Option<f64> {
            Some(1e-6 + bytes as f64 * 1e-9)
        }

        fn flops_per_second(&self, _: DType) -> Option<f64> {
            Some(1e9)
        }

        fn prepare(
            &self,
            _: &Graph,
            _: Precision,
            _: &Wrappers,
        ) -> Result<Box<dyn Prepared>, EngineError> {
            Err(EngineError::graph(ErrorKind::Unsupported, "it only measures"))
        }
    }

    #[test]
    fn a_graph_moves_its_inputs_and_outputs_and_computes_its_operations() {
        let task = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/tasks/swiglu");
        let sample = Sample::read(&task).unwrap();
        let folder = read_folder(&sample.graph_files(&sample.graphs[0]).unwrap()).unwrap();
        let work = Work::of(&folder).unwrap();
        let inputs: i64 = folder
            .metas
            .iter()
            .map(|meta| meta.shape.iter().product::<i64>() * meta.dtype.size() as i64)
            .sum();
        assert!(work.bytes > inputs as u64 && work.bytes <= 2 * inputs as u64, "{work:?}");
        assert!(work.flops > 0);
    }

    #[test]
    fn the_longer_of_moving_and_computing_is_the_least_time() {
        let roofline = Roofline::default();
        let least = |work| roofline.milliseconds(&Device, work, DType::Float32).unwrap();
        assert!((least(Work { bytes: 3_000_000, flops: 10 }) - 3.001).abs() < 1e-9);
        assert!((least(Work { bytes: 8, flops: 5_000_000 }) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn the_rates_of_a_device_are_those_of_its_largest_and_smallest_copies() {
        let rates = Rates::measure(&Device);
        assert!((rates.bytes_per_second.unwrap() / 1e9 - 1.0).abs() < 1e-3, "{rates:?}");
        assert_eq!(rates.least_seconds, Some(1e-6 + 4096.0 * 1e-9));
        let names: Vec<&str> = rates.flops_per_second.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["float32", "float16", "bfloat16"]);
    }
}
