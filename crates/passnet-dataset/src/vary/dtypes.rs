//! The same graph in half precision.
//!
//! Arguments in float32 change their dtype, except statistics and parameters of normalisations. Operations that mixed
//! precision runs in half (matrix products, convolutions, attention) get a cast before each operand that would still
//! be float32. A cast of what has the dtype already is not written.

use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::infer::{Inference, infer_folder};
use passnet_graph::ops::Op;
use passnet_graph::read::{GraphFolder, Number, TensorMeta};
use passnet_graph::{Arg, Call, DType, Graph, NodeId, NodeKind};
use serde_json::Value;

/// Arguments with these in their name keep float32.
const KEPT: [&str; 7] = [
    "running_mean",
    "running_var",
    "num_batches_tracked",
    "bn_parameters_weight",
    "bn_parameters_bias",
    "ln_parameters_weight",
    "ln_parameters_bias",
];

/// The graph with its float32 arguments in `dtype`, or what does not fit then.
pub fn convert(
    folder: &GraphFolder,
    types: &Inference,
    dtype: DType,
) -> Result<GraphFolder, String> {
    let mut converted = folder.clone();
    for meta in converted.metas.iter_mut().filter(|meta| converts(meta)) {
        meta.dtype = dtype;
        meta.min_val = within(meta.min_val.take(), dtype);
        meta.max_val = within(meta.max_val.take(), dtype);
    }
    let is_float = |types: &Inference, id: NodeId| {
        types.value(id).as_tensor().is_some_and(|tensor| tensor.dtype == DType::Float32)
    };
    // First a cast before every operand that was float32, then without those that change nothing.
    let all = insert_casts(&folder.graph, dtype, |_, id| is_float(types, id));
    converted.graph = all.graph;
    let cast_types = infer_folder(&converted);
    let needed: Vec<bool> = all
        .casts
        .iter()
        .map(|cast| converted.graph.call(*cast).and_then(|call| call.args[0].as_node()))
        .map(|operand| operand.is_none_or(|id| is_float(&cast_types, id)))
        .collect();
    if needed.contains(&false) {
        let mut casts = needed.into_iter();
        converted.graph = insert_casts(&folder.graph, dtype, |_, id| {
            is_float(types, id) && casts.next().unwrap_or(true)
        })
        .graph;
    }
    let final_types = infer_folder(&converted);
    if let Some(failure) = final_types.failures.first() {
        return Err(format!("`{}`: {}", failure.name, failure.message));
    }
    let name = Value::from(dtype.name());
    converted.info.insert("dtype_generalization_target_dtype".into(), name);
    converted.info.insert("dtype_generalization_generated".into(), Value::Bool(true));
    Ok(converted)
}

/// A bound recorded in float32, such as that of an attention mask, inside what a half type can hold.
fn within(bound: Option<Number>, dtype: DType) -> Option<Number> {
    let most = match dtype {
        DType::Float16 => 65_504.0,
        DType::BFloat16 => 3.389_531_389_251_535_5e38,
        _ => return bound,
    };
    match bound {
        Some(Number::Float(value)) => Some(Number::Float(value.clamp(-most, most))),
        other => other,
    }
}

fn converts(meta: &TensorMeta) -> bool {
    let names = [Some(&meta.class_name), Some(&meta.name), meta.original_name.as_ref()];
    let kept = |name: &&String| KEPT.iter().any(|part| name.contains(part));
    meta.dtype == DType::Float32 && !names.iter().flatten().any(kept)
}

/// Runs in half precision when precision is mixed.
fn runs_in_half(op: Op) -> bool {
    matches!(
        op,
        Op::Matmul
            | Op::Mm
            | Op::Bmm
            | Op::Addmm
            | Op::Linear
            | Op::Conv1d
            | Op::Conv2d
            | Op::Conv3d
            | Op::ScaledDotProductAttention
            | Op::Einsum
    )
}

struct WithCasts {
    graph: Graph,
    casts: Vec<NodeId>,
}

/// Copies a graph with a cast before each operand of such an operation for which `wanted` says so.
fn insert_casts(
    graph: &Graph,
    dtype: DType,
    mut wanted: impl FnMut(NodeId, NodeId) -> bool,
) -> WithCasts {
    let mut copy = Graph::new();
    let mut casts = Vec::new();
    let mut moved: Vec<NodeId> = Vec::with_capacity(graph.nodes().len());
    for (index, node) in graph.nodes().iter().enumerate() {
        let new = match &node.kind {
            NodeKind::Placeholder(annotation) => {
                copy.push_placeholder(node.name.clone(), *annotation, node.line)
            }
            NodeKind::Call(call) => {
                let mut call = call.clone();
                let casting = call.op().is_some_and(runs_in_half);
                call.map_inputs(|input| {
                    let here = moved[input.index()];
                    if !casting || !wanted(NodeId::new(index), input) {
                        return Arg::Node(here);
                    }
                    let cast = Call {
                        target: Target::resolve(CalleeKind::Method, "to"),
                        args: vec![Arg::Node(here), Arg::Dtype(dtype)],
                        kwargs: Vec::new(),
                    };
                    let cast = copy.push_call(format!("to_{}", casts.len()), cast, 0);
                    casts.push(cast);
                    Arg::Node(cast)
                });
                copy.push_call(node.name.clone(), call, node.line)
            }
        };
        moved.push(new);
    }
    copy.outputs.clone_from(&graph.outputs);
    for output in &mut copy.outputs {
        output.map_nodes(&mut |id| Arg::Node(moved[id.index()]));
    }
    WithCasts { graph: copy, casts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_stay_inside_what_a_half_type_holds() {
        let float = |value| Some(Number::Float(value));
        assert_eq!(within(float(-3.4e38), DType::Float16), float(-65_504.0));
        assert_eq!(
            within(float(3.402_823_466e38), DType::BFloat16),
            float(3.389_531_389_251_535_5e38)
        );
        assert_eq!(within(float(0.5), DType::Float16), float(0.5));
        assert_eq!(within(float(-3.4e38), DType::Float32), float(-3.4e38));
        assert_eq!(within(Some(Number::Int(7)), DType::Float16), Some(Number::Int(7)));
    }
}
