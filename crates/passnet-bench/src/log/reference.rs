//! What the reference makes of a graph's part of a log: substring tests, an order of decisions, a table lookup.

use super::block::GraphBlock;
use crate::score::ScoredGraph;
use crate::tolerance::{FLOAT_TYPES, Ladder, Tolerance};
use crate::verdict::ReferenceStatus;

impl GraphBlock {
    pub(crate) fn reference_status(&self) -> ReferenceStatus {
        self.flags.status()
    }

    /// The key of the check that decides about an output of this type at a level.
    pub(super) fn deciding_key(type_name: &str, t: i32) -> String {
        let dtype = FLOAT_TYPES.into_iter().find(|d| d.name() == type_name);
        match dtype.and_then(|d| Tolerance::of(d, t)) {
            Some(tolerance) => tolerance.log_key(),
            None => "equal".into(),
        }
    }
}

/// Level by level: every output must have a 1 under the key that eager's type selects. A missing key is a failure,
/// and so is a graph without outputs.
pub fn reference_ladder(block: &GraphBlock) -> Ladder {
    let Some(types) = &block.eager_types else { return Ladder::NONE };
    let right = |t: i32| {
        types.value.iter().enumerate().all(|(output, name)| {
            let reading = block.correctness.get(&GraphBlock::deciding_key(name, t));
            reading.and_then(|r| r.value.get(output)).is_some_and(|v| v.0 == 1.0)
        })
    };
    if types.value.is_empty() { Ladder::NONE } else { Ladder::from_fn(right) }
}

/// What the graph is worth to the reference. It believes the last speed-up printed.
pub fn reference_scored(block: &GraphBlock) -> ScoredGraph {
    let speedup = block.speedup.as_ref().map(|r| r.value);
    ScoredGraph::of_status(block.reference_status(), reference_ladder(block), speedup)
}
