//! Views: other shapes over the same memory. What a view is, `passnet_graph::view` says; the memory is ours.

use super::layout::{self, Dims, Region, inverse};
use super::{Complex, Tensor};
use crate::native::error::{Result, ensure};
use passnet_graph::DType;
use passnet_graph::view::shape::{self, Run};
use passnet_graph::view::{List, Size, Strided, region};

/// Steps beyond this are cut: one step already leaves every dimension, and sums of steps stay within a word.
const LONGEST_STEP: i64 = i32::MAX as i64;

impl Strided for Tensor {
    type Size = usize;
    type Step = usize;

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn strides(&self) -> &[usize] {
        &self.strides
    }

    fn start(&self) -> usize {
        self.offset
    }

    fn seen(&self, shape: Dims, strides: Dims, offset: usize) -> Tensor {
        self.with_layout(shape, strides, offset)
    }
}

impl Tensor {
    /// Same memory, other layout: the caller has derived it from this tensor's, so it stays inside.
    fn with_layout(&self, shape: Dims, strides: Dims, offset: usize) -> Tensor {
        Tensor { storage: self.storage.clone(), dtype: self.dtype, shape, strides, offset }
    }

    /// Its sizes, strides and start.
    pub fn region(&self) -> Region {
        Region { shape: self.shape.clone(), strides: self.strides.clone(), offset: self.offset }
    }

    /// Any region of the storage; refused where it would leave it.
    pub fn as_strided(&self, region: Region) -> Result<Tensor> {
        ensure!(
            region.shape.len() == region.strides.len(),
            Shape,
            "mismatch in length of strides and shape"
        );
        let count = layout::numel(&region.shape)?;
        let mut last = Some(region.offset);
        if count > 0 {
            for (size, stride) in region.shape.iter().zip(&region.strides) {
                last = last.and_then(|l| (size - 1).checked_mul(*stride)?.checked_add(l));
            }
        }
        let capacity = self.read::<u8>()?.len() / self.dtype.size();
        let fits = last.is_some_and(|l| if count == 0 { l <= capacity } else { l < capacity });
        ensure!(
            fits,
            Shape,
            "setStorage: sizes {:?}, strides {:?}, storage offset {} are out of bounds for storage of {capacity} elements",
            region.shape.as_slice(),
            region.strides.as_slice(),
            region.offset
        );
        Ok(self.with_layout(region.shape, region.strides, region.offset))
    }

    /// Dimensions reordered; `order` must be a permutation (checked by the public `permute`).
    pub(crate) fn permute_dims(&self, order: &[usize]) -> Tensor {
        region::permuted(self, order)
    }

