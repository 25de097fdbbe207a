//! Groups that one launch can serve: none needs another's result.

use super::{Group, check_convex, inputs_of};
use crate::analysis::Piece;
use crate::explain::moved_bytes;
use crate::graph_family::GraphFamily;
use passnet_graph::{Arg, NodeId};
use std::collections::BTreeSet;

/// Bytes from which on a launch of its own costs a kernel next to nothing, and sharing one may cost registers.
const LARGE: f64 = 16e6;
/// Groups that share a launch.
const MOST: usize = 6;

/// What is updated in place, other than inside a group: who touches it has to do so at the right time.
fn updated(family: &GraphFamily, groups: &[&Group]) -> BTreeSet<NodeId> {
    let mut updated = BTreeSet::new();
    for (id, call) in family.graph().calls() {
        let Ok(bound) = call.bind() else { continue };
        let Some(target) = bound.mutated().and_then(Arg::as_node) else { continue };
        let is_inside =
            |group: &&Group| group.members.contains(&id) && group.members.contains(&target);
        if !groups.iter().any(is_inside) {
            updated.insert(target);
        }
    }
    updated
}

/// Whether a group reads or makes memory that one of these nodes names.
fn touches(family: &GraphFamily, group: &Group, nodes: &BTreeSet<NodeId>) -> bool {
    let inputs = inputs_of(family.graph(), &group.members);
    let touched: Vec<NodeId> = inputs.into_iter().chain(group.members.iter().copied()).collect();
    family.members.iter().any(|member| {
        let tensor = |id: &NodeId| member.types.value(*id).as_tensor();
        nodes.iter().filter_map(tensor).any(|updated| {
            touched.iter().filter_map(tensor).any(|own| own.shares_memory_with(updated))
        })
    })
}

/// Groups that go together, by number, and the piece that all of them are; only sets of several.
pub fn together(family: &GraphFamily, groups: &[&Group]) -> Vec<(Vec<usize>, Piece)> {
    let updated = updated(family, groups);
    let mut sets: Vec<(Vec<usize>, BTreeSet<_>, Option<Piece>)> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let is_large = |member| moved_bytes(&group.piece, member) > LARGE;
        // What returns before its launch where a tensor is empty has no launch to share.
        let is_alone = group.body.is_idle_somewhere();
        if is_alone || (0..family.count()).any(is_large) || touches(family, group, &updated) {
            continue;
        }
        let joined = sets.iter_mut().any(|(numbers, members, piece)| {
            let union: BTreeSet<_> = members.union(&group.members).copied().collect();
            let reads = |a: &BTreeSet<_>, b: &BTreeSet<_>| {
                inputs_of(family.graph(), a).iter().any(|input| b.contains(input))
            };
            let fits = numbers.len() < MOST
                && !reads(members, &group.members)
                && !reads(&group.members, members)
                && check_convex(family.graph(), &union).is_ok();
            let Some(all) = fits.then(|| Piece::new(family, &union).ok()).flatten() else {
                return false;
            };
            numbers.push(number);
            *members = union;
            *piece = Some(all);
            true
        });
        if !joined {
            sets.push((vec![number], group.members.clone(), None));
        }
    }
    sets.into_iter().filter_map(|(numbers, _, piece)| Some((numbers, piece?))).collect()
}
