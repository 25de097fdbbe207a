//! Which elements of an input become extreme.
//!
//! A kernel that is honest only on suspicion looks at a few places that it has chosen beforehand: the first elements, the
//! last, every n-th of a row. So most elements stay as they were, and the others are chosen by a secret: for every
//! dimension a few indices, with all that lies there (whole rows, whole columns, whole planes, so that every reduction
//! meets a group of nothing but extreme values), and single elements anywhere.

/// The elements that are changed.
#[derive(Debug)]
pub(super) enum Places {
    All,
    Some {
        /// Of every dimension but the last its stride in row-major order, and which of its indices are changed.
        outer: Vec<(usize, Vec<bool>)>,
        /// Which indices of the last dimension are changed.
        last: Vec<bool>,
        /// Single elements: where the upper half of their random bits lies below this number.
        below: u64,
        key: u64,
    },
}

/// Single elements among ordinary ones: about one in so many.
const SINGLE: usize = 64;

impl Places {
    /// Only single elements, about one in `one_in`.
    pub(super) fn scattered(shape: &[usize], one_in: usize, key: u64) -> Places {
        let elements: usize = shape.iter().product();
        // However few elements there are, one is changed.
        let mut last = vec![false; elements.clamp(1, 4 * one_in)];
        if elements < 4 * one_in {
            let length = last.len();
            last[mixed(key, usize::MAX) as usize % length] = true;
        }
        Places::Some { outer: Vec::new(), last, below: below(one_in), key }
    }

    /// A few indices of every dimension with all that lies there, and single elements. Dimensions of the same size are
    /// changed at the same indices, in whatever tensor they are.
    pub(super) fn among_ordinary(shape: &[usize], indices: u64, key: u64) -> Places {
        let mut sizes = shape.iter().rev().copied().filter(|size| *size > 1);
        let Some(row) = sizes.next() else { return Places::All };
        let changed = |size| some_indices(size, mixed(indices, size));
        let mut stride = row;
        let outer = sizes.map(|size| {
            let dimension = (stride, changed(size));
            stride *= size;
            dimension
        });
        Places::Some { outer: outer.collect(), last: changed(row), below: below(SINGLE), key }
    }

    /// Calls `change` once with every changed element of a piece that begins at element `at`.
    pub(super) fn for_each<T>(
        &self,
        at: usize,
        piece: &mut [T],
        mut change: impl FnMut(usize, &mut T),
    ) {
        let elements = piece.iter_mut().enumerate();
        let (outer, last, below, key) = match self {
            Places::All => return elements.for_each(|(index, value)| change(at + index, value)),
            Places::Some { outer, last, below, key } => (outer, last, *below, *key),
        };
        let row = last.len();
        let mut begin = at;
        let mut rest = piece;
        while !rest.is_empty() {
            let column = begin % row;
            let (part, after) = rest.split_at_mut((row - column).min(rest.len()));
            let is_changed =
                |(stride, changed): &(usize, Vec<bool>)| changed[begin / stride % changed.len()];
            let is_whole = outer.iter().any(is_changed);
            for ((index, value), is_column) in part.iter_mut().enumerate().zip(&last[column..]) {
                let element = begin + index;
                if is_whole || *is_column || mixed(key, element) >> 32 < below {
                    change(element, value);
                }
            }
            begin += part.len();
            rest = after;
        }
    }
}

/// At least one index of a dimension and at most half of them: up to eight, or one in 32.
fn some_indices(size: usize, key: u64) -> Vec<bool> {
    let count = 1 + mixed(key, 0) as usize % (size / 32).clamp(1, 8);
    let mut changed = vec![false; size];
    for index in 0..count {
        changed[mixed(key, 1 + index) as usize % size] = true;
    }
    changed
}

/// The bound below which one in so many 32-bit numbers lies.
fn below(one_in: usize) -> u64 {
    (1u64 << 32) / one_in.max(1) as u64
}

/// Random bits of an element: every bit depends on every bit of key and element.
pub(super) fn mixed(key: u64, element: usize) -> u64 {
    let mut bits = key.wrapping_add((element as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(places: &Places, elements: usize, piece: usize) -> Vec<bool> {
        let mut all = vec![false; elements];
        for (number, part) in all.chunks_mut(piece).enumerate() {
            places.for_each(number * piece, part, |_, value| *value = true);
        }
        all
    }

    /// How a tensor is cut into pieces is no business of what is changed.
    #[test]
    fn pieces_of_any_size_change_the_same_elements() {
        for key in 0..16 {
            for places in [
                Places::among_ordinary(&[3, 5, 37], key, key + 1),
                Places::scattered(&[3, 5, 37], 20, key),
            ] {
                let whole = changed(&places, 555, 555);
                assert!(whole.contains(&true) && whole.contains(&false));
                assert_eq!(whole, changed(&places, 555, 10));
                assert_eq!(whole, changed(&places, 555, 64));
            }
        }
    }

    #[test]
    fn the_element_that_is_named_is_the_one_that_is_changed() {
        let mut elements: Vec<usize> = (1000..1555).collect();
        let places = Places::among_ordinary(&[100, 37], 5, 6);
        let mut seen = 0;
        places.for_each(1000, &mut elements, |element, value| {
            assert_eq!(element, *value);
            seen += 1;
        });
        assert!(seen > 0);
    }

    /// Whatever is reduced, some group of it holds changed elements only.
    #[test]
    fn every_dimension_has_an_index_that_is_changed_throughout() {
        let (rows, columns) = (6, 10);
        let all = changed(&Places::among_ordinary(&[rows, columns], 1, 2), 60, 60);
        assert!((0..rows).any(|row| (0..columns).all(|column| all[row * columns + column])));
        assert!((0..columns).any(|column| (0..rows).all(|row| all[row * columns + column])));
    }

    #[test]
    fn something_is_changed_however_small_a_tensor_is() {
        for key in 0..100 {
            for shape in [&[2][..], &[1, 3], &[]] {
                let elements = shape.iter().product();
                let all = changed(&Places::among_ordinary(shape, key, key), elements, 1);
                assert!(all.contains(&true));
                assert!(changed(&Places::scattered(shape, 256, key), elements, 1).contains(&true));
            }
        }
    }

    #[test]
    fn no_element_is_changed_twice() {
        let mut times = vec![0; 640];
        Places::among_ordinary(&[10, 64], 3, 4).for_each(0, &mut times, |_, times| *times += 1);
        assert_eq!(times.iter().max(), Some(&1));
    }
}
