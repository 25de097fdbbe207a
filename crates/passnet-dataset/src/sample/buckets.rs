//! Buckets: graphs that are alike enough to stand for each other.
//!
//! Two graphs share a bucket when they run the same ops and each input dimension has the same order of magnitude,
//! counted in factors of 16. Element types are kept beside the bucket: they decide who represents it.

use super::identity::Uid;
use passnet_graph::DType;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Dimensions within one factor of `2^MAGNITUDE_BITS` are alike.
const MAGNITUDE_BITS: u32 = 4;

/// What kind of piece a graph is; a task never mixes kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceKind {
    /// A compiler runs it as one kernel.
    Fusible,
    /// One operation.
    SoleOp,
    /// It recurs in the corpus.
    Typical,
}

/// One graph, as far as grouping looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) uid: Uid,
    pub(crate) kind: PieceKind,
    /// Op names in order.
    pub(crate) ops: Vec<String>,
    /// Shape of each input, in the order of the metadata.
    pub(crate) shapes: Vec<Vec<i64>>,
    /// Element type of each input, in the same order.
    pub(crate) dtypes: Vec<DType>,
}

/// What the members of a bucket share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct BucketKey<'m> {
    pub(crate) kind: PieceKind,
    pub(crate) ops: &'m [String],
    /// Order of magnitude of each dimension of each input.
    pub(crate) magnitudes: Vec<Vec<i32>>,
}

impl Member {
    pub(crate) fn bucket(&self) -> BucketKey<'_> {
        let magnitudes = |shape: &Vec<i64>| shape.iter().map(|&dim| magnitude(dim)).collect();
        BucketKey {
            kind: self.kind,
            ops: &self.ops,
            magnitudes: self.shapes.iter().map(magnitudes).collect(),
        }
    }

    /// Orders members by the names of their element types, then by uid.
    pub(super) fn by_dtypes(&self, other: &Self) -> Ordering {
        let names =
            |member: &Self| member.dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>();
        names(self).cmp(&names(other)).then(self.uid.cmp(&other.uid))
    }
}

/// How many factors of 16 a dimension holds; -1 for an empty or unknown one.
pub(crate) fn magnitude(dim: i64) -> i32 {
    match dim.checked_ilog2() {
        Some(log) => (log / MAGNITUDE_BITS) as i32,
        None => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn magnitudes_step_at_powers_of_sixteen() {
        let steps = [-5, 0, 1, 15, 16, 255, 256, 4095, 4096, 65535, 65536, i64::MAX];
        assert_eq!(steps.map(magnitude), [-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 15]);
    }

    proptest! {
        #[test]
        fn a_dimension_lies_between_its_magnitude_and_the_next(dim in 1i64..1 << 50) {
            let low = 16i64.pow(magnitude(dim).unsigned_abs());
            prop_assert!(low <= dim && dim < low * 16);
        }
    }

    #[test]
    fn the_key_keeps_ops_and_magnitudes_and_forgets_the_rest() {
        let member = |shape: &[i64], dtype| Member {
            uid: Uid::from_digest(&[7; 32]),
            kind: PieceKind::Fusible,
            ops: vec!["conv2d".into(), "relu".into()],
            shapes: vec![shape.to_vec(), vec![]],
            dtypes: vec![dtype, DType::Int64],
        };
        let one = member(&[1, 3, 224, 224], DType::Float32);
        assert_eq!(one.bucket().magnitudes, [vec![0, 0, 1, 1], vec![]]);
        assert_eq!(one.bucket(), member(&[8, 5, 16, 200], DType::Float16).bucket());
        assert_ne!(one.bucket(), member(&[16, 3, 224, 224], DType::Float32).bucket());
    }
}
