//! From a graph folder's metadata to the values of its placeholders.

use super::dim::Dim;
use super::value::{MAX_KNOWN_ELEMENTS, Scalar, Shape, TensorType, Value};
use super::{Inference, infer, known};
use crate::dtype::{DType, Kind};
use crate::graph::{Annotation, NodeKind};
use crate::read::{GraphFolder, ShapeDim, TensorMeta};
use rustc_hash::FxHashMap;

/// The values of the placeholders, in argument order; symbols come from the recorded constraints.
pub fn inputs_from(folder: &GraphFolder) -> Vec<Value> {
    let symbols: FxHashMap<&str, i64> =
        folder.constraints.symbols.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let shapes: FxHashMap<&str, &[ShapeDim]> = folder
        .constraints
        .input_shapes
        .iter()
        .map(|(name, shape)| (name.as_str(), shape.as_slice()))
        .collect();
    let placeholders = folder.graph.placeholders();
    folder
        .metas
        .iter()
        .zip(placeholders)
        .map(|(meta, placeholder)| match &placeholder.kind {
            NodeKind::Placeholder(Annotation::SymInt) => sym_int(meta),
            _ => tensor(meta, shapes.get(meta.name.as_str()).copied(), &symbols).into(),
        })
        .collect()
}

/// Infers a whole folder.
pub fn infer_folder(folder: &GraphFolder) -> Inference {
    infer(&folder.graph, &inputs_from(folder))
}

/// A `torch.SymInt` argument is recorded as a tensor with one element; it is a symbol of its own.
fn sym_int(meta: &TensorMeta) -> Value {
    let value = meta.data.as_ref().and_then(|data| data.first()).and_then(|number| number.as_i64());
    Value::Scalar(Scalar::Int(value.map(|value| Dim::symbol(&meta.name, value))))
}

fn tensor(
    meta: &TensorMeta,
    symbolic: Option<&[ShapeDim]>,
    symbols: &FxHashMap<&str, i64>,
) -> TensorType {
    let mut shape: Shape = meta.shape.iter().map(|size| Dim::fixed(*size)).collect();
    // A recorded symbol counts only where its example value is the recorded size.
    for (dim, recorded) in shape.iter_mut().zip(symbolic.unwrap_or_default()) {
        if let ShapeDim::Symbol(name) = recorded
            && symbols.get(name.as_str()) == Some(&dim.size)
        {
            *dim = Dim::symbol(name, dim.size);
        }
    }
    let mut tensor = TensorType::contiguous(meta.dtype, shape);
    // Recorded bounds mean that the elements are drawn anew for each run.
    let drawn = meta.min_val.is_some()
        && meta.max_val.is_some()
        && meta.dtype.kind() == Kind::Integer
        && meta.dtype != DType::UInt8;
    if let Some(data) = meta.data.as_ref().filter(|data| data.len() <= MAX_KNOWN_ELEMENTS && !drawn)
    {
        tensor.memory = Some(data.iter().map(|n| known::round(meta.dtype, n.as_f64())).collect());
    } else if let (Some(mean), Some(0.0), 1, true) =
        (meta.mean, meta.std, meta.elements(), meta.dtype.is_float())
    {
        // One float without spread is its mean: how older graphs record a scale factor.
        tensor.memory = Some([known::round(meta.dtype, mean)].into());
    }
    tensor
}
