//! What is made of numbers, places and shapes alone: a kernel computes it wherever it reads it.

use super::{Finder, Group, Refusal, inputs_of, is_returned};
use passnet_graph::infer::Value;
use passnet_graph::ops::{Bound, Class, Op};
use passnet_graph::{Call, NodeId};
use std::collections::BTreeSet;

/// Whether a call makes its result of nothing, or of what is made so itself.
pub(super) fn is_made(call: &Call, bound: &Bound<'_>, known: &[bool]) -> bool {
    let mut reads = 0;
    let mut all_made = true;
    call.for_each_input(|input| {
        reads += 1;
        all_made &= known[input.index()];
    });
    bound.mutated().is_none()
        && match bound.class() {
            Class::Creation => !matches!(bound.op, Op::AsTensor) || reads == 0,
            Class::Pointwise | Class::View | Class::Movement | Class::Indexing | Class::Scan => {
                reads > 0 && all_made
            }
            // The larger or the smaller of two.
            Class::Reduction => matches!(bound.op, Op::Max | Op::Min) && reads == 2 && all_made,
            _ => false,
        }
}

impl Finder<'_> {
    /// A group of these members and of what is made for them alone; else of the members.
    pub(super) fn attempt_with_made(&self, members: BTreeSet<NodeId>) -> Result<Group, Refusal> {
        let inputs = inputs_of(self.graph(), &members);
        if let Some(made) = self.made_for(&inputs, &members) {
            let larger = members.union(&made).copied().collect();
            if let Ok(group) = self.attempt(larger) {
                return Ok(group);
            }
        }
        self.attempt(members.clone()).or_else(|reason| {
            // What others read, too, becomes a result, where the kernel reads nothing at all.
            let all = self.all_made(&inputs).ok_or(reason)?;
            self.attempt(members.union(&all).copied().collect())
        })
    }

    /// What inputs are made of, if that is nothing else and no group has any of it.
    fn all_made(&self, inputs: &[NodeId]) -> Option<BTreeSet<NodeId>> {
        let mut taken = BTreeSet::new();
        let mut todo = inputs.to_vec();
        while let Some(node) = todo.pop() {
            if !self.is_made[node.index()] || self.group_of[node.index()].is_some() {
                return None;
            }
            if taken.insert(node) {
                self.graph().call(node)?.for_each_input(|input| todo.push(input));
            }
        }
        Some(taken)
    }

    /// What inputs are made of, as far as it is made of nothing else and nobody but the members reads it.
    pub(super) fn made_for(
        &self,
        inputs: &[NodeId],
        members: &BTreeSet<NodeId>,
    ) -> Option<BTreeSet<NodeId>> {
        let mut taken = BTreeSet::new();
        let mut todo = inputs.to_vec();
        while let Some(node) = todo.pop() {
            let is_open = self.is_made[node.index()] && self.group_of[node.index()].is_none();
            if is_open && !members.contains(&node) && taken.insert(node) {
                self.graph().call(node)?.for_each_input(|input| todo.push(input));
            }
        }
        loop {
            let inside = |id: &NodeId| members.contains(id) || taken.contains(id);
            let stays = |id: &NodeId| {
                let is_owned = self.users[id.index()].iter().all(inside);
                let mut has_lists = true;
                if let Some(call) = self.graph().call(*id) {
                    // A list is no argument of a pattern: it comes along or what is taken from it does not.
                    call.for_each_input(|input| {
                        has_lists &= !self.is_list(input) || inside(&input)
                    });
                }
                is_owned && has_lists && !is_returned(self.graph(), *id)
            };
            let left: BTreeSet<NodeId> = taken.iter().copied().filter(stays).collect();
            if left.len() == taken.len() {
                return (!left.is_empty()).then_some(left);
            }
            taken = left;
        }
    }

    pub(super) fn is_list(&self, id: NodeId) -> bool {
        matches!(self.family.members[0].types.value(id), Value::Sequence(_))
    }

    pub(super) fn is_tensor(&self, id: NodeId) -> bool {
        matches!(self.family.members[0].types.value(id), Value::Tensor(_))
    }

    /// Whether nobody but the members reads these nodes.
    pub(super) fn is_owned(&self, nodes: &BTreeSet<NodeId>, members: &BTreeSet<NodeId>) -> bool {
        nodes.iter().all(|id| {
            let inside = |user: &NodeId| members.contains(user) || nodes.contains(user);
            self.users[id.index()].iter().all(inside) && !is_returned(self.graph(), *id)
        })
    }

    /// Whether a kernel that reads a node may compute it on the way.
    pub(super) fn comes_along(&self, id: NodeId) -> bool {
        self.is_free[id.index()] || self.is_made[id.index()]
    }
}
