//! Pieces for graphs in which no kernel pays: single nodes, views, operations without effect.

use super::{Finder, Group, attempt};
use crate::analysis::Piece;
use crate::analysis::piece::outputs_of;
use crate::graph_family::GraphFamily;
use passnet_graph::infer::Value;
use passnet_graph::ops::{Class, Op};
use passnet_graph::{Arg, Call, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Views of one tensor that one pass hands back, at most: each is a result to make.
const MOST_OF_A_TREE: usize = 32;
/// Trees that are offered, at most: what is simpler must have its turn.
const MOST_TREES: usize = 2;

/// Pieces of one node each, the least work first: what a pass can do where nothing is worth doing.
pub fn smallest(family: &GraphFamily, most: usize) -> Vec<Group> {
    let finder = Finder::new(family);
    let graph = family.graph();
    let elements = |id: NodeId| match family.members[0].types.value(id) {
        Value::Tensor(tensor) => tensor.elements(),
        _ => 0,
    };
    let cost = |id: NodeId, call: &Call| {
        // Its pattern would match all its like.
        let alike = graph.calls().filter(|(_, other)| other.target == call.target).count();
        let mut moved = elements(id);
        call.for_each_input(|input| moved += elements(input));
        (alike, moved)
    };
    let mut nodes: Vec<((usize, i64), NodeId)> = graph
        .calls()
        .filter(|(id, _)| finder.is_work[id.index()] || finder.is_free[id.index()])
        .map(|(id, call)| (cost(id, call), id))
        .collect();
    nodes.sort_unstable();
    let nothing_free = vec![false; graph.nodes().len()];
    let alone = |(_, id)| attempt(family, BTreeSet::from([id]), &nothing_free).ok();
    nodes.into_iter().filter_map(alone).take(most).collect()
}

/// A view that becomes a copy, the smallest there is: for a graph that computes nothing and whose views no wrapper can
/// hand back.
pub fn copied_view(family: &GraphFamily) -> Option<Group> {
    let mut finder = Finder::new(family);
    finder.copy_smallest();
    finder.groups.pop().flatten()
}

/// Patterns of views (trees, one after the other, or a list) and operations without effect, which eager gets for nothing: trees and
/// chains first, for which a pass is one call instead of several, then those that are easiest to hand back.
pub fn free_pieces(family: &GraphFamily, most: usize) -> Vec<(Vec<NodeId>, Piece)> {
    let finder = Finder::new(family);
    let graph = family.graph();
    let ease = |call: &Call| match call.op().map(|op| (op, op.class())) {
        // The only one that the engine may do together with its neighbours.
        Some((_, Class::Random)) => 2,
        Some((Op::GetItem, _)) => 1,
        _ => 0,
    };
    // A pass for a GPU takes no tensor of the host, not even one that is moved.
    let is_on_host = |id: &NodeId| {
        let mut found = family.is_on_host(*id);
        graph.call(*id).inspect(|call| call.for_each_input(|of| found |= family.is_on_host(of)));
        found
    };
    let alike = |call: &Call| graph.calls().filter(|(_, c)| c.target == call.target).count();
    let mut nodes: Vec<((i32, usize), NodeId)> = graph
        .calls()
        .filter(|(id, _)| finder.is_free[id.index()] && !is_on_host(id))
        .map(|(id, call)| ((ease(call), alike(call)), id))
        .collect();
    nodes.sort_unstable();
    let piece = |(_, id): ((i32, usize), NodeId)| {
        let mut members = BTreeSet::from([id]);
        match family.members[0].types.value(id) {
            Value::Tensor(_) => {}
            // A list comes with everything that is taken from it.
            Value::Sequence(_) => members.extend(&finder.users[id.index()]),
            _ => return None,
        }
        Some((vec![id], Piece::new(family, &members).ok()?))
    };
    let chain = |nodes: Vec<NodeId>| {
        let members = nodes.iter().copied().collect();
        Some((nodes, Piece::new(family, &members).ok()?))
    };
    let several = finder.free_trees().into_iter().chain(finder.free_chains());
    let several = several.filter(|nodes| !nodes.iter().any(is_on_host)).filter_map(chain);
    several.chain(nodes.into_iter().filter_map(piece)).take(most).collect()
}

impl Finder<'_> {
    /// All free nodes that look at one tensor, through each other and through lists; those that replace most calls first.
    fn free_trees(&self) -> Vec<Vec<NodeId>> {
        let graph = self.family.graph();
        let source = |id: NodeId| graph.call(id)?.args.first().and_then(Arg::as_node);
        let mut root_of: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let mut trees: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for (id, _) in graph.calls() {
            let of = source(id).filter(|_| self.is_free[id.index()]);
            let Some(of) = of else { continue };
            let root = root_of.get(&of).copied().or_else(|| self.is_tensor(of).then_some(of));
            if let Some(root) = root {
                root_of.insert(id, root);
                trees.entry(root).or_default().push(id);
            }
        }
        let mut trees: Vec<Vec<NodeId>> = trees.into_values().collect();
        trees.retain(|tree| (2..=MOST_OF_A_TREE).contains(&tree.len()));
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.len()));
        trees.truncate(MOST_TREES);
        trees
    }

    /// Free nodes each of which only the next one reads, the longest chain first.
    fn free_chains(&self) -> Vec<Vec<NodeId>> {
        let graph = self.family.graph();
        let is_tensor = |id: NodeId| self.is_tensor(id);
        let source = |id: NodeId| graph.call(id)?.args.first().and_then(Arg::as_node);
        // What is taken from a list comes with the list.
        let is_view = |id: NodeId| {
            self.is_free[id.index()] && is_tensor(id) && source(id).is_some_and(is_tensor)
        };
        let next = |id: NodeId| match self.users[id.index()][..] {
            [user] if is_view(user) && source(user) == Some(id) => {
                (outputs_of(graph, &BTreeSet::from([id, user])) == [user]).then_some(user)
            }
            _ => None,
        };
        let views = graph.calls().map(|(id, _)| id).filter(|id| is_view(*id));
        let heads = views.filter(|id| {
            !source(*id).is_some_and(|before| is_view(before) && next(before) == Some(*id))
        });
        let mut chains: Vec<Vec<NodeId>> =
            heads.map(|head| std::iter::successors(Some(head), |id| next(*id)).collect()).collect();
        chains.retain(|chain| chain.len() > 1);
        chains.sort_by_key(|chain| std::cmp::Reverse(chain.len()));
        chains
    }

    /// With nothing to compute, the smallest view becomes a copy: the least that a pass can do.
    fn copy_smallest(&mut self) {
        let elements = |id: &NodeId| match self.family.members[0].types.value(*id) {
            Value::Tensor(tensor) => tensor.elements(),
            _ => i64::MAX,
        };
        let mut views: Vec<NodeId> =
            self.graph().ids().filter(|id| self.is_free[id.index()]).collect();
        views.sort_by_key(|id| (elements(id), *id));
        let nothing_free = vec![false; self.is_free.len()];
        for id in views {
            // A list comes with everything that is taken from it.
            let mut members = BTreeSet::from([id]);
            if self.is_list(id) {
                members.extend(&self.users[id.index()]);
            }
            if let Ok(group) = attempt(self.family, members, &nothing_free) {
                return self.keep(group);
            }
        }
    }
}
