//! The graph: placeholders, then calls in program order, then the returned values.
//!
//! A node stands for one operation statement of `model.py`. Order is kept because some calls mutate their
//! arguments or have other effects: [`effects`] says which orders matter. Names are labels for people; no
//! meaning depends on them.

pub(crate) mod arg;
pub(crate) mod call;
pub mod effects;
pub(crate) mod target;

pub use crate::ops::CalleeKind;
pub use arg::{Arg, NodeId};
pub use call::Call;
pub use target::{Replacement, Target};

use effects::Effects;
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A whole graph. Invariants, checked by [`Graph::verify`]: placeholders come first; a node refers only to
/// earlier nodes; names are unique.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    nodes: Vec<Node>,
    placeholders: usize,
    /// What `forward` returns.
    pub outputs: Vec<Arg>,
}

/// One value: an argument of `forward`, or the result of one operation.
#[derive(Debug, Clone)]
pub struct Node {
    /// Unique in the graph, and a label for people.
    pub name: Box<str>,
    /// Where the value comes from.
    pub kind: NodeKind,
    /// Line of the statement in the source it was read from; 0 for nodes made otherwise.
    pub line: u32,
}

/// Where a node came from is not part of what it is.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.kind == other.kind
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeKind {
    /// An argument of `forward`.
    Placeholder(Annotation),
    /// The result of an operation.
    Call(Call),
}

/// The annotation of a forward argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Annotation {
    /// The argument is named and no more.
    #[default]
    None,
    /// `torch.Tensor`.
    Tensor,
    /// `torch.nn.parameter.Parameter`: a weight of the model.
    Parameter,
    /// `torch.SymInt`: a size that changes from call to call.
    SymInt,
}

