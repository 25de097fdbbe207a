//! Cuts a range of operations out of a graph as a graph of its own.
//!
//! What the range uses from outside becomes an argument, what is used after it becomes an output. A piece is
//! canonical: data inputs are `in_0, in_1, …` and weights `w_0, …` in order of first use, results `tmp_0, …`.
//! Values that are no tensors are folded away: a size becomes a number, a list of tensors its elements.

use crate::graph::{Annotation, Arg, Call, CalleeKind, Graph, NodeId, NodeKind, Target};
use crate::infer::{Inference, Scalar, TensorType, Value};
use crate::ops::{Class, Op};
use crate::read::{Constraints, GraphFolder, TensorMeta};
use crate::stats::{self, Stats};
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;

/// Why a range cannot stand alone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum CutError {
    /// The range is empty or reaches beyond the graph.
    OutOfBounds { start: usize, end: usize, ops: usize },
    /// Nothing it computes is used afterwards.
    NoOutputs,
    /// It needs a value whose type is not known.
    Unknown { name: String, reason: String },
    /// It opens or closes a region (vmap, autocast) that the rest of which lies outside.
    Region { name: String },
}

impl fmt::Display for CutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CutError::OutOfBounds { start, end, ops } => {
                write!(f, "range {start}..{end} does not fit a graph of {ops} operations")
            }
            CutError::NoOutputs => f.write_str("nothing the range computes is used afterwards"),
            CutError::Unknown { name, reason } => {
                write!(f, "the type of `{name}` is not known: {reason}")
            }
            CutError::Region { name } => {
                write!(f, "`{name}` belongs to a region that lies partly outside the range")
            }
        }
    }
}

impl std::error::Error for CutError {}

/// A piece of a graph, with the nodes of the parent its arguments and outputs stand for.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The piece as a graph of its own, with inputs described.
    pub folder: GraphFolder,
    /// The nodes of the whole graph that became its inputs, in order.
    pub inputs: Vec<NodeId>,
    /// The nodes of the whole graph that it returns, in order.
    pub outputs: Vec<NodeId>,
}

/// Cuts the operations `range` (op indices, half open) out of `parent`. To cut many ranges out of one graph,
/// propagate its statistics once and use [`cut_with`].
pub fn cut(
    parent: &GraphFolder,
    types: &Inference,
    range: Range<usize>,
) -> Result<Piece, CutError> {
    cut_with(parent, types, &stats::propagate(parent, types), range)
}

/// Cuts a range; arguments that are intermediates of `parent` are described by its statistics.
pub fn cut_with(
    parent: &GraphFolder,
    types: &Inference,
    stats: &Stats,
    range: Range<usize>,
) -> Result<Piece, CutError> {
    let ops = parent.graph.op_count();
    if range.start >= range.end || range.end > ops {
        return Err(CutError::OutOfBounds { start: range.start, end: range.end, ops });
    }
    check_regions(&parent.graph, &range)?;
    let mut cutter = Cutter::new(parent, types, stats, &range);
    cutter.find_inputs()?;
    cutter.copy_calls();
    cutter.find_outputs();
    if cutter.piece.outputs.is_empty() {
        return Err(CutError::NoOutputs);
    }
    Ok(cutter.finish())
}

/// A value of the parent, or an element of one: the path leads into nested sequences.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ParentValue {
    node: NodeId,
    path: Vec<usize>,
}

struct Cutter<'a> {
    parent: &'a GraphFolder,
    types: &'a Inference,
    stats: &'a Stats,
    inside: Range<usize>,
    piece: Graph,
    metas: Vec<TensorMeta>,
    /// What each outside value has become, and each inside node.
    arguments: FxHashMap<ParentValue, NodeId>,
    copies: FxHashMap<NodeId, Arg>,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
}

