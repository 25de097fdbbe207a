//! Which nodes go together: every node joins the group of what it reads, as long as one kernel can compute both.
//!
//! Views cost nothing in eager, so they never start a group; those between members, and those that only a group reads,
//! become part of it and change its indices.

mod attention;
mod free;
mod late;
mod made;
mod place;
mod places;
mod region;
mod together;

pub use free::{copied_view, free_pieces, smallest};
pub use together::{Together, together};

use super::piece::{Param, order_in_memory, outputs_of};
use super::{Body, Piece, Refusal, lower, refuse};
use crate::graph_family::GraphFamily;
use passnet_graph::infer::Value;
use passnet_graph::ops::{Class, Op};
use passnet_graph::{Arg, Call, Graph, NodeId};
use std::collections::BTreeSet;

/// Nodes that one kernel computes.
#[derive(Debug)]
pub struct Group {
    /// The nodes, in the graph that was grouped.
    pub members: BTreeSet<NodeId>,
    /// The same nodes as a graph of their own.
    pub piece: Piece,
    pub(crate) body: Body,
}

/// A node that stays in the graph, and why.
#[derive(Debug, Clone)]
pub struct Left {
    /// Which one.
    pub node: NodeId,
    /// What it computes.
    pub operation: String,
    /// Why no kernel computes it.
    pub reason: String,
}

/// Groups the nodes of a family's graph, in the order of their last nodes; none has more than `most` members, if that is given.
pub fn groups(family: &GraphFamily, most: Option<usize>) -> (Vec<Group>, Vec<Left>) {
    let mut finder = Finder { most, ..Finder::new(family) };
    let ids: Vec<NodeId> = family.graph().calls().map(|(id, _)| id).collect();
    // What is made of nothing comes with whoever reads it, and gets a kernel of its own only where nobody took it.
    for is_made in [false, true] {
        for id in &ids {
            let index = id.index();
            let is_placed = finder.group_of[index].is_some();
            if finder.is_work[index] && finder.is_made[index] == is_made && !is_placed {
                finder.place(*id);
            }
        }
        for index in 0..finder.groups.len() {
            finder.absorb_views(index);
        }
        if !is_made {
            finder.join_late();
        }
    }
    finder.leave_what_lies_like_attention();
    let mut groups: Vec<Group> = finder.groups.into_iter().flatten().collect();
    groups.sort_by_key(|group| group.members.last().copied());
    (groups, finder.left)
}

struct Finder<'f> {
    family: &'f GraphFamily,
    users: Vec<Vec<NodeId>>,
    /// Whether a node computes or copies something that a kernel might.
    is_work: Vec<bool>,
    /// Whether a node is a view or an alias, free in eager.
    is_free: Vec<bool>,
    /// Whether a node is made of numbers, places and shapes alone, so that a kernel can compute it wherever it reads it.
    is_made: Vec<bool>,
    /// Members of one group at most.
    most: Option<usize>,
    group_of: Vec<Option<usize>>,
    groups: Vec<Option<Group>>,
    left: Vec<Left>,
}

