//! Groups that join late: what did not fit in program order may fit with all that stands between.

use super::{Finder, Group, outputs_of};
use crate::analysis::lower_joined;
use crate::analysis::space::coalesce;
use passnet_graph::ops::{Class, Op};
use passnet_graph::{Call, NodeId};
use std::collections::BTreeSet;

/// Bytes that a GPU moves while it launches a kernel.
const LAUNCH: f64 = 4e6;

impl Finder<'_> {
    /// Groups that a single other one reads join it: together with what stands between them they may be one kernel, though neither
    /// was one with that alone.
    pub(super) fn join_late(&mut self) {
        let mut tried = BTreeSet::new();
        let mut at = 0;
        while at < self.groups.len() {
            let members = self.groups[at].iter().flat_map(|group| &group.members);
            let producers: BTreeSet<usize> = members.flat_map(|id| self.producers(*id)).collect();
            let others = producers.into_iter().filter(|other| *other != at);
            let mut fresh = others.filter(|other| tried.insert((at, *other)));
            match fresh.find_map(|other| Some((other, self.joined(at, other)?))) {
                // It comes last, and is looked at again there.
                Some((other, group)) => {
                    self.groups[other] = None;
                    self.groups[at] = None;
                    self.keep(group);
                }
                None => at += 1,
            }
        }
    }

    /// A group of two others, if nobody else needs what the second one gives, and if it costs no more than both.
    fn joined(&self, own: usize, other: usize) -> Option<Group> {
        let (own, other) = (self.groups[own].as_ref()?, self.groups[other].as_ref()?);
        let mut members: BTreeSet<NodeId> = own.members.union(&other.members).copied().collect();
        own.members.iter().for_each(|id| self.add_between(*id, &mut members));
        let outputs = outputs_of(self.graph(), &members);
        if outputs.iter().any(|output| other.members.contains(output)) {
            return None;
        }
        // What is moved in squares would be read element by element beside loops of its own.
        let (own_cost, other_cost) = (Cost::of(own)?, Cost::of(other)?);
        if own_cost.across || other_cost.across {
            return None;
        }
        let group = self.attempt_by(members, lower_joined).ok()?;
        let cost = Cost::of(&group)?;
        let before = own_cost.bytes.iter().zip(&other_cost.bytes).map(|(a, b)| a + b + LAUNCH);
        cost.bytes.iter().zip(before).all(|(cost, before)| *cost <= before).then_some(group)
    }
}

impl Finder<'_> {
    /// Whether one kernel computes a join as cheaply as several: it computes all parts for every element. That is looked at where
    /// a part is worked out between others, which takes dozens of steps.
    pub(super) fn joins_well(
        &self,
        own: &BTreeSet<NodeId>,
        producers: &[usize],
        group: &Group,
    ) -> bool {
        let is = |ids: &BTreeSet<NodeId>, wanted: fn(Op) -> bool| {
            let op = |id: &NodeId| self.graph().call(*id).and_then(Call::op);
            ids.iter().filter_map(op).any(wanted)
        };
        let resamples = is(&group.members, |op| op.class() == Class::Resampling);
        if !resamples || !is(own, |op| matches!(op, Op::Cat | Op::Stack)) {
            return true;
        }
        let alone = self.attempt_with_made(own.clone()).ok();
        let parts = producers.iter().filter_map(|number| self.groups[*number].as_ref());
        let apart: Option<Vec<Cost>> = parts.chain(alone.as_ref()).map(Cost::of).collect();
        let (Some(apart), Some(joined)) = (apart, Cost::of(group)) else { return true };
        joined.bytes.iter().enumerate().all(|(graph, joined)| {
            let apart: f64 = apart.iter().map(|cost| cost.bytes[graph] + LAUNCH).sum();
            *joined <= apart
        })
    }
}

/// What a group costs in each graph, in bytes that memory moves meanwhile.
struct Cost {
    bytes: Vec<f64>,
    /// Whether memory holds something of its tiles column by column.
    across: bool,
}

impl Cost {
    fn of(group: &Group) -> Option<Cost> {
        let mut body = group.body.clone();
        let space = coalesce(&mut body).ok()?;
        let graphs = 0..group.piece.graphs;
        let bytes = graphs.map(|graph| body.cost(&group.piece, &space, graph)).collect();
        Some(Cost { bytes, across: space.runs_across(&body) })
    }
}
