//! Tensors as the judge sees them: a shape and a row-major slice.

use half::{bf16, f16};
use passnet_graph::DType;
use std::fmt;

/// The elements of a tensor in row-major order.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "each variant is named by its element type")]
pub enum TensorData<'a> {
    Bool(&'a [bool]),
    U8(&'a [u8]),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    F16(&'a [f16]),
    BF16(&'a [bf16]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    /// Real and imaginary parts.
    C64(&'a [[f32; 2]]),
    C128(&'a [[f64; 2]]),
}

/// Runs the same code on the two slices; `None` if their types differ.
macro_rules! dispatch_pair {
    ($left:expr, $right:expr, |$e:ident, $a:ident| $body:expr) => {{
        use $crate::compare::TensorData as D;
        match ($left, $right) {
            (D::Bool($e), D::Bool($a)) => Some($body),
            (D::U8($e), D::U8($a)) => Some($body),
            (D::I8($e), D::I8($a)) => Some($body),
            (D::I16($e), D::I16($a)) => Some($body),
            (D::I32($e), D::I32($a)) => Some($body),
            (D::I64($e), D::I64($a)) => Some($body),
            (D::F16($e), D::F16($a)) => Some($body),
            (D::BF16($e), D::BF16($a)) => Some($body),
            (D::F32($e), D::F32($a)) => Some($body),
            (D::F64($e), D::F64($a)) => Some($body),
            (D::C64($e), D::C64($a)) => Some($body),
            (D::C128($e), D::C128($a)) => Some($body),
            _ => None,
        }
    }};
}
pub(super) use dispatch_pair;

impl TensorData<'_> {
    /// The element type of the variant.
    pub fn dtype(&self) -> DType {
        match self {
            TensorData::Bool(_) => DType::Bool,
            TensorData::U8(_) => DType::UInt8,
            TensorData::I8(_) => DType::Int8,
            TensorData::I16(_) => DType::Int16,
            TensorData::I32(_) => DType::Int32,
            TensorData::I64(_) => DType::Int64,
            TensorData::F16(_) => DType::Float16,
            TensorData::BF16(_) => DType::BFloat16,
            TensorData::F32(_) => DType::Float32,
            TensorData::F64(_) => DType::Float64,
            TensorData::C64(_) => DType::Complex64,
            TensorData::C128(_) => DType::Complex128,
        }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        match self {
            TensorData::Bool(d) => d.len(),
            TensorData::U8(d) => d.len(),
            TensorData::I8(d) => d.len(),
            TensorData::I16(d) => d.len(),
            TensorData::I32(d) => d.len(),
            TensorData::I64(d) => d.len(),
            TensorData::F16(d) => d.len(),
            TensorData::BF16(d) => d.len(),
            TensorData::F32(d) => d.len(),
            TensorData::F64(d) => d.len(),
            TensorData::C64(d) => d.len(),
            TensorData::C128(d) => d.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A tensor to compare.
#[derive(Debug, Clone, Copy)]
pub struct TensorView<'a> {
    /// Sizes, the outermost first.
    pub shape: &'a [usize],
    /// Without gaps, in the order of the shape.
    pub data: TensorData<'a>,
}

/// A shape that does not fit its data: a fault of the caller, never a property of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedTensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) elements: usize,
}

impl fmt::Display for MalformedTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a tensor of shape {:?} cannot have {} elements", self.shape, self.elements)
    }
}

impl std::error::Error for MalformedTensor {}

impl TensorView<'_> {
    pub(super) fn check(&self) -> Result<(), MalformedTensor> {
        let elements = self.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        if elements == Some(self.data.len()) {
            return Ok(());
        }
        Err(MalformedTensor { shape: self.shape.to_vec(), elements: self.data.len() })
    }
}

/// The index of a row-major position, one number per dimension.
pub(super) fn index_of(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (slot, &size) in index.iter_mut().zip(shape).rev() {
        let size = size.max(1);
        *slot = position % size;
        position /= size;
    }
    index
}