impl<'f> Finder<'f> {
    fn new(family: &'f GraphFamily) -> Self {
        let graph = family.graph();
        let count = graph.nodes().len();
        let mut is_free = vec![false; count];
        let mut is_work = vec![false; count];
        let mut is_made = vec![false; count];
        let decides_places = places::decide_places(family);
        for (id, call) in graph.calls() {
            let Ok(bound) = call.bind() else { continue };
            let is_hiding = matches!(bound.op, Op::AddBatchDim | Op::RemoveBatchDim);
            let is_view = !is_hiding && is_alias(family, id) && !family.is_sent(id);
            is_free[id.index()] = is_view || bound.op == Op::Item;
            // What has hidden dimensions is taken by whoever restores the last of them.
            is_work[id.index()] = !is_free[id.index()]
                && !family.is_mapped(id)
                && !family.shows_layout_of_norm(id)
                && !attention::shows_attention(graph, id)
                && (!decides_places[id.index()] || places::is_exact(&bound))
                && (is_pair(family, id)
                    || matches!(family.members[0].types.value(id), Value::Tensor(_)))
                && match bound.class() {
                    Class::Pointwise
                    | Class::View
                    | Class::Movement
                    | Class::Reduction
                    | Class::Scan
                    | Class::Normalisation
                    | Class::Pooling
                    | Class::Resampling => true,
                    Class::Contraction => family.tries_product(id),
                    Class::Transform => matches!(bound.op, Op::Sort | Op::Argsort),
                    // Out of a pair it is taken by whoever computes the pair.
                    Class::Indexing if bound.op == Op::GetItem => !call
                        .args
                        .first()
                        .and_then(Arg::as_node)
                        .is_some_and(|of| is_pair(family, of)),
                    Class::Indexing => {
                        let op = bound.op;
                        matches!(
                            op,
                            Op::Embedding
                                | Op::Gather
                                | Op::IndexSelect
                                | Op::IndexTensors
                                | Op::OneHot
                                | Op::SetItem
                        )
                    }
                    // Numbers of a list are copied from the host, which a GPU waits for.
                    Class::Creation => matches!(bound.op, Op::Tensor | Op::AsTensor),
                    Class::Effect => region::restores_all(family, id),
                    _ => false,
                };
            is_made[id.index()] = made::is_made(call, &bound, &is_made);
        }
        Finder {
            family,
            users: graph.users(),
            is_work,
            is_free,
            is_made,
            most: None,
            group_of: vec![None; count],
            groups: Vec::new(),
            left: Vec::new(),
        }
    }

    fn graph(&self) -> &'f Graph {
        self.family.graph()
    }

    /// A group of these members, unless they are too many.
    fn attempt(&self, members: BTreeSet<NodeId>) -> Result<Group, Refusal> {
        self.attempt_by(members, lower)
    }

    fn attempt_by(
        &self,
        members: BTreeSet<NodeId>,
        lower: fn(&Piece) -> Result<Body, Refusal>,
    ) -> Result<Group, Refusal> {
        if self.most.is_some_and(|most| members.len() > most) {
            refuse!("a pass may have fewer operations");
        }
        if let Some(part) = members.iter().find(|id| self.updates_part(**id, &members)) {
            refuse!("`{}` updates a part of what a kernel computes", self.graph().node(*part).name);
        }
        let piece = checked_piece(self.family, &members, &self.is_free)?;
        let body = lower(&piece)?;
        Ok(Group { members, piece, body })
    }

    /// Whether a member updates a view of what another group computes: with the assignment that follows it may be one kernel.
    fn updates_part(&self, id: NodeId, members: &BTreeSet<NodeId>) -> bool {
        let Some(target) = updated(self.graph(), id) else { return false };
        let root = viewed(self.graph(), target, &self.is_free);
        self.is_free[target.index()]
            && self.group_of[root.index()].is_some()
            && !members.contains(&root)
    }

    fn keep(&mut self, group: Group) {
        let index = self.groups.len();
        for id in &group.members {
            self.group_of[id.index()] = Some(index);
        }
        self.groups.push(Some(group));
    }

    /// A group may begin behind attention, as long as it ends in an order of its own; else what does not lie so remains of it.
    fn leave_what_lies_like_attention(&mut self) {
        let graph = self.graph();
        let lies = attention::lying_like_attention(graph);
        for index in 0..self.groups.len() {
            let Some(group) = &self.groups[index] else { continue };
            let Err(reason) = attention::check_outputs(graph, &group.members) else { continue };
            let (lying, others): (BTreeSet<NodeId>, BTreeSet<NodeId>) =
                group.members.iter().partition(|id| lies[id.index()]);
            let rest = if others.is_empty() { None } else { self.attempt(others).ok() };
            let left_over = if rest.is_some() { lying } else { group.members.clone() };
            self.left.extend(left_over.into_iter().map(|id| left(graph, id, &reason)));
            self.groups[index] = rest;
        }
    }

    /// Takes in the views that nobody but the group reads.
    fn absorb_views(&mut self, index: usize) {
        let Some(mut group) = self.groups[index].take() else { return };
        loop {
            let mut grown = None;
            let inputs = inputs_of(self.graph(), &group.members);
            let all_made = std::iter::once(self.made_for(&inputs, &group.members));
            let single = inputs.iter().rev().map(|input| self.absorbable(*input, &group.members));
            for taken in all_made.chain(single).flatten() {
                let mut members = group.members.clone();
                members.extend(taken);
                if let Ok(larger) = self.attempt(members) {
                    grown = Some(larger);
                    break;
                }
            }
            match grown {
                Some(larger) => group = larger,
                None => break,
            }
        }
        for id in &group.members {
            self.group_of[id.index()] = Some(index);
        }
        self.groups[index] = Some(group);
    }

    /// A free input with all that must come with it, if only the members use it.
    fn absorbable(&self, input: NodeId, members: &BTreeSet<NodeId>) -> Option<BTreeSet<NodeId>> {
        if self.is_made[input.index()] {
            return self.made_for(&[input], members);
        }
        if !self.is_free[input.index()] || self.group_of[input.index()].is_some() {
            return None;
        }
        let mut taken = BTreeSet::from([input]);
        // A tensor out of a list comes with the list and everything taken from it.
        let call = self.graph().call(input)?;
        if let Some(list) = call.args.first().and_then(Arg::as_node)
            && self.is_list(list)
        {
            taken.insert(list);
            taken.extend(&self.users[list.index()]);
        }
        self.is_owned(&taken, members).then_some(taken)
    }
}

