//! Where a piece comes from: the op ranges of whole models that it was cut out of (`subgraph_sources.json`).
//!
//! A piece that was found in many models keeps all those places. All of them have the same number of ops, since
//! they are the same piece, so a place is a model and a start. Cutting a piece out of a piece adds its start to
//! every place of the parent.

use crate::json;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Source;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

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
    /// Two places of one piece differ in length.
    LengthsDiffer { original: String, ops: usize, expected: usize },
    /// A range reaches beyond the piece it is cut from.
    OutsidePiece { range: Range<usize>, ops: usize },
}

impl fmt::Display for SourcesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
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

    /// Reads `subgraph_sources.json`: original graph to list of `[start, end)` ranges.
    pub fn parse(source: &Source) -> Result<Self, Diagnostic> {
        json::parse(source)
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

impl<'de> Deserialize<'de> for Sources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(SourcesVisitor)
    }
}

/// Checks each entry as it is read, so that an error is located at it.
struct SourcesVisitor;

impl<'de> Visitor<'de> for SourcesVisitor {
    type Value = Sources;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of original graphs and their `[start, end]` ranges")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Sources, A::Error> {
        let mut sources: Option<Sources> = None;
        while let Some(original) = map.next_key::<String>()? {
            for [start, end] in map.next_value::<Vec<[u32; 2]>>()? {
                if start > end {
                    let message = format!("range [{start}, {end}] ends before it starts");
                    return Err(A::Error::custom(message));
                }
                let place = Sources::one(original.clone(), start as usize..end as usize);
                match &mut sources {
                    Some(sources) => sources.merge(&place).map_err(A::Error::custom)?,
                    None => sources = Some(place),
                }
            }
        }
        sources.ok_or_else(|| A::Error::custom("no range at all"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Sources, String> {
        Sources::parse(&Source::new("subgraph_sources.json", text)).map_err(|e| e.to_string())
    }

    #[test]
    fn a_piece_of_a_piece_is_found_in_every_place_of_its_parent() {
        let parent = parse(r#"{"timm/a": [[10, 20], [40, 50]], "timm/b": [[0, 10]]}"#).unwrap();
        let child = parent.cut(2..5).unwrap();
        let expected = parse(r#"{"timm/a": [[12, 15], [42, 45]], "timm/b": [[2, 5]]}"#).unwrap();
        assert_eq!(child, expected);
        assert_eq!(parent.cut(8..11), Err(SourcesError::OutsidePiece { range: 8..11, ops: 10 }));
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
        assert_eq!(parse(&sources.to_json()).unwrap(), sources);
    }

    #[test]
    fn contradictions_are_located() {
        assert_eq!(
            parse("{\"m\": [[0, 4],\n [8, 11]]}").unwrap_err(),
            "subgraph_sources.json:2:10: a range of `m` has 3 ops, another range of the same piece has 4"
        );
        assert_eq!(
            parse("{\"m\": [[4, 0]]}").unwrap_err(),
            "subgraph_sources.json:1:15: range [4, 0] ends before it starts"
        );
        assert_eq!(parse("{}").unwrap_err(), "subgraph_sources.json:1:2: no range at all");
        assert!(parse("{\"m\": [[1]]}").unwrap_err().contains(":1:10: invalid length 1"));
    }
}
