//! Moving elements between layouts and types.

use super::element::{Complex, with_width};
use super::layout::{self, Dims, inverse};
use super::{Buffer, Tensor, gather};
use crate::native::error::{Result, ensure};
use crate::native::ops::pointwise::blocks;
use passnet_graph::DType;

impl Tensor {
    /// A copy in another type; the memory order is kept where the tensor is dense.
    pub fn to_dtype(&self, dtype: DType) -> Result<Tensor> {
        if dtype == self.dtype { Ok(self.clone()) } else { self.copy_as(dtype) }
    }

    /// A fresh copy (`torch.clone`).
    pub fn copy(&self) -> Result<Tensor> {
        self.copy_as(self.dtype)
    }

    fn copy_as(&self, dtype: DType) -> Result<Tensor> {
        let order = self.memory_order();
        let seen = self.permute_dims(&order);
        let dense = seen.dense_copy(dtype)?;
        Ok(dense.permute_dims(&inverse(&order)))
    }

    /// The dimensions from outermost to innermost in memory, as `torch.empty_like` arranges a copy.
    pub(crate) fn memory_order(&self) -> Dims {
        if self.is_contiguous() {
            return (0..self.ndim()).collect();
        }
        if layout::is_dense(&self.shape, &self.strides) {
            let mut order: Dims = (0..self.ndim()).collect();
            order.sort_by_key(|&d| std::cmp::Reverse(self.strides[d]));
            return order;
        }
        layout::pointwise_order(&self.shape, &[(&self.shape, &self.strides)])
    }

    /// A row-major copy in the given type.
    pub(crate) fn dense_copy(&self, dtype: DType) -> Result<Tensor> {
        if dtype == self.dtype {
            return with_width!(dtype, W => {
                let mut buffer = Buffer::<W>::new(self.numel())?;
                self.gather_words(&mut buffer)?;
                Tensor::from_memory(buffer.into_memory(), dtype, &self.shape)
            });
        }
        let complex = dtype.is_complex();
        let own = self.dtype;
        if complex {
            blocks::convert::<Complex<f64>>(self, dtype)
        } else if !own.is_float() && !own.is_complex() {
            blocks::convert::<i64>(self, dtype)
        } else if dtype.is_float()
            && own != DType::Float64
            && dtype != DType::Float64
            && !own.is_complex()
        {
            blocks::convert::<f32>(self, dtype)
        } else {
            blocks::convert::<f64>(self, dtype)
        }
    }

    /// The tensor itself where it is row-major, else a row-major copy.
    pub fn contiguous(&self) -> Result<Tensor> {
        if self.is_contiguous() { Ok(self.clone()) } else { self.dense_copy(self.dtype) }
    }

    /// The tensor in channels-last memory order.
    pub fn channels_last(&self) -> Result<Tensor> {
        ensure!(
            matches!(self.ndim(), 4 | 5),
            Shape,
            "required rank 4 or 5 tensor to use channels_last format"
        );
        if layout::is_channels_last(&self.shape, &self.strides) {
            return Ok(self.clone());
        }
        let order = layout::channels_last_order(self.ndim());
        let dense = self.permute_dims(&order).dense_copy(self.dtype)?;
        Ok(dense.permute_dims(&inverse(&order)))
    }

    /// Overwrites this tensor's elements (`Tensor.copy_`): broadcast and converted.
    pub fn copy_from(&self, source: &Tensor) -> Result<()> {
        let source = source.expand_to(&self.shape)?;
        if self.dtype == source.dtype {
            return with_width!(self.dtype, W => {
                let values = if self.shares_storage(&source) {
                    let mut buffer = Buffer::<W>::new(source.numel())?;
                    source.gather_words(&mut buffer)?;
                    super::Values::Owned(buffer)
                } else if self.is_contiguous() {
                    let mut target = self.write::<W>()?;
                    let range = self.offset..self.offset + self.numel();
                    return source.gather_words(&mut target[range]);
                } else {
                    source.words::<W>()?
                };
                let mut target = self.write::<W>()?;
                gather::scatter(&mut target, &self.shape, &self.strides, self.offset, &values);
                Ok(())
            });
        }
        self.copy_from(&source.dense_copy(self.dtype)?)
    }

    /// Sets every element.
    pub fn fill(&self, value: super::Scalar) -> Result<()> {
        self.copy_from(&Tensor::full(&[], value, self.dtype)?)
    }
}
