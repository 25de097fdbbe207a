//! Layouts: which strides torch gives a result, and when a shape can be a view of another.
//!
//! Decisions use sizes, never symbols: a layout is that of the example.

use super::dim::Dim;
use super::value::{Shape, Strides, TensorType};
use smallvec::SmallVec;

/// Row-major strides; a dimension without elements counts as one, as in torch.
pub(super) fn contiguous(shape: &[Dim]) -> Strides {
    let order: SmallVec<[usize; 6]> = (0..shape.len()).rev().collect();
    dense(shape, &order)
}

/// Dense strides with the dimensions in the given order, innermost first.
fn dense(shape: &[Dim], order: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(1, shape.len());
    let mut step: i64 = 1;
    for axis in order {
        strides[*axis] = step;
        step = step.saturating_mul(shape[*axis].size.max(1));
    }
    strides
}

/// Strides of `torch.channels_last` (rank 4) and `torch.channels_last_3d` (rank 5).
pub(super) fn channels_last(shape: &[Dim]) -> Strides {
    let mut order: SmallVec<[usize; 6]> = SmallVec::new();
    order.push(1);
    order.extend((2..shape.len()).rev());
    order.push(0);
    dense(shape, &order)
}

pub(super) fn is_contiguous(shape: &[Dim], strides: &[i64]) -> bool {
    let order: SmallVec<[usize; 6]> = (0..shape.len()).rev().collect();
    is_dense_in(shape, strides, &order)
}

pub(super) fn is_channels_last(shape: &[Dim], strides: &[i64]) -> bool {
    if !matches!(shape.len(), 4 | 5) {
        return false;
    }
    let mut order: SmallVec<[usize; 6]> = SmallVec::new();
    order.push(1);
    order.extend((2..shape.len()).rev());
    order.push(0);
    is_dense_in(shape, strides, &order)
}

fn is_dense_in(shape: &[Dim], strides: &[i64], order: &[usize]) -> bool {
    if shape.iter().any(|dim| dim.size == 0) {
        return true;
    }
    let mut expected: i64 = 1;
    for axis in order {
        if shape[*axis].size != 1 {
            if strides[*axis] != expected {
                return false;
            }
            expected = expected.saturating_mul(shape[*axis].size);
        }
    }
    true
}

/// Whether the layout is channels-last rather than merely compatible with it: torch's tie-break for sizes
/// of one (`suggest_memory_format`).
pub(super) fn suggests_channels_last(shape: &[Dim], strides: &[i64]) -> bool {
    if !matches!(shape.len(), 4 | 5) || strides[1] == 0 {
        return false;
    }
    let mut order: SmallVec<[usize; 6]> = SmallVec::new();
    order.push(1);
    order.extend((2..shape.len()).rev());
    order.push(0);
    let mut least = 0;
    for axis in order {
        let size = shape[axis].size;
        if size == 0 || strides[axis] < least {
            return false;
        }
        // N is checked against C: N111 tensors count as contiguous.
        if axis == 0 && least == strides[1] {
            return false;
        }
        least = strides[axis];
        if size > 1 {
            least = least.saturating_mul(size);
        }
    }
    true
}

/// Whether the elements fill their memory without gaps or overlaps, in any order of dimensions.
pub(super) fn is_dense(shape: &[Dim], strides: &[i64]) -> bool {
    if shape.iter().any(|dim| dim.size == 0) {
        return true;
    }
    let mut order: SmallVec<[usize; 6]> =
        (0..shape.len()).filter(|axis| shape[*axis].size != 1).collect();
    order.sort_by_key(|axis| strides[*axis]);
    let mut expected: i64 = 1;
    for axis in order {
        if strides[axis] != expected {
            return false;
        }
        expected = expected.saturating_mul(shape[axis].size);
    }
    true
}

/// The layout of `empty_like`: kept where it is dense, else dense in the same order.
pub(super) fn like(tensor: &TensorType) -> Strides {
    if is_dense(&tensor.shape, &tensor.strides) {
        return tensor.strides.clone();
    }
    elementwise(&tensor.shape, &[(&tensor.shape, &tensor.strides)])
}

