//! Strides: which ones torch gives a result, and with which ones a shape can be a view of another.
//!
//! Decisions use the values of sizes, never symbols: a layout is that of the example.

use super::{List, Size, Step};
use smallvec::SmallVec;

/// Row-major strides; a dimension without elements counts as one, as in torch.
pub fn contiguous<S: Size, P: Step>(shape: &[S]) -> List<P> {
    dense(shape, (0..shape.len()).rev())
}

/// Strides of `torch.channels_last` (rank 4) and `torch.channels_last_3d` (rank 5).
pub fn channels_last<S: Size, P: Step>(shape: &[S]) -> List<P> {
    dense(shape, channels_last_order(shape.len()))
}

/// Strides without gaps, with the dimensions in the given order, innermost first.
pub fn dense<S: Size, P: Step>(
    shape: &[S],
    innermost_first: impl IntoIterator<Item = usize>,
) -> List<P> {
    let mut strides: List<P> = SmallVec::from_elem(P::ONE, shape.len());
    let mut step = P::ONE;
    for axis in innermost_first {
        strides[axis] = step;
        step = step.times(shape[axis].value().max(1));
    }
    strides
}

/// Channels, then space, then the batch: innermost first.
pub fn channels_last_order(rank: usize) -> impl DoubleEndedIterator<Item = usize> {
    let batch = if rank > 0 { 0..1 } else { 0..0 };
    (1..rank.min(2)).chain((2..rank).rev()).chain(batch)
}

/// Whether rows follow each other without gaps; strides of sizes of one do not count.
pub fn is_contiguous<S: Size, P: Step>(shape: &[S], strides: &[P]) -> bool {
    is_dense_in(shape, strides, (0..shape.len()).rev())
}

/// Whether the layout is that of [`channels_last`], as dense as it.
pub fn is_channels_last<S: Size, P: Step>(shape: &[S], strides: &[P]) -> bool {
    has_channels(shape.len()) && is_dense_in(shape, strides, channels_last_order(shape.len()))
}

fn has_channels(rank: usize) -> bool {
    matches!(rank, 4 | 5)
}

fn is_dense_in<S: Size, P: Step>(
    shape: &[S],
    strides: &[P],
    innermost_first: impl Iterator<Item = usize>,
) -> bool {
    if has_nothing(shape) {
        return true;
    }
    let mut expected = P::ONE;
    for axis in innermost_first {
        let size = shape[axis].value();
        if size != 1 {
            if strides[axis] != expected {
                return false;
            }
            expected = expected.times(size);
        }
    }
    true
}

fn has_nothing<S: Size>(shape: &[S]) -> bool {
    shape.iter().any(|size| size.value() == 0)
}

/// Whether the layout is channels-last, dense or not, rather than merely compatible with it: torch's tie-break for
/// sizes of one (`suggest_memory_format`), by which convolutions answer in that layout.
pub fn suggests_channels_last<S: Size, P: Step>(shape: &[S], strides: &[P]) -> bool {
    if !has_channels(shape.len()) || strides[1] == P::ZERO {
        return false;
    }
    let mut least = P::ZERO;
    for axis in channels_last_order(shape.len()) {
        let size = shape[axis].value();
        if size == 0 || strides[axis] < least {
            return false;
        }
        // N is checked against C: a tensor of N×1×1×1 counts as contiguous.
        if axis == 0 && least == strides[1] {
            return false;
        }
        least = strides[axis].times(size.max(1));
    }
    true
}

/// Whether every element has a place of its own and there are no gaps, in any order of dimensions.
pub fn is_dense<S: Size, P: Step>(shape: &[S], strides: &[P]) -> bool {
    if has_nothing(shape) {
        return true;
    }
    let mut order: List<usize> = (0..shape.len()).filter(|axis| shape[*axis].value() > 1).collect();
    order.sort_by_key(|axis| strides[*axis]);
    let mut expected = P::ONE;
    for axis in order {
        if strides[axis] != expected {
            return false;
        }
        expected = expected.times(shape[axis].value());
    }
    true
}

/// The layout of `empty_like`: kept where it is dense, else dense in the same order.
pub fn like<S: Size, P: Step>(shape: &[S], strides: &[P]) -> List<P> {
    if is_dense(shape, strides) {
        return strides.into();
    }
    elementwise(shape, &[(shape, strides)])
}

/// The layout torch's element-wise loops give their result: the operands' common layout where there is one,
/// else dense, with the dimensions in the order of the operands' strides.
pub fn elementwise<S: Size, P: Step>(shape: &[S], operands: &[(&[S], &[P])]) -> List<P> {
    if let Some(order) = common_order(shape, operands) {
        return dense(shape, order);
    }
    if let Some((_, first)) = operands.first() {
        let alike = |(sizes, strides): &(&[S], &[P])| {
            same_sizes(sizes, shape) && strides == first && is_dense(sizes, strides)
        };
        if operands.iter().all(alike) {
            return (*first).into();
        }
    }
    dense(shape, iteration_order(shape, operands))
}

/// The order of dimensions, innermost first, in which torch lays out the result of an element-wise operation. Results
/// keep the order of their operands where these agree, so that later views succeed exactly as in torch.
pub fn elementwise_order<S: Size, P: Step>(shape: &[S], operands: &[(&[S], &[P])]) -> List<usize> {
    common_order(shape, operands).unwrap_or_else(|| iteration_order(shape, operands))
}

