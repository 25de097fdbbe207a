//! Sole-op pieces: every op of a graph on its own.

use std::ops::Range;

/// One range for each op of a graph with `ops` ops.
pub fn sole_op_ranges(ops: usize) -> impl ExactSizeIterator<Item = Range<usize>> {
    (0..ops).map(|op| op..op + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_stands_alone() {
        assert_eq!(sole_op_ranges(3).collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
        assert_eq!(sole_op_ranges(0).len(), 0);
    }
}
