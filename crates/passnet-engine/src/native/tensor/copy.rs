//! Moving elements between layouts and types.

use super::element::{Complex, Compute, Plain, with_width};
use super::layout::{self, Dims, Runs};
use super::{Buffer, Tensor};
use crate::native::error::{Result, ensure};
use crate::native::ops::pointwise::blocks;
use crate::native::tensor::convert::loader;
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;
use smallvec::SmallVec;

/// Side of the square tiles in which a transposition is done, so that both sides stay in cache.
const TILE: usize = 32;

/// Writes a tensor's elements to `out` in row-major order, converted.
pub(crate) fn gather<C: Compute>(tensor: &Tensor, out: &mut [C]) -> Result<()> {
    let (shape, strides) = layout::coalesce(&tensor.shape, &[&tensor.strides]);
    let source = tensor.read::<u8>()?;
    let load = loader::<C>(tensor.dtype);
    walk(&shape, &strides[0], tensor.offset, out, |offset, stride, out: &mut [C]| {
        load(&source, offset, stride, out);
    });
    Ok(())
}

/// As `gather`, for elements that only move.
pub(crate) fn gather_words<W: Plain>(tensor: &Tensor, out: &mut [W]) -> Result<()> {
    let (shape, strides) = layout::coalesce(&tensor.shape, &[&tensor.strides]);
    let source = tensor.read::<W>()?;
    walk(&shape, &strides[0], tensor.offset, out, |offset, stride, out: &mut [W]| match stride {
        1 => out.copy_from_slice(&source[offset..offset + out.len()]),
        0 => out.fill(source[offset]),
        _ => {
            for (o, v) in out.iter_mut().zip(source[offset..].iter().step_by(stride)) {
                *o = *v;
            }
        }
    });
    Ok(())
}

/// Calls `copy(offset, stride, out)` for every innermost run, in parallel over fixed chunks of the output.
fn walk<C: Plain>(
    shape: &[usize],
    strides: &[usize],
    offset: usize,
    out: &mut [C],
    copy: impl Fn(usize, usize, &mut [C]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    let last = shape.len() - 1;
    let (inner, step) = (shape[last], strides[last]);
    let (outer_shape, outer_strides) = (&shape[..last], &strides[..last]);
    let transposed = last > 0 && step > 1 && strides[last - 1] == 1 && shape[last - 1] >= 4;
    if transposed && inner >= 4 {
        let rows = shape[last - 1];
        let band = TILE.min(rows);
        let bands = rows.div_ceil(band);
        let outer = &shape[..last - 1];
        // One chunk holds the bands of one matrix; matrices with few rows are grouped by the chunk helper itself.
        for (matrix, base) in Runs::new(outer, &strides[..last - 1], offset).enumerate() {
            let matrix_out = &mut out[matrix * rows * inner..(matrix + 1) * rows * inner];
            let chunk = (bands.div_ceil(16).max(1)) * band * inner;
            for_each_chunk(matrix_out, chunk, |index, piece| {
                let first_row = index * chunk / inner;
                transpose_rows(base + first_row, step, inner, piece, &copy);
            });
        }
        return;
    }
    let rows_per_chunk = (GRAIN / inner.max(1)).max(1);
    let chunk = rows_per_chunk * inner;
    if outer_shape.is_empty() {
        // A single long run: split it anywhere.
        for_each_chunk(out, GRAIN, |index, piece| {
            copy(offset + index * GRAIN * step, step, piece);
        });
        return;
    }
    for_each_chunk(out, chunk, |index, piece| {
        let runs = Runs::starting_at(outer_shape, outer_strides, offset, index * rows_per_chunk);
        for (row, base) in piece.chunks_mut(inner).zip(runs) {
            copy(base, step, row);
        }
    });
}

/// Fills rows of `inner` elements whose sources lie `step` apart, rows being neighbours in memory.
fn transpose_rows<C: Plain>(
    base: usize,
    step: usize,
    inner: usize,
    out: &mut [C],
    copy: &(impl Fn(usize, usize, &mut [C]) + Sync),
) {
    for (band, rows) in out.chunks_mut(TILE * inner).enumerate() {
        let first = base + band * TILE;
        for column in (0..inner).step_by(TILE) {
            let width = TILE.min(inner - column);
            for (r, row) in rows.chunks_mut(inner).enumerate() {
                copy(first + r + column * step, step, &mut row[column..column + width]);
            }
        }
    }
}

/// Writes row-major elements into a strided region.
pub(crate) fn scatter<T: Plain>(
    target: &mut [T],
    shape: &[usize],
    strides: &[usize],
    offset: usize,
    values: &[T],
) {
    if values.is_empty() {
        return;
    }
    let (shape, strides) = layout::coalesce(shape, &[strides]);
    let strides = &strides[0];
    let last = shape.len() - 1;
    let (inner, step) = (shape[last], strides[last]);
    let runs = Runs::new(&shape[..last], &strides[..last], offset);
    for (row, base) in values.chunks(inner).zip(runs) {
        if step == 1 {
            target[base..base + inner].copy_from_slice(row);
        } else {
            for (i, v) in row.iter().enumerate() {
                target[base + i * step] = *v;
            }
        }
    }
}

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
                gather_words(self, &mut buffer)?;
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
                    gather_words(&source, &mut buffer)?;
                    super::Values::Owned(buffer)
                } else if self.is_contiguous() {
                    let mut target = self.write::<W>()?;
                    let range = self.offset..self.offset + self.numel();
                    return gather_words(&source, &mut target[range]);
                } else {
                    source.words::<W>()?
                };
                let mut target = self.write::<W>()?;
                scatter(&mut target, &self.shape, &self.strides, self.offset, &values);
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

/// The permutation that undoes another.
pub(crate) fn inverse(order: &[usize]) -> Dims {
    let mut result: Dims = SmallVec::from_elem(0, order.len());
    for (position, &d) in order.iter().enumerate() {
        result[d] = position;
    }
    result
}