impl<'a> Cutter<'a> {
    fn new(
        parent: &'a GraphFolder,
        types: &'a Inference,
        stats: &'a Stats,
        range: &Range<usize>,
    ) -> Self {
        let first = parent.graph.placeholder_count();
        Cutter {
            parent,
            types,
            stats,
            inside: first + range.start..first + range.end,
            piece: Graph::new(),
            metas: Vec::new(),
            arguments: FxHashMap::default(),
            copies: FxHashMap::default(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    fn is_inside(&self, id: NodeId) -> bool {
        self.inside.contains(&id.index())
    }

    fn calls(&self) -> impl Iterator<Item = (NodeId, &'a Call)> + use<'a> {
        let graph = &self.parent.graph;
        self.inside.clone().filter_map(|index| {
            let id = NodeId::new(index);
            graph.call(id).map(|call| (id, call))
        })
    }

    /// Arguments: data inputs first, then weights, each in order of first use.
    fn find_inputs(&mut self) -> Result<(), CutError> {
        let mut places: Vec<ParentValue> = Vec::new();
        let mut seen: FxHashMap<ParentValue, ()> = FxHashMap::default();
        for (_, call) in self.calls() {
            let mut found = Vec::new();
            match self.element_read(call) {
                Some(place) => self.tensors_at(&place, &mut found)?,
                None => {
                    let mut outside = Vec::new();
                    call.for_each_input(|input| outside.push(input));
                    for node in outside.into_iter().filter(|node| !self.is_inside(*node)) {
                        self.tensors_at(&ParentValue { node, path: Vec::new() }, &mut found)?;
                    }
                }
            }
            for place in found {
                if seen.insert(place.clone(), ()).is_none() {
                    places.push(place);
                }
            }
        }
        let (weights, data): (Vec<ParentValue>, Vec<ParentValue>) =
            places.into_iter().partition(|place| self.is_weight(place));
        for (prefix, group) in [("in", data), ("w", weights)] {
            for (index, place) in group.into_iter().enumerate() {
                self.add_argument(format!("{prefix}_{index}"), place);
            }
        }
        Ok(())
    }

    /// `outside[k]` with a known sequence: only that element is needed, and the read folds away.
    fn element_read(&self, call: &Call) -> Option<ParentValue> {
        let (Some(Op::GetItem), [Arg::Node(node), Arg::Int(index)]) = (call.op(), &call.args[..])
        else {
            return None;
        };
        match self.types.value(*node) {
            Value::Sequence(items) if !self.is_inside(*node) => {
                let count = i64::try_from(items.len()).ok()?;
                let index = if *index < 0 { index + count } else { *index };
                let index = usize::try_from(index).ok().filter(|i| *i < items.len())?;
                Some(ParentValue { node: *node, path: vec![index] })
            }
            _ => None,
        }
    }

    fn value_at(&self, place: &ParentValue) -> &'a Value {
        place.path.iter().fold(self.types.value(place.node), |value, index| match value {
            Value::Sequence(items) => items.get(*index).unwrap_or(value),
            other => other,
        })
    }

    /// The tensors a value consists of; what is no tensor becomes a literal and needs no argument.
    fn tensors_at(
        &self,
        place: &ParentValue,
        found: &mut Vec<ParentValue>,
    ) -> Result<(), CutError> {
        match self.value_at(place) {
            Value::Tensor(tensor) if tensor.is_mapped() => {
                let name = self.parent.graph.node(place.node).name.to_string();
                return Err(CutError::Region { name });
            }
            Value::Tensor(_) => found.push(place.clone()),
            Value::Sequence(items) => {
                for index in 0..items.len() {
                    self.tensors_at(&place.element(index), found)?;
                }
            }
            other => {
                literal(other).map_err(|reason| CutError::Unknown {
                    name: self.parent.graph.node(place.node).name.to_string(),
                    reason,
                })?;
            }
        }
        Ok(())
    }

    fn is_weight(&self, place: &ParentValue) -> bool {
        let node = self.parent.graph.node(place.node);
        let NodeKind::Placeholder(annotation) = node.kind else { return false };
        let original =
            self.parent.metas.get(place.node.index()).and_then(|m| m.original_name.as_deref());
        let name = original.unwrap_or(&node.name);
        annotation == Annotation::Parameter
            || name.contains("_self_")
            || name.contains("_instance_modules_")
            || node.name.starts_with("w_")
    }

    fn add_argument(&mut self, name: String, place: ParentValue) {
        let Value::Tensor(tensor) = self.value_at(&place) else { return };
        let node = self.parent.graph.node(place.node);
        let recorded = match node.kind {
            NodeKind::Placeholder(_) => self.parent.metas.get(place.node.index()),
            NodeKind::Call(_) => None,
        };
        let mut meta = match recorded {
            Some(meta) => TensorMeta {
                original_name: Some(
                    meta.original_name.clone().unwrap_or_else(|| meta.name.clone()),
                ),
                ..meta.clone()
            },
            None => {
                let mut meta = described(tensor, &node.name, &place.path);
                if let Some(stat) = self.stats.at(place.node, &place.path) {
                    stat.describe(&mut meta);
                }
                meta
            }
        };
        meta.name.clone_from(&name);
        self.metas.push(meta);
        let id = self.piece.push_placeholder(name, Annotation::None, 0);
        self.inputs.push(place.node);
        self.arguments.insert(place, id);
    }

    fn copy_calls(&mut self) {
        for (id, call) in self.calls() {
            if let Some(place) = self.element_read(call) {
                let element = self.argument(&place);
                self.copies.insert(id, element);
                continue;
            }
            let mut copy = call.clone();
            copy.map_inputs(|input| match self.copies.get(&input) {
                Some(arg) => arg.clone(),
                None => self.argument(&ParentValue { node: input, path: Vec::new() }),
            });
            let name = format!("tmp_{}", self.piece.op_count());
            let new = self.piece.push_call(name, copy, self.parent.graph.node(id).line);
            self.copies.insert(id, Arg::Node(new));
        }
    }

    /// An outside value as an argument of the piece or as a literal.
    fn argument(&self, place: &ParentValue) -> Arg {
        match self.value_at(place) {
            Value::Tensor(_) => self.arguments.get(place).map_or(Arg::None, |id| Arg::Node(*id)),
            Value::Sequence(items) => {
                Arg::Tuple((0..items.len()).map(|i| self.argument(&place.element(i))).collect())
            }
            other => literal(other).unwrap_or(Arg::None),
        }
    }

    /// Outputs in order of computation; a sequence is returned by those of its elements that are used.
    fn find_outputs(&mut self) {
        let mut used: FxHashMap<NodeId, Use> = FxHashMap::default();
        let graph = &self.parent.graph;
        let inside = self.inside.clone();
        let is_inside = |id: NodeId| inside.contains(&id.index());
        for (_, call) in graph.calls().filter(|(id, _)| id.index() >= self.inside.end) {
            match (call.op(), &call.args[..]) {
                (Some(Op::GetItem), [Arg::Node(node), Arg::Int(index)])
                    if matches!(self.types.value(*node), Value::Sequence(_)) =>
                {
                    if is_inside(*node) {
                        used.entry(*node).or_default().elements.push(*index);
                    }
                }
                _ => call.for_each_input(|input| {
                    if is_inside(input) {
                        used.entry(input).or_default().whole = true;
                    }
                }),
            }
        }
        for output in &graph.outputs {
            output.for_each_node(&mut |id| {
                if is_inside(id) {
                    used.entry(id).or_default().whole = true;
                }
            });
        }
        for index in inside {
            let id = NodeId::new(index);
            let (Some(how), Some(Arg::Node(copy))) = (used.get(&id), self.copies.get(&id)) else {
                continue;
            };
            let copy = *copy;
            // An element that was only passed through is no result of the piece.
            if copy.index() < self.piece.placeholder_count() {
                continue;
            }
            self.add_output(id, copy, self.types.value(id), Some(how));
        }
    }

    fn add_output(&mut self, parent: NodeId, copy: NodeId, value: &Value, how: Option<&Use>) {
        match value {
            Value::Tensor(_) => {
                self.piece.outputs.push(Arg::Node(copy));
                self.outputs.push(parent);
            }
            Value::Sequence(items) => {
                let count = items.len() as i64;
                for (index, item) in items.iter().enumerate() {
                    let position = index as i64;
                    let wanted = how.is_none_or(|how| {
                        how.whole
                            || how.elements.iter().any(|e| *e == position || e + count == position)
                    });
                    if wanted {
                        let element = self.read_element(copy, position);
                        self.add_output(parent, element, item, None);
                    }
                }
            }
            _ => {}
        }
    }

    /// An element of a sequence computed inside, read once.
    fn read_element(&mut self, sequence: NodeId, index: i64) -> NodeId {
        let args = vec![Arg::Node(sequence), Arg::Int(index)];
        let existing = self
            .piece
            .calls()
            .find(|(_, call)| call.op() == Some(Op::GetItem) && call.args == args);
        if let Some((id, _)) = existing {
            return id;
        }
        let call = Call {
            target: Target::resolve(CalleeKind::Operator, "getitem"),
            args,
            kwargs: Vec::new(),
        };
        let name = format!("tmp_{}", self.piece.op_count());
        self.piece.push_call(name, call, 0)
    }

    fn finish(self) -> Piece {
        Piece {
            folder: GraphFolder {
                graph: self.piece,
                metas: self.metas,
                constraints: Constraints::default(),
                info: self.parent.info.clone(),
                sources: Vec::new(),
            },
            inputs: self.inputs,
            outputs: self.outputs,
        }
    }
}

impl ParentValue {
    fn element(&self, index: usize) -> ParentValue {
        let mut path = self.path.clone();
        path.push(index);
        ParentValue { node: self.node, path }
    }
}

/// How a value is used after the range.
#[derive(Default)]
struct Use {
    whole: bool,
    elements: Vec<i64>,
}

/// A value that is no tensor, as a literal.
fn literal(value: &Value) -> Result<Arg, String> {
    Ok(match value {
        Value::None => Arg::None,
        Value::Dtype(dtype) => Arg::Dtype(*dtype),
        Value::Device(Some(device)) => Arg::Device(*device),
        Value::Device(None) => Arg::None,
        Value::Str(text) => Arg::Str(text.clone()),
        Value::Constant(name) => Arg::Constant(name.clone()),
        Value::Ellipsis => Arg::Ellipsis,
        Value::Scalar(Scalar::Bool(Some(value))) => Arg::Bool(*value),
        Value::Scalar(Scalar::Int(Some(dim))) => Arg::Int(dim.size),
        Value::Scalar(Scalar::Float(Some(value))) => Arg::Float(*value),
        Value::Scalar(_) => return Err("its value depends on data".into()),
        Value::Unknown(reason) => return Err(reason.to_string()),
        other => return Err(format!("it is a {}", other.type_name())),
    })
}

/// What is known of an intermediate value without running the graph.
fn described(tensor: &TensorType, name: &str, path: &[usize]) -> TensorMeta {
    let mut original = name.to_string();
    path.iter().for_each(|index| original.push_str(&format!("_{index}")));
    let mut meta = TensorMeta::new(original.clone(), tensor.sizes().to_vec(), tensor.dtype);
    meta.original_name = Some(original);
    meta
}

/// vmap nesting and autocast come in pairs; a range may hold whole pairs only.
fn check_regions(graph: &Graph, range: &Range<usize>) -> Result<(), CutError> {
    let mut open: Vec<NodeId> = Vec::new();
    for index in range.clone() {
        let id = graph.op_node(index);
        let Some(op) = graph.call(id).and_then(Call::op) else { continue };
        if op.class() != Class::Effect {
            continue;
        }
        let region = |id: NodeId| CutError::Region { name: graph.node(id).name.to_string() };
        match op {
            Op::VmapIncrementNesting | Op::EnterAutocast => open.push(id),
            Op::VmapDecrementNesting | Op::ExitAutocast => {
                open.pop().ok_or_else(|| region(id))?;
            }
            Op::AddBatchDim | Op::RemoveBatchDim if open.is_empty() => return Err(region(id)),
            _ => {}
        }
    }
    match open.first() {
        Some(id) => Err(CutError::Region { name: graph.node(*id).name.to_string() }),
        None => Ok(()),
    }
}
