//! The result type of an operation on tensors and numbers (`torch.result_type`).
//!
//! Tensors with dimensions rank above 0-d tensors, those above Python numbers: a lower rank changes the result only where its
//! kind (bool, integer, float, complex) is higher.

use super::{Arg, Scalar};
use passnet_graph::DType;

/// What a Python number counts as in type promotion.
fn number_dtype(scalar: Scalar) -> DType {
    match scalar {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Int(_) => DType::Int64,
        Scalar::Float(_) => DType::Float32,
        Scalar::Complex(..) => DType::Complex64,
    }
}

/// `torch.result_type`.
pub fn result_type<'a>(args: impl IntoIterator<Item = &'a Arg>) -> DType {
    let mut ranks: [Option<DType>; 3] = [None; 3];
    for arg in args {
        let (rank, dtype) = match arg {
            Arg::Tensor(tensor) if tensor.ndim() > 0 => (0, tensor.dtype()),
            Arg::Tensor(tensor) => (1, tensor.dtype()),
            Arg::Scalar(scalar) => (2, number_dtype(*scalar)),
        };
        let joined = ranks[rank].map_or(dtype, |current| current.promote(dtype));
        ranks[rank] = Some(joined);
    }
    let mut result: Option<DType> = None;
    for dtype in ranks.into_iter().flatten() {
        result = Some(match result {
            None => dtype,
            Some(current) if dtype.kind() > current.kind() => current.promote(dtype),
            Some(current) => current,
        });
    }
    result.unwrap_or(DType::Float32)
}

/// The type in which a floating-point function of this type is computed and returned.
pub fn float_type(dtype: DType) -> DType {
    if dtype.is_float() || dtype.is_complex() { dtype } else { DType::Float32 }
}
