//! Layouts of types: the rules of [`crate::view`] for tensors whose sizes may be symbolic.

pub(super) use crate::view::layout::{
    channels_last, contiguous, elementwise, is_channels_last, is_dense, suggests_channels_last,
};
pub(super) use crate::view::shape::describe;

use super::dim::Dim;
use super::problem::Inferred;
use super::value::{Shape, Strides, TensorType};
use crate::view::{layout, shape as sizes};

/// The layout of `empty_like`.
pub(super) fn like(tensor: &TensorType) -> Strides {
    layout::like(&tensor.shape, &tensor.strides)
}

/// A new tensor shaped like another with its layout, possibly of another dtype.
pub(super) fn like_tensor(tensor: &TensorType, dtype: crate::DType) -> TensorType {
    TensorType::strided(dtype, tensor.shape.clone(), like(tensor))
}

/// The product of sizes, symbols kept.
pub(super) fn product(shape: &[Dim]) -> Inferred<Dim> {
    Ok(sizes::product(shape)?)
}

/// Shorthand for shapes written out in rules.
pub(super) fn shape(dims: impl IntoIterator<Item = Dim>) -> Shape {
    dims.into_iter().collect()
}
