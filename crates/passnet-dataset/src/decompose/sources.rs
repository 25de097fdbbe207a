//! Where a piece comes from: the op ranges of whole models that it was cut out of (`subgraph_sources.json`).
//!
//! A piece that was found in many models keeps all those places. All of them have the same number of ops, since
//! they are the same piece, so a place is a model and a start. Cutting a piece out of a piece adds its start to
//! every place of the parent.

use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

/// No graph has nearly as many ops; the limit keeps sums of positions far from overflow.
const MAX_OPS: usize = u32::MAX as usize;

/// All places of one piece; there is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Ops in the piece.
    ops: usize,
    /// For each original graph, where the piece starts in it.
    starts: BTreeMap<String, BTreeSet<usize>>,
}

/// Why places do not fit together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcesError {
    /// No place at all.
    Nowhere,
    /// A range that ends before it starts, or beyond what any graph has.
    NotARange { original: String, start: usize, end: usize },
    /// Two places of one piece differ in length.
    LengthsDiffer { original: String, ops: usize, expected: usize },
    /// A range reaches beyond the piece it is cut from.
    OutsidePiece { range: Range<usize>, ops: usize },
}

impl fmt::Display for SourcesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nowhere => f.write_str("a piece without any source range"),
            Self::NotARange { original, start, end } => {
                write!(f, "[{start}, {end}] is not a range of ops of `{original}`")
            }
            Self::LengthsDiffer { original, ops, expected } => write!(
                f,
                "a range of `{original}` has {ops} ops, another range of the same piece has {expected}"
            ),
            Self::OutsidePiece { range, ops } => write!(
                f,
                "range {}..{} does not lie inside the piece of {ops} ops",
                range.start, range.end
            ),
        }
    }
}

impl std::error::Error for SourcesError {}

impl Sources {
    /// A piece found in one place.
    pub fn one(original: impl Into<String>, range: Range<usize>) -> Self {
        let starts = BTreeMap::from([(original.into(), BTreeSet::from([range.start]))]);
        Self { ops: range.len(), starts }
    }

    /// The places as `subgraph_sources.json` lists them: original graphs and `[start, end)` ranges.
    pub fn from_ranges(listed: &[(String, Vec<(usize, usize)>)]) -> Result<Self, SourcesError> {
        let mut sources: Option<Self> = None;
        for (original, ranges) in listed {
            for &(start, end) in ranges {
                if start > end || end > MAX_OPS {
                    let original = original.clone();
                    return Err(SourcesError::NotARange { original, start, end });
                }
                let place = Self::one(original.clone(), start..end);
                match &mut sources {
                    Some(sources) => sources.merge(&place)?,
                    None => sources = Some(place),
                }
            }
        }
        sources.ok_or(SourcesError::Nowhere)
    }

    /// Ops in the piece.
    pub fn ops(&self) -> usize {
        self.ops
    }

    /// All places, by original graph and start.
    pub fn places(&self) -> impl Iterator<Item = (&str, Range<usize>)> {
        self.starts.iter().flat_map(|(original, starts)| {
            starts.iter().map(|&start| (original.as_str(), start..start + self.ops))
        })
    }

    /// Adds the places of a duplicate.
    pub fn merge(&mut self, duplicate: &Sources) -> Result<(), SourcesError> {
        if duplicate.ops != self.ops {
            let original = duplicate.starts.keys().next().cloned().unwrap_or_default();
            return Err(SourcesError::LengthsDiffer {
                original,
                ops: duplicate.ops,
                expected: self.ops,
            });
        }
        for (original, starts) in &duplicate.starts {
            self.starts.entry(original.clone()).or_default().extend(starts);
        }
        Ok(())
    }

    /// The places of a piece cut out of this one.
    pub fn cut(&self, range: Range<usize>) -> Result<Self, SourcesError> {
        if range.start > range.end || range.end > self.ops {
            return Err(SourcesError::OutsidePiece { range, ops: self.ops });
        }
        let moved = |starts: &BTreeSet<usize>| starts.iter().map(|s| s + range.start).collect();
        let starts = self.starts.iter().map(|(name, starts)| (name.clone(), moved(starts)));
        Ok(Self { ops: range.len(), starts: starts.collect() })
    }

    /// The text of `subgraph_sources.json`.
    pub fn to_json(&self) -> String {
        format!("{:#}", serde_json::json!(self))
    }
}

impl Serialize for Sources {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ranges = |starts: &BTreeSet<usize>| -> Vec<[usize; 2]> {
            starts.iter().map(|&start| [start, start + self.ops]).collect()
        };
        serializer.collect_map(self.starts.iter().map(|(name, starts)| (name, ranges(starts))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(listed: &[(&str, &[(usize, usize)])]) -> Result<Sources, SourcesError> {
        let owned: Vec<_> =
            listed.iter().map(|(name, ranges)| ((*name).to_string(), ranges.to_vec())).collect();
        Sources::from_ranges(&owned)
    }

    #[test]
    fn a_piece_of_a_piece_is_found_in_every_place_of_its_parent() {
        let parent = sources(&[("timm/a", &[(10, 20), (40, 50)]), ("timm/b", &[(0, 10)])]).unwrap();
        let child = sources(&[("timm/a", &[(12, 15), (42, 45)]), ("timm/b", &[(2, 5)])]).unwrap();
        assert_eq!(parent.cut(2..5).unwrap(), child);
        let outside = SourcesError::OutsidePiece { range: 8..11, ops: 10 };
        assert_eq!(parent.cut(8..11), Err(outside));
    }

    #[test]
    fn merging_a_duplicate_keeps_every_place_once() {
        let mut sources = Sources::one("timm/b", 3..5);
        sources.merge(&Sources::one("timm/a", 7..9)).unwrap();
        sources.merge(&Sources::one("timm/b", 1..3)).unwrap();
        sources.merge(&Sources::one("timm/b", 3..5)).unwrap();
        let places: Vec<_> = sources.places().collect();
        assert_eq!(places, [("timm/a", 7..9), ("timm/b", 1..3), ("timm/b", 3..5)]);
        assert!(sources.merge(&Sources::one("timm/c", 0..3)).is_err());
        let written: serde_json::Value = serde_json::from_str(&sources.to_json()).unwrap();
        assert_eq!(written, serde_json::json!({"timm/a": [[7, 9]], "timm/b": [[1, 3], [3, 5]]}));
    }

    #[test]
    fn contradictions_are_named() {
        let refusal =
            |listed: &[(&str, &[(usize, usize)])]| sources(listed).unwrap_err().to_string();
        assert_eq!(
            refusal(&[("m", &[(0, 4), (8, 11)])]),
            "a range of `m` has 3 ops, another range of the same piece has 4"
        );
        assert_eq!(refusal(&[("m", &[(4, 0)])]), "[4, 0] is not a range of ops of `m`");
        assert!(refusal(&[("m", &[(0, usize::MAX)])]).ends_with("not a range of ops of `m`"));
        assert_eq!(refusal(&[("m", &[])]), "a piece without any source range");
    }
}
