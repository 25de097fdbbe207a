//! Argument values: references to nodes, and literals.

use crate::dtype::{DType, Device};

/// Index of a node in [`Graph::nodes`](super::Graph::nodes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// The node at this place of the graph.
    pub fn new(index: usize) -> Self {
        NodeId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Its place among the nodes of the graph.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An argument of a call, or a returned value.
#[derive(Debug, Clone)]
pub enum Arg {
    /// The value of an earlier node.
    Node(NodeId),
    /// Python's `None`.
    None,
    /// A literal.
    Bool(bool),
    /// A literal; sizes and dimensions, too.
    Int(i64),
    /// A literal, which may be infinite or NaN.
    Float(f64),
    /// A literal.
    Str(Box<str>),
    /// A type of torch, as an argument.
    Dtype(DType),
    /// A device of torch, as an argument.
    Device(Device),
    /// `...` in a subscript.
    Ellipsis,
    /// `slice(start, stop, step)`.
    Slice(Box<[Arg; 3]>),
    /// A tuple, which may hold nodes.
    Tuple(Vec<Arg>),
    /// A list, which may hold nodes.
    List(Vec<Arg>),
    /// Another constant of torch, by its name: `torch.channels_last`, `torch.strided`.
    Constant(Box<str>),
}

/// Floats are compared by their bits, so that a graph equals itself even where it holds a NaN, and
/// `0.0` differs from `-0.0`.
impl PartialEq for Arg {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Arg::Node(a), Arg::Node(b)) => a == b,
            (Arg::None, Arg::None) | (Arg::Ellipsis, Arg::Ellipsis) => true,
            (Arg::Bool(a), Arg::Bool(b)) => a == b,
            (Arg::Int(a), Arg::Int(b)) => a == b,
            (Arg::Float(a), Arg::Float(b)) => a.to_bits() == b.to_bits(),
            (Arg::Str(a), Arg::Str(b)) | (Arg::Constant(a), Arg::Constant(b)) => a == b,
            (Arg::Dtype(a), Arg::Dtype(b)) => a == b,
            (Arg::Device(a), Arg::Device(b)) => a == b,
            (Arg::Slice(a), Arg::Slice(b)) => a == b,
            (Arg::Tuple(a), Arg::Tuple(b)) | (Arg::List(a), Arg::List(b)) => a == b,
            _ => false,
        }
    }
}

impl Arg {
    /// The node, where the argument is one.
    pub fn as_node(&self) -> Option<NodeId> {
        match self {
            Arg::Node(id) => Some(*id),
            _ => None,
        }
    }

    /// An integer literal; `True` counts as 1, as in Python.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Arg::Int(value) => Some(*value),
            Arg::Bool(value) => Some(i64::from(*value)),
            _ => None,
        }
    }

    /// A float or an integer as a float.
    pub fn as_float(&self) -> Option<f64> {
        match self {
            Arg::Float(value) => Some(*value),
            other => other.as_int().map(|value| value as f64),
        }
    }

    /// The truth, where the argument is a literal one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Arg::Bool(value) => Some(*value),
            Arg::Int(value) => Some(*value != 0),
            _ => None,
        }
    }

    /// The text, where the argument is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Arg::Str(value) => Some(value),
            _ => None,
        }
    }

    /// The elements of a tuple or list.
    pub fn as_sequence(&self) -> Option<&[Arg]> {
        match self {
            Arg::Tuple(items) | Arg::List(items) => Some(items),
            _ => None,
        }
    }

    /// Whether it is the literal `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Arg::None)
    }

    /// The direct parts of a compound value.
    pub fn parts(&self) -> &[Arg] {
        match self {
            Arg::Tuple(items) | Arg::List(items) => items,
            Arg::Slice(parts) => &parts[..],
            _ => &[],
        }
    }

    /// Visits every node in it, at any depth, in order.
    #[inline]
    pub fn for_each_node(&self, visit: &mut impl FnMut(NodeId)) {
        match self {
            Arg::Node(id) => visit(*id),
            compound => compound.parts().iter().for_each(|part| part.for_each_node(visit)),
        }
    }

    /// Replaces every reference to a node by what `map` gives for it.
    pub fn map_nodes(&mut self, map: &mut impl FnMut(NodeId) -> Arg) {
        match self {
            Arg::Node(id) => *self = map(*id),
            Arg::Tuple(items) | Arg::List(items) => {
                items.iter_mut().for_each(|item| item.map_nodes(map));
            }
            Arg::Slice(parts) => parts.iter_mut().for_each(|part| part.map_nodes(map)),
            _ => {}
        }
    }
}
