//! Where a node goes: into one group with what it reads, as far as one kernel can compute all of it.

use super::{Finder, Group, Refusal, inputs_of, left, region, viewed};
use passnet_graph::{Call, NodeId};
use std::collections::BTreeSet;

impl Finder<'_> {
    pub(super) fn place(&mut self, id: NodeId) {
        let own = self.with_results(id);
        let mut updated: BTreeSet<NodeId> = self.pending_updates(id);
        if !updated.is_empty() {
            updated.extend(&own);
            if let Ok(group) = self.place_with(&updated) {
                self.left.retain(|left| !group.members.contains(&left.node));
                return self.keep(group);
            }
        }
        let placed = self.place_with(&own).or_else(|reason| {
            // Alone, an update of what nobody has made yet gives nothing back.
            let target = self.made_target(id).ok_or(reason)?;
            self.place_with(&updated.iter().chain(&own).copied().chain([target]).collect())
        });
        match placed {
            Ok(group) => {
                self.left.retain(|left| !group.members.contains(&left.node));
                self.keep(group);
            }
            Err(reason) => {
                self.left.push(left(self.graph(), id, &reason));
            }
        }
    }

    /// What a node updates, where that is made of nothing and no group has it.
    fn made_target(&self, id: NodeId) -> Option<NodeId> {
        let root = viewed(self.graph(), super::updated(self.graph(), id)?, &self.is_free);
        let is_open = self.is_made[root.index()] && self.group_of[root.index()].is_none();
        is_open.then_some(root)
    }

    /// Updates of what a node reads that came before it and that no group has: whoever takes them gives them a result.
    fn pending_updates(&self, id: NodeId) -> BTreeSet<NodeId> {
        let root = |id: NodeId| viewed(self.graph(), id, &self.is_free);
        let mut read = BTreeSet::new();
        if let Some(call) = self.graph().call(id) {
            call.for_each_input(|input| {
                read.insert(root(input));
            });
        }
        let is_pending = |other: NodeId, call: &Call| {
            let target = call.bind().ok().and_then(|bound| bound.mutated()?.as_node());
            let is_open = self.is_work[other.index()] && self.group_of[other.index()].is_none();
            is_open && other < id && target.is_some_and(|target| read.contains(&root(target)))
        };
        let pending = self.graph().calls().filter(|(other, call)| is_pending(*other, call));
        pending.map(|(other, _)| other).collect()
    }

    /// A group of these nodes and of as many as possible of the groups that they read, which it replaces.
    fn place_with(&mut self, own: &BTreeSet<NodeId>) -> Result<Group, Refusal> {
        let producers: BTreeSet<usize> = own.iter().flat_map(|id| self.producers(*id)).collect();
        let producers: Vec<usize> = producers.into_iter().collect();
        let mut choices: Vec<Vec<usize>> = Vec::new();
        let readers: BTreeSet<usize> = own.iter().flat_map(|id| self.readers(*id)).collect();
        let mut with_readers: BTreeSet<usize> = producers.iter().copied().collect();
        with_readers.extend(&readers);
        if with_readers.len() > producers.len() {
            choices.push(with_readers.into_iter().collect());
            choices.extend(readers.iter().rev().map(|group| vec![*group]));
        }
        if producers.len() > 1 {
            choices.push(producers.clone());
        }
        choices.extend(producers.iter().rev().map(|group| vec![*group]));
        for choice in choices {
            let mut members = own.clone();
            for group in &choice {
                members.extend(self.groups[*group].iter().flat_map(|group| &group.members));
            }
            // Groups that read each other through views go together with these.
            let readers = if choice.len() > 1 { members.clone() } else { own.clone() };
            readers.iter().for_each(|id| self.add_between(*id, &mut members));
            if let Ok(group) = self.attempt_with_made(members)
                && self.joins_well(own, &choice, &group)
            {
                for old in choice {
                    self.groups[old] = None;
                }
                return Ok(group);
            }
        }
        self.attempt_with_made(own.clone())
    }

    /// A node, and where it gives several tensors, what is taken of them; of a region under vmap all of it.
    fn with_results(&self, id: NodeId) -> BTreeSet<NodeId> {
        let mut members = region::of(self.family, id);
        if self.is_list(id) {
            members.extend(&self.users[id.index()]);
        }
        members
    }

    /// The groups that read what a node updates, as it was before: one kernel reads it once for all.
    fn readers(&self, id: NodeId) -> Vec<usize> {
        let Some(target) = super::updated(self.graph(), id) else { return Vec::new() };
        let root = viewed(self.graph(), target, &self.is_free);
        let reads = |group: &Group| {
            let inputs = inputs_of(self.graph(), &group.members);
            inputs.iter().any(|input| viewed(self.graph(), *input, &self.is_free) == root)
        };
        let groups = self.groups.iter().enumerate();
        let found = groups.filter(|(_, group)| group.as_ref().is_some_and(reads));
        found.map(|(number, _)| number).collect()
    }

    /// The groups that a node reads, directly or through views, oldest first.
    pub(super) fn producers(&self, id: NodeId) -> Vec<usize> {
        let mut found = BTreeSet::new();
        let mut todo = vec![id];
        while let Some(node) = todo.pop() {
            let Some(call) = self.graph().call(node) else { continue };
            call.for_each_input(|input| match self.group_of[input.index()] {
                Some(group) => {
                    found.insert(group);
                }
                None if self.comes_along(input) => todo.push(input),
                None => {}
            });
        }
        found.into_iter().collect()
    }

    /// Adds the views through which a node reads the members.
    pub(super) fn add_between(&self, id: NodeId, members: &mut BTreeSet<NodeId>) {
        fn reaches(finder: &Finder<'_>, node: NodeId, members: &mut BTreeSet<NodeId>) -> bool {
            if members.contains(&node) {
                return true;
            }
            if !finder.comes_along(node) {
                return false;
            }
            let mut inputs = Vec::new();
            if let Some(call) = finder.graph().call(node) {
                call.for_each_input(|input| inputs.push(input));
            }
            let mut found = false;
            for input in inputs {
                found |= reaches(finder, input, members);
            }
            if found {
                members.insert(node);
            }
            found
        }
        let mut inputs = Vec::new();
        if let Some(call) = self.graph().call(id) {
            call.for_each_input(|input| inputs.push(input));
        }
        for input in inputs {
            reaches(self, input, members);
        }
    }
}
