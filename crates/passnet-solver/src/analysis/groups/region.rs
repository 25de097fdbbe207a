//! Regions under vmap, which one kernel computes as a whole: hiding and restoring a dimension is arithmetic on indices.

use crate::graph_family::GraphFamily;
use passnet_graph::ops::Op;
use passnet_graph::{Call, NodeId};
use std::collections::BTreeSet;

/// Whether a call restores the last hidden dimension of a value.
pub(super) fn restores_all(family: &GraphFamily, id: NodeId) -> bool {
    family.graph().call(id).and_then(Call::op) == Some(Op::RemoveBatchDim) && !family.is_mapped(id)
}

/// A node with all that has hidden dimensions before it, and what hid them.
pub(super) fn of(family: &GraphFamily, id: NodeId) -> BTreeSet<NodeId> {
    let mut members = BTreeSet::from([id]);
    let mut todo = vec![id];
    while let Some(node) = todo.pop() {
        let Some(call) = family.graph().call(node) else { continue };
        call.for_each_input(|input| {
            if family.is_mapped(input) && members.insert(input) {
                todo.push(input);
            }
        });
    }
    members
}
