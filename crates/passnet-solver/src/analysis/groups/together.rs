//! Groups that one launch can serve: none needs another's result, or computes again what it needs of it.

use super::{Group, check_convex, checked_piece, inputs_of, viewed};
use crate::analysis::piece::outputs_of;
use crate::analysis::{Piece, lower, lower_repeating, product};
use crate::graph_family::GraphFamily;
use passnet_graph::{Arg, NodeId};
use std::collections::BTreeSet;

/// Bytes from which on a launch of its own costs a kernel next to nothing, and sharing one may cost registers.
const LARGE: f64 = 16e6;
/// Groups that share a launch.
const MOST: usize = 6;
/// Bytes that may be read again so that a launch is saved: a GPU reads them in a third of the time that a launch takes.
const READ_AGAIN: f64 = 4e6;
/// Values that may be computed again for the same reason.
const COMPUTED_AGAIN: f64 = 5e7;

/// Groups that go together.
#[derive(Debug)]
pub struct Together {
    /// Which, by number.
    pub numbers: Vec<usize>,
    /// All their nodes, and the views between them.
    pub members: BTreeSet<NodeId>,
    /// The piece that all of them are.
    pub piece: Piece,
    /// What is launched for the whole piece, where some group computes again what another one gives; with the number of the
    /// group whose results it has.
    pub again: Vec<(usize, Group)>,
}

struct Set {
    numbers: Vec<usize>,
    members: BTreeSet<NodeId>,
    piece: Option<Piece>,
    again: Vec<(usize, Group)>,
}

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
    family.recorded().iter().any(|member| {
        let tensor = |id: &NodeId| member.types.value(*id).as_tensor();
        nodes.iter().filter_map(tensor).any(|updated| {
            touched.iter().filter_map(tensor).any(|own| own.shares_memory_with(updated))
        })
    })
}

/// Groups that go together; only sets of several.
pub fn together(family: &GraphFamily, groups: &[&Group]) -> Vec<Together> {
    let updated = updated(family, groups);
    let links = Links::new(family, groups);
    let mut sets: Vec<Set> = Vec::new();
    for (number, group) in groups.iter().enumerate() {
        let is_large = |member| group.piece.moved_bytes(member) > LARGE;
        // What returns before its launch where a tensor is empty has no launch to share.
        // The programs of a product in tiles have their own number of lanes.
        let is_alone = group.body.is_idle_somewhere() || group.body.in_tiles;
        if is_alone || (0..family.count()).any(is_large) || touches(family, group, &updated) {
            continue;
        }
        let joined = sets.iter_mut().any(|set| {
            if set.numbers.len() >= MOST {
                return false;
            }
            let Some(larger) = links.join(set, number) else { return false };
            *set = larger;
            true
        });
        if !joined {
            let members = group.members.clone();
            sets.push(Set { numbers: vec![number], members, piece: None, again: Vec::new() });
        }
    }
    let several = |set: Set| {
        let Set { numbers, members, piece, again } = set;
        Some(Together { numbers, members, piece: piece?, again })
    };
    sets.into_iter().filter_map(several).collect()
}

/// How groups hang together.
struct Links<'g> {
    family: &'g GraphFamily,
    groups: &'g [&'g Group],
    is_free: Vec<bool>,
    users: Vec<Vec<NodeId>>,
}

