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

/// Which dimensions have indices that are changed.
///
/// Long and short ones are not changed together: a look at every sample of a short dimension would find one of them changed,
/// and whoever looks there is honest in that call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// One or two indices of the long dimensions and of the last one: whole rows and columns, in every sample. So few that a
    /// look at several places meets none of them.
    Rows,
    /// More indices of the long dimensions that are neighbours: a group of channels, say, lies in a band of them.
    Bands,
    /// One index of every short dimension.
    Slabs,
    /// Another index of every short dimension: whoever looks at one sample finds it ordinary in one of both.
    OtherSlabs,
}

/// A dimension of at least so many indices has ordinary ones on both sides of what is changed.
const LONG: usize = 8;
/// A dimension of at least so many indices may consist of groups that are reduced together.
const BROAD: usize = 2 * LONG;
/// The ends of a tensor, where kernels look first, are left alone but once in so many times.
const ENDS_ONCE_IN: usize = 16;
/// Single elements from either end that count as its end.
const END: usize = 64;

impl Choice {
    pub(super) fn name(self) -> &'static str {
        match self {
            Choice::Rows => "rows",
            Choice::Bands => "bands",
            Choice::Slabs => "slabs",
            Choice::OtherSlabs => "other slabs",
        }
    }

    /// Whether a tensor has dimensions that it is about.
    pub(super) fn concerns(self, shape: &[usize]) -> bool {
        let sizes = told_sizes(shape);
        let mut before = sizes.iter().rev().skip(1);
        match self {
            Choice::Rows => true,
            Choice::Bands => before.any(|size| *size >= BROAD),
            Choice::Slabs | Choice::OtherSlabs => before.any(|size| *size < LONG),
        }
    }
}

impl Places {
    /// Single elements, one of every `one_in`; one at least, however few elements there are.
    pub(super) fn scattered(shape: &[usize], one_in: usize, key: u64) -> Places {
        let elements: usize = shape.iter().product();
        let spared = elements >= 4 * END.max(one_in) && spares_ends(key);
        let within = if spared { END..elements - END } else { 0..elements };
        Places::Single { group: one_in.min(elements).max(1), key, within }
    }

    /// Some indices of dimensions, with all that lies there. Dimensions of the same size are changed at the same indices, in
    /// whatever tensor they are.
    pub(super) fn rows(shape: &[usize], key: u64, choice: Choice) -> Places {
        let sizes = told_sizes(shape);
        let Some((row, before)) = sizes.split_last() else { return Places::All };
        let is_long = matches!(choice, Choice::Rows | Choice::Bands);
        let run = |size: usize| match size < LONG {
            true => one_index(size, mixed(key, size), choice),
            false => run_of_indices(size, mixed(key, size), choice),
        };
        let mut stride = *row;
        let mut outer = Vec::new();
        for size in before.iter().rev() {
            if (*size >= LONG) == is_long {
                outer.push(Dimension { stride, size: *size, changed: run(*size) });
            }
            stride *= size;
        }
        // A few columns of very short rows would be most of the tensor.
        let has_columns = choice == Choice::Rows && (*row >= LONG || before.is_empty());
        let columns = if has_columns { run(*row) } else { 0..0 };
        Places::Rows { outer, row: *row, columns }
    }

