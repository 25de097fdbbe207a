//! Ranges found in pieces, brought back to the whole models.
//!
//! Fusible ranges are searched in typical pieces, each measured once however often it occurs, but are cut out of
//! the whole models (and of their shape variants). So the ranges of all pieces of a model are collected under that
//! model, each shifted by where its piece stands.

use super::sources::{Sources, SourcesError};
use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges found in one piece, counted in its own ops.
#[derive(Debug, Clone, Copy)]
pub struct PieceRanges<'a> {
    pub piece: &'a str,
    pub sources: &'a Sources,
    pub ranges: &'a [Range<usize>],
}

/// Which places of a piece receive its ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// The first place only: each piece is cut once.
    First,
    /// Every place: the same code with other shapes counts as another piece.
    Every,
}

/// What was found in one whole model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelRanges {
    /// Ascending by start, each once.
    pub ranges: Vec<Range<usize>>,
    /// The pieces the ranges come from, ascending.
    pub pieces: Vec<String>,
}

/// Collects ranges by original graph.
pub fn regroup<'a>(
    found: impl IntoIterator<Item = PieceRanges<'a>>,
    places: Places,
) -> Result<BTreeMap<String, ModelRanges>, SourcesError> {
    let mut models: BTreeMap<String, ModelRanges> = BTreeMap::new();
    let limit = match places {
        Places::First => 1,
        Places::Every => usize::MAX,
    };
    for PieceRanges { piece, sources, ranges: in_piece } in found {
        for range in in_piece {
            for (original, place) in sources.cut(range.clone())?.places().take(limit) {
                let model = models.entry(original.to_string()).or_default();
                model.ranges.push(place);
                model.pieces.push(piece.to_string());
            }
        }
    }
    for model in models.values_mut() {
        model.ranges.sort_unstable_by_key(|range| (range.start, range.end));
        model.ranges.dedup();
        model.pieces.sort_unstable();
        model.pieces.dedup();
    }
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn twice() -> Sources {
        let mut sources = Sources::one("timm/a", 10..20);
        sources.merge(&Sources::one("timm/a", 40..50)).unwrap();
        sources.merge(&Sources::one("timm/b", 0..10)).unwrap();
        sources
    }

    fn model(ranges: &[Range<usize>], pieces: &[&str]) -> ModelRanges {
        let pieces = pieces.iter().map(|piece| (*piece).to_string()).collect();
        ModelRanges { ranges: ranges.to_vec(), pieces }
    }

    #[test]
    fn ranges_gather_under_the_model_in_order() {
        let (late, early) = (twice(), Sources::one("timm/a", 0..8));
        let found = [
            PieceRanges { piece: "late", sources: &late, ranges: &[0..3, 5..9] },
            PieceRanges { piece: "early", sources: &early, ranges: &[2..6, 2..6] },
            PieceRanges { piece: "empty", sources: &early, ranges: &[] },
        ];
        let first = regroup(found, Places::First).unwrap();
        assert_eq!(first.len(), 1);
        assert_eq!(first["timm/a"], model(&[2..6, 10..13, 15..19], &["early", "late"]));

        let every = regroup(found, Places::Every).unwrap();
        assert_eq!(
            every["timm/a"],
            model(&[2..6, 10..13, 15..19, 40..43, 45..49], &["early", "late"])
        );
        assert_eq!(every["timm/b"], model(&[0..3, 5..9], &["late"]));
    }

    #[test]
    fn a_range_outside_its_piece_is_refused() {
        let sources = twice();
        let found = PieceRanges { piece: "p", sources: &sources, ranges: &[0..3, 9..12] };
        let refused = regroup([found], Places::Every);
        assert_eq!(refused, Err(SourcesError::OutsidePiece { range: 9..12, ops: 10 }));
    }
}
