//! Arithmetic on shapes and strides of lanes.

use smallvec::SmallVec;

/// Size and stride of one dimension, the innermost last.
pub(crate) type Dims = SmallVec<[(usize, i64); 4]>;

pub(crate) type Strides = SmallVec<[i64; 4]>;

pub(crate) fn row_major(shape: &[u32]) -> Strides {
    let mut strides: Strides = shape.iter().map(|_| 0).collect();
    let mut next = 1i64;
    for d in (0..shape.len()).rev() {
        strides[d] = next;
        next *= i64::from(shape[d]);
    }
    strides
}

pub(crate) fn is_row_major(shape: &[u32], strides: &[i64]) -> bool {
    let expected = row_major(shape);
    (0..shape.len()).all(|d| shape[d] == 1 || strides[d] == expected[d])
}

/// Drops dimensions of one and merges neighbours that step evenly.
pub(crate) fn collapse(shape: &[u32], strides: &[i64]) -> Dims {
    let mut dims = Dims::new();
    for (&size, &stride) in shape.iter().zip(strides) {
        if size == 1 {
            continue;
        }
        let size = size as usize;
        match dims.last_mut() {
            Some(last) if last.1 == stride.wrapping_mul(size as i64) => {
                *last = (last.0 * size, stride)
            }
            _ => dims.push((size, stride)),
        }
    }
    if dims.is_empty() {
        dims.push((1, 0));
    }
    dims
}

/// Every dimension, as it is.
pub(crate) fn plain(shape: &[u32], strides: &[i64]) -> Dims {
    let mut dims: Dims = shape.iter().zip(strides).map(|(&s, &t)| (s as usize, t)).collect();
    if dims.is_empty() {
        dims.push((1, 0));
    }
    dims
}

/// Strides of the same lanes under another shape, if no data has to move.
pub(crate) fn reshaped(shape: &[u32], strides: &[i64], to: &[u32]) -> Option<Strides> {
    let old = collapse(shape, strides);
    let mut result: Strides = to.iter().map(|_| 0).collect();
    let mut next = to.len();
    for &(size, stride) in old.iter().rev() {
        let mut covered = 1usize;
        while covered < size {
            if next == 0 {
                return None;
            }
            next -= 1;
            result[next] = stride.wrapping_mul(covered as i64);
            covered *= to[next] as usize;
        }
        if covered != size {
            return None;
        }
    }
    to[..next].iter().all(|&d| d == 1).then_some(result)
}

/// What no buffer holds.
const BEYOND_MEMORY: (i64, i64) = (0, i64::MAX);

/// First byte and byte after the last that elements at these places touch, from lane 0; limits per dimension.
///
/// Addresses wrap around, so the first and last lane may lie in a buffer while those between do not. Then the strides add up
/// to more than a buffer can hold, which is what this says instead.
pub(crate) fn span(
    size: usize,
    dims: &Dims,
    limits: impl Iterator<Item = (usize, usize)>,
) -> (i64, i64) {
    let (mut low, mut high) = (0i64, size as i64);
    for (&(_, stride), (first, end)) in dims.iter().zip(limits) {
        let ends = (first as i64).checked_mul(stride).zip((end as i64 - 1).checked_mul(stride));
        let reach =
            ends.and_then(|(a, b)| low.checked_add(a.min(b)).zip(high.checked_add(a.max(b))));
        match reach {
            Some(reach) => (low, high) = reach,
            None => return BEYOND_MEMORY,
        }
    }
    (low, high)
}

/// Whether elements at these places lie one behind the other.
pub(crate) fn is_contiguous(elem: crate::types::Elem, dims: &Dims) -> bool {
    let mut step = elem.size() as i64;
    dims.iter().rev().all(|&(n, stride)| {
        let fits = n == 1 || stride == step;
        step = step.saturating_mul(n as i64);
        fits
    })
}

/// Calls `row(first lane in the chunk, lanes, offset of the first, stride)` for each innermost run.
#[inline]
pub(crate) fn for_rows(
    dims: &Dims,
    start: usize,
    count: usize,
    mut row: impl FnMut(usize, usize, i64, i64),
) {
    let Some((&(inner, stride), outer)) = dims.split_last() else { return };
    if count == 0 {
        return;
    }
    if outer.is_empty() {
        row(0, count, (start as i64).wrapping_mul(stride), stride);
        return;
    }
    // Divisions once, then an odometer: they would cost as much as a short row.
    let mut index: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
    let (mut column, mut rest, mut base) = (start % inner, start / inner, 0i64);
    for d in (0..outer.len()).rev() {
        let (size, step) = outer[d];
        index[d] = rest % size;
        rest /= size;
        base = base.wrapping_add((index[d] as i64).wrapping_mul(step));
    }
    let mut done = 0;
    loop {
        let run = (inner - column).min(count - done);
        row(done, run, base.wrapping_add((column as i64).wrapping_mul(stride)), stride);
        done += run;
        column = 0;
        if done >= count {
            return;
        }
        for d in (0..outer.len()).rev() {
            let (size, step) = outer[d];
            index[d] += 1;
            base = base.wrapping_add(step);
            if index[d] < size {
                break;
            }
            index[d] = 0;
            base = base.wrapping_sub((size as i64).wrapping_mul(step));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_keep_strides_where_they_can() {
        assert_eq!(reshaped(&[4, 8], &[8, 1], &[32]).as_deref(), Some(&[1][..]));
        // The stride of a dimension of one means nothing.
        assert_eq!(reshaped(&[8], &[3], &[8, 1]).map(|s| s[0]), Some(3));
        assert_eq!(reshaped(&[4, 8], &[1, 4], &[32]), None);
        assert_eq!(reshaped(&[4, 8], &[1, 4], &[2, 2, 8]).as_deref(), Some(&[2, 1, 4][..]));
    }

    #[test]
    fn rows_cover_each_lane_once() {
        let dims = plain(&[2, 4, 8], &[100, 10, 1]);
        let mut seen = Vec::new();
        for_rows(&dims, 5, 40, |at, run, offset, stride| {
            for i in 0..run {
                assert_eq!(at + i, seen.len());
                seen.push(offset + i as i64 * stride);
            }
        });
        let expected: Vec<i64> =
            (5..45).map(|l: i64| (l / 32) * 100 + (l / 8 % 4) * 10 + l % 8).collect();
        assert_eq!(seen, expected);
    }
}
