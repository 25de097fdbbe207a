//! The same graph in half precision.
//!
//! Arguments in float32 change their dtype, except what a batch normalisation is given and statistics by their names. The
//! parameters of other normalisations have the dtype of what is normalised: PyTorch refuses mixtures of them, on a GPU even
//! those that it takes on a CPU. Operations that mixed precision runs in half (matrix products, convolutions, attention) get
//! a cast before each operand that would still be float32. A cast of what has the dtype already is not written. Numbers
//! beyond what the type holds, as masks are filled with, become the largest that it holds.

use crate::legal::{held, largest};
use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::infer::{Inference, infer_folder};
use passnet_graph::ops::Op;
use passnet_graph::read::{GraphFolder, TensorMeta};
use passnet_graph::{Arg, Call, DType, Graph, NodeId, NodeKind};
use serde_json::Value;
use std::collections::BTreeSet;

/// Arguments with these in their name keep float32.
const KEPT: [&str; 5] = [
    "running_mean",
    "running_var",
    "num_batches_tracked",
    "bn_parameters_weight",
    "bn_parameters_bias",
];

/// The names under which operations of this class take parameters.
const PARAMETERS: [&str; 4] = ["weight", "bias", "running_mean", "running_var"];

/// How often arguments that were changed are changed back, until all mixtures are gone.
const ROUNDS: usize = 4;

/// The graph with its float32 arguments in `dtype`, or what does not fit then.
pub fn convert(
    folder: &GraphFolder,
    types: &Inference,
    dtype: DType,
) -> Result<GraphFolder, String> {
    let mut kept = batch_norm_parameters(&folder.graph);
    for _ in 0..ROUNDS {
        let converted = convert_but(folder, types, dtype, &kept);
        let converted_types = infer_folder(&converted);
        if let Some(failure) = converted_types.failures.first() {
            return Err(format!("`{}`: {}", failure.name, failure.message));
        }
        if let Some(name) = half_transform(&converted.graph, &converted_types) {
            return Err(format!("`{name}` transforms no half precision"));
        }
        let mixed = mixed_norms(&converted.graph, &converted_types);
        if mixed.is_empty() {
            return Ok(finish(converted, &converted_types, dtype));
        }
        let before = kept.len();
        kept.extend(mixed);
        if kept.len() == before {
            break;
        }
    }
    Err("a normalisation would be given several dtypes".into())
}

fn finish(mut converted: GraphFolder, types: &Inference, dtype: DType) -> GraphFolder {
    converted.graph = with_held_numbers(&converted.graph, types);
    let name = Value::from(dtype.name());
    converted.info.insert("dtype_generalization_target_dtype".into(), name);
    converted.info.insert("dtype_generalization_generated".into(), Value::Bool(true));
    converted
}

fn convert_but(
    folder: &GraphFolder,
    types: &Inference,
    dtype: DType,
    kept: &BTreeSet<usize>,
) -> GraphFolder {
    let mut converted = folder.clone();
    for (place, meta) in converted.metas.iter_mut().enumerate() {
        if converts(meta) && !kept.contains(&place) {
            meta.dtype = dtype;
            meta.min_val = held(meta.min_val, dtype);
            meta.max_val = held(meta.max_val, dtype);
        }
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
    converted
}

/// The arguments that batch normalisations take beside what they normalise: all of them stay float32, or PyTorch refuses.
fn batch_norm_parameters(graph: &Graph) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for (_, call) in graph.calls().filter(|(_, call)| call.op() == Some(Op::BatchNorm)) {
        found.extend(parameters(graph, call));
    }
    found
}

/// The arguments of the graph that a normalisation is given as parameters.
fn parameters(graph: &Graph, call: &Call) -> Vec<usize> {
    let Ok(bound) = call.bind() else { return Vec::new() };
    let nodes = PARAMETERS.iter().filter_map(|name| bound.arg(name).as_node());
    nodes.map(NodeId::index).filter(|node| *node < graph.placeholder_count()).collect()
}