    /// Calls `change` once with every run of changed elements of a piece that begins at element `at`, and with the number of
    /// the run's first element.
    pub(super) fn for_each_run<T>(
        &self,
        at: usize,
        piece: &mut [T],
        mut change: impl FnMut(usize, &mut [T]),
    ) {
        let end = at + piece.len();
        let mut change_all = |elements: Range<usize>| {
            let (first, last) = (elements.start.max(at), elements.end.min(end));
            if first < last {
                change(first, &mut piece[first - at..last - at]);
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

/// The sizes of dimensions that have more than one index.
fn told_sizes(shape: &[usize]) -> Vec<usize> {
    shape.iter().copied().filter(|size| *size > 1).collect()
}

/// Whether the ends are left alone this time.
fn spares_ends(key: u64) -> bool {
    !(mixed(key, 0) as usize).is_multiple_of(ENDS_ONCE_IN)
}

/// One index of a short dimension.
fn one_index(size: usize, key: u64, choice: Choice) -> Range<usize> {
    let first = mixed(key, 0) as usize % size;
    let other = (first + 1 + mixed(key, 1) as usize % (size - 1)) % size;
    let chosen = if choice == Choice::OtherSlabs { other } else { first };
    chosen..chosen + 1
}

/// Neighbouring indices of a long dimension: one or two for rows, at most a quarter of all for bands.
fn run_of_indices(size: usize, key: u64, choice: Choice) -> Range<usize> {
    let random = mixed(key, 1);
    let length = match choice {
        Choice::Bands => ((size / 4) >> (random % 3)).max(2),
        _ => 1 + random as usize % 2,
    };
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
            places.for_each_run(number * piece, part, |_, run| run.fill(true));
        }
        all
    }

    /// How a tensor is cut into pieces is no business of what is changed.
    #[test]
    fn pieces_of_any_size_change_the_same_elements() {
        for key in 0..16 {
            for places in [
                Places::rows(&[3, 5, 37], key, Choice::Slabs),
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
        Places::rows(&[100, 37], 5, Choice::Rows).for_each_run(
            1000,
            &mut elements,
            |first, run| {
                assert!(run.iter().copied().eq(first..first + run.len()));
                seen += run.len();
            },
        );
        assert!(seen > 0);
    }

    /// Whatever is reduced, some group of it holds changed elements only.
    #[test]
    fn every_dimension_has_an_index_that_is_changed_throughout() {
        let (rows, columns) = (9, 10);
        let all = changed(&Places::rows(&[rows, columns], 1, Choice::Rows), 90, 90);
        assert!((0..rows).any(|row| (0..columns).all(|column| all[row * columns + column])));
        assert!((0..columns).any(|column| (0..rows).all(|row| all[row * columns + column])));
        let group = |all: &[bool]| all.chunks(4 * columns).any(|group| group.iter().all(|it| *it));
        assert!((0..8).any(|key| group(&changed(
            &Places::rows(&[64, 10], key, Choice::Bands),
            640,
            640
        ))));
        let slabs = |choice| changed(&Places::rows(&[3, 4], 1, choice), 12, 12);
        let (one, other) = (slabs(Choice::Slabs), slabs(Choice::OtherSlabs));
        let whole = |all: &[bool]| all.chunks(4).position(|row| row.iter().all(|it| *it)).unwrap();
        assert_ne!(whole(&one), whole(&other));
        assert_eq!(one.iter().filter(|changed| **changed).count(), 4);
    }

    /// What looks at the first elements, the last ones and the middle of every sample finds ordinary values.
    #[test]
    fn few_places_tell_nothing() {
        let (sample, row) = (64 * 512, 512);
        let looked_at = [0, 32 * row + 100, sample, sample + 40 * row + 300, 2 * sample - 8];
        let is_seen = |key: &u64| {
            let places = Places::rows(&[2, 64, 512], *key, Choice::Rows);
            let all = changed(&places, 2 * sample, 1 << 14);
            looked_at.iter().any(|at| all[*at..at + 8].contains(&true))
        };
        let seen = (0..256).filter(is_seen).count();
        assert!(seen < 256 / 4, "{seen} of 256");
    }

    #[test]
    fn something_is_changed_however_small_a_tensor_is() {
        for key in 0..100 {
            for shape in [&[2][..], &[1, 3], &[]] {
                let elements = shape.iter().product();
                assert!(
                    changed(&Places::rows(shape, key, Choice::Rows), elements, 1).contains(&true)
                );
                assert!(changed(&Places::scattered(shape, 256, key), elements, 1).contains(&true));
            }
        }
    }

    #[test]
    fn no_element_is_changed_twice() {
        let mut times = vec![0; 640];
        let places = Places::rows(&[10, 64], 3, Choice::Rows);
        places.for_each_run(0, &mut times, |_, run| run.iter_mut().for_each(|times| *times += 1));
        assert_eq!(times.iter().max(), Some(&1));
    }
}
