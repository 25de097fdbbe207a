//! Whether the matched nodes can be taken out together without changing what the rest computes.
//!
//! Refused are: values used outside that the pattern does not return; random and side-effecting nodes; writes
//! in place that somebody else sees; returned views of memory that is written later; writes and reads of one
//! memory in another order than the pattern's; and nodes in between that need a part of the match and are needed
//! by another part. Of a region under vmap the match takes all or nothing: no value with a hidden dimension may come in or
//! leave.

use super::search::Binding;
use super::target::EffectInfo;
use super::{Difference, DifferenceKind, Pattern, TargetGraph};
use crate::mapped::{HiddenLevels, maps};
use passnet_graph::NodeId;
use smallvec::SmallVec;

/// The reasons against a match whose arguments fit; with `first_only` the rest is not looked for.
pub(super) fn check(
    pattern: &Pattern<'_>,
    target: &TargetGraph<'_>,
    bindings: &[Binding<'_>],
    first_only: bool,
) -> Vec<Difference> {
    let member = |id: NodeId| Some(Member { graph: bindings[id.index()].node()?, pattern: id });
    let mut members: SmallVec<[Member; 24]> = pattern.calls().filter_map(member).collect();
    members.sort_unstable_by_key(|member| member.graph);
    let matched = Matched { pattern, target, members, bindings };
    let mut found = Vec::new();
    matched.contained(&mut found);
    matched.taps(&mut found);
    if first_only && !found.is_empty() {
        return found;
    }
    let info = target.effects();
    let mut order = None;
    if let Some(info) = info {
        let is_region = matched.is_whole_region();
        if is_region {
            let graph = target.graph;
            let is_taken = |id: NodeId| maps(graph, id) && matched.contains(id);
            order = Some(info.effects.order_without(graph, is_taken));
        }
        let order = order.as_deref().unwrap_or(&info.order);
        matched.effects(info, is_region, &mut found);
        matched.writes(info, &mut found);
        matched.aliases(info, &mut found);
        matched.order(order, &mut found);
    }
    let order = order.as_deref().or(info.map(|info| info.order.as_slice()));
    matched.between(order, &mut found);
    found
}

#[derive(Clone, Copy)]
struct Member {
    graph: NodeId,
    pattern: NodeId,
}

struct Matched<'m, 'p, 'g> {
    pattern: &'m Pattern<'p>,
    target: &'m TargetGraph<'g>,
    members: SmallVec<[Member; 24]>,
    bindings: &'m [Binding<'m>],
}