/// The layout torch's element-wise loops give their result: the operands' common layout where there is one,
/// else dense, with the dimensions in the order of the operands' strides.
pub(super) fn elementwise(shape: &[Dim], operands: &[(&[Dim], &[i64])]) -> Strides {
    let same_shape = operands.iter().all(|(sizes, _)| same_sizes(sizes, shape));
    if same_shape && !operands.is_empty() {
        if operands.iter().all(|(sizes, strides)| is_contiguous(sizes, strides)) {
            return contiguous(shape);
        }
        if operands.iter().all(|(sizes, strides)| is_channels_last(sizes, strides)) {
            return channels_last(shape);
        }
        let (_, first) = operands[0];
        if operands.iter().all(|(sizes, strides)| *strides == first && is_dense(sizes, strides)) {
            return first.into();
        }
    }
    let broadcast: SmallVec<[Strides; 4]> =
        operands.iter().map(|(sizes, strides)| broadcast_strides(shape, sizes, strides)).collect();
    dense(shape, &iteration_order(shape, &broadcast))
}

fn same_sizes(a: &[Dim], b: &[Dim]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.size == b.size)
}

/// Strides of an operand seen at the broadcast shape; repeated dimensions have stride 0.
pub(super) fn broadcast_strides(shape: &[Dim], sizes: &[Dim], strides: &[i64]) -> Strides {
    let missing = shape.len().saturating_sub(sizes.len());
    let mut seen: Strides = SmallVec::from_elem(0, shape.len());
    for (axis, (size, stride)) in sizes.iter().zip(strides).enumerate() {
        if let Some(slot) = seen.get_mut(missing + axis) {
            *slot = if size.size == 1 && shape[missing + axis].size != 1 { 0 } else { *stride };
        }
    }
    seen
}

/// Insertion sort by strides, innermost first; ties keep the order of dimensions. Ambiguous comparisons
/// (a broadcast dimension) are left to the next operand, exactly as torch's loops do it.
fn iteration_order(shape: &[Dim], operands: &[Strides]) -> SmallVec<[usize; 6]> {
    let compare = |a: usize, b: usize| -> i32 {
        for strides in operands {
            let (left, right) = (strides[a], strides[b]);
            if left == 0 || right == 0 {
                continue;
            }
            if left != right {
                return if left < right { -1 } else { 1 };
            }
            if shape[a].size > shape[b].size {
                return 1;
            }
        }
        0
    };
    let mut order: SmallVec<[usize; 6]> = (0..shape.len()).rev().collect();
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

/// The strides with which a tensor can be seen in another shape without moving elements, if it can.
pub(super) fn view(tensor: &TensorType, shape: &[Dim]) -> Option<Strides> {
    if tensor.shape.is_empty() {
        return Some(SmallVec::from_elem(1, shape.len()));
    }
    let elements = tensor.elements();
    if elements == 0 {
        if same_sizes(&tensor.shape, shape) {
            return Some(tensor.strides.clone());
        }
        return Some(contiguous(shape));
    }
    let mut strides: Strides = SmallVec::from_elem(0, shape.len());
    let mut next = shape.len();
    let mut base = *tensor.strides.last()?;
    let (mut chunk, mut covered): (i64, i64) = (1, 1);
    for axis in (0..tensor.rank()).rev() {
        chunk = chunk.saturating_mul(tensor.shape[axis].size);
        let ends_chunk = axis == 0
            || (tensor.shape[axis - 1].size != 1
                && tensor.strides[axis - 1] != chunk.saturating_mul(base));
        if !ends_chunk {
            continue;
        }
        while next > 0 && (covered < chunk || shape[next - 1].size == 1) {
            next -= 1;
            strides[next] = covered.saturating_mul(base);
            covered = covered.saturating_mul(shape[next].size);
        }
        if covered != chunk {
            return None;
        }
        if axis > 0 {
            base = tensor.strides[axis - 1];
            (chunk, covered) = (1, 1);
        }
    }
    (next == 0).then_some(strides)
}

/// A new tensor shaped like another with its layout, possibly of another dtype.
pub(super) fn like_tensor(tensor: &TensorType, dtype: crate::DType) -> TensorType {
    TensorType::strided(dtype, tensor.shape.clone(), like(tensor))
}

/// The shape of a tensor as message text: `[2, 3]`.
pub(super) fn describe(shape: &[Dim]) -> String {
    let sizes: Vec<i64> = shape.iter().map(|dim| dim.size).collect();
    format!("{sizes:?}")
}

/// The product of sizes, symbols kept.
pub(super) fn product(shape: &[Dim]) -> Result<Dim, super::Problem> {
    shape.iter().try_fold(Dim::fixed(1), |product, dim| product.mul(dim))
}

/// Shorthand for shapes written out in rules.
pub(super) fn shape(dims: impl IntoIterator<Item = Dim>) -> Shape {
    dims.into_iter().collect()
}