impl<'g> Links<'g> {
    fn new(family: &'g GraphFamily, groups: &'g [&'g Group]) -> Self {
        let graph = family.graph();
        let is_free = super::free_nodes(family);
        Links { family, groups, is_free, users: graph.users() }
    }

    /// A set with one more group, if one launch can serve all of it.
    fn join(&self, set: &Set, number: usize) -> Option<Set> {
        let group = self.groups[number];
        let mut numbers = set.numbers.clone();
        numbers.push(number);
        let mut members: BTreeSet<NodeId> = set.members.union(&group.members).copied().collect();
        let reads = |a: &BTreeSet<NodeId>, b: &BTreeSet<NodeId>| {
            inputs_of(self.family.graph(), a).iter().any(|input| b.contains(input))
        };
        let is_apart = !reads(&set.members, &group.members) && !reads(&group.members, &set.members);
        if is_apart && set.again.is_empty() && check_convex(self.family.graph(), &members).is_ok() {
            let piece = Some(Piece::new(self.family, &members).ok()?);
            return Some(Set { numbers, members, piece, again: Vec::new() });
        }
        self.add_between(&mut members);
        let piece = checked_piece(self.family, &members, &self.is_free).ok()?;
        // An update in place happens once.
        if piece.updates().next().is_some() {
            return None;
        }
        let again = self.computed_again(&numbers, &members, &piece)?;
        let piece = Some(piece);
        Some(Set { numbers, members, piece, again })
    }

    /// Adds the views between members.
    fn add_between(&self, members: &mut BTreeSet<NodeId>) {
        let graph = self.family.graph();
        loop {
            let leads = self.leading_to(members);
            let mut found = Vec::new();
            for (id, call) in graph.calls().filter(|(id, _)| !members.contains(id)) {
                let mut is_fed = self.is_free[id.index()];
                call.for_each_input(|input| is_fed &= members.contains(&input));
                if is_fed && leads[id.index()] {
                    found.push(id);
                }
            }
            if found.is_empty() {
                return;
            }
            members.extend(found);
            // A list comes with everything that is taken from it.
            let lists = members.iter().filter(|id| !self.is_tensor(**id));
            let taken: Vec<NodeId> = lists.flat_map(|id| self.users[id.index()].clone()).collect();
            members.extend(taken.into_iter().filter(|id| self.is_free[id.index()]));
        }
    }

    fn is_tensor(&self, id: NodeId) -> bool {
        self.family.members[0].types.value(id).as_tensor().is_some()
    }

    /// For every node whether a member reads it, or a view of it.
    fn leading_to(&self, members: &BTreeSet<NodeId>) -> Vec<bool> {
        let mut leads = vec![false; self.users.len()];
        for index in (0..leads.len()).rev() {
            leads[index] = self.users[index].iter().any(|user| {
                members.contains(user) || (self.is_free[user.index()] && leads[user.index()])
            });
        }
        leads
    }

    /// The groups of a set, each pulled from what the whole piece takes, if that costs less than a launch.
    fn computed_again(
        &self,
        numbers: &[usize],
        members: &BTreeSet<NodeId>,
        piece: &Piece,
    ) -> Option<Vec<(usize, Group)>> {
        let graph = self.family.graph();
        let outputs = outputs_of(graph, members);
        if outputs.len() != piece.outputs.len() {
            return None;
        }
        let last = *numbers.last()?;
        let mut parts: Vec<(usize, Vec<NodeId>)> = numbers.iter().map(|n| (*n, vec![])).collect();
        for (output, own) in outputs.iter().zip(&piece.outputs) {
            let root = viewed(graph, *output, &self.is_free);
            let is_of = |number: &usize| {
                let group = &self.groups[*number].members;
                group.contains(output) || group.contains(&root)
            };
            let number = numbers.iter().copied().find(is_of).unwrap_or(last);
            let part = parts.iter_mut().find(|(of, _)| *of == number)?;
            part.1.push(*own);
        }
        let mut again = Vec::new();
        for (number, outputs) in parts.into_iter().filter(|(_, outputs)| !outputs.is_empty()) {
            match self.part(number, members, &outputs) {
                Some(group) => again.push((number, group)),
                None => {
                    for output in &outputs {
                        again.push((number, self.part(number, members, &[*output])?));
                    }
                }
            }
        }
        let before = Work::of(numbers.iter().map(|number| self.groups[*number]));
        let after = Work::of(again.iter().map(|(_, group)| group));
        let pays = after.bytes <= before.bytes + READ_AGAIN
            && after.values <= before.values + COMPUTED_AGAIN
            && again.len() <= MOST;
        pays.then_some(again)
    }

    /// What computes some of the results, from what the whole piece takes.
    fn part(&self, number: usize, members: &BTreeSet<NodeId>, outputs: &[NodeId]) -> Option<Group> {
        let mut piece = Piece::new(self.family, members).ok()?;
        piece.outputs = outputs.to_vec();
        let body = lower(&piece).or_else(|_| lower_repeating(&piece)).ok()?;
        Some(Group { members: self.groups[number].members.clone(), piece, body })
    }
}

/// What kernels read, write and compute, in the graphs where it is most.
struct Work {
    bytes: f64,
    values: f64,
}

impl Work {
    fn of<'g>(groups: impl Iterator<Item = &'g Group>) -> Work {
        let mut work = Work { bytes: 0.0, values: 0.0 };
        for group in groups {
            let graphs = 0..group.piece.graphs;
            let moved = graphs.map(|graph| group.body.moved_bytes(&group.piece, graph));
            work.bytes += moved.fold(0.0, f64::max);
            let steps = product(&group.body.axes, group.piece.graphs);
            let steps = steps.map_or(f64::INFINITY, |steps| steps.largest() as f64);
            work.values += steps * group.body.vars.len() as f64;
        }
        work
    }
}
