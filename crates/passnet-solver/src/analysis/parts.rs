//! Parts of a group, for where one kernel for all of it does not pay.

use super::groups::{Group, attempt, free_nodes};
use super::piece::outputs_of;
use crate::graph_family::GraphFamily;
use passnet_graph::NodeId;
use passnet_graph::ops::Class;
use std::collections::BTreeSet;

/// Most parts of one group.
const MOST_PARTS: usize = 10;

/// What is left of a group by cuts between arithmetic and everything else, and around everything else: neighbours
/// together first, then each alone; never the whole.
pub fn parts(family: &GraphFamily, group: &Group) -> Vec<Group> {
    let is_free = free_nodes(family);
    let stretches = stretches(family, &group.members, &is_free);
    let count = stretches.len();
    let runs = (1..count).rev().flat_map(|length| (0..=count - length).map(move |at| (at, length)));
    let part = |(at, length): (usize, usize)| {
        let mut members: BTreeSet<NodeId> =
            stretches[at..at + length].iter().flatten().copied().collect();
        // A view at the end would become a copy.
        while let Some(view) =
            outputs_of(family.graph(), &members).into_iter().find(|id| is_free[id.index()])
        {
            members.remove(&view);
        }
        attempt(family, members, &is_free).ok()
    };
    runs.filter_map(part).take(MOST_PARTS).collect()
}

/// Arithmetic side by side; every other operation by itself.
fn stretches(
    family: &GraphFamily,
    members: &BTreeSet<NodeId>,
    is_free: &[bool],
) -> Vec<Vec<NodeId>> {
    let mut stretches: Vec<Vec<NodeId>> = Vec::new();
    let mut grows = false;
    for id in members {
        let class = family.graph().call(*id).and_then(|call| call.bind().ok()).map(|b| b.class());
        let arithmetic = class == Some(Class::Pointwise);
        match stretches.last_mut() {
            Some(last) if is_free[id.index()] || (grows && arithmetic) => last.push(*id),
            _ => {
                stretches.push(vec![*id]);
                grows = arithmetic;
            }
        }
    }
    stretches
}
