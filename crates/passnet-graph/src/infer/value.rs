//! What is known of a value before anything runs.

use super::dim::Dim;
use crate::dtype::{DType, Device};
use crate::view::{List, Strided, layout};
use serde_json::{Value as Json, json};
use smallvec::SmallVec;
use std::sync::Arc;

/// Sizes of a tensor, which may carry symbols.
pub type Shape = List<Dim>;
/// Strides in elements, those of the example.
pub type Strides = List<i64>;

/// A tensor without its elements.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorType {
    /// The type of its elements.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Shape,
    /// Its strides, as many as there are sizes.
    pub strides: Strides,
    /// The first element's place in its memory.
    pub offset: i64,
    /// The node whose memory this is; `FRESH` until the result is assigned to one.
    pub(super) origin: u32,
    /// The elements of the memory, where they are few and known (recorded data, constants): sizes that
    /// depend on data can then be inferred.
    pub(super) memory: Option<Arc<[f64]>>,
    /// Dimensions hidden by `vmap`, outermost level first.
    pub(super) mapped: SmallVec<[MappedDim; 0]>,
}

/// A dimension that `_add_batch_dim` has hidden.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MappedDim {
    pub level: i64,
    pub dim: Dim,
    pub stride: i64,
}

pub(super) const FRESH: u32 = u32::MAX;

/// Largest tensor whose elements are followed.
pub(super) const MAX_KNOWN_ELEMENTS: usize = 4096;

impl TensorType {
    /// A new tensor, contiguous.
    pub fn contiguous(dtype: DType, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        let strides = layout::contiguous(&shape);
        Self::strided(dtype, shape, strides)
    }

    /// A new tensor with a given layout.
    pub fn strided(dtype: DType, shape: Shape, strides: Strides) -> Self {
        TensorType {
            dtype,
            shape,
            strides,
            offset: 0,
            origin: FRESH,
            memory: None,
            mapped: SmallVec::new(),
        }
    }

    /// Contiguous, with sizes that no symbol changes.
    pub fn from_sizes(dtype: DType, sizes: &[i64]) -> Self {
        Self::contiguous(dtype, sizes.iter().map(|size| Dim::fixed(*size)).collect::<Shape>())
    }

    /// The same tensor with its elements given in row-major order, so that sizes read from it are known.
    #[must_use]
    pub fn with_elements(self, elements: Vec<f64>) -> Self {
        if elements.len() as i64 != self.elements() || !self.is_contiguous() {
            return self;
        }
        TensorType { memory: Some(elements.into()), ..self }
    }

    /// The same memory seen through other metadata.
    pub(super) fn viewed(&self, shape: Shape, strides: Strides) -> Self {
        TensorType { shape, strides, ..self.clone() }
    }

    /// Whether `vmap` hides dimensions of it.
    pub fn is_mapped(&self) -> bool {
        !self.mapped.is_empty()
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The sizes of the example, without symbols.
    pub fn sizes(&self) -> List<i64> {
        self.shape.iter().map(|dim| dim.size).collect()
    }

    /// Number of elements; saturates where a product would overflow.
    pub fn elements(&self) -> i64 {
        self.shape.iter().fold(1, |product: i64, dim| product.saturating_mul(dim.size))
    }

    /// Whether both are views of the memory of one node.
    pub fn shares_memory_with(&self, other: &TensorType) -> bool {
        self.origin != FRESH && self.origin == other.origin
    }

    /// By torch's rule, for which sizes of one have any stride.
    pub fn is_contiguous(&self) -> bool {
        layout::is_contiguous(&self.shape, &self.strides)
    }

    /// The elements in row-major order, where they are known.
    pub(super) fn known_elements(&self) -> Option<Vec<f64>> {
        let memory = self.memory.as_ref()?;
        let count = usize::try_from(self.elements()).ok()?;
        if count > MAX_KNOWN_ELEMENTS || !self.mapped.is_empty() {
            return None;
        }
        let mut elements = Vec::with_capacity(count);
        let mut index: List<i64> = SmallVec::from_elem(0, self.rank());
        for _ in 0..count {
            let place = index
                .iter()
                .zip(&self.strides)
                .try_fold(self.offset, |at, (i, stride)| at.checked_add(i.checked_mul(*stride)?))?;
            elements.push(*memory.get(usize::try_from(place).ok()?)?);
            for axis in (0..index.len()).rev() {
                index[axis] += 1;
                if index[axis] < self.shape[axis].size {
                    break;
                }
                index[axis] = 0;
            }
        }
        Some(elements)
    }
}

impl Strided for TensorType {
    type Size = Dim;
    type Step = i64;

    fn shape(&self) -> &[Dim] {
        &self.shape
    }

    fn strides(&self) -> &[i64] {
        &self.strides
    }

    fn start(&self) -> i64 {
        self.offset
    }

    fn seen(&self, shape: Shape, strides: Strides, offset: i64) -> Self {
        TensorType { shape, strides, offset, ..self.clone() }
    }
}

/// A Python number; its value may be unknown (`x.item()`).
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// `None`: a truth that depends on data.
    Bool(Option<bool>),
    /// `None`: an integer that depends on data.
    Int(Option<Dim>),
    /// `None`: a float that depends on data.
    Float(Option<f64>),
}

