//! Views: other shapes over the same memory.

use super::copy::inverse;
use super::layout::{self, Dims};
use super::{Complex, Tensor};
use crate::native::error::{Result, bail, ensure};
use passnet_graph::DType;
use smallvec::smallvec;

/// Sizes, strides and offset of a view, in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    pub shape: Dims,
    pub strides: Dims,
    pub offset: usize,
}

impl Tensor {
    /// Same memory, other layout: the caller has derived it from this tensor's, so it stays inside.
    fn with_layout(&self, shape: Dims, strides: Dims, offset: usize) -> Tensor {
        Tensor { storage: self.storage.clone(), dtype: self.dtype, shape, strides, offset }
    }

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
        let shape = order.iter().map(|&d| self.shape[d]).collect();
        let strides = order.iter().map(|&d| self.strides[d]).collect();
        self.with_layout(shape, strides, self.offset)
    }

    pub fn permute(&self, dims: &[i64]) -> Result<Tensor> {
        ensure!(
            dims.len() == self.ndim(),
            Shape,
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
            self.ndim(),
            dims.len()
        );
        let order = dims.iter().map(|&d| self.dim(d)).collect::<Result<Dims>>()?;
        for (i, d) in order.iter().enumerate() {
            ensure!(!order[..i].contains(d), Value, "permute(): duplicate dims are not allowed.");
        }
        Ok(self.permute_dims(&order))
    }

    pub fn transpose(&self, a: i64, b: i64) -> Result<Tensor> {
        let (a, b) = (self.dim(a)?, self.dim(b)?);
        let mut view = self.clone();
        if a != b {
            view.shape.swap(a, b);
            view.strides.swap(a, b);
        }
        Ok(view)
    }

    /// `Tensor.t`: the transpose of a matrix; vectors and numbers as they are.
    pub fn t(&self) -> Result<Tensor> {
        ensure!(
            self.ndim() <= 2,
            Shape,
            "t() expects a tensor with <= 2 dimensions, but self is {}D",
            self.ndim()
        );
        if self.ndim() < 2 { Ok(self.clone()) } else { self.transpose(0, 1) }
    }

    /// `Tensor.movedim`.
    pub fn movedim(&self, source: &[i64], destination: &[i64]) -> Result<Tensor> {
        ensure!(
            source.len() == destination.len(),
            Value,
            "movedim: Invalid source or destination dims: source ({source:?} dims) should contain the same number of dims as destination ({destination:?} dims)"
        );
        let source = source.iter().map(|&d| self.dim(d)).collect::<Result<Dims>>()?;
        let destination = destination.iter().map(|&d| self.dim(d)).collect::<Result<Dims>>()?;
        let mut rest = (0..self.ndim()).filter(|d| !source.contains(d));
        let mut order = Dims::new();
        for position in 0..self.ndim() {
            let moved = destination.iter().position(|&d| d == position).map(|i| source[i]);
            match moved.or_else(|| rest.next()) {
                Some(d) if !order.contains(&d) => order.push(d),
                _ => bail!(Value, "movedim: repeated dim in `source` or `destination`"),
            }
        }
        Ok(self.permute_dims(&order))
    }

    /// Repeats dimensions of size one without copying; `-1` keeps a size.
    pub fn expand(&self, sizes: &[i64]) -> Result<Tensor> {
        ensure!(
            sizes.len() >= self.ndim(),
            Shape,
            "expand({self:?}, size={sizes:?}): the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
            sizes.len(),
            self.ndim()
        );
        let lead = sizes.len() - self.ndim();
        let mut target = Dims::new();
        for (d, &size) in sizes.iter().enumerate() {
            target.push(match size {
                -1 if d >= lead => self.shape[d - lead],
                size if size >= 0 => size as usize,
                _ => bail!(
                    Shape,
                    "The expanded size of the tensor ({size}) isn't allowed in a leading, non-existing dimension {d}"
                ),
            });
        }
        self.expand_to(&target)
    }

    pub(crate) fn expand_to(&self, target: &[usize]) -> Result<Tensor> {
        layout::numel(target)?;
        ensure!(
            target.len() >= self.ndim(),
            Shape,
            "The number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
            target.len(),
            self.ndim()
        );
        let lead = target.len() - self.ndim();
        let mut strides: Dims = smallvec![0; target.len()];
        for d in (0..target.len()).rev() {
            if d < lead {
                // Torch gives new leading dimensions of size one the stride a dense tensor would have.
                strides[d] = if target[d] == 1 && d + 1 < target.len() {
                    target[d + 1].saturating_mul(strides[d + 1])
                } else {
                    0
                };
                continue;
            }
            let size = self.shape[d - lead];
            if size == target[d] {
                strides[d] = self.strides[d - lead];
            } else if size != 1 {
                bail!(
                    Shape,
                    "The expanded size of the tensor ({}) must match the existing size ({size}) at non-singleton dimension {d}.  Target sizes: {target:?}.  Tensor sizes: {:?}",
                    target[d],
                    self.shape.as_slice()
                );
            }
        }
        Ok(self.with_layout(target.into(), strides, self.offset))
    }

    /// A size list with at most one `-1`, resolved against the number of elements.
    pub fn infer_size(&self, sizes: &[i64]) -> Result<Dims> {
        let count = self.numel();
        let invalid = || {
            crate::native::error::err!(
                Shape,
                "shape '{sizes:?}' is invalid for input of size {count}"
            )
        };
        let mut known = 1usize;
        let mut unknown = None;
        for (d, &size) in sizes.iter().enumerate() {
            match size {
                -1 if unknown.is_some() => bail!(Value, "only one dimension can be inferred"),
                -1 => unknown = Some(d),
                size if size < 0 => bail!(Shape, "invalid shape dimension {size}"),
                size => known = known.checked_mul(size as usize).ok_or_else(invalid)?,
            }
        }
        let mut shape: Dims = sizes.iter().map(|&s| s.max(0) as usize).collect();
        match unknown {
            Some(d) => {
                ensure!(
                    known > 0,
                    Shape,
                    "cannot reshape tensor of 0 elements into shape {sizes:?} because the unspecified dimension size -1 can be any value and is ambiguous"
                );
                if !count.is_multiple_of(known) {
                    return Err(invalid());
                }
                shape[d] = count / known;
            }
            None if known != count => return Err(invalid()),
            None => {}
        }
        Ok(shape)
    }

    pub fn view(&self, sizes: &[i64]) -> Result<Tensor> {
        let shape = self.infer_size(sizes)?;
        match layout::view_strides(&self.shape, &self.strides, &shape) {
            Some(strides) => Ok(self.with_layout(shape, strides, self.offset)),
            None => bail!(
                Shape,
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."
            ),
        }
    }

    pub fn reshape(&self, sizes: &[i64]) -> Result<Tensor> {
        let shape = self.infer_size(sizes)?;
        self.reshape_to(&shape)
    }

    pub(crate) fn reshape_to(&self, shape: &[usize]) -> Result<Tensor> {
        let count = layout::numel(shape)?;
        ensure!(
            count == self.numel(),
            Shape,
            "shape '{shape:?}' is invalid for input of size {}",
            self.numel()
        );
        match layout::view_strides(&self.shape, &self.strides, shape) {
            Some(strides) => Ok(self.with_layout(shape.into(), strides, self.offset)),
            None => Ok(self.contiguous()?.with_layout(
                shape.into(),
                layout::contiguous_strides(shape),
                0,
            )),
        }
    }

    /// Merges dimensions `start..=end`.
    pub fn flatten(&self, start: i64, end: i64) -> Result<Tensor> {
        let (start, end) = (self.dim(start)?, self.dim(end)?);
        ensure!(
            start <= end,
            Value,
            "flatten() has invalid args: start_dim cannot come after end_dim"
        );
        if self.ndim() == 0 {
            return self.reshape_to(&[1]);
        }
        if start == end {
            return Ok(self.clone());
        }
        let mut shape: Dims = self.shape[..start].into();
        shape.push(self.shape[start..=end].iter().product());
        shape.extend_from_slice(&self.shape[end + 1..]);
        self.reshape_to(&shape)
    }

    /// Splits one dimension into several.
    pub fn unflatten(&self, dim: i64, sizes: &[i64]) -> Result<Tensor> {
        let d = self.dim(dim)?;
        ensure!(!sizes.is_empty(), Value, "unflatten: sizes must be non-empty");
        let part = self.select_shape(d)?;
        let inner = part.infer_size(sizes)?;
        let mut shape: Vec<i64> = self.shape[..d].iter().map(|&s| s as i64).collect();
        shape.extend(inner.iter().map(|&s| s as i64));
        shape.extend(self.shape[d + 1..].iter().map(|&s| s as i64));
        self.view(&shape)
    }

    /// One dimension alone, for its size.
    fn select_shape(&self, d: usize) -> Result<Tensor> {
        ensure!(d < self.ndim(), Index, "a 0-d tensor has no dimensions to split");
        Ok(self.with_layout(smallvec![self.shape[d]], smallvec![self.strides[d]], self.offset))
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
        ensure!(step > 0, Value, "slice step must be positive");
        let d = self.dim(dim)?;
        let size = self.shape[d] as i64;
        let clamp = |bound: i64| {
            (if bound < 0 { bound.saturating_add(size) } else { bound }).clamp(0, size)
        };
        let start = clamp(start.unwrap_or(0));
        let end = clamp(end.unwrap_or(i64::MAX)).max(start);
        let step = (step.min(i64::from(i32::MAX))) as usize;
        let mut view = self.clone();
        view.offset += start as usize * self.strides[d];
        view.shape[d] = ((end - start) as usize).div_ceil(step);
        view.strides[d] = self.strides[d].saturating_mul(step);
        if view.numel() == 0 {
            view.offset = self.offset;
        }
        Ok(view)
    }

    pub fn narrow(&self, dim: i64, start: i64, length: usize) -> Result<Tensor> {
        let d = self.dim(dim)?;
        let size = self.size(dim)? as i64;
        let from = if start < 0 { start + size } else { start };
        ensure!(
            from >= 0 && from <= size && length as i64 <= size - from,
            Index,
            "start ({start}) + length ({length}) exceeds dimension size ({size})."
        );
        self.slice(d as i64, Some(from), Some(from + length as i64), 1)
    }

    /// One index along a dimension, which disappears.
    pub fn select(&self, dim: i64, index: i64) -> Result<Tensor> {
        ensure!(self.ndim() > 0, Index, "select() cannot be applied to a 0-dim tensor.");
        let d = self.dim(dim)?;
        let size = self.shape[d] as i64;
        ensure!(
            index >= -size && index < size,
            Index,
            "index {index} is out of bounds for dimension {d} with size {size}"
        );
        let index = if index < 0 { index + size } else { index } as usize;
        let mut view = self.clone();
        view.offset += index * self.strides[d];
        view.shape.remove(d);
        view.strides.remove(d);
        Ok(view)
    }

    pub fn unsqueeze(&self, dim: i64) -> Result<Tensor> {
        let d = layout::wrap_dim(dim, self.ndim() + 1)?;
        let stride = match self.shape.get(d) {
            Some(size) => size.saturating_mul(self.strides[d]),
            None => 1,
        };
        let mut view = self.clone();
        view.shape.insert(d, 1);
        view.strides.insert(d, stride);
        Ok(view)
    }

    /// Drops dimensions of size one: those named, or all.
    pub fn squeeze(&self, dims: Option<&[i64]>) -> Result<Tensor> {
        let named = match dims {
            Some(dims) => Some(dims.iter().map(|&d| self.dim(d)).collect::<Result<Dims>>()?),
            None => None,
        };
        let keep = |d: &usize| {
            self.shape[*d] != 1 || named.as_ref().is_some_and(|named| !named.contains(d))
        };
        let kept: Dims = (0..self.ndim()).filter(keep).collect();
        let shape = kept.iter().map(|&d| self.shape[d]).collect();
        let strides = kept.iter().map(|&d| self.strides[d]).collect();
        Ok(self.with_layout(shape, strides, self.offset))
    }

    /// Sliding windows along a dimension; the window becomes the last dimension.
    pub fn unfold(&self, dim: i64, size: usize, step: usize) -> Result<Tensor> {
        let d = self.dim(dim)?;
        let (length, stride) =
            if self.ndim() == 0 { (1, 1) } else { (self.shape[d], self.strides[d]) };
        ensure!(
            size <= length,
            Value,
            "maximum size for tensor at dimension {d} is {length} but size is {size}"
        );
        ensure!(step > 0, Value, "step is {step} but must be > 0");
        let mut view = self.clone();
        if self.ndim() == 0 {
            view.shape.push(size);
            view.strides.push(1);
            return Ok(view);
        }
        view.shape[d] = (length - size) / step + 1;
        view.strides[d] = stride.saturating_mul(step);
        view.shape.push(size);
        view.strides.push(stride);
        Ok(view)
    }

    /// The diagonal of two dimensions, as the last dimension.
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        let (a, b) = (self.dim(dim1)?, self.dim(dim2)?);
        ensure!(
            a != b && self.ndim() >= 2,
            Value,
            "diagonal dimensions cannot be identical {dim1}, {dim2}"
        );
        let (rows, columns) = (self.shape[a] as i64, self.shape[b] as i64);
        let (skip_rows, skip_columns) = (offset.min(0).saturating_neg(), offset.max(0));
        let length = rows.saturating_sub(skip_rows).min(columns.saturating_sub(skip_columns)).max(0)
            as usize;
        let mut view = self.clone();
        if length > 0 {
            view.offset +=
                skip_rows as usize * self.strides[a] + skip_columns as usize * self.strides[b];
        }
        for d in [a.max(b), a.min(b)] {
            view.shape.remove(d);
            view.strides.remove(d);
        }
        view.shape.push(length);
        view.strides.push(self.strides[a] + self.strides[b]);
        Ok(view)
    }

    /// Pieces of the given sizes along a dimension.
    pub fn split_with_sizes(&self, sizes: &[usize], dim: i64) -> Result<Vec<Tensor>> {
        let total = self.size(dim)?;
        ensure!(
            sizes.iter().try_fold(0usize, |sum, s| sum.checked_add(*s)) == Some(total),
            Value,
            "split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension {dim}), but got split_sizes={sizes:?}"
        );
        let mut start = 0;
        sizes
            .iter()
            .map(|&size| {
                let piece = self.narrow(dim, start as i64, size);
                start += size;
                piece
            })
            .collect()
    }

    /// Pieces of one size, the last one shorter.
    pub fn split(&self, size: usize, dim: i64) -> Result<Vec<Tensor>> {
        let total = self.size(dim)?;
        ensure!(
            size > 0 || total == 0,
            Value,
            "split_size can only be 0 if dimension size is 0, but got dimension size of {total}"
        );
        let count = if size == 0 { 1 } else { total.div_ceil(size).max(1) };
        (0..count)
            .map(|i| self.narrow(dim, (i * size) as i64, size.min(total - i * size)))
            .collect()
    }

    /// At most `chunks` pieces of one size.
    pub fn chunk(&self, chunks: usize, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(chunks > 0, Value, "chunk expects `chunks` to be greater than 0, got: {chunks}");
        let total = self.size(dim)?;
        if total == 0 {
            return self.split_with_sizes(&vec![0; chunks], dim);
        }
        self.split(total.div_ceil(chunks), dim)
    }

    /// `torch.tensor_split` by number of sections.
    pub fn tensor_split(&self, sections: usize, dim: i64) -> Result<Vec<Tensor>> {
        ensure!(sections > 0, Value, "number of sections must be larger than 0, got {sections}");
        let total = self.size(dim)?;
        let sizes: Vec<usize> =
            (0..sections).map(|i| total / sections + usize::from(i < total % sections)).collect();
        self.split_with_sizes(&sizes, dim)
    }

    /// `torch.tensor_split` at indices.
    pub fn tensor_split_at(&self, indices: &[i64], dim: i64) -> Result<Vec<Tensor>> {
        let mut pieces = Vec::with_capacity(indices.len() + 1);
        let mut start = 0;
        for &end in indices {
            pieces.push(self.slice(dim, Some(start), Some(end), 1)?);
            start = end;
        }
        pieces.push(self.slice(dim, Some(start), None, 1)?);
        Ok(pieces)
    }

    /// Every index of a dimension.
    pub fn unbind(&self, dim: i64) -> Result<Vec<Tensor>> {
        let size = self.size(dim)?;
        (0..size).map(|i| self.select(dim, i as i64)).collect()
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
