//! Shapes and strides of tensors in memory: the rules are those of `passnet_graph::view`, walks over elements are here.

pub(crate) use passnet_graph::view::layout::{
    contiguous, dense, is_channels_last, is_contiguous, is_dense, suggests_channels_last,
};

use crate::native::error::{Result, TensorError, bail};
use passnet_graph::DType;
use passnet_graph::view::{List, layout as rules, shape};
use smallvec::{SmallVec, smallvec};

/// Sizes or strides, in elements.
pub type Dims = List<usize>;

/// Sizes, strides and offset of a view, in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Its sizes.
    pub shape: Dims,
    /// Its strides.
    pub strides: Dims,
    /// The place of its first element.
    pub offset: usize,
}

/// The number of elements, or an error where it does not fit in memory.
pub(crate) fn numel(shape: &[usize]) -> Result<usize> {
    let mut product = 1usize;
    let mut overflow = false;
    for &size in shape {
        match product.checked_mul(size) {
            Some(next) => product = next,
            None => overflow = true,
        }
    }
    if shape.contains(&0) {
        return Ok(0);
    }
    if overflow || product > isize::MAX as usize {
        bail!(Value, "the size {shape:?} has more elements than memory can hold");
    }
    Ok(product)
}

/// The bytes of so many elements, or an error where they do not fit in memory.
pub(crate) fn bytes(shape: &[usize], dtype: DType) -> Result<usize> {
    let too_large = TensorError::Allocation { requested: usize::MAX, available: 0 };
    numel(shape)?.checked_mul(dtype.size()).ok_or(too_large)
}

/// Channels-last order: batch, then space, then channels.
pub(crate) fn channels_last_order(ndim: usize) -> Dims {
    rules::channels_last_order(ndim).rev().collect()
}

/// The common shape of operands, by torch's broadcasting rules.
pub(crate) fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Dims> {
    Ok(shape::broadcast(shapes.iter().copied(), i64::eq)?)
}

/// The shape and the strides of an operand of an elementwise operation.
pub(crate) type Operand<'a> = (&'a [usize], &'a [usize]);

/// The order of dimensions (outermost first) in which torch lays out the result of an elementwise operation.
pub(crate) fn pointwise_order(shape: &[usize], operands: &[Operand<'_>]) -> Dims {
    let mut order = rules::elementwise_order(shape, operands);
    order.reverse();
    order
}

/// Merges neighbouring dimensions that every operand steps through as one, and drops dimensions of size one.
pub(crate) fn coalesce(shape: &[usize], strides: &[&[usize]]) -> (Dims, SmallVec<[Dims; 4]>) {
    let mut out_shape: Dims = Dims::new();
    let mut out: SmallVec<[Dims; 4]> = strides.iter().map(|_| Dims::new()).collect();
    for d in 0..shape.len() {
        if shape[d] == 1 {
            continue;
        }
        let merges = out_shape.last().is_some_and(|_| {
            strides
                .iter()
                .zip(&out)
                .all(|(s, o)| o.last().is_some_and(|&outer| outer == s[d].saturating_mul(shape[d])))
        });
        if merges {
            if let Some(last) = out_shape.last_mut() {
                *last *= shape[d];
            }
            for (s, o) in strides.iter().zip(&mut out) {
                if let Some(last) = o.last_mut() {
                    *last = s[d];
                }
            }
        } else {
            out_shape.push(shape[d]);
            for (s, o) in strides.iter().zip(&mut out) {
                o.push(s[d]);
            }
        }
    }
    if out_shape.is_empty() {
        out_shape.push(1);
        out.iter_mut().for_each(|o| o.push(0));
    }
    (out_shape, out)
}

/// Visits the offset of every innermost run of a strided region, in row-major order of its outer dimensions.
pub(crate) struct Runs<'a> {
    shape: &'a [usize],
    strides: &'a [usize],
    index: Dims,
    offset: usize,
    left: usize,
}

impl<'a> Runs<'a> {
    /// `shape` and `strides` are of the outer dimensions only.
    pub(crate) fn new(shape: &'a [usize], strides: &'a [usize], offset: usize) -> Self {
        let left = shape.iter().product();
        Runs { shape, strides, index: smallvec![0; shape.len()], offset, left }
    }

    /// The same walk, begun at its `start`-th run.
    pub(crate) fn starting_at(
        shape: &'a [usize],
        strides: &'a [usize],
        offset: usize,
        start: usize,
    ) -> Self {
        let mut runs = Runs::new(shape, strides, offset);
        let mut rest = start;
        for d in (0..shape.len()).rev() {
            runs.index[d] = rest % shape[d].max(1);
            rest /= shape[d].max(1);
            runs.offset += runs.index[d] * strides[d];
        }
        runs.left = runs.left.saturating_sub(start);
        runs
    }
}

impl Iterator for Runs<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let current = self.offset;
        for d in (0..self.shape.len()).rev() {
            self.index[d] += 1;
            self.offset += self.strides[d];
            if self.index[d] < self.shape[d] {
                break;
            }
            self.offset -= self.strides[d] * self.shape[d];
            self.index[d] = 0;
        }
        Some(current)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coalescing_merges_what_all_operands_step_through() {
        let (shape, strides) = coalesce(&[2, 3, 4], &[&[12, 4, 1], &[0, 4, 1]]);
        assert_eq!(shape.as_slice(), [2, 12]);
        assert_eq!(strides[1].as_slice(), [0, 1]);
    }

    #[test]
    fn too_many_elements_is_an_error() {
        assert!(numel(&[usize::MAX, 2]).is_err());
        assert_eq!(numel(&[usize::MAX, 2, 0]), Ok(0));
    }

    #[test]
    fn runs_can_start_anywhere() {
        let all: Vec<_> = Runs::new(&[2, 3], &[10, 2], 5).collect();
        assert_eq!(all, [5, 7, 9, 15, 17, 19]);
        let tail: Vec<_> = Runs::starting_at(&[2, 3], &[10, 2], 5, 4).collect();
        assert_eq!(tail, [17, 19]);
    }
}
