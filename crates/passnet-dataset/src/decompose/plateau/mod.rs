//! Fusible pieces: runs of ops that a compiler turns into no more kernels than the first of them needs.
//!
//! Compile every prefix of a graph and count its kernel launches. Where the count stays level from one prefix to
//! the next, the op just added was fused into what came before; where it rises, a new kernel began. A fusible piece
//! is a *plateau* of that curve: its first op launches something, the others add nothing. Counts may come from a
//! recording ([`KernelCounts`], see [`recorded`]) or from a model of a compiler; this module does not mind which.

pub mod recorded;
#[cfg(test)]
mod tests;

pub use recorded::KernelCounts;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The kernel count of one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixCount {
    /// Length of the prefix, at least 1.
    pub ops: usize,
    /// Kernels that run it.
    pub kernels: u64,
}

/// A prefix with the level it belongs to.
struct Levelled {
    count: PrefixCount,
    level: u64,
}

/// The fusible ranges that a curve of kernel counts shows, shifted by `offset` (where the graph begins in a larger
/// one); ascending and disjoint.
///
/// Prefixes must be ascending by length; some may be missing (a prefix that did not compile). No range is made
/// across a missing one.
fn fusible_ranges(prefixes: &[PrefixCount], offset: usize) -> Vec<Range<usize>> {
    let levelled = level(prefixes);
    // A boundary between levels where the count does not rise is no boundary: the op added no kernel. What is left
    // after joining begins with the highest count of its piece and ends with the lowest, so every following op
    // added nothing or saved something.
    let pieces = levelled.chunk_by(|a, b| a.level == b.level || a.count.kernels >= b.count.kernels);
    pieces
        .filter_map(|piece| {
            let (first, last) = (piece.first()?.count.ops, piece.last()?.count.ops);
            let whole = piece.len() >= 2 && last - first + 1 == piece.len();
            whole.then(|| first - 1 + offset..last + offset)
        })
        .collect()
}

/// Gives each prefix the lowest count that was seen both at or before it and at or after it.
///
/// A count that rises and later comes back to an earlier value was a kernel that only the cut made necessary (an
/// intermediate that had to be written because the prefix ended there), so everything between belongs to the
/// earlier level.
fn level(prefixes: &[PrefixCount]) -> Vec<Levelled> {
    let mut last_seen = BTreeMap::new();
    for (i, prefix) in prefixes.iter().enumerate() {
        last_seen.insert(prefix.kernels, i);
    }
    // Counts seen so far that will be seen again, or are seen now.
    let mut alive = BTreeSet::new();
    let mut levelled = Vec::with_capacity(prefixes.len());
    for (i, &count) in prefixes.iter().enumerate() {
        alive.insert(count.kernels);
        let level = alive.first().copied().unwrap_or(count.kernels);
        levelled.push(Levelled { count, level });
        if last_seen.get(&count.kernels) == Some(&i) {
            alive.remove(&count.kernels);
        }
    }
    levelled
}