fn left(graph: &Graph, node: NodeId, reason: &Refusal) -> Left {
    let operation = graph.call(node).map_or(String::new(), |call| call.target.to_string());
    Left { node, operation, reason: reason.0.clone() }
}

/// Whether a node is an alias of its first argument, or a list of such.
fn is_alias(family: &GraphFamily, id: NodeId) -> bool {
    let Some(call) = family.graph().call(id) else { return false };
    let Ok(bound) = call.bind() else { return false };
    if bound.mutated().is_some() {
        return false;
    }
    let source = call.args.first().and_then(Arg::as_node);
    let mut shared = family.recorded().iter().map(|member| {
        match (member.types.value(id), source.map(|source| member.types.value(source))) {
            (Value::Tensor(result), Some(Value::Tensor(source))) => {
                result.shares_memory_with(source)
            }
            (Value::Sequence(_), Some(Value::Tensor(_))) => bound.class() == Class::View,
            (Value::Tensor(_), Some(Value::Sequence(_))) => {
                bound.op == Op::GetItem && !source.is_some_and(|list| is_pair(family, list))
            }
            _ => false,
        }
    });
    let unchanged = matches!(
        bound.op,
        Op::Dropout | Op::Dropout1d | Op::Dropout2d | Op::Dropout3d | Op::AlphaDropout
    ) && !bound.is_random();
    unchanged || shared.all(|shared| shared)
}

/// Whether a node computes values and their places, as `max` and `sort` do along a dimension.
fn is_pair(family: &GraphFamily, id: NodeId) -> bool {
    let op = family.graph().call(id).and_then(Call::op);
    matches!(op, Some(Op::Max | Op::Min | Op::Sort))
        && matches!(family.members[0].types.value(id), Value::Sequence(_))
}

fn is_returned(graph: &Graph, id: NodeId) -> bool {
    let mut returned = false;
    for output in &graph.outputs {
        output.for_each_node(&mut |node| returned |= node == id);
    }
    returned
}

fn inputs_of(graph: &Graph, members: &BTreeSet<NodeId>) -> Vec<NodeId> {
    let mut inputs = BTreeSet::new();
    for id in members {
        if let Some(call) = graph.call(*id) {
            call.for_each_input(|input| {
                if !members.contains(&input) {
                    inputs.insert(input);
                }
            });
        }
    }
    inputs.into_iter().collect()
}

/// Whether a node is a view or an alias, free in eager, for every node.
pub(super) fn free_nodes(family: &GraphFamily) -> Vec<bool> {
    Finder::new(family).is_free
}

/// A group of these members, if they can be taken out together and one kernel computes them.
pub(super) fn attempt(
    family: &GraphFamily,
    members: BTreeSet<NodeId>,
    is_free: &[bool],
) -> Result<Group, Refusal> {
    attention::check_outputs(family.graph(), &members)?;
    let piece = checked_piece(family, &members, is_free)?;
    let body = lower(&piece)?;
    Ok(Group { members, piece, body })
}

