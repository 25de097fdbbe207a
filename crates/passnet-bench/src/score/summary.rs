//! The plain numbers beside the curves: how many are right, how many are fast, how fast on average.

use super::{ScoredGraph, geometric_mean};
use crate::tolerance::BASELINE;
use serde::Serialize;
use std::collections::BTreeMap;

/// Rates at the baseline tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// How many were judged.
    pub graphs: usize,
    /// Right at the baseline.
    pub correct: usize,
    /// Share of graphs that are right.
    pub correctness_rate: f64,
    /// Share of graphs that are right and at least as fast as eager.
    pub fast_1: f64,
    /// Geometric mean speed-up of the right graphs.
    pub geometric_mean: Option<f64>,
}

impl Summary {
    /// `None` without graphs.
    pub fn of(scored: &[ScoredGraph]) -> Option<Self> {
        if scored.is_empty() {
            return None;
        }
        let right: Vec<f64> = scored.iter().filter_map(|o| o.speedup_at(BASELINE)).collect();
        Some(Summary {
            graphs: scored.len(),
            correct: right.len(),
            correctness_rate: right.len() as f64 / scored.len() as f64,
            fast_1: Self::fast(scored, 1.0),
            geometric_mean: geometric_mean(right),
        })
    }

    /// fast_p: the share of graphs that are right and at least `p` times as fast as eager. Eager itself has a
    /// fast_1 of 100 %, so equality counts.
    pub fn fast(scored: &[ScoredGraph], p: f64) -> f64 {
        if scored.is_empty() {
            return 0.0;
        }
        let fast = |o: &&ScoredGraph| o.speedup_at(BASELINE).is_some_and(|s| s >= p);
        scored.iter().filter(fast).count() as f64 / scored.len() as f64
    }
}

/// The share of samples (tasks) all of whose graphs are right; samples without graphs are not right.
pub fn sample_correctness_rate<'a>(
    samples: impl IntoIterator<Item = &'a [ScoredGraph]>,
) -> Option<f64> {
    let (mut right, mut all) = (0usize, 0usize);
    for sample in samples {
        all += 1;
        let every = sample.iter().all(|o| o.speedup_at(BASELINE).is_some());
        right += usize::from(every && !sample.is_empty());
    }
    (all > 0).then(|| right as f64 / all as f64)
}

/// Collects scored graphs under labels (dtype, category, operation), so that each group can be scored on its own. A graph
/// with several labels counts in several groups, and once in each.
pub fn by_label<L: Ord>(
    graphs: impl IntoIterator<Item = (ScoredGraph, impl IntoIterator<Item = L>)>,
) -> BTreeMap<L, Vec<ScoredGraph>> {
    let mut groups: BTreeMap<L, Vec<ScoredGraph>> = BTreeMap::new();
    for (scored, labels) in graphs {
        let labels: std::collections::BTreeSet<L> = labels.into_iter().collect();
        for label in labels {
            groups.entry(label).or_default().push(scored);
        }
    }
    groups
}