/// The order of operands that are all contiguous, or all channels-last.
fn common_order<S: Size, P: Step>(shape: &[S], operands: &[(&[S], &[P])]) -> Option<List<usize>> {
    if !operands.iter().all(|(sizes, _)| same_sizes(sizes, shape)) {
        return None;
    }
    if operands.iter().all(|(sizes, strides)| is_contiguous(sizes, strides)) {
        return Some((0..shape.len()).rev().collect());
    }
    let channels = operands.iter().all(|(sizes, strides)| is_channels_last(sizes, strides));
    channels.then(|| channels_last_order(shape.len()).collect())
}

fn same_sizes<S: Size>(a: &[S], b: &[S]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.value() == b.value())
}

/// Strides of an operand seen at the broadcast shape; repeated dimensions have stride 0.
pub fn broadcast<S: Size, P: Step>(shape: &[S], sizes: &[S], strides: &[P]) -> List<P> {
    let missing = shape.len().saturating_sub(sizes.len());
    let mut seen: List<P> = SmallVec::from_elem(P::ZERO, shape.len());
    for (axis, (size, stride)) in sizes.iter().zip(strides).enumerate() {
        let repeats =
            |wanted: Option<&S>| size.value() == 1 && wanted.is_some_and(|w| w.value() != 1);
        if let Some(slot) = seen.get_mut(missing + axis)
            && !repeats(shape.get(missing + axis))
        {
            *slot = *stride;
        }
    }
    seen
}

/// Insertion sort by strides, innermost first; ties keep the order of dimensions. Ambiguous comparisons
/// (a broadcast dimension) are left to the next operand, exactly as torch's loops do it.
fn iteration_order<S: Size, P: Step>(shape: &[S], operands: &[(&[S], &[P])]) -> List<usize> {
    let seen: SmallVec<[List<P>; 4]> =
        operands.iter().map(|(sizes, strides)| broadcast(shape, sizes, strides)).collect();
    let compare = |a: usize, b: usize| -> i32 {
        for strides in &seen {
            let (left, right) = (strides[a], strides[b]);
            if left == P::ZERO || right == P::ZERO {
                continue;
            }
            if left != right {
                return if left < right { -1 } else { 1 };
            }
            if shape[a].value() > shape[b].value() {
                return 1;
            }
        }
        0
    };
    let mut order: List<usize> = (0..shape.len()).rev().collect();
    for start in 1..order.len() {
        let mut moving = start;
        for other in (0..start).rev() {
            let comparison = compare(order[other], order[moving]);
            if comparison > 0 {
                order.swap(other, moving);
                moving = other;
            } else if comparison < 0 {
                break;
            }
        }
    }
    order
}

/// The strides with which the same memory reads as another shape of as many elements, where that is possible without
/// a copy.
pub fn reshaped<S: Size, P: Step>(shape: &[S], strides: &[P], to: &[S]) -> Option<List<P>> {
    let Some(innermost) = strides.last() else {
        return Some(SmallVec::from_elem(P::ONE, to.len()));
    };
    if has_nothing(shape) {
        return Some(if same_sizes(shape, to) { strides.into() } else { contiguous(to) });
    }
    let mut result: List<P> = SmallVec::from_elem(P::ZERO, to.len());
    let mut next = to.len();
    let mut base = *innermost;
    let (mut chunk, mut covered): (i64, i64) = (1, 1);
    for axis in (0..shape.len()).rev() {
        chunk = chunk.saturating_mul(shape[axis].value());
        let ends_chunk =
            axis == 0 || (shape[axis - 1].value() != 1 && strides[axis - 1] != base.times(chunk));
        if !ends_chunk {
            continue;
        }
        while next > 0 && (covered < chunk || to[next - 1].value() == 1) {
            next -= 1;
            result[next] = base.times(covered);
            covered = covered.saturating_mul(to[next].value());
        }
        if covered != chunk {
            return None;
        }
        if axis > 0 {
            base = strides[axis - 1];
            (chunk, covered) = (1, 1);
        }
    }
    (next == 0).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(shape: &[i64], strides: &[i64], to: &[i64]) -> Option<Vec<i64>> {
        reshaped(shape, strides, to).map(|strides| strides.to_vec())
    }

    /// Strides as torch gives them for the same calls on the same tensors.
    #[test]
    fn reshapes_follow_memory() {
        assert_eq!(view(&[2, 3, 4], &[12, 4, 1], &[6, 4]), Some(vec![4, 1]));
        assert_eq!(view(&[2, 3, 4], &[12, 1, 3], &[6, 4]), None);
        assert_eq!(view(&[4, 6], &[0, 1], &[4, 2, 3]), Some(vec![0, 3, 1]));
        assert_eq!(view(&[0, 6], &[6, 1], &[3, 0]), Some(vec![1, 1]));
        assert_eq!(view(&[4, 6], &[6, 1], &[1, 24, 1]), Some(vec![24, 1, 1]));
        assert_eq!(view(&[], &[], &[1, 1]), Some(vec![1, 1]));
    }

    #[test]
    fn a_tensor_without_elements_has_any_layout() {
        assert!(is_dense(&[0_i64, 5], &[1_i64, 7]));
        assert!(!is_dense(&[2_i64, 5], &[1_i64, 7]));
        assert!(is_contiguous(&[0_i64, 5], &[1_i64, 7]));
    }

    #[test]
    fn results_keep_the_order_of_their_operands() {
        let shape = [2_usize, 3, 4];
        let turned: (&[usize], &[usize]) = (&shape, &[1, 2, 6]);
        assert_eq!(elementwise(&shape, &[turned]).as_slice(), [1, 2, 6]);
        let row: (&[usize], &[usize]) = (&[4], &[1]);
        assert_eq!(elementwise(&shape, &[row, turned]).as_slice(), [1, 2, 6]);
        assert_eq!(channels_last_order(4).collect::<Vec<_>>(), [1, 3, 2, 0]);
    }
}
