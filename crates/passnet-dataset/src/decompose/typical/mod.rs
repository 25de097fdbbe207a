//! Typical pieces: op sequences that many graphs share.
//!
//! All graphs are read as one long text of op names. The window that saves most, score `(length - 1) * (count - 1)`,
//! is replaced by a new symbol wherever it occurs; this is done up to [`TypicalOptions::folds`] times, so that
//! symbols nest and a grammar appears (`grammar`). Every graph is then a tree of op ranges, of which the largest
//! that fit between `min_ops` and `max_ops` are the answer (`ranges`).
//!
//! Two windows of equal score are told apart by length (the shorter wins) and then by first occurrence (the earlier
//! wins), so the answer depends on nothing but the list of graphs and its order. The cost is
//! `O(folds * ops * log window)` time and a few words per op (`repeat`).

mod grammar;
mod ranges;
mod repeat;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

/// How far to look and what to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypicalOptions {
    /// Longest window that one fold replaces.
    pub window: usize,
    /// How many folds at most.
    pub folds: usize,
    /// Shortest range to emit; a single op is never emitted.
    pub min_ops: usize,
    /// Ranges of this length and longer are cut further.
    pub max_ops: usize,
}

impl Default for TypicalOptions {
    fn default() -> Self {
        Self { window: 64, folds: 17, min_ops: 4, max_ops: 64 }
    }
}

/// What the search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypicalPieces {
    /// For each graph, disjoint ranges of its ops in ascending order.
    pub ranges: Vec<Vec<Range<usize>>>,
    /// The folds made, in order, so that a report can say what repeats.
    pub folds: Vec<Fold>,
}

/// One fold: a window and how often it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    /// Length of the best window, counted in symbols (an earlier fold's symbol counts as one).
    pub length: usize,
    /// Occurrences of the best window, overlapping ones included.
    pub count: usize,
    /// Length really replaced: shorter than `length` when fewer than two occurrences were disjoint.
    pub replaced_length: usize,
    /// Disjoint occurrences replaced.
    pub replaced_count: usize,
}

impl Fold {
    /// What the fold was chosen for.
    pub fn score(&self) -> u64 {
        score(self.length, self.count)
    }
}

fn score(length: usize, count: usize) -> u64 {
    (length as u64).saturating_sub(1).saturating_mul((count as u64).saturating_sub(1))
}

/// The list of graphs has more ops than 32-bit positions can number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyOps {
    /// How many there are.
    pub symbols: usize,
}

impl fmt::Display for TooManyOps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ops and graph boundaries in one search, more than the limit of {}",
            self.symbols,
            grammar::MAX_SYMBOLS
        )
    }
}

impl std::error::Error for TooManyOps {}

/// Finds the typical pieces of a list of graphs, each given as its op names in order, one number per distinct name.
pub fn typical_pieces(
    graphs: &[Vec<u32>],
    options: &TypicalOptions,
) -> Result<TypicalPieces, TooManyOps> {
    let (grammar, folds) = grammar::fold_graphs(graphs, options.window, options.folds)?;
    let ranges = ranges::emit(&grammar, options.min_ops, options.max_ops);
    Ok(TypicalPieces { ranges, folds })
}
