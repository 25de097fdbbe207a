//! A piece of a graph as a pattern: parameters, calls, outputs, and the sizes of everything for all graphs at once.

mod build;
mod updates;

use self::build::{Builder, Origin};
use super::body::Kind;
use super::{Refusal, Size, dimension, refuse};
use crate::graph_family::GraphFamily;
use passnet_graph::dtype::Kind as NumberKind;
use passnet_graph::infer::{self, Dim, Inference, Shape, TensorType, Value};
use passnet_graph::ops::Op;
use passnet_graph::{Arg, Call, DType, Graph, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// What a pattern takes.
#[derive(Debug, Clone)]
pub enum Param {
    /// The value of a node of the family's graph.
    Tensor(NodeId),
    /// A Python number that another node gives.
    Number,
    /// A Python number that differs among the graphs.
    Literal,
    /// The device that the graph names, where no tensor tells it.
    Device,
}

/// A piece ready to be lowered.
#[derive(Debug)]
pub struct Piece {
    /// The pattern: its placeholders are the parameters, in order.
    pub graph: Graph,
    pub params: Vec<Param>,
    /// Number of graphs of the family that it stands for.
    pub graphs: usize,
    /// How many of them, the first ones, are graphs of the task; the others are these at other sizes.
    pub recorded: usize,
    /// For every node of the pattern its type in each graph.
    types: Vec<Vec<Value>>,
    /// The graph whose sizes the formulas are made from.
    example: usize,
    symbolic: Inference,
    /// For every call, what its arguments mean once updates in place are taken into account.
    current: Vec<BTreeMap<NodeId, NodeId>>,
    /// Distinct outputs of the pattern, in order.
    pub outputs: Vec<NodeId>,
    /// For every node the first name of the object it is: an updated tensor and all names of it are one.
    object: Vec<NodeId>,
    /// The last update of each object that is updated.
    latest: BTreeMap<NodeId, NodeId>,
}

impl Piece {
    /// The pattern of these nodes of a family's graph.
    pub fn new(family: &GraphFamily, members: &BTreeSet<NodeId>) -> Result<Piece, Refusal> {
        let graphs = family.members_for(members);
        let mut builder = Builder::new(family, members);
        builder.find_inputs()?;
        let calls = builder.calls()?;
        let (graph, params, origin) = builder.assemble(calls)?;
        let types = origin
            .iter()
            .map(|origin| match origin {
                Origin::Node(id) => graphs.iter().map(|m| m.types.value(*id).clone()).collect(),
                Origin::Literal(values) => values.clone(),
            })
            .collect::<Vec<Vec<Value>>>();
        let example = most_elements(graph.placeholder_count(), &types, graphs.len());
        let symbolic = symbolic_types(&graph, &types, example);
        let mut piece = Piece {
            outputs: graph.outputs.iter().filter_map(Arg::as_node).collect(),
            graphs: graphs.len(),
            recorded: family.recorded().len(),
            current: Vec::new(),
            object: Vec::new(),
            latest: BTreeMap::new(),
            graph,
            params,
            types,
            example,
            symbolic,
        };
        piece.follow_updates()?;
        Ok(piece)
    }

    pub fn is_param(&self, id: NodeId) -> bool {
        id.index() < self.graph.placeholder_count()
    }

    pub fn name(&self, id: NodeId) -> &str {
        &self.graph.node(id).name
    }

    /// What `input` stands for in the arguments of `call`.
    pub fn current(&self, call: NodeId, input: NodeId) -> NodeId {
        self.current[call.index()].get(&input).copied().unwrap_or(input)
    }

    pub fn values(&self, id: NodeId) -> &[Value] {
        &self.types[id.index()]
    }

    /// The only operation, where it is this one.
    pub fn only(&self, op: Op) -> Option<(NodeId, &Call)> {
        let mut calls = self.graph.calls();
        let only = calls.next().filter(|(_, call)| call.op() == Some(op))?;
        calls.next().is_none().then_some(only)
    }

    /// Bytes of a tensor in one graph; no other value has any.
    pub fn bytes(&self, id: NodeId, graph: usize) -> f64 {
        let tensor = self.values(id).get(graph).and_then(Value::as_tensor);
        tensor.map_or(0.0, |tensor| tensor.elements() as f64 * tensor.dtype.size() as f64)
    }

    /// Bytes that its parameters and outputs have in one graph: what one kernel for all of it reads and writes.
    pub fn moved_bytes(&self, graph: usize) -> f64 {
        let params = self.graph.ids().take(self.params.len());
        params.chain(self.outputs.iter().copied()).map(|id| self.bytes(id, graph)).sum()
    }

    /// The tensor type in the first graph.
    pub fn tensor(&self, id: NodeId) -> Result<&TensorType, Refusal> {
        match self.types[id.index()].first() {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            _ => Err(Refusal::new(format!("`{}` is no tensor", self.name(id)))),
        }
    }

    pub fn is_tensor(&self, id: NodeId) -> bool {
        self.tensor(id).is_ok()
    }

    /// Its dtype in each graph.
    pub fn dtypes(&self, id: NodeId) -> Vec<DType> {
        let types = self.types[id.index()].iter().filter_map(Value::as_tensor);
        types.map(|tensor| tensor.dtype).collect()
    }

    pub fn kind(&self, id: NodeId) -> Result<Kind, Refusal> {
        match self.types[id.index()].first() {
            Some(Value::Tensor(tensor)) => kind_of(tensor.dtype),
            Some(Value::Scalar(scalar)) => kind_of(scalar.dtype()),
            _ => Err(Refusal::new(format!("`{}` is no number", self.name(id)))),
        }
    }

    /// The shape, with a formula for every size.
    pub fn shape(&self, id: NodeId) -> Result<Vec<Size>, Refusal> {
        shape_of(self.name(id), &self.types[id.index()], self.symbolic.value(id), self.example)
    }

    /// Whether a parameter is laid out otherwise than row by row in some graph, so that a kernel must ask for strides.
    pub fn is_strided(&self, param: NodeId) -> bool {
        self.is_param(param) && self.types[param.index()].iter().any(is_odd)
    }

    /// The strides of a parameter, by its own name for them.
    pub fn strides(&self, param: NodeId) -> Result<Vec<Size>, Refusal> {
        let rank = self.tensor(param)?.rank();
        let name = self.name(param);
        (0..rank)
            .map(|dim| {
                let stride = |value: &Value| match value {
                    Value::Tensor(tensor) => tensor.strides.get(dim).copied(),
                    _ => None,
                };
                let values: Option<Vec<i64>> =
                    self.types[param.index()].iter().map(stride).collect();
                let Some(values) = values.filter(|values| !values.is_empty()) else {
                    refuse!("no strides of `{name}`")
                };
                let formula = Dim::symbol(&format!("{name}.stride({dim})"), values[0]);
                Ok(Size::stride(values, formula))
            })
            .collect()
    }

    /// The dimensions of a result as eager lays them out in memory, outermost first; `None` where that is row by row.
    pub fn memory_order(&self, id: NodeId) -> Result<Option<Vec<usize>>, Refusal> {
        order_in_memory(&self.types[id.index()])
            .map_err(|Gaps| Refusal::new(format!("`{}` lies in memory with gaps", self.name(id))))
    }

    /// The shape of one element of a list of tensors.
    pub fn element_shape(&self, id: NodeId, element: usize) -> Result<Vec<Size>, Refusal> {
        let pick = |value: &Value| match value {
            Value::Sequence(items) => items.get(element).cloned(),
            _ => None,
        };
        let types: Option<Vec<Value>> = self.types[id.index()].iter().map(pick).collect();
        let symbolic = pick(self.symbolic.value(id));
        match (types, symbolic) {
            (Some(types), Some(symbolic)) => {
                shape_of(self.name(id), &types, &symbolic, self.example)
            }
            _ => Err(Refusal::new(format!("`{}` is no list of tensors", self.name(id)))),
        }
    }

    /// A whole-number argument as a size: a literal, or a parameter of the pattern.
    pub fn size_arg(&self, arg: &Arg) -> Result<Size, Refusal> {
        match arg {
            Arg::Node(id) => {
                let value = |value: &Value| match value {
                    Value::Scalar(scalar) => scalar.as_dim(),
                    _ => None,
                };
                let dims: Option<Vec<Dim>> = self.types[id.index()].iter().map(value).collect();
                match (dims, value(self.symbolic.value(*id))) {
                    (Some(dims), Some(formula)) => {
                        Ok(Size::new(dims.iter().map(|d| d.size).collect(), formula))
                    }
                    _ => Err(Refusal::new("a size is not known")),
                }
            }
            other => match other.as_int() {
                Some(value) => Ok(Size::fixed(value, self.graphs)),
                None => Err(Refusal::new("a size is not known")),
            },
        }
    }

    /// The parameter that an output is, when the piece updates one in place and returns it.
    pub fn updated_param(&self, output: NodeId) -> Option<usize> {
        let root = self.object[output.index()];
        (self.is_param(root) && self.latest.contains_key(&root)).then(|| root.index())
    }

    /// Parameters that are updated in place, with the value they end up with.
    pub fn updates(&self) -> impl Iterator<Item = (usize, NodeId)> {
        let updates = self.latest.iter().map(|(root, last)| (root.index(), *last));
        updates.filter(|(root, _)| *root < self.graph.placeholder_count())
    }

    /// The value an output has at the end: torch returns the object, not what it was.
    pub fn last_value(&self, output: NodeId) -> NodeId {
        self.latest.get(&self.object[output.index()]).copied().unwrap_or(output)
    }
}

fn kind_of(dtype: DType) -> Result<Kind, Refusal> {
    match dtype {
        DType::Float64 => Err(Refusal::new("float64 is left to the framework")),
        _ => match dtype.kind() {
            NumberKind::Bool => Ok(Kind::Bool),
            NumberKind::Integer => Ok(Kind::Int),
            NumberKind::Float => Ok(Kind::Float),
            NumberKind::Complex => Err(Refusal::new("complex numbers are left to the framework")),
        },
    }
}

fn shape_of(
    name: &str,
    types: &[Value],
    symbolic: &Value,
    example: usize,
) -> Result<Vec<Size>, Refusal> {
    let tensors: Option<Vec<&TensorType>> = types.iter().map(Value::as_tensor).collect();
    let Some(tensors) = tensors else { refuse!("`{name}` is no tensor") };
    let rank = tensors[0].rank();
    if tensors.iter().any(|tensor| tensor.rank() != rank) {
        refuse!("`{name}` has another rank in some graphs");
    }
    let formulas = symbolic.as_tensor().filter(|tensor| tensor.rank() == rank);
    (0..rank)
        .map(|dim| {
            let values: Vec<i64> = tensors.iter().map(|tensor| tensor.shape[dim].size).collect();
            let first = values[0];
            let formula = formulas.and_then(|tensor| tensor.shape[dim].as_factor());
            match formula {
                Some(formula) if formula.size == values[example] && formula.is_known() => {
                    Ok(Size::new(values, formula))
                }
                _ if values.iter().all(|v| *v == first) => Ok(Size::new(values, Dim::fixed(first))),
                _ => Err(Refusal::new(format!("no formula for a size of `{name}`"))),
            }
        })
        .collect()
}

/// Whether a tensor is laid out otherwise than row by row.
fn is_odd(value: &Value) -> bool {
    matches!(value, Value::Tensor(tensor) if !tensor.is_contiguous())
}

/// Whether a tensor's elements follow each other without gaps when the dimensions are walked through in this order.
fn is_dense(tensor: &TensorType, order: &[usize]) -> bool {
    let mut step = 1;
    order.iter().rev().all(|dim| {
        let (size, stride) = (tensor.shape[*dim].size, tensor.strides[*dim]);
        let fits = size == 1 || stride == step;
        step *= size;
        fits
    })
}

/// Between the elements of a tensor lie others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps;

/// The dimensions of a tensor as they lie in memory in all graphs, outermost first; `None` where that is row by row.
pub fn order_in_memory(types: &[Value]) -> Result<Option<Vec<usize>>, Gaps> {
    let mut tensors = types.iter().filter_map(Value::as_tensor);
    let Some(first) = tensors.clone().find(|tensor| !tensor.is_contiguous()) else {
        return Ok(None);
    };
    let mut order: Vec<usize> = (0..first.rank()).collect();
    // Dimensions of one element have no place of their own: they stay where they are.
    order.sort_by_key(|dim| std::cmp::Reverse((first.strides[*dim], first.shape[*dim].size)));
    match tensors.all(|tensor| is_dense(tensor, &order)) {
        true => Ok(Some(order)),
        false => Err(Gaps),
    }
}

/// Whether nobody reads a value.
fn is_unread(graph: &Graph, id: NodeId) -> bool {
    let is_read = graph.calls().any(|(_, call)| {
        let mut reads = false;
        call.for_each_input(|input| reads |= input == id);
        reads
    });
    let mut returned = false;
    for output in &graph.outputs {
        output.for_each_node(&mut |node| returned |= node == id);
    }
    !is_read && !returned
}

/// The members whose values are needed outside, and those that nobody reads: a pattern has no other use for them.
pub fn outputs_of(graph: &Graph, members: &BTreeSet<NodeId>) -> Vec<NodeId> {
    let mut needed = BTreeSet::new();
    for (id, call) in graph.calls() {
        if !members.contains(&id) {
            call.for_each_input(|input| {
                if members.contains(&input) {
                    needed.insert(input);
                }
            });
        }
    }
    for output in &graph.outputs {
        output.for_each_node(&mut |id| {
            if members.contains(&id) {
                needed.insert(id);
            }
        });
    }
    let updates = |id: NodeId| {
        let bound = graph.call(id).and_then(|call| call.bind().ok());
        bound.is_none_or(|bound| bound.mutated().is_some())
    };
    needed.extend(members.iter().filter(|id| is_unread(graph, **id) && !updates(**id)));
    needed.into_iter().collect()
}

/// The graph whose arguments have the most elements: a size of one would be taken for another that it broadcasts with.
fn most_elements(arguments: usize, types: &[Vec<Value>], graphs: usize) -> usize {
    let elements = |graph: usize| -> i64 {
        let tensors = types[..arguments].iter().filter_map(|types| types[graph].as_tensor());
        tensors.map(TensorType::elements).fold(0, i64::saturating_add)
    };
    // The first of equals, so that formulas do not depend on how many graphs there are.
    (0..graphs).rev().max_by_key(|graph| elements(*graph)).unwrap_or(0)
}

/// Types with a formula for every size, over the sizes of the parameters.
fn symbolic_types(graph: &Graph, types: &[Vec<Value>], example: usize) -> Inference {
    let inputs: Vec<Value> = graph
        .placeholders()
        .iter()
        .zip(types)
        .map(|(node, types)| match &types[example] {
            Value::Tensor(tensor) => {
                let shape: Shape = (0..tensor.rank())
                    .map(|dim| Dim::symbol(&dimension(&node.name, dim), tensor.shape[dim].size))
                    .collect();
                TensorType::contiguous(tensor.dtype, shape).into()
            }
            Value::Scalar(infer::Scalar::Int(Some(dim))) => {
                Value::dim(Dim::symbol(&node.name, dim.size))
            }
            other => other.clone(),
        })
        .collect();
    infer::infer(graph, &inputs)
}
