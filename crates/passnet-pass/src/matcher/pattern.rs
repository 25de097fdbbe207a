//! A pattern made ready for searching.

use super::Miss;
use super::target::{Key, KeySet, TargetGraph, key_of};
use passnet_graph::ops::Bound;
use passnet_graph::{Call, Graph, NodeId};

/// A pattern with its calls laid out and its operations counted.
#[derive(Debug)]
pub struct Pattern<'p> {
    /// The traced pattern.
    pub graph: &'p Graph,
    calls: Vec<PatternCall<'p>>,
    outputs: Vec<NodeId>,
    /// How often each operation occurs, with the last node that has it.
    needed: Vec<(Key, usize, NodeId)>,
    keys: KeySet,
    edges: KeySet,
}

#[derive(Debug)]
struct PatternCall<'p> {
    key: Key,
    bound: Option<Bound<'p>>,
    /// The operations that compute its arguments.
    inputs: Vec<Key>,
}

impl<'p> Pattern<'p> {
    /// Prepares a pattern for any number of searches.
    pub fn new(graph: &'p Graph) -> Self {
        let mut calls: Vec<PatternCall<'p>> = Vec::with_capacity(graph.op_count());
        let mut needed: Vec<(Key, usize, NodeId)> = Vec::new();
        for (id, call) in graph.calls() {
            let key = key_of(call);
            let mut inputs = Vec::new();
            call.for_each_input(|input| inputs.extend(graph.call(input).map(key_of)));
            inputs.sort_unstable();
            inputs.dedup();
            calls.push(PatternCall { key, bound: call.bind().ok(), inputs });
            match needed.iter_mut().find(|(known, ..)| *known == key) {
                Some((_, times, last)) => {
                    *times += 1;
                    *last = id;
                }
                None => needed.push((key, 1, id)),
            }
        }
        let mut outputs = Vec::new();
        for output in &graph.outputs {
            output.for_each_node(&mut |id| {
                if !outputs.contains(&id) {
                    outputs.push(id);
                }
            });
        }
        let (keys, edges) = (KeySet::of(graph), KeySet::of_edges(graph));
        Pattern { graph, calls, outputs, needed, keys, edges }
    }

    /// Its operations, in order.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (self.graph.placeholder_count()..self.graph.nodes().len()).map(NodeId::new)
    }

    /// The distinct values that the pattern returns.
    pub fn outputs(&self) -> &[NodeId] {
        &self.outputs
    }

    pub(super) fn is_placeholder(&self, id: NodeId) -> bool {
        id.index() < self.graph.placeholder_count()
    }

    pub(super) fn call(&self, id: NodeId) -> Option<&'p Call> {
        self.graph.call(id)
    }

    fn prepared(&self, id: NodeId) -> Option<&PatternCall<'p>> {
        self.calls.get(id.index().checked_sub(self.graph.placeholder_count())?)
    }

    pub(super) fn bound(&self, id: NodeId) -> Option<&Bound<'p>> {
        self.prepared(id)?.bound.as_ref()
    }

    /// `None` for an argument of the pattern.
    pub(super) fn key(&self, id: NodeId) -> Option<Key> {
        Some(self.prepared(id)?.key)
    }

    /// Whether a call of the graph has inputs computed by the operations that a call of the pattern wants them
    /// from: what fails this cannot match, whatever its literals.
    pub(super) fn inputs_may_fit(&self, id: NodeId, target: &TargetGraph<'_>, call: &Call) -> bool {
        let Some(prepared) = self.prepared(id) else { return true };
        prepared.inputs.iter().all(|wanted| {
            let mut found = false;
            call.for_each_input(|input| found = found || target.key(input) == Some(*wanted));
            found
        })
    }

    pub(super) fn updates_in_place(&self, id: NodeId) -> bool {
        self.bound(id).is_some_and(Bound::is_in_place)
    }

    /// An operation that the graph lacks, found without looking at any argument.
    pub(super) fn absent_from(&self, target: &TargetGraph<'_>) -> Option<Miss> {
        self.needed.iter().find_map(|&(key, wanted, pattern_node)| {
            let found = target.count(key);
            (found < wanted).then_some(Miss::Absent { pattern_node, wanted, found })
        })
    }

    /// How many occurrences of operations the graph lacks.
    pub fn lacking(&self, target: &TargetGraph<'_>) -> usize {
        self.needed.iter().map(|&(key, wanted, _)| wanted.saturating_sub(target.count(key))).sum()
    }

    /// Whether the graph may match: it has the pattern's operations, and each one's result used by the right ones.
    pub(super) fn may_occur_in(&self, target: &TargetGraph<'_>) -> bool {
        target.may_have(&self.keys) && target.may_have_edges(&self.edges)
    }

    /// The operation to start from, the one with the fewest places in the graph; `None` if the graph lacks an
    /// operation or the pattern has none.
    pub(super) fn start_in(&self, target: &TargetGraph<'_>) -> Option<(Key, NodeId)> {
        let mut rarest: Option<(usize, NodeId, Key)> = None;
        for &(key, wanted, id) in &self.needed {
            let count = target.count(key);
            if count < wanted {
                return None;
            }
            if rarest.is_none_or(|(least, known, _)| (count, id) < (least, known)) {
                rarest = Some((count, id, key));
            }
        }
        rarest.map(|(_, id, key)| (key, id))
    }
}