impl Graph {
    /// A graph without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// All nodes, placeholders first.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node with this id; ids come from this graph.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The ids of all nodes, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::new)
    }

    /// How many arguments `forward` has.
    pub fn placeholder_count(&self) -> usize {
        self.placeholders
    }

    /// The arguments of `forward`, in order.
    pub fn placeholders(&self) -> &[Node] {
        &self.nodes[..self.placeholders]
    }

    /// The calls with their ids, in program order.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = (NodeId, &Call)> {
        self.nodes.iter().enumerate().skip(self.placeholders).filter_map(
            |(index, node)| match &node.kind {
                NodeKind::Call(call) => Some((NodeId::new(index), call)),
                NodeKind::Placeholder(_) => None,
            },
        )
    }

    /// The calls, to be changed in place. What a call refers to must stay before it.
    pub fn calls_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Call)> {
        self.nodes.iter_mut().enumerate().filter_map(|(index, node)| match &mut node.kind {
            NodeKind::Call(call) => Some((NodeId::new(index), call)),
            NodeKind::Placeholder(_) => None,
        })
    }

    /// The call of a node; `None` for placeholders.
    pub fn call(&self, id: NodeId) -> Option<&Call> {
        match &self.nodes.get(id.index())?.kind {
            NodeKind::Call(call) => Some(call),
            NodeKind::Placeholder(_) => None,
        }
    }

    /// Number of operations: the `n` of every op index and range.
    pub fn op_count(&self) -> usize {
        self.nodes.len() - self.placeholders
    }

    /// The node of the operation with this index.
    pub fn op_node(&self, op_index: usize) -> NodeId {
        NodeId::new(self.placeholders + op_index)
    }

    /// Appends a placeholder; only before the first call.
    pub fn push_placeholder(
        &mut self,
        name: impl Into<Box<str>>,
        annotation: Annotation,
        line: u32,
    ) -> NodeId {
        debug_assert_eq!(self.placeholders, self.nodes.len(), "placeholders come first");
        self.placeholders += 1;
        self.push(Node { name: name.into(), kind: NodeKind::Placeholder(annotation), line })
    }

    /// Appends a call; what it refers to must be there.
    pub fn push_call(&mut self, name: impl Into<Box<str>>, call: Call, line: u32) -> NodeId {
        self.push(Node { name: name.into(), kind: NodeKind::Call(call), line })
    }

    pub(crate) fn rename(&mut self, id: NodeId, name: &str) {
        self.nodes[id.index()].name = name.into();
    }

    fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId::new(self.nodes.len());
        self.nodes.push(node);
        id
    }

    /// For every node, the nodes that use it, in order, without repetitions.
    pub fn users(&self) -> Vec<Vec<NodeId>> {
        let mut users = vec![Vec::new(); self.nodes.len()];
        for (id, call) in self.calls() {
            call.for_each_input(|input| {
                let list: &mut Vec<NodeId> = &mut users[input.index()];
                if list.last() != Some(&id) {
                    list.push(id);
                }
            });
        }
        users
    }

    /// The nodes that an output depends on, and those with an effect: on random numbers or modes, on memory that the graph was
    /// given, or on memory that something needed may show.
    pub fn needed(&self) -> BTreeSet<NodeId> {
        let effects = Effects::of(self);
        let writes_input = |id| effects.writes(id).any(|root| root.index() < self.placeholders);
        let calls = || self.calls().map(|(id, _)| id);
        let mut open: Vec<NodeId> =
            calls().filter(|id| effects.is_global(*id) || writes_input(*id)).collect();
        self.outputs.iter().for_each(|output| output.for_each_node(&mut |id| open.push(id)));
        let mut writers: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for id in calls() {
            effects.writes(id).for_each(|root| writers.entry(root).or_default().push(id));
        }
        let mut needed = BTreeSet::new();
        while let Some(id) = open.pop() {
            if needed.insert(id)
                && let Some(call) = self.call(id)
            {
                call.for_each_input(|input| open.push(input));
                open.extend(writers.remove(&effects.root(id)).into_iter().flatten());
            }
        }
        needed
    }

    /// The graph without what nothing needs, and the names of what was left out.
    pub fn without_unneeded(&self) -> (Graph, Vec<Box<str>>) {
        let needed = self.needed();
        let mut kept = Graph::new();
        let mut left_out = Vec::new();
        let mut places: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        for id in self.ids() {
            let node = self.node(id);
            places.push(NodeId::new(kept.nodes.len()));
            match &node.kind {
                NodeKind::Placeholder(annotation) => {
                    kept.push_placeholder(node.name.clone(), *annotation, node.line);
                }
                NodeKind::Call(call) if needed.contains(&id) => {
                    let mut call = call.clone();
                    call.map_inputs(|input| Arg::Node(places[input.index()]));
                    kept.push_call(node.name.clone(), call, node.line);
                }
                NodeKind::Call(_) => left_out.push(node.name.clone()),
            }
        }
        kept.outputs = self.outputs.clone();
        for output in &mut kept.outputs {
            output.map_nodes(&mut |id| Arg::Node(places[id.index()]));
        }
        (kept, left_out)
    }

    /// Checks the invariants of the type and returns the first violation.
    pub fn verify(&self) -> Result<(), String> {
        let mut names = FxHashSet::default();
        for (index, node) in self.nodes.iter().enumerate() {
            if !names.insert(&*node.name) {
                return Err(format!("two nodes are named `{}`", node.name));
            }
            let is_placeholder = matches!(node.kind, NodeKind::Placeholder(_));
            if is_placeholder != (index < self.placeholders) {
                return Err(format!("`{}` is a placeholder after the first call", node.name));
            }
            if let NodeKind::Call(call) = &node.kind {
                let mut later = None;
                call.for_each_input(|input| {
                    if input.index() >= index {
                        later = Some(input);
                    }
                });
                if let Some(input) = later {
                    return Err(format!(
                        "`{}` uses value {} before it is defined",
                        node.name,
                        input.index()
                    ));
                }
            }
        }
        for output in &self.outputs {
            let mut missing = false;
            output.for_each_node(&mut |id| missing |= id.index() >= self.nodes.len());
            if missing {
                return Err("an output refers to a value that does not exist".into());
            }
        }
        Ok(())
    }
}

impl fmt::Display for Annotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Annotation::None => "",
            Annotation::Tensor => "torch.Tensor",
            Annotation::Parameter => "torch.nn.parameter.Parameter",
            Annotation::SymInt => "torch.SymInt",
        })
    }
}