impl Matched<'_, '_, '_> {
    fn contains(&self, id: NodeId) -> bool {
        self.members.binary_search_by_key(&id, |member| member.graph).is_ok()
    }

    fn report(&self, member: Member, kind: DifferenceKind) -> Difference {
        Difference { pattern: member.pattern, graph: Some(member.graph), kind }
    }

    /// A value that the pattern does not return may only be used inside the match.
    fn contained(&self, found: &mut Vec<Difference>) {
        for &member in &self.members {
            if self.pattern.outputs().contains(&member.pattern) {
                continue;
            }
            if self.target.is_returned(member.graph) {
                found.push(self.report(member, DifferenceKind::UsedOutside { by: None }));
                continue;
            }
            let users = self.target.users(member.graph);
            if let Some(user) = users.iter().find(|user| !self.contains(**user)) {
                found.push(self.report(member, DifferenceKind::UsedOutside { by: Some(*user) }));
            }
        }
    }

    /// An argument of the pattern cannot be something that the match takes away.
    fn taps(&self, found: &mut Vec<Difference>) {
        let Some(&first) = self.members.first() else { return };
        for binding in self.bindings.iter().take(self.pattern.graph.placeholder_count()) {
            let mut inside = None;
            binding.for_each_node(&mut |id| {
                if self.contains(id) {
                    inside = Some(id);
                }
            });
            if let Some(node) = inside {
                found.push(self.report(first, DifferenceKind::Between { node }));
            }
        }
    }

    /// Whether the match hides or restores dimensions, and no value with a hidden dimension comes in or leaves.
    fn is_whole_region(&self) -> bool {
        let graph = self.target.graph;
        if !self.members.iter().any(|member| maps(graph, member.graph)) {
            return false;
        }
        let hidden = HiddenLevels::of(graph);
        let mut is_whole = true;
        for member in &self.members {
            if let Some(call) = graph.call(member.graph) {
                call.for_each_input(|input| {
                    is_whole &= self.contains(input) || !hidden.has_any(input);
                });
            }
            let leaves = self.pattern.outputs().contains(&member.pattern);
            is_whole &= !leaves || !hidden.has_any(member.graph);
        }
        is_whole
    }

    fn effects(&self, info: &EffectInfo, is_region: bool, found: &mut Vec<Difference>) {
        for &member in &self.members {
            let is_arithmetic = is_region && maps(self.target.graph, member.graph);
            if info.effects.is_global(member.graph) && !is_arithmetic {
                found.push(self.report(member, DifferenceKind::Effect));
            }
        }
    }

    /// A node that updates in place may stand for a plain operation of the pattern only if nobody looks at the
    /// memory afterwards but through its result: not the rest of the graph, and not the match itself by another
    /// name. Where the pattern updates too, the replacement is asked to do the same.
    fn writes(&self, info: &EffectInfo, found: &mut Vec<Difference>) {
        let graph = self.target.graph;
        for &member in &self.members {
            if self.pattern.updates_in_place(member.pattern) {
                continue;
            }
            for root in info.effects.writes(member.graph) {
                if root.index() < graph.placeholder_count() {
                    found.push(self.report(member, DifferenceKind::InputUpdated));
                    continue;
                }
                // The result of the update, and what is made of it in the same memory.
                let mut results = vec![member.graph];
                let stale = |results: &[NodeId], id: NodeId| {
                    info.effects.root(id) == root && results.binary_search(&id).is_err()
                };
                let mut seen = None;
                for (id, call) in graph.calls().skip_while(|(id, _)| *id <= member.graph) {
                    call.for_each_input(|input| {
                        if stale(&results, input) {
                            seen = seen.or(Some(id));
                        }
                    });
                    if info.effects.root(id) == root {
                        results.push(id);
                    }
                }
                let mut returned = false;
                for output in &graph.outputs {
                    output.for_each_node(&mut |id| returned |= stale(&results, id));
                }
                if seen.is_some() || returned {
                    found.push(self.report(member, DifferenceKind::WriteSeen { by: seen }));
                }
            }
        }
    }

    /// What must stay in order in the graph must stand in that order in the pattern: two arguments of the
    /// pattern may be bound to one memory, which the pattern itself cannot know.
    fn order(&self, order: &[Vec<NodeId>], found: &mut Vec<Difference>) {
        for &member in &self.members {
            for &earlier in &order[member.graph.index()] {
                let position = self.members.binary_search_by_key(&earlier, |other| other.graph);
                if position.is_ok_and(|index| self.members[index].pattern > member.pattern) {
                    found.push(self.report(member, DifferenceKind::Between { node: earlier }));
                }
            }
        }
    }

    /// A returned value that shares memory with something outside becomes new memory: nobody may write it.
    fn aliases(&self, info: &EffectInfo, found: &mut Vec<Difference>) {
        for &member in &self.members {
            let returned = self.pattern.outputs().contains(&member.pattern);
            if !returned || self.pattern.updates_in_place(member.pattern) {
                continue;
            }
            let root = info.effects.root(member.graph);
            if self.contains(root) {
                continue;
            }
            let writer = info.writers.iter().copied().find(|id| {
                *id > member.graph
                    && !self.contains(*id)
                    && info.effects.writes(*id).any(|written| written == root)
            });
            if let Some(by) = writer {
                found.push(self.report(member, DifferenceKind::AliasWritten { by }));
            }
        }
    }

    /// Taken together the matched nodes must not depend on something that depends on them.
    fn between(&self, order: Option<&[Vec<NodeId>]>, found: &mut Vec<Difference>) {
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else { return };
        // Only a value that is used outside before the last matched node can come back to it.
        let leaves = |member: &Member| {
            let users = self.target.users(member.graph).iter();
            users.take_while(|user| **user < last.graph).any(|user| !self.contains(*user))
        };
        if order.is_none() && !self.members.iter().any(leaves) {
            return;
        }
        let graph = self.target.graph;
        let start = first.graph.index();
        let mut after = vec![false; last.graph.index() + 1 - start];
        for index in start..=last.graph.index() {
            let id = NodeId::new(index);
            let Some(call) = graph.call(id) else { continue };
            let inside = self.contains(id);
            let mut culprit = None;
            let mut visit = |input: NodeId| {
                let late = input.index() >= start && after[input.index() - start];
                if late || (!inside && self.contains(input)) {
                    culprit = culprit.or(Some(input));
                }
            };
            call.for_each_input(&mut visit);
            if let Some(order) = order {
                order[index].iter().copied().for_each(&mut visit);
            }
            match culprit {
                Some(node) if inside => {
                    let at = self.members.iter().find(|member| member.graph == id).copied();
                    let kind = DifferenceKind::Between { node };
                    found.push(self.report(at.unwrap_or(*first), kind));
                    return;
                }
                Some(_) => after[index - start] = true,
                None => {}
            }
        }
    }
}
