//! A graph made ready to be searched by many patterns.

use passnet_graph::graph::Target;
use passnet_graph::graph::effects::Effects;
use passnet_graph::ops::Bound;
use passnet_graph::{Call, Graph, NodeId};
use rustc_hash::FxHasher;
use std::cell::OnceCell;
use std::hash::{Hash, Hasher};

/// A graph and what searches ask of it. Only the set of operations is worked out at once, because most patterns
/// ask for nothing else; the rest when it is first needed, once for all patterns.
#[derive(Debug)]
pub struct TargetGraph<'g> {
    /// What is searched.
    pub graph: &'g Graph,
    present: KeySet,
    edges: OnceCell<KeySet>,
    /// Calls sorted by operation, then by position: the key in the upper half, the node in the lower.
    index: OnceCell<Box<[u64]>>,
    /// The arguments of every call, laid out by its signature.
    bound: OnceCell<Box<[OnceCell<Option<Bound<'g>>>]>>,
    users: OnceCell<Users>,
    effects: OnceCell<Option<EffectInfo>>,
}

/// What an operation is looked up by. Known operations of all spellings share one key; other callees may, rarely,
/// share theirs with another.
pub(super) type Key = u32;

/// A set of keys, exact for known operations: a key that is not in it is surely absent. Edges between operations are
/// kept in the same form, where two may share a place.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeySet([u64; KeySet::WORDS]);

impl KeySet {
    const WORDS: usize = 8;

    pub(super) fn insert(&mut self, key: Key) {
        self.0[key as usize / 64 % Self::WORDS] |= 1 << (key % 64);
    }

    pub(super) fn is_subset(&self, other: &KeySet) -> bool {
        self.0.iter().zip(&other.0).fold(0, |missing, (own, other)| missing | (own & !other)) == 0
    }

    /// Which operations use results of which.
    pub(super) fn of_edges(graph: &Graph) -> Self {
        let mut edges = KeySet::default();
        for (_, call) in graph.calls() {
            let user = key_of(call);
            call.for_each_input(|input| {
                if let Some(producer) = graph.call(input) {
                    edges.insert(edge_key(key_of(producer), user));
                }
            });
        }
        edges
    }

    /// The operations of a graph.
    pub(super) fn of(graph: &Graph) -> Self {
        let mut keys = KeySet::default();
        graph.calls().for_each(|(_, call)| keys.insert(key_of(call)));
        keys
    }
}

/// What the edge between two operations is looked up by.
pub(super) fn edge_key(producer: Key, user: Key) -> Key {
    (producer.wrapping_mul(0x9E37_79B1) ^ user.wrapping_mul(0x85EB_CA77)) >> 20
}

pub(super) fn key_of(call: &Call) -> Key {
    match &call.target {
        Target::Known(spelling) => spelling.op as Key,
        Target::Unknown { kind, path } => hashed(&(1, *kind, path)),
        Target::Replacement(replacement) => hashed(&(2, &replacement.pass, &replacement.wrapper)),
    }
}

fn hashed(value: &impl Hash) -> Key {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    (hasher.finish() >> 32) as Key | 1 << 31
}

/// Who uses each value, one list after the other.
#[derive(Debug)]
struct Users {
    lists: Box<[NodeId]>,
    /// Where the list of each value starts, and where the last one ends.
    starts: Box<[u32]>,
    returned: Box<[bool]>,
}

/// Effects of a graph that has any.
#[derive(Debug)]
pub(super) struct EffectInfo {
    pub effects: Effects,
    /// Earlier nodes that a node must stay after without using them.
    pub order: Vec<Vec<NodeId>>,
    /// The nodes that write memory, in graph order.
    pub writers: Vec<NodeId>,
}

impl<'g> TargetGraph<'g> {
    /// Prepares a graph for any number of patterns.
    pub fn new(graph: &'g Graph) -> Self {
        TargetGraph {
            graph,
            present: KeySet::of(graph),
            edges: OnceCell::new(),
            index: OnceCell::new(),
            bound: OnceCell::new(),
            users: OnceCell::new(),
            effects: OnceCell::new(),
        }
    }

    /// Whether the graph may have all these operations; if not, it surely lacks one.
    pub(super) fn may_have(&self, keys: &KeySet) -> bool {
        keys.is_subset(&self.present)
    }