/// The parameters of normalisations of another dtype than what is normalised.
fn mixed_norms(graph: &Graph, types: &Inference) -> Vec<usize> {
    let is_norm = |op| matches!(op, Op::LayerNorm | Op::GroupNorm | Op::RmsNorm | Op::InstanceNorm);
    let dtype = |id: NodeId| types.value(id).as_tensor().map(|tensor| tensor.dtype);
    let mut mixed = Vec::new();
    for (_, call) in graph.calls().filter(|(_, call)| call.op().is_some_and(is_norm)) {
        let input = call.bind().ok().and_then(|bound| bound.arg("input").as_node()).and_then(dtype);
        let differs = |place: &usize| dtype(NodeId::new(*place)) != input;
        mixed.extend(parameters(graph, call).into_iter().filter(differs));
    }
    mixed
}

/// A Fourier transform of a half type: PyTorch has none on a CPU, and on a GPU for few sizes alone.
fn half_transform<'a>(graph: &'a Graph, types: &Inference) -> Option<&'a str> {
    let is_fourier = |op| {
        use Op::{Fft, Fftn, Ifft, Irfft, Irfft2, Rfft, Rfft2};
        matches!(op, Fft | Fftn | Ifft | Irfft | Irfft2 | Rfft | Rfft2)
    };
    let is_half = |id: NodeId| {
        types.value(id).as_tensor().is_some_and(|tensor| largest(tensor.dtype).is_some())
    };
    let found = graph.calls().find(|(_, call)| {
        let mut half = false;
        call.for_each_input(|input| half |= is_half(input));
        half && call.op().is_some_and(is_fourier)
    });
    found.map(|(id, _)| &*graph.node(id).name)
}

/// The graph without numbers that the type of a call's result cannot hold: PyTorch refuses to store them as that type.
fn with_held_numbers(graph: &Graph, types: &Inference) -> Graph {
    let mut copy = Graph::new();
    for (index, node) in graph.nodes().iter().enumerate() {
        match &node.kind {
            NodeKind::Placeholder(annotation) => {
                copy.push_placeholder(node.name.clone(), *annotation, node.line);
            }
            NodeKind::Call(call) => {
                let mut call = call.clone();
                let result = types.value(NodeId::new(index)).as_tensor().map(|t| t.dtype);
                if let Some(most) = result.and_then(largest) {
                    let named = call.kwargs.iter_mut().map(|(_, arg)| arg);
                    call.args.iter_mut().chain(named).for_each(|arg| clamp(arg, most));
                }
                copy.push_call(node.name.clone(), call, node.line);
            }
        }
    }
    copy.outputs.clone_from(&graph.outputs);
    copy
}

