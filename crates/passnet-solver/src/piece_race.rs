//! A fused piece as a small graph of its own, so that it can be timed without the rest.

use crate::analysis::Piece;
use crate::analysis::piece::Param;
use crate::graph_family::GraphFamily;
use passnet_graph::graph::{Annotation, CalleeKind, NodeKind, Target};
use passnet_graph::infer::Value;
use passnet_graph::print::{print_model, print_tensor_metas};
use passnet_graph::read::{Number, TensorMeta};
use passnet_graph::{Arg, Call, DType, FileName, Graph, GraphFiles, NodeId};
use std::collections::BTreeMap;

/// Pieces of about this many elements are timed by preference: long enough to measure, short enough to repeat.
const WANTED_ELEMENTS: i64 = 1 << 18;

/// Which graphs of a family the piece is timed in: one, and another where numbers have another width.
pub fn representatives(family: &GraphFamily, piece: &Piece) -> Vec<usize> {
    let distance = |member: &usize| {
        let ratio = largest_elements(piece, *member).max(1) as f64 / WANTED_ELEMENTS as f64;
        (ratio.ln().abs() * 1e6) as i64
    };
    let mut members: Vec<usize> = (0..family.recorded().len()).collect();
    members.sort_by_key(distance);
    let mut chosen: Vec<usize> = Vec::new();
    for member in members {
        if chosen.iter().all(|other| widths(piece, *other) != widths(piece, member)) {
            chosen.push(member);
        }
    }
    chosen.truncate(2);
    chosen
}

/// Bytes of an element of each value.
fn widths(piece: &Piece, member: usize) -> Vec<usize> {
    let width = |id: NodeId| match piece.values(id).get(member) {
        Some(Value::Tensor(tensor)) => tensor.dtype.size(),
        _ => 0,
    };
    piece.graph.ids().map(width).collect()
}

/// Elements of the largest value of the piece in a graph.
pub fn largest_elements(piece: &Piece, member: usize) -> i64 {
    let elements = |id: NodeId| match piece.values(id).get(member) {
        Some(Value::Tensor(tensor)) => tensor.elements(),
        _ => 0,
    };
    piece.graph.ids().map(elements).max().unwrap_or(0)
}

/// The piece as it stands in one graph, with its inputs; `None` where a number it takes is not known beforehand.
pub fn files(family: &GraphFamily, piece: &Piece, member: usize) -> Option<GraphFiles> {
    let typed = family.members.get(member)?;
    let mut graph = Graph::new();
    let mut metas = Vec::new();
    let mut map: BTreeMap<NodeId, Arg> = BTreeMap::new();
    let mut views = Vec::new();
    for (index, (node, param)) in piece.graph.placeholders().iter().zip(&piece.params).enumerate() {
        let id = NodeId::new(index);
        let value = piece.values(id).get(member)?;
        match (param, value) {
            (Param::Tensor(origin), Value::Tensor(tensor)) => {
                let sizes = tensor.sizes().to_vec();
                let known = typed.metas.get(origin.index());
                if known.is_none() && !tensor.is_contiguous() {
                    // It lies in the graph as a view of something; here as a view of plain memory.
                    let name = format!("{}_memory", node.name);
                    let steps = sizes.iter().zip(&tensor.strides);
                    let extent = steps.map(|(size, stride)| (size - 1) * stride).sum::<i64>() + 1;
                    let memory = graph.push_placeholder(name.clone(), Annotation::None, 0);
                    metas.push(meta(None, &name, vec![extent.max(1)], tensor.dtype));
                    views.push((id, memory, sizes, tensor.strides.to_vec()));
                } else {
                    let new = graph.push_placeholder(node.name.clone(), Annotation::None, 0);
                    map.insert(id, Arg::Node(new));
                    metas.push(meta(known, &node.name, sizes, tensor.dtype));
                }
            }
            (Param::Number | Param::Literal, Value::Scalar(scalar)) => {
                let literal = match scalar.as_dim() {
                    Some(dim) => Arg::Int(dim.size),
                    None => Arg::Float(scalar.as_f64()?),
                };
                map.insert(id, literal);
            }
            (Param::Device, Value::Device(Some(device))) => {
                map.insert(id, Arg::Device(*device));
            }
            _ => return None,
        }
    }
    for (id, memory, sizes, strides) in views {
        let numbers = |values: Vec<i64>| Arg::Tuple(values.into_iter().map(Arg::Int).collect());
        let call = Call {
            target: Target::resolve(CalleeKind::Method, "as_strided"),
            args: vec![Arg::Node(memory), numbers(sizes), numbers(strides)],
            kwargs: Vec::new(),
        };
        let new = graph.push_call(piece.name(id), call, 0);
        map.insert(id, Arg::Node(new));
    }
    for (index, node) in piece.graph.nodes().iter().enumerate() {
        let NodeKind::Call(call) = &node.kind else { continue };
        let mut call = call.clone();
        call.map_inputs(|input| map.get(&input).cloned().unwrap_or(Arg::None));
        let new = graph.push_call(node.name.clone(), call, 0);
        map.insert(NodeId::new(index), Arg::Node(new));
    }
    graph.outputs = piece.outputs.iter().filter_map(|id| map.get(id).cloned()).collect();
    let files = GraphFiles::new("piece")
        .with(FileName::Model, print_model(&graph))
        .with(FileName::WeightMeta, print_tensor_metas(&metas));
    Some(files)
}

/// How an input is drawn: as the graph says for its own inputs, with plain values for intermediates.
fn meta(known: Option<&TensorMeta>, name: &str, shape: Vec<i64>, dtype: DType) -> TensorMeta {
    if let Some(known) = known {
        return TensorMeta {
            name: name.to_string(),
            class_name: name.to_string(),
            ..known.clone()
        };
    }
    let float = dtype.is_float();
    TensorMeta {
        class_name: name.to_string(),
        name: name.to_string(),
        original_name: None,
        shape,
        dtype,
        device: None,
        mean: float.then_some(0.1),
        std: float.then_some(1.0),
        data: None,
        min_val: dtype.is_integer().then_some(Number::Int(0)),
        max_val: dtype.is_integer().then_some(Number::Int(1)),
    }
}