    /// Whether the graph may have all these edges between operations; if not, it surely lacks one.
    pub(super) fn may_have_edges(&self, edges: &KeySet) -> bool {
        edges.is_subset(self.edges.get_or_init(|| KeySet::of_edges(self.graph)))
    }

    /// The key of a call; `None` for an input of the graph.
    pub(super) fn key(&self, id: NodeId) -> Option<Key> {
        self.graph.call(id).map(key_of)
    }

    fn range(&self, key: Key) -> &[u64] {
        let index = self.index.get_or_init(|| {
            let entry = |(id, call): (NodeId, &Call)| {
                u64::from(key_of(call)) << 32 | id.index() as u64 & u64::from(u32::MAX)
            };
            let mut index: Box<[u64]> = self.graph.calls().map(entry).collect();
            index.sort_unstable();
            index
        });
        let start = index.partition_point(|entry| entry >> 32 < u64::from(key));
        let length = index[start..].partition_point(|entry| entry >> 32 == u64::from(key));
        &index[start..start + length]
    }

    pub(super) fn count(&self, key: Key) -> usize {
        self.range(key).len()
    }

    /// The calls of one operation, in graph order.
    pub(super) fn with_key(&self, key: Key) -> impl Iterator<Item = NodeId> {
        self.range(key).iter().map(|entry| NodeId::new((entry & u64::from(u32::MAX)) as usize))
    }

    /// The arguments of a call laid out by its operation's signature, if they fit one.
    pub(super) fn bound(&self, id: NodeId) -> Option<&Bound<'g>> {
        let bound = self.bound.get_or_init(|| {
            std::iter::repeat_with(OnceCell::new).take(self.graph.op_count()).collect()
        });
        let cell = bound.get(id.index().checked_sub(self.graph.placeholder_count())?)?;
        cell.get_or_init(|| self.graph.call(id)?.bind().ok()).as_ref()
    }

    fn users_info(&self) -> &Users {
        self.users.get_or_init(|| Users::of(self.graph))
    }

    /// The nodes that use a value, in order, without repetitions.
    pub fn users(&self, id: NodeId) -> &[NodeId] {
        let users = self.users_info();
        let (start, end) = (users.starts[id.index()], users.starts[id.index() + 1]);
        &users.lists[start as usize..end as usize]
    }

    /// Whether `forward` returns the value.
    pub fn is_returned(&self, id: NodeId) -> bool {
        self.users_info().returned[id.index()]
    }

    /// Who writes what, and which orders matter; `None` if no call does more than compute its result.
    pub(super) fn effects(&self) -> Option<&EffectInfo> {
        let work_out = || {
            if self.graph.calls().all(|(id, _)| self.bound(id).is_some_and(|b| !b.has_effect())) {
                return None;
            }
            let effects = Effects::with(self.graph, |id, _| self.bound(id));
            let order = effects.order(self.graph);
            let writers = self.graph.ids().filter(|id| effects.mutates(*id)).collect();
            Some(EffectInfo { effects, order, writers })
        };
        self.effects.get_or_init(work_out).as_ref()
    }
}

impl Users {
    fn of(graph: &Graph) -> Self {
        let count = graph.nodes().len();
        let mut starts = vec![0_u32; count + 1].into_boxed_slice();
        // Every use in graph order; a call that uses a value twice counts once. No call is the first node and uses
        // something, so that node can stand for nobody.
        let mut uses: Vec<(NodeId, NodeId)> = Vec::with_capacity(count * 2);
        let mut last_user = vec![NodeId::new(0); count].into_boxed_slice();
        for (user, call) in graph.calls() {
            call.for_each_input(|used| {
                if std::mem::replace(&mut last_user[used.index()], user) != user {
                    uses.push((used, user));
                    starts[used.index() + 1] += 1;
                }
            });
        }
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut lists = vec![NodeId::new(0); uses.len()].into_boxed_slice();
        for (used, user) in uses {
            let place = &mut next[used.index()];
            lists[*place as usize] = user;
            *place += 1;
        }
        let mut returned = vec![false; count].into_boxed_slice();
        for output in &graph.outputs {
            output.for_each_node(&mut |id| returned[id.index()] = true);
        }
        Users { lists, starts, returned }
    }
}
