//! Elementwise operations, with torch's type promotion, broadcasting and rounding.

mod binary;
mod bitwise;
pub(crate) mod blocks;
pub(crate) mod chain;
mod comparison;
mod ternary;
pub(crate) mod unary;

pub use binary::{Binary, binary, binary_in_place};
pub use bitwise::{Bitwise, Logical, bitwise, bitwise_not, logical, logical_not};
pub use comparison::{Comparison, compare};
pub use ternary::{
    addcdiv, addcmul, clamp, clamp_scalar, isfinite, isinf, isnan, lerp, masked_fill, nan_to_num,
    where_select,
};
pub use unary::{Unary, unary, unary_in_place};

use crate::native::error::Result;
use crate::native::tensor::{Arg, Scalar, Tensor};

/// `a + alpha * b`.
pub fn add(a: &Arg, b: &Arg, alpha: Scalar) -> Result<Tensor> {
    binary(Binary::Add { alpha: alpha.to_f64() }, a, b)
}

/// `a - alpha * b`.
pub fn sub(a: &Arg, b: &Arg, alpha: Scalar) -> Result<Tensor> {
    binary(Binary::Add { alpha: -alpha.to_f64() }, a, b)
}

/// `torch.mul`.
pub fn mul(a: &Arg, b: &Arg) -> Result<Tensor> {
    binary(Binary::Mul, a, b)
}

/// `torch.div`, which gives floats for integers.
pub fn div(a: &Arg, b: &Arg) -> Result<Tensor> {
    binary(Binary::Div, a, b)
}
