//! The best repeated window of a sequence.
//!
//! Sorting all suffixes by their first `window` symbols puts equal windows side by side. Runs of neighbours that
//! share at least `l` symbols form a tree of intervals (the suffix tree, cut off at depth `window`), and within one
//! interval the count is fixed, so its longest window scores best: one candidate per interval, fewer candidates
//! than symbols, no hashing and therefore no collisions.

use super::score;

/// A window that occurs more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Repeat {
    pub(super) length: usize,
    /// Where it starts, ascending; occurrences may overlap.
    pub(super) starts: Vec<u32>,
}

/// The window of 2 to `window` symbols with the best score; ties go to the shorter, then to the earlier.
///
/// Symbols must be small numbers (a table indexed by them is made); there are fewer than `u32::MAX` of them.
pub(super) fn best_repeat(symbols: &[u32], window: usize) -> Option<Repeat> {
    let order = sorted_by_prefix(symbols, window);
    let best = best_interval(symbols, &order, window)?;
    let mut starts = order[best.left..best.left + best.count].to_vec();
    starts.sort_unstable();
    Some(Repeat { length: best.length, starts })
}

/// Positions ordered by the `depth` symbols (at least) that follow them, by prefix doubling with counting sort.
fn sorted_by_prefix(symbols: &[u32], depth: usize) -> Vec<u32> {
    let n = symbols.len();
    let mut rank = symbols.to_vec();
    let mut classes = symbols.iter().max().map_or(0, |&m| m as usize + 1);
    let mut order = Vec::new();
    let mut scratch: Vec<u32> = (0..n as u32).collect();
    let mut starts = Vec::new();
    sort_by_rank(&scratch, &rank, classes, &mut starts, &mut order);

    let mut sorted_depth = 1;
    while sorted_depth < depth && sorted_depth < n {
        let step = sorted_depth as u32;
        // Ordered by the second half of the doubled prefix: it is empty for the last `step` positions, and `order`
        // already knows the rest.
        scratch.clear();
        scratch.extend(n as u32 - step..n as u32);
        scratch.extend(order.iter().filter(|&&p| p >= step).map(|&p| p - step));
        sort_by_rank(&scratch, &rank, classes, &mut starts, &mut order);
        classes = rerank(&order, sorted_depth, &mut rank, &mut scratch);
        sorted_depth *= 2;
        if classes == n {
            break;
        }
    }
    order
}

/// Stable counting sort of `positions` by rank, into `order`.
fn sort_by_rank(
    positions: &[u32],
    rank: &[u32],
    classes: usize,
    starts: &mut Vec<u32>,
    order: &mut Vec<u32>,
) {
    starts.clear();
    starts.resize(classes + 1, 0);
    for &r in rank {
        starts[r as usize + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    order.resize(positions.len(), 0);
    for &p in positions {
        let slot = &mut starts[rank[p as usize] as usize];
        order[*slot as usize] = p;
        *slot += 1;
    }
}

/// Numbers the classes of equal doubled prefixes; returns how many there are.
fn rerank(order: &[u32], step: usize, rank: &mut Vec<u32>, scratch: &mut Vec<u32>) -> usize {
    scratch.resize(rank.len(), 0);
    let key = |p: u32| (rank[p as usize], rank.get(p as usize + step));
    let mut class = 0;
    for (i, &p) in order.iter().enumerate() {
        if i > 0 && key(order[i - 1]) != key(p) {
            class += 1;
        }
        scratch[p as usize] = class;
    }
    std::mem::swap(rank, scratch);
    class as usize + 1
}

#[derive(Clone, Copy)]
struct Candidate {
    length: usize,
    count: usize,
    /// First occurrence.
    first: u32,
    /// Where its interval begins in the sorted order.
    left: usize,
}

impl Candidate {
    fn beats(&self, other: &Self) -> bool {
        let (mine, theirs) = (score(self.length, self.count), score(other.length, other.count));
        mine > theirs || (mine == theirs && (self.length, self.first) < (other.length, other.first))
    }
}

/// An interval of the sorted order that is still growing to the right.
struct OpenInterval {
    shared: usize,
    left: usize,
    first: u32,
}

fn best_interval(symbols: &[u32], order: &[u32], window: usize) -> Option<Candidate> {
    let mut best: Option<Candidate> = None;
    // Shared lengths strictly increase from bottom to top; the bottom, 0, is never closed.
    let mut open = vec![OpenInterval { shared: 0, left: 0, first: 0 }];
    for right in 1..=order.len() {
        let shared = match order.get(right) {
            Some(&next) => shared_prefix(symbols, order[right - 1], next, window),
            None => 0,
        };
        let mut left = right - 1;
        let mut first = order[right - 1];
        while let Some(top) = open.pop_if(|top| top.shared > shared) {
            left = top.left;
            first = first.min(top.first);
            let found = Candidate { length: top.shared, count: right - left, first, left };
            if found.length >= 2 && best.is_none_or(|best| found.beats(&best)) {
                best = Some(found);
            }
        }
        match open.last_mut() {
            Some(top) if top.shared == shared => top.first = top.first.min(first),
            _ => open.push(OpenInterval { shared, left, first }),
        }
    }
    best
}

fn shared_prefix(symbols: &[u32], a: u32, b: u32, limit: usize) -> usize {
    let (a, b) = (&symbols[a as usize..], &symbols[b as usize..]);
    a.iter().zip(b).take(limit).take_while(|(x, y)| x == y).count()
}