    /// `permute`.
    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        Ok(self.permute_dims(&shape::order(dims, self.ndim())?))
    }

    /// `transpose`.
    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        Ok(self.permute_dims(&shape::swapped(self.dim(a)?, self.dim(b)?, self.ndim())))
    }

    /// `Tensor.t`: the transpose of a matrix; vectors and numbers as they are.
    pub fn t(&self) -> Result<Tensor> {
        Ok(self.permute_dims(&shape::turned_matrix(self.ndim())?))
    }

    /// `Tensor.mT`: every matrix transposed.
    pub fn matrix_transpose(&self) -> Result<Tensor> {
        Ok(self.permute_dims(&shape::turned_matrices(self.ndim())?))
    }

    /// `Tensor.movedim`.
    pub fn movedim(&self, source: &[i64], destination: &[i64]) -> Result<Tensor> {
        Ok(self.permute_dims(&shape::moved(source, destination, self.ndim())?))
    }

    /// Repeats dimensions of size one without copying; `-1` keeps a size.
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        let view = region::expanded(self, sizes, i64::eq)?;
        layout::numel(&view.shape)?;
        Ok(view)
    }

    pub(crate) fn expand_to(&self, target: &[usize]) -> Result<Tensor> {
        let sizes: List<i64> = target.iter().map(Size::value).collect();
        self.expand(&sizes)
    }

    /// `view`; refused where elements would have to move.
    pub fn view(&self, sizes: &[i64]) -> Result<Tensor> {
        Ok(region::viewed(self, shape::resolved(&self.shape, sizes, i64::eq)?)?)
    }

    /// `reshape`; a copy where elements have to move.
    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        self.reshape_to(&shape::resolved(&self.shape, sizes, i64::eq)?)
    }

    pub(crate) fn reshape_to(&self, shape: &[usize]) -> Result<Tensor> {
        let count = layout::numel(shape)?;
        ensure!(
            count == self.numel(),
            Shape,
            "shape '{shape:?}' is invalid for input of size {}",
            self.numel()
        );
        match region::reshaped(self, shape.into()) {
            Some(view) => Ok(view),
            None => Ok(self.contiguous()?.with_layout(shape.into(), layout::contiguous(shape), 0)),
        }
    }

    /// Merges dimensions `start..=end`.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        match shape::flattened(&self.shape, self.dim(start)?, self.dim(end)?)? {
            Some(shape) => self.reshape_to(&shape),
            None => Ok(self.clone()),
        }
    }

    /// Splits one dimension into several.
    pub fn unflatten(&self, dim: i64, sizes: &[i64]) -> Result<Tensor> {
        let shape = shape::unflattened(&self.shape, self.dim(dim)?, sizes, i64::eq)?;
        Ok(region::viewed(self, shape)?)
    }

    /// Part of one dimension. A view of nothing begins where its tensor does, inside the memory.
    fn part(&self, axis: usize, run: Run<i64>) -> Tensor {
        let mut view = region::narrowed(self, axis, run);
        if view.numel() == 0 {
            view.offset = self.offset;
        }
        view
    }

    /// `tensor[..., start:end:step, ...]` along one dimension, bounds clamped as Python clamps them.
    pub fn slice(
        &self,
        dim: i64,
        start: Option<i64>,
        end: Option<i64>,
        step: i64,
    ) -> Result<Tensor> {
        ensure!(self.ndim() > 0, Index, "slice() cannot be applied to a 0-dim tensor.");
        let axis = self.dim(dim)?;
        let run = shape::slice(&self.shape[axis].value(), start, end, step.min(LONGEST_STEP))?;
        Ok(self.part(axis, run))
    }

    /// `narrow`.
    pub fn narrow(&self, dim: i64, start: i64, length: usize) -> Result<Tensor> {
        let size = self.size(dim)?.value();
        Ok(self.part(self.dim(dim)?, shape::narrow(&size, start, length.value())?))
    }

    /// One index along a dimension, which disappears.
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        Ok(region::selected(self, self.dim(dim)?, index)?)
    }

    /// `unsqueeze`.
    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        Ok(region::unsqueezed(self, shape::axis(dim, self.ndim() + 1)?))
    }

    /// Drops dimensions of size one: those named, or all.
    pub fn squeeze(&self, dims: Option<&[i64]>) -> Result<Tensor> {
        let axes = |dims: &[i64]| dims.iter().map(|&d| self.dim(d)).collect::<Result<Dims>>();
        Ok(region::squeezed(self, dims.map(axes).transpose()?.as_deref()))
    }

    /// Sliding windows along a dimension; the window becomes the last dimension.
    pub fn unfold(&self, dim: i64, size: usize, step: usize) -> Result<Tensor> {
        Ok(region::unfolded(self, self.dim(dim)?, size.value(), &step.value())?)
    }

    /// The diagonal of two dimensions, as the last dimension.
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        Ok(region::diagonal(self, offset, self.dim(dim1)?, self.dim(dim2)?)?)
    }

    /// Parts of a dimension, one after the other.
    fn consecutive(&self, dim: i64, lengths: &[i64]) -> Result<Vec<Tensor>> {
        let axis = self.dim(dim)?;
        let mut start = 0;
        let parts = lengths.iter().map(|&length| {
            let run = Run { start, length, step: 1 };
            start += length;
            self.part(axis, run)
        });
        Ok(parts.collect())
    }

    /// Pieces of the given sizes along a dimension.
    pub fn split_with_sizes(&self, sizes: &[usize], dim: i64) -> Result<Vec<Tensor>> {
        let lengths: List<i64> = sizes.iter().map(Size::value).collect();
        shape::check_lengths(&self.size(dim)?.value(), &lengths, self.dim(dim)?, i64::eq)?;
        self.consecutive(dim, &lengths)
    }

    /// Pieces of one size, the last one shorter.
    pub fn split(&self, size: usize, dim: i64) -> Result<Vec<Tensor>> {
        let lengths = shape::split(&self.size(dim)?.value(), &size.value(), i64::MAX)?;
        self.consecutive(dim, &lengths)
    }

    /// At most `chunks` pieces of one size.
    pub fn chunk(&self, chunks: usize, dim: i64) -> Result<Vec<Tensor>> {
        let lengths = shape::chunk(&self.size(dim)?.value(), &chunks.value(), i64::MAX)?;
        self.consecutive(dim, &lengths)
    }

    /// `torch.tensor_split` by number of sections.
    pub fn tensor_split(&self, sections: usize, dim: i64) -> Result<Vec<Tensor>> {
        let lengths = shape::sections(self.size(dim)?.value(), sections.value(), i64::MAX)?;
        self.consecutive(dim, &lengths)
    }

    /// `torch.tensor_split` at indices.
    pub fn tensor_split_at(&self, indices: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        let axis = self.dim(dim)?;
        let runs = shape::cuts(self.size(dim)?.value(), indices);
        Ok(runs.into_iter().map(|run| self.part(axis, run)).collect())
    }

    /// Every index of a dimension.
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        Ok(region::unbound(self, self.dim(dim)?, i64::MAX)?)
    }

    /// A complex tensor as pairs of reals in a new last dimension.
    pub fn view_as_real(&self) -> Result<Tensor> {
        ensure!(
            self.dtype.is_complex(),
            DType,
            "view_as_real is only supported for complex tensors"
        );
        let mut view = self.clone();
        view.dtype = self.dtype.real();
        view.offset *= 2;
        view.strides.iter_mut().for_each(|s| *s *= 2);
        view.shape.push(2);
        view.strides.push(1);
        Ok(view)
    }

    /// Pairs of reals in the last dimension as a complex tensor.
    pub fn view_as_complex(&self) -> Result<Tensor> {
        ensure!(
            matches!(self.dtype, DType::Float32 | DType::Float64),
            DType,
            "view_as_complex is only supported for float and double tensors, but got {}",
            self.dtype
        );
        let fits = self.shape.last() == Some(&2)
            && self.strides.last() == Some(&1)
            && self.offset.is_multiple_of(2)
            && self.strides[..self.ndim() - 1].iter().all(|s| s.is_multiple_of(2));
        ensure!(
            fits,
            Shape,
            "Tensor must have a last dimension of size 2 and stride 1, and even strides elsewhere"
        );
        let mut view = self.clone();
        view.dtype = self.dtype.complex();
        view.offset /= 2;
        view.shape.pop();
        view.strides.pop();
        view.strides.iter_mut().for_each(|s| *s /= 2);
        Ok(view)
    }

    /// The real or imaginary parts of a complex tensor, as a view.
    pub(crate) fn complex_part(&self, part: i64) -> Result<Tensor> {
        self.view_as_real()?.select(-1, part)
    }

    /// Puts the dimensions in another order with a fresh row-major buffer already in that order.
    pub(crate) fn from_ordered(dense: Tensor, order: &[usize]) -> Tensor {
        dense.permute_dims(&inverse(order))
    }
}

// A complex number is two reals side by side: `view_as_real` relies on it.
const _: () = assert!(size_of::<Complex<f32>>() == 2 * size_of::<f32>());
