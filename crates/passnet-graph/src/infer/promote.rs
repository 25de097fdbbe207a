//! Type promotion: which dtype the result of mixed operands has.
//!
//! Tensors with dimensions outrank tensors without, and those outrank Python numbers: a lower rank changes
//! the result only when its kind is higher (`int tensor + 1.5` is float, `float16 tensor + 1.5` is float16).

use super::value::{Scalar, TensorType};
use crate::dtype::{DType, Kind};

/// An operand of an element-wise operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operand<'a> {
    Tensor(&'a TensorType),
    Number(&'a Scalar),
}

impl<'a> Operand<'a> {
    pub(super) fn dtype(self) -> DType {
        match self {
            Operand::Tensor(tensor) => tensor.dtype,
            Operand::Number(number) => number.dtype(),
        }
    }

    pub(super) fn tensor(self) -> Option<&'a TensorType> {
        match self {
            Operand::Tensor(tensor) => Some(tensor),
            Operand::Number(_) => None,
        }
    }
}

/// `torch.result_type` over any number of operands.
pub(super) fn result_type(operands: &[Operand]) -> DType {
    let mut by_rank: [Option<DType>; 3] = [None; 3];
    for operand in operands {
        let rank = match operand {
            Operand::Tensor(tensor) if !tensor.shape.is_empty() => 0,
            Operand::Tensor(_) => 1,
            Operand::Number(_) => 2,
        };
        let dtype = operand.dtype();
        by_rank[rank] = Some(by_rank[rank].map_or(dtype, |seen| seen.promote(dtype)));
    }
    let [dimensioned, zero_dim, number] = by_rank;
    combine(dimensioned, combine(zero_dim, number)).unwrap_or(DType::Float32)
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let (Some(high), Some(low)) = (higher, lower) else { return higher.or(lower) };
    Some(match (high.kind(), low.kind()) {
        (Kind::Complex, _) => high,
        (Kind::Float, Kind::Complex) => high.complex(),
        (Kind::Float, _) => high,
        (Kind::Bool, _) | (_, Kind::Float | Kind::Complex) => high.promote(low),
        (Kind::Integer, _) => high,
    })
}

/// The dtype of functions that are defined on floats only (`exp`, true division): integers become float32.
pub(super) fn to_float(dtype: DType) -> DType {
    match dtype.kind() {
        Kind::Bool | Kind::Integer => DType::Float32,
        Kind::Float | Kind::Complex => dtype,
    }
}

/// Whether an in-place operation may store a result of one dtype into a tensor of another.
pub(super) fn can_cast(from: DType, to: DType) -> bool {
    match (from.kind(), to.kind()) {
        (Kind::Complex, kind) => kind == Kind::Complex,
        (Kind::Float, kind) => kind >= Kind::Float,
        (Kind::Integer, kind) => kind >= Kind::Integer,
        (Kind::Bool, _) => true,
    }
}

/// torch's name of a dtype in messages: `Long`, `Float`.
pub(super) fn message_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "Bool",
        DType::UInt8 => "Byte",
        DType::Int8 => "Char",
        DType::Int16 => "Short",
        DType::Int32 => "Int",
        DType::Int64 => "Long",
        DType::Float16 => "Half",
        DType::BFloat16 => "BFloat16",
        DType::Float32 => "Float",
        DType::Float64 => "Double",
        DType::Complex64 => "ComplexFloat",
        DType::Complex128 => "ComplexDouble",
    }
}