impl Scalar {
    /// The type that it has as a tensor.
    pub fn dtype(&self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::Int64,
            Scalar::Float(_) => DType::Float32,
        }
    }

    /// Its value, where that is known.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Scalar::Bool(value) => value.map(|v| f64::from(u8::from(v))),
            Scalar::Int(value) => value.as_ref().map(|v| v.size as f64),
            Scalar::Float(value) => *value,
        }
    }

    /// As an integer, where it is one: `True` counts as 1.
    pub fn as_dim(&self) -> Option<Dim> {
        match self {
            Scalar::Bool(value) => value.map(|v| Dim::fixed(i64::from(v))),
            Scalar::Int(value) => value.clone(),
            Scalar::Float(_) => None,
        }
    }
}

/// Anything a node can produce or take.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A tensor, by its type.
    Tensor(TensorType),
    /// A number of Python.
    Scalar(Scalar),
    /// A list, a tuple or a `torch.Size`.
    Sequence(Vec<Value>),
    /// Python's `None`.
    None,
    /// A type of torch.
    Dtype(DType),
    /// A device; `None` where it is that of a tensor that names none.
    Device(Option<Device>),
    /// A text of Python.
    Str(Box<str>),
    /// Start, stop and step of a subscript.
    Slice(Box<[Value; 3]>),
    /// `...` of a subscript.
    Ellipsis,
    /// A constant of torch that is none of the above, by name: `torch.channels_last`.
    Constant(Box<str>),
    /// A Python object that only its own functions understand, by the name of its type.
    Object(&'static str),
    /// Not inferred, and why.
    Unknown(Arc<str>),
}

impl Value {
    /// A known integer.
    pub fn int(value: i64) -> Self {
        Value::Scalar(Scalar::Int(Some(Dim::fixed(value))))
    }

    /// An integer that may carry symbols.
    pub fn dim(dim: Dim) -> Self {
        Value::Scalar(Scalar::Int(Some(dim)))
    }

    /// A known float.
    pub fn float(value: f64) -> Self {
        Value::Scalar(Scalar::Float(Some(value)))
    }

    /// A known truth.
    pub fn bool(value: bool) -> Self {
        Value::Scalar(Scalar::Bool(Some(value)))
    }

    /// The type, where the value is a tensor.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Value::Unknown(_))
    }

    /// The tensors in a value, lists entered.
    pub(super) fn for_each_tensor_mut(&mut self, visit: &mut impl FnMut(&mut TensorType)) {
        match self {
            Value::Tensor(tensor) => visit(tensor),
            Value::Sequence(items) => {
                items.iter_mut().for_each(|item| item.for_each_tensor_mut(visit));
            }
            _ => {}
        }
    }

    /// Python's name for the type of this value, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Tensor(_) => "Tensor",
            Value::Scalar(Scalar::Bool(_)) => "bool",
            Value::Scalar(Scalar::Int(_)) => "int",
            Value::Scalar(Scalar::Float(_)) => "float",
            Value::Sequence(_) => "tuple",
            Value::None => "NoneType",
            Value::Dtype(_) => "dtype",
            Value::Device(_) => "device",
            Value::Str(_) => "str",
            Value::Slice(_) => "slice",
            Value::Ellipsis => "ellipsis",
            Value::Constant(name) if name.contains("_last") || name.contains("_format") => {
                "memory_format"
            }
            Value::Constant(_) => "layout",
            Value::Object(name) => name,
            Value::Unknown(_) => "unknown",
        }
    }

    /// The record that parity checks compare with PyTorch's.
    pub fn to_json(&self) -> Json {
        match self {
            Value::Tensor(tensor) => {
                let sizes: &[i64] = &tensor.sizes();
                let strides: &[i64] = &tensor.strides;
                let mut record =
                    json!({ "dtype": tensor.dtype.name(), "shape": sizes, "stride": strides });
                if tensor.shape.iter().any(Dim::is_symbolic) {
                    record["symbolic"] = tensor.shape.iter().map(Dim::to_string).collect();
                }
                record
            }
            Value::Scalar(Scalar::Bool(value)) => json!({ "scalar": "bool", "value": value }),
            Value::Scalar(Scalar::Int(value)) => {
                let mut record =
                    json!({ "scalar": "int", "value": value.as_ref().map(|dim| dim.size) });
                if let Some(dim) = value.as_ref().filter(|dim| dim.is_symbolic()) {
                    record["symbolic"] = dim.to_string().into();
                }
                record
            }
            Value::Scalar(Scalar::Float(value)) => match value {
                // JSON has no infinities; a word keeps the record readable by every parser.
                Some(value) if !value.is_finite() => {
                    json!({ "scalar": "float", "value": value.to_string().to_lowercase() })
                }
                value => json!({ "scalar": "float", "value": value }),
            },
            Value::Sequence(items) => {
                json!({ "list": items.iter().map(Value::to_json).collect::<Vec<_>>() })
            }
            Value::None => json!({ "none": true }),
            Value::Unknown(reason) => json!({ "unknown": reason.as_ref() }),
            other => json!({ "other": other.type_name() }),
        }
    }
}

impl From<TensorType> for Value {
    fn from(tensor: TensorType) -> Self {
        Value::Tensor(tensor)
    }
}
