//! Shapes and strides: contiguity, broadcasting, and the layout torch gives to results.

use crate::native::error::{Result, TensorError, bail, err};
use passnet_graph::DType;
use smallvec::{SmallVec, smallvec};

/// Sizes or strides, in elements.
pub type Dims = SmallVec<[usize; 6]>;

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

pub(crate) fn contiguous_strides(shape: &[usize]) -> Dims {
    let mut strides: Dims = smallvec![1; shape.len()];
    for d in (0..shape.len().saturating_sub(1)).rev() {
        strides[d] = strides[d + 1].saturating_mul(shape[d + 1].max(1));
    }
    strides
}

/// Channels-last order: batch, then space, then channels.
pub(crate) fn channels_last_order(ndim: usize) -> Dims {
    let mut order: Dims = smallvec![0];
    order.extend(2..ndim);
    order.push(1);
    order
}

pub(crate) fn is_contiguous(shape: &[usize], strides: &[usize]) -> bool {
    is_dense_in_order(shape, strides, (0..shape.len()).rev())
}

pub(crate) fn is_channels_last(shape: &[usize], strides: &[usize]) -> bool {
    matches!(shape.len(), 4 | 5)
        && is_dense_in_order(shape, strides, channels_last_order(shape.len()).into_iter().rev())
}

fn is_dense_in_order(
    shape: &[usize],
    strides: &[usize],
    innermost_first: impl Iterator<Item = usize>,
) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut expected = 1;
    for d in innermost_first {
        if shape[d] != 1 {
            if strides[d] != expected {
                return false;
            }
            expected *= shape[d];
        }
    }
    true
}

/// Whether the strides read as channels-last, dense or not: what makes convolutions answer in that layout.
pub(crate) fn looks_channels_last(shape: &[usize], strides: &[usize]) -> bool {
    if !matches!(shape.len(), 4 | 5) || strides[1] == 0 {
        return false;
    }
    let mut least = 0;
    for d in channels_last_order(shape.len()).into_iter().rev() {
        if shape[d] == 0 || strides[d] < least {
            return false;
        }
        // A tensor of N×1×1×1 is ambiguous, and torch calls it contiguous.
        if d == 0 && least == strides[1] {
            return false;
        }
        least = strides[d];
        if shape[d] > 1 {
            least *= shape[d];
        }
    }
    true
}

/// Every element at its own place and no gaps, in whatever order.
pub(crate) fn is_non_overlapping_and_dense(shape: &[usize], strides: &[usize]) -> bool {
    if shape.len() == 1 {
        return shape[0] < 2 || strides[0] == 1;
    }
    let mut order: Dims = (0..shape.len()).collect();
    order.sort_by_key(|&d| if shape[d] < 2 { (1, 0) } else { (0, strides[d]) });
    let mut expected = 1;
    for &d in &order {
        if shape[d] < 2 {
            return true;
        }
        if strides[d] != expected {
            return false;
        }
        expected *= shape[d];
    }
    true
}

/// The common shape of operands, by torch's broadcasting rules.
pub(crate) fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Dims> {
    let ndim = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut result: Dims = smallvec![1; ndim];
    for shape in shapes {
        let lead = ndim - shape.len();
        for (d, &size) in shape.iter().enumerate() {
            let current = &mut result[lead + d];
            if *current == 1 {
                *current = size;
            } else if size != 1 && size != *current {
                return Err(err!(
                    Shape,
                    "The size of tensor a ({current}) must match the size of tensor b ({size}) at non-singleton dimension {}",
                    lead + d
                ));
            }
        }
    }
    Ok(result)
}

/// Strides of an operand seen at a broadcast shape: repeated dimensions step by zero.
pub(crate) fn broadcast_strides(shape: &[usize], strides: &[usize], to: &[usize]) -> Dims {
    let lead = to.len() - shape.len();
    let mut result: Dims = smallvec![0; to.len()];
    for d in 0..shape.len() {
        if shape[d] != 1 || to[lead + d] == 1 {
            result[lead + d] = strides[d];
        }
    }
    result
}