/// The piece of these members, if they can be taken out together.
fn checked_piece(
    family: &GraphFamily,
    members: &BTreeSet<NodeId>,
    is_free: &[bool],
) -> Result<Piece, Refusal> {
    let graph = family.graph();
    check_convex(graph, members)?;
    let outputs = outputs_of(graph, members);
    for &output in outputs.iter().filter(|output| is_free[output.index()]) {
        let root = viewed(graph, output, is_free);
        let shared = |other: &NodeId| *other != output && viewed(graph, *other, is_free) == root;
        // Where only the view is wanted, and it lies as the kernel would write it, nothing is copied.
        let is_copy = !members.contains(&root) || outputs.iter().any(shared);
        if is_copy || !is_dense(family, output) {
            refuse!("the view `{}` would become a copy", graph.node(output).name);
        }
    }
    check_updates(graph, members, is_free)?;
    for id in inputs_of(graph, members).into_iter().chain(outputs) {
        if family.is_on_host(id) {
            refuse!("`{}` is made without a device, so on the CPU", graph.node(id).name);
        }
        if family.is_mapped(id) {
            refuse!("`{}` has dimensions that are hidden under vmap", graph.node(id).name);
        }
    }
    let piece = Piece::new(family, members)?;
    if !piece.params.iter().any(|param| matches!(param, Param::Tensor(_) | Param::Device)) {
        refuse!("nothing that it takes says on which device it is");
    }
    Ok(piece)
}

/// What the members update they read under one name: no pattern says in which order two names of one memory are read.
fn check_updates(
    graph: &Graph,
    members: &BTreeSet<NodeId>,
    is_free: &[bool],
) -> Result<(), Refusal> {
    let inputs = inputs_of(graph, members);
    let is_between = |id: &NodeId| {
        members.first() < Some(id) && Some(id) < members.last() && !members.contains(id)
    };
    for (id, _) in graph.calls().filter(|(id, _)| is_between(id)) {
        let Some(name) = updated(graph, id) else { continue };
        let root = viewed(graph, name, is_free);
        let earlier: BTreeSet<NodeId> = members.range(..id).copied().collect();
        let is_read = |input: &NodeId| viewed(graph, *input, is_free) == root;
        if inputs_of(graph, &earlier).iter().any(is_read) {
            refuse!("`{}` updates on the way what was read before it", graph.node(id).name);
        }
    }
    for id in members {
        let Some(mut name) = updated(graph, *id) else { continue };
        while members.contains(&name)
            && let Some(before) = shown(graph, name, is_free)
        {
            name = before;
        }
        let root = viewed(graph, name, is_free);
        let is_other = |input: &&NodeId| **input != name && viewed(graph, **input, is_free) == root;
        if let Some(other) = inputs.iter().find(is_other) {
            refuse!("`{}` is a view of what is updated", graph.node(*other).name);
        }
    }
    Ok(())
}

/// What a node updates in place.
fn updated(graph: &Graph, id: NodeId) -> Option<NodeId> {
    graph.call(id)?.bind().ok()?.mutated()?.as_node()
}

/// What a node was before it was updated, or what a view shows.
fn shown(graph: &Graph, id: NodeId, is_free: &[bool]) -> Option<NodeId> {
    let source = || graph.call(id)?.args.first()?.as_node().filter(|_| is_free[id.index()]);
    updated(graph, id).or_else(source)
}

/// What a view, or a view of a view, shows; what was updated is what it was before.
fn viewed(graph: &Graph, id: NodeId, is_free: &[bool]) -> NodeId {
    let mut root = id;
    while let Some(source) = shown(graph, root, is_free) {
        root = source;
    }
    root
}

/// Whether a kernel can write a view's elements where they lie: one after the other, in the same order in all graphs.
fn is_dense(family: &GraphFamily, id: NodeId) -> bool {
    let values: Vec<Value> =
        family.recorded().iter().map(|member| member.types.value(id).clone()).collect();
    values.iter().all(|value| value.as_tensor().is_some()) && order_in_memory(&values).is_ok()
}

/// No path may leave the members and come back.
fn check_convex(graph: &Graph, members: &BTreeSet<NodeId>) -> Result<(), Refusal> {
    let mut after = vec![false; graph.nodes().len()];
    for (id, call) in graph.calls() {
        let inside = members.contains(&id);
        let mut late = false;
        let mut reads_member = false;
        call.for_each_input(|input| {
            late |= after[input.index()];
            reads_member |= members.contains(&input);
        });
        if inside && late {
            refuse!("`{}` depends on something between", graph.node(id).name);
        }
        after[id.index()] = late || (!inside && reads_member);
    }
    Ok(())
}