fn clamp(arg: &mut Arg, most: f64) {
    if let Arg::Float(value) = arg
        && value.is_finite()
    {
        *value = value.clamp(-most, most);
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
    use passnet_graph::read::{Number, read_folder};
    use passnet_graph::{FileName, GraphFiles};

    fn folder(arguments: &[(&str, &str)], body: &str) -> GraphFolder {
        let names: Vec<&str> = arguments.iter().map(|(name, _)| *name).collect();
        let model = format!(
            "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, {}):\n        {body}\n",
            names.join(", ")
        );
        let metas: String = arguments
            .iter()
            .map(|(name, shape)| {
                format!(
                    "class Program_weight_tensor_meta_{name}:\n    name = \"{name}\"\n    shape = {shape}\n    \
                     dtype = \"torch.float32\"\n    device = \"cpu\"\n    mean = 0.0\n    std = 1.0\n    data = None\n"
                )
            })
            .collect();
        let files =
            GraphFiles::new("g").with(FileName::Model, model).with(FileName::WeightMeta, metas);
        read_folder(&files).unwrap()
    }

    fn half(folder: &GraphFolder, dtype: DType) -> Result<GraphFolder, String> {
        convert(folder, &infer_folder(folder), dtype)
    }

    fn dtypes(folder: &GraphFolder) -> Vec<&'static str> {
        folder.metas.iter().map(|meta| meta.dtype.name()).collect()
    }

    #[test]
    fn bounds_stay_inside_what_a_half_type_holds() {
        let float = |value| Some(Number::Float(value));
        assert_eq!(held(float(-3.4e38), DType::Float16), float(-65_504.0));
        assert_eq!(
            held(float(3.402_823_466e38), DType::BFloat16),
            float(3.389_531_389_251_535_5e38)
        );
        assert_eq!(held(float(0.5), DType::Float16), float(0.5));
        assert_eq!(held(float(-3.4e38), DType::Float32), float(-3.4e38));
        assert_eq!(held(Some(Number::Int(7)), DType::Float16), Some(Number::Int(7)));
        assert_eq!(held(Some(Number::Int(70_000)), DType::Float16), float(65_504.0));
    }

    #[test]
    fn what_a_batch_norm_is_given_stays_float32_together() {
        let arguments =
            [("x", "[1, 4, 2, 2]"), ("m", "[4]"), ("v", "[4]"), ("w", "[4]"), ("b", "[4]")];
        let body = "y = torch.nn.functional.batch_norm(x, m, v, w, b, False, 0.1, 1e-05)\n        return (y,)";
        let made = half(&folder(&arguments, body), DType::Float16).unwrap();
        assert_eq!(dtypes(&made), ["float16", "float32", "float32", "float32", "float32"]);
    }

    #[test]
    fn parameters_of_a_norm_have_the_dtype_of_its_input() {
        let arguments = [("x", "[2, 4]"), ("w", "[4]"), ("b", "[4]")];
        let norm = "torch.nn.functional.layer_norm";
        let plain = format!("y = {norm}(x, (4,), w, b, 1e-05)\n        return (y,)");
        let made = half(&folder(&arguments, &plain), DType::BFloat16).unwrap();
        assert_eq!(dtypes(&made), ["bfloat16"; 3]);
        // What is normalised is float32 by the graph's own words.
        let wide = format!(
            "z = x.to(torch.float32)\n        y = {norm}(z, (4,), w, b, 1e-05)\n        return (y,)"
        );
        let made = half(&folder(&arguments, &wide), DType::BFloat16).unwrap();
        assert_eq!(dtypes(&made), ["bfloat16", "float32", "float32"]);
        // Two norms share parameters and want them differently: that graph has no half variant.
        let both = format!(
            "z = x.to(torch.float32)\n        y = {norm}(z, (4,), w, b, 1e-05)\n        u = {norm}(x, (4,), w, b, 1e-05)\n        return (y, u)"
        );
        let refused = half(&folder(&arguments, &both), DType::BFloat16).unwrap_err();
        assert!(refused.contains("several dtypes"), "{refused}");
    }

    #[test]
    fn a_fourier_transform_has_no_half_variant() {
        let body = "y = torch.fft.rfft(x)\n        return (y,)";
        let refused = half(&folder(&[("x", "[2, 8]")], body), DType::Float16).unwrap_err();
        assert_eq!(refused, "`y` transforms no half precision");
        let wide = "z = x.to(torch.float32)\n        y = torch.fft.rfft(z)\n        return (y,)";
        assert!(half(&folder(&[("x", "[2, 8]")], wide), DType::Float16).is_ok());
    }

    #[test]
    fn numbers_beyond_the_type_become_its_largest() {
        let arguments = [("x", "[2, 4]")];
        let body = "m = x > 0.5\n        y = x.masked_fill(m, -3.4028234663852886e+38)\n        z = y + 1000.0\n        return (z,)";
        for (dtype, fill) in
            [(DType::Float16, -65_504.0), (DType::BFloat16, -3.389_531_389_251_535_5e38)]
        {
            let made = half(&folder(&arguments, body), dtype).unwrap();
            let filled = made.graph.calls().find(|(_, call)| call.op() == Some(Op::MaskedFill));
            assert_eq!(filled.unwrap().1.args[2], Arg::Float(fill));
            let added = made.graph.calls().find(|(_, call)| call.op() == Some(Op::Add));
            assert_eq!(added.unwrap().1.args[1], Arg::Float(1000.0));
        }
    }
}