/// One operand of an elementwise operation, for `pointwise_order`.
pub(crate) struct Operand<'a> {
    pub(crate) shape: &'a [usize],
    pub(crate) strides: &'a [usize],
}

/// The order of dimensions (outermost first) in which torch lays out the result of an elementwise operation.
///
/// Results keep the memory order of their operands where these agree, so that later views succeed exactly as in torch.
pub(crate) fn pointwise_order(shape: &[usize], operands: &[Operand<'_>]) -> Dims {
    let ndim = shape.len();
    let natural: Dims = (0..ndim).collect();
    if operands.iter().all(|o| o.shape == shape) {
        if operands.iter().all(|o| is_contiguous(shape, o.strides)) {
            return natural;
        }
        if operands.iter().all(|o| is_channels_last(shape, o.strides)) {
            return channels_last_order(ndim);
        }
    }
    let seen: SmallVec<[Dims; 4]> =
        operands.iter().map(|o| broadcast_strides(o.shape, o.strides, shape)).collect();
    // Sorted innermost first; comparisons may be undecided, hence the insertion sort.
    let mut order: Dims = (0..ndim).rev().collect();
    let compare = |a: usize, b: usize| -> i32 {
        for strides in &seen {
            if strides[a] == 0 || strides[b] == 0 {
                continue;
            }
            if strides[a] != strides[b] {
                return if strides[a] < strides[b] { -1 } else { 1 };
            }
            if shape[a] > shape[b] {
                return 1;
            }
        }
        0
    };
    for i in 1..ndim {
        let mut moving = i;
        for below in (0..i).rev() {
            match compare(order[below], order[moving]) {
                1 => {
                    order.swap(below, moving);
                    moving = below;
                }
                -1 => break,
                _ => {}
            }
        }
    }
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

/// The strides with which the same memory reads as another shape, where that is possible without a copy.
pub(crate) fn view_strides(shape: &[usize], strides: &[usize], to: &[usize]) -> Option<Dims> {
    if shape.contains(&0) {
        return Some(if shape == to { strides.into() } else { contiguous_strides(to) });
    }
    if shape.is_empty() {
        return Some(smallvec![1; to.len()]);
    }
    let mut result: Dims = smallvec![0; to.len()];
    let mut remaining = to.len();
    let (mut base, mut chunk, mut placed) = (strides[shape.len() - 1], 1usize, 1usize);
    for d in (0..shape.len()).rev() {
        chunk *= shape[d];
        let ends = d == 0 || (shape[d - 1] != 1 && strides[d - 1] != chunk * base);
        if !ends {
            continue;
        }
        while remaining > 0 && (placed < chunk || to[remaining - 1] == 1) {
            result[remaining - 1] = placed * base;
            placed *= to[remaining - 1];
            remaining -= 1;
        }
        if placed != chunk {
            return None;
        }
        if d > 0 {
            base = strides[d - 1];
            chunk = 1;
            placed = 1;
        }
    }
    (remaining == 0).then_some(result)
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

/// A dimension given as torch takes it, negative counted from the end.
pub(crate) fn wrap_dim(dim: i64, ndim: usize) -> Result<usize> {
    let range = ndim.max(1) as i64;
    if dim < -range || dim >= range {
        bail!(
            Index,
            "Dimension out of range (expected to be in range of [{}, {}], but got {dim})",
            -range,
            range - 1
        );
    }
    Ok(if dim < 0 { dim + range } else { dim } as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_follow_memory() {
        assert_eq!(view_strides(&[2, 3, 4], &[12, 4, 1], &[6, 4]).unwrap().as_slice(), [4, 1]);
        assert_eq!(view_strides(&[2, 3, 4], &[12, 1, 3], &[6, 4]), None);
        assert_eq!(view_strides(&[4, 6], &[0, 1], &[4, 2, 3]).unwrap().as_slice(), [0, 3, 1]);
        assert_eq!(view_strides(&[0, 6], &[6, 1], &[3, 0]).unwrap().as_slice(), [1, 1]);
    }

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
