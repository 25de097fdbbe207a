//! How masks cut the lanes of a row: into runs in which each mask is on, off, or neither.

use super::layout::{On, WIDTH};
use smallvec::SmallVec;

/// Lanes of a row that run together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) lanes: (usize, usize),
    /// The masks that are off in all of them, bit by bit; `None` where one is on for some only.
    pub(super) off: Option<u32>,
}

/// Cuts a row of so many lanes, a multiple of the register's, where masks begin and end. `limits` are the masks' lanes.
pub(super) fn runs(limits: &[On], row: usize) -> SmallVec<[Run; 8]> {
    let whole = Run { lanes: (0, row), off: off(limits, (0, row)) };
    if whole.off.is_some() {
        return SmallVec::from_slice(&[whole]);
    }
    let mut edges: SmallVec<[usize; 16]> = SmallVec::from_slice(&[0, row]);
    for on in limits {
        for edge in [on.lanes.0, on.lanes.1] {
            edges.extend([edge / WIDTH * WIDTH, edge.next_multiple_of(WIDTH)]);
        }
    }
    edges.sort_unstable();
    edges.dedup();
    let mut runs: SmallVec<[Run; 8]> = SmallVec::new();
    for edge in edges.windows(2) {
        let lanes = (edge[0], edge[1]);
        let off = off(limits, lanes);
        match runs.last_mut() {
            Some(last) if last.off == off => last.lanes.1 = lanes.1,
            _ => runs.push(Run { lanes, off }),
        }
    }
    runs
}

fn off(limits: &[On], (first, end): (usize, usize)) -> Option<u32> {
    let mut off = 0;
    for (index, on) in limits.iter().enumerate() {
        let (low, high) = on.lanes;
        if low >= high || high <= first || low >= end {
            off |= 1 << index;
        } else if low > first || high < end {
            return None;
        }
    }
    Some(off)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limits: &[(usize, usize)], row: usize) -> Vec<((usize, usize), Option<u32>)> {
        let limits: Vec<On> = limits.iter().map(|&lanes| On { lanes, rows: (0, 1) }).collect();
        runs(&limits, row).iter().map(|run| (run.lanes, run.off)).collect()
    }

    #[test]
    fn a_row_is_cut_where_masks_begin_and_end() {
        assert_eq!(cut(&[], 64), [((0, 64), Some(0))]);
        assert_eq!(cut(&[(0, 64)], 64), [((0, 64), Some(0))]);
        assert_eq!(cut(&[(0, 32), (32, 64)], 64), [((0, 32), Some(2)), ((32, 64), Some(1))]);
        let inside_a_register = [((0, 32), Some(0)), ((32, 48), None), ((48, 64), Some(1))];
        assert_eq!(cut(&[(0, 40)], 64), inside_a_register);
        assert_eq!(cut(&[(0, 0), (0, 64)], 64), [((0, 64), Some(1))]);
    }
}
