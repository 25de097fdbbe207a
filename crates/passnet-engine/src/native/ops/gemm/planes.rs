//! Tensors of matrices: the last two dimensions are a matrix, those before them say which one.

use super::Matrix;
use crate::native::error::Result;
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::Runs;
use crate::native::tensor::{Strided, Tensor};

/// The matrices of a tensor, read where they lie where its type is the right one.
pub(crate) struct Planes<'a, T> {
    elements: Strided<'a, T>,
    starts: Vec<usize>,
}

impl<'a, T: Real> Planes<'a, T> {
    /// Of a tensor with two dimensions or more.
    pub(crate) fn new(tensor: &'a Tensor) -> Result<Self> {
        let elements = tensor.strided::<T>()?;
        let outer = tensor.ndim() - 2;
        let starts = Runs::new(&tensor.shape()[..outer], &elements.strides[..outer], 0).collect();
        Ok(Planes { elements, starts })
    }

    /// One of the matrices, from a row on. A matrix without elements may begin anywhere.
    pub(crate) fn matrix(&self, index: usize, row: usize) -> Matrix<'_, T> {
        let (data, strides) = (&self.elements.data, &self.elements.strides);
        let (row_stride, column_stride) = (strides[strides.len() - 2], strides[strides.len() - 1]);
        let start = self.starts[index] + row * row_stride;
        Matrix { data: &data[start.min(data.len())..], row_stride, column_stride }
    }
}
