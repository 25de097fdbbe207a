//! A graph made ready to be searched by many patterns.

use passnet_graph::graph::Target;
use passnet_graph::graph::effects::Effects;
use passnet_graph::{Call, Graph, NodeId};
use rustc_hash::FxHasher;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};

/// A graph with an index by operation; users and effects are worked out when first asked for.
#[derive(Debug)]
pub struct TargetGraph<'g> {
    pub graph: &'g Graph,
    /// Calls sorted by operation, then by position.
    index: Vec<(u64, NodeId)>,
    /// The key of every call, in graph order.
    keys: Vec<u64>,
    users: OnceCell<Users>,
    effects: OnceCell<EffectInfo>,
}

#[derive(Debug)]
pub(super) struct Users {
    lists: Vec<Vec<NodeId>>,
    returned: Vec<bool>,
}

#[derive(Debug)]
pub(super) struct EffectInfo {
    pub effects: Effects,
    /// Earlier nodes that a node must stay after without using them.
    pub order: Vec<Vec<NodeId>>,
}

/// What an operation is looked up by. Known operations of all spellings share one key.
pub(super) fn key_of(call: &Call) -> u64 {
    match &call.target {
        Target::Known(spelling) => spelling.op as u64,
        Target::Unknown { kind, path } => hashed(&(1, *kind, path)),
        Target::Replacement(replacement) => hashed(&(2, &replacement.pass, &replacement.wrapper)),
    }
}

fn hashed(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish() | 1 << 63
}

impl<'g> TargetGraph<'g> {
    pub fn new(graph: &'g Graph) -> Self {
        let mut index: Vec<(u64, NodeId)> =
            graph.calls().map(|(id, call)| (key_of(call), id)).collect();
        let keys = index.iter().map(|(key, _)| *key).collect();
        index.sort_unstable();
        TargetGraph { graph, index, keys, users: OnceCell::new(), effects: OnceCell::new() }
    }

    /// The key of a call; `None` for an input of the graph.
    pub(super) fn key(&self, id: NodeId) -> Option<u64> {
        let call = id.index().checked_sub(self.graph.placeholder_count())?;
        self.keys.get(call).copied()
    }

    fn range(&self, key: u64) -> &[(u64, NodeId)] {
        let start = self.index.partition_point(|(known, _)| *known < key);
        let length = self.index[start..].partition_point(|(known, _)| *known == key);
        &self.index[start..start + length]
    }

    pub(super) fn count(&self, key: u64) -> usize {
        self.range(key).len()
    }

    /// The calls of one operation, in graph order.
    pub(super) fn with_key(&self, key: u64) -> impl Iterator<Item = NodeId> {
        self.range(key).iter().map(|(_, id)| *id)
    }

    fn users_info(&self) -> &Users {
        self.users.get_or_init(|| {
            let mut returned = vec![false; self.graph.nodes().len()];
            for output in &self.graph.outputs {
                output.for_each_node(&mut |id| returned[id.index()] = true);
            }
            Users { lists: self.graph.users(), returned }
        })
    }

    pub fn users(&self, id: NodeId) -> &[NodeId] {
        &self.users_info().lists[id.index()]
    }

    pub fn is_returned(&self, id: NodeId) -> bool {
        self.users_info().returned[id.index()]
    }

    pub(super) fn effects(&self) -> &EffectInfo {
        self.effects.get_or_init(|| {
            let effects = Effects::of(self.graph);
            let order = effects.order(self.graph);
            EffectInfo { effects, order }
        })
    }
}
