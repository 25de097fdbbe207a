//! Which elements of an input become extreme.
//!
//! A kernel that is honest only on suspicion looks at a few places that it has chosen beforehand: the first elements, the
//! last, every n-th of a row. So most elements stay as they were, and the others are chosen by a secret. Some changes are
//! whole rows, columns and planes, so that every reduction meets groups of nothing but extreme values; others are single
//! elements anywhere.

use std::ops::Range;

/// The elements that are changed.
#[derive(Debug)]
pub(super) enum Places {
    All,
    Rows {
        /// Of every dimension but the last the indices that are changed.
        outer: Vec<Dimension>,
        /// The length of a row, and which of its elements are changed in every row.
        row: usize,
        columns: Range<usize>,
    },
    /// One element of every group of so many.
    Single {
        group: usize,
        key: u64,
        within: Range<usize>,
    },
}

/// A dimension as it lies in row-major order.
#[derive(Debug)]
pub(super) struct Dimension {
    stride: usize,
    size: usize,
    changed: Range<usize>,
}

/// Two choices of rows that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    One,
    Other,
}

/// A dimension of at least so many indices has ordinary ones on both sides of what is changed.
const LONG: usize = 8;
/// The ends of a tensor, where kernels look first, are left alone but once in so many times.
const ENDS_ONCE_IN: usize = 16;
/// Single elements from either end that count as its end.
const END: usize = 64;

impl Places {
    /// Single elements, one of every `one_in`; one at least, however few elements there are.
    pub(super) fn scattered(shape: &[usize], one_in: usize, key: u64) -> Places {
        let elements: usize = shape.iter().product();
        let spared = elements >= 4 * END.max(one_in) && spares_ends(key);
        let within = if spared { END..elements - END } else { 0..elements };
        Places::Single { group: one_in.min(elements).max(1), key, within }
    }

    /// A run of indices of every dimension, with all that lies there. Dimensions of the same size are changed at the same
    /// indices, in whatever tensor they are. The other choice of the same key shares no index with the first one in a short
    /// dimension: whoever looks at one sample of two finds it ordinary in one of both.
    pub(super) fn rows(shape: &[usize], key: u64, choice: Choice) -> Places {
        let sizes: Vec<usize> = shape.iter().copied().filter(|size| *size > 1).collect();
        let Some((row, before)) = sizes.split_last() else { return Places::All };
        let run = |size: usize| match size < LONG {
            true => one_index(size, mixed(key, size), choice),
            false => run_of_indices(size, mixed(key.wrapping_add(choice as u64), size)),
        };
        let mut stride = *row;
        let outer = before.iter().rev().map(|size| {
            let dimension = Dimension { stride, size: *size, changed: run(*size) };
            stride *= size;
            dimension
        });
        let outer: Vec<Dimension> = outer.collect();
        // A few columns of very short rows would be most of the tensor.
        let columns = if *row >= LONG || outer.is_empty() { run(*row) } else { 0..0 };
        Places::Rows { outer, row: *row, columns }
    }

    /// Calls `change` once with every changed element of a piece that begins at element `at`.
    pub(super) fn for_each<T>(
        &self,
        at: usize,
        piece: &mut [T],
        mut change: impl FnMut(usize, &mut T),
    ) {
        let end = at + piece.len();
        let mut change_all = |elements: Range<usize>| {
            for element in elements.start.max(at)..elements.end.min(end) {
                change(element, &mut piece[element - at]);
            }
        };
        match self {
            Places::All => change_all(at..end),
            Places::Rows { outer, row, columns } => {
                let is_changed = |dimension: &Dimension, element: usize| {
                    dimension.changed.contains(&(element / dimension.stride % dimension.size))
                };
                for begin in (at - at % row..end).step_by(*row) {
                    match outer.iter().any(|dimension| is_changed(dimension, begin)) {
                        true => change_all(begin..begin + row),
                        false => change_all(begin + columns.start..begin + columns.end),
                    }
                }
            }
            Places::Single { group, key, within } => {
                for number in at / group..end.div_ceil(*group) {
                    let element = number * group + mixed(*key, number) as usize % group;
                    if within.contains(&element) {
                        change_all(element..element + 1);
                    }
                }
            }
        }
    }
}

/// Whether the ends are left alone this time.
fn spares_ends(key: u64) -> bool {
    !(mixed(key, 0) as usize).is_multiple_of(ENDS_ONCE_IN)
}

/// One index of a short dimension.
fn one_index(size: usize, key: u64, choice: Choice) -> Range<usize> {
    let first = mixed(key, 0) as usize % size;
    let other = (first + 1 + mixed(key, 1) as usize % (size - 1)) % size;
    let chosen = if choice == Choice::One { first } else { other };
    chosen..chosen + 1
}

/// Neighbouring indices of a dimension, at most a quarter of them and more often few. A group of channels, say, lies in a
/// run of them.
fn run_of_indices(size: usize, key: u64) -> Range<usize> {
    let longest = (size / 4).max(1);
    let length = (longest >> (mixed(key, 1) % 6)).max(1);
    let end = if spares_ends(key) { (size / 8).min(LONG) } else { 0 };
    let starts = (size - length).saturating_sub(2 * end) + 1;
    let start = end + mixed(key, 2) as usize % starts;
    start..start + length
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
                Places::rows(&[3, 5, 37], key, Choice::One),
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
        let mut seen = 0;
        Places::rows(&[100, 37], 5, Choice::One).for_each(1000, &mut elements, |element, value| {
            assert_eq!(element, *value);
            seen += 1;
        });
        assert!(seen > 0);
    }

    /// Whatever is reduced, some group of it holds changed elements only.
    #[test]
    fn every_dimension_has_an_index_that_is_changed_throughout() {
        let (rows, columns) = (6, 10);
        let all = changed(&Places::rows(&[rows, columns], 1, Choice::Other), 60, 60);
        assert!((0..rows).any(|row| (0..columns).all(|column| all[row * columns + column])));
        assert!((0..columns).any(|column| (0..rows).all(|row| all[row * columns + column])));
    }

    /// What looks at the first elements, at the last or at some of a row finds ordinary values.
    #[test]
    fn few_places_tell_nothing() {
        let looked_at = [0..8, 128 * 512 - 8..128 * 512, 64 * 512 + 100..64 * 512 + 108];
        for (place, looked_at) in looked_at.into_iter().enumerate() {
            let seen = |key, choice| {
                let all = changed(&Places::rows(&[2, 64, 512], key, choice), 128 * 512, 1 << 14);
                all[looked_at.clone()].contains(&true)
            };
            let seen = |key: &u64| seen(*key, Choice::One) && seen(*key, Choice::Other);
            let seen = (0..64).filter(seen).count();
            assert!(seen < [8, 8, 24][place], "{seen} of 64 at place {place}");
        }
    }

    #[test]
    fn something_is_changed_however_small_a_tensor_is() {
        for key in 0..100 {
            for shape in [&[2][..], &[1, 3], &[]] {
                let elements = shape.iter().product();
                assert!(
                    changed(&Places::rows(shape, key, Choice::One), elements, 1).contains(&true)
                );
                assert!(changed(&Places::scattered(shape, 256, key), elements, 1).contains(&true));
            }
        }
    }

    #[test]
    fn no_element_is_changed_twice() {
        let mut times = vec![0; 640];
        let places = Places::rows(&[10, 64], 3, Choice::One);
        places.for_each(0, &mut times, |_, times| *times += 1);
        assert_eq!(times.iter().max(), Some(&1));
    }
}
