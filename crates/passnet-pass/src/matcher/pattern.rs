//! A pattern made ready for searching.

use super::Miss;
use super::target::{TargetGraph, key_of};
use passnet_graph::ops::Bound;
use passnet_graph::{Call, Graph, NodeId};

/// A pattern with its calls laid out and its operations counted.
#[derive(Debug)]
pub struct Pattern<'p> {
    pub graph: &'p Graph,
    bound: Vec<Option<Bound<'p>>>,
    keys: Vec<u64>,
    outputs: Vec<NodeId>,
    /// How often each operation occurs, with the last node that has it.
    needed: Vec<(u64, usize, NodeId)>,
}

impl<'p> Pattern<'p> {
    pub fn new(graph: &'p Graph) -> Self {
        let count = graph.nodes().len();
        let mut bound = Vec::with_capacity(count);
        let mut keys = vec![0; count];
        let mut needed: Vec<(u64, usize, NodeId)> = Vec::new();
        bound.resize_with(graph.placeholder_count(), || None);
        for (id, call) in graph.calls() {
            bound.push(call.bind().ok());
            let key = key_of(call);
            keys[id.index()] = key;
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
        Pattern { graph, bound, keys, outputs, needed }
    }

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

    pub(super) fn bound(&self, id: NodeId) -> Option<&Bound<'p>> {
        self.bound[id.index()].as_ref()
    }

    pub(super) fn key(&self, id: NodeId) -> u64 {
        self.keys[id.index()]
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

    /// Whether the graph lacks an operation of the pattern.
    pub(super) fn lacks_any(&self, target: &TargetGraph<'_>) -> bool {
        self.needed.iter().any(|&(key, wanted, _)| target.count(key) < wanted)
    }

    /// How many occurrences of operations the graph lacks.
    pub fn lacking(&self, target: &TargetGraph<'_>) -> usize {
        self.needed.iter().map(|&(key, wanted, _)| wanted.saturating_sub(target.count(key))).sum()
    }

    /// The operation to start from: the one with the fewest places in the graph.
    pub(super) fn rarest(&self, target: &TargetGraph<'_>) -> NodeId {
        let rarest = self.needed.iter().min_by_key(|(key, _, id)| (target.count(*key), id.index()));
        rarest.map_or(NodeId::new(0), |&(_, _, id)| id)
    }
}
