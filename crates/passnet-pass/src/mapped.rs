//! vmap in a graph: which values have dimensions that are hidden from the operations on them.
//!
//! Inside a region that increments and decrements a nesting level, `_add_batch_dim` hides a dimension and `_remove_batch_dim`
//! restores it. Whoever takes out both, and all between, takes out plain arithmetic; whoever takes a part would hand a wrapper
//! tensors whose shapes are not what they seem.

use passnet_graph::ops::Op;
use passnet_graph::{Call, Graph, NodeId};
use std::collections::BTreeSet;

/// Whether a call hides or restores a dimension.
pub(crate) fn maps(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.call(id).and_then(Call::op), Some(Op::AddBatchDim | Op::RemoveBatchDim))
}

/// Nobody nests deeper. A graph that does may do so to cost memory, and is matched nowhere under vmap.
const MOST_LEVELS: usize = 32;

/// For every value the nesting levels at which dimensions of it may be hidden.
pub(crate) struct HiddenLevels(Vec<Levels>);

#[derive(Clone, Default)]
struct Levels {
    known: BTreeSet<i64>,
    /// Whether some level is no number in the text, or there are too many.
    is_open: bool,
}

impl HiddenLevels {
    pub(crate) fn of(graph: &Graph) -> HiddenLevels {
        let mut all = vec![Levels::default(); graph.nodes().len()];
        for (id, call) in graph.calls() {
            let mut own = Levels::default();
            call.for_each_input(|input| {
                own.known.extend(&all[input.index()].known);
                own.is_open |= all[input.index()].is_open;
            });
            if maps(graph, id) {
                let bound = call.bind().ok();
                match bound.as_ref().and_then(|bound| bound.arg("level").as_int()) {
                    Some(level) if call.op() == Some(Op::AddBatchDim) => {
                        own.known.insert(level);
                    }
                    Some(level) => {
                        own.known.remove(&level);
                    }
                    None => own.is_open = true,
                }
            }
            if own.known.len() > MOST_LEVELS {
                own = Levels { is_open: true, ..Levels::default() };
            }
            all[id.index()] = own;
        }
        HiddenLevels(all)
    }

    pub(crate) fn has_any(&self, id: NodeId) -> bool {
        let levels = &self.0[id.index()];
        levels.is_open || !levels.known.is_empty()
    }
}
