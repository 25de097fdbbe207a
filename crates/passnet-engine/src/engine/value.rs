//! Values of a graph while it runs.

use crate::native::{Scalar, Tensor};
use passnet_graph::DType;
use std::sync::Arc;

/// A value of a graph while it runs.
#[derive(Debug, Clone)]
pub enum Value {
    /// A tensor, which others may hold, too.
    Tensor(Tensor),
    /// A number of Python.
    Number(Scalar),
    /// A tuple, a list, a `torch.Size`.
    Sequence(Arc<[Value]>),
    /// Python's `None`.
    None,
    /// A text of Python.
    Text(Arc<str>),
    /// A type of torch.
    Dtype(DType),
    /// Devices have no meaning here: everything runs where the engine runs.
    Device,
    /// `...` of a subscript.
    Ellipsis,
    /// Start, stop and step of a subscript.
    Slice(Arc<[Value; 3]>),
    /// A constant of torch such as `torch.channels_last`.
    Constant(Arc<str>),
    /// An opaque object: an autocast mode, a function context.
    Object,
    /// A tensor inside vmap; `Mapped` says which leading dimensions are hidden.
    Mapped(Arc<Mapped>),
}

/// A tensor inside vmap: its first `levels.len()` dimensions are hidden, one for each nesting level, in order.
#[derive(Debug, Clone)]
pub struct Mapped {
    /// All elements, the mapped dimensions in front.
    pub tensor: Tensor,
    /// Which `vmap` each of these dimensions belongs to.
    pub levels: Vec<i64>,
}

impl Value {
    /// A tuple of Python.
    pub fn sequence(items: impl IntoIterator<Item = Value>) -> Self {
        Value::Sequence(items.into_iter().collect())
    }

    /// An integer of Python.
    pub fn int(value: i64) -> Self {
        Value::Number(Scalar::Int(value))
    }

    /// A truth of Python.
    pub fn bool(value: bool) -> Self {
        Value::Number(Scalar::Bool(value))
    }

    /// A float of Python.
    pub fn float(value: f64) -> Self {
        Value::Number(Scalar::Float(value))
    }

    /// A `torch.Size`.
    pub fn sizes(sizes: &[usize]) -> Self {
        Value::sequence(sizes.iter().map(|size| Value::int(*size as i64)))
    }

    /// A tuple of tensors.
    pub fn tensors(tensors: impl IntoIterator<Item = Tensor>) -> Self {
        Value::sequence(tensors.into_iter().map(Value::Tensor))
    }

    /// The tensor, where the value is one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Calls `visit` for every tensor in the value.
    pub fn for_each_tensor<'a>(&'a self, visit: &mut impl FnMut(&'a Tensor)) {
        match self {
            Value::Tensor(tensor) => visit(tensor),
            Value::Sequence(items) => items.iter().for_each(|item| item.for_each_tensor(visit)),
            _ => {}
        }
    }

    /// Python's name of the value's type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Tensor(_) | Value::Mapped(_) => "Tensor",
            Value::Number(Scalar::Bool(_)) => "bool",
            Value::Number(Scalar::Int(_)) => "int",
            Value::Number(Scalar::Float(_)) => "float",
            Value::Number(Scalar::Complex(..)) => "complex",
            Value::Sequence(_) => "tuple",
            Value::None => "NoneType",
            Value::Text(_) => "str",
            Value::Dtype(_) => "torch.dtype",
            Value::Device => "torch.device",
            Value::Ellipsis => "ellipsis",
            Value::Slice(_) => "slice",
            Value::Constant(_) => "torch constant",
            Value::Object => "object",
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}
