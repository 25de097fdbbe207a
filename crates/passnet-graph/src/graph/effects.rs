//! Which values share memory, which calls write, and which orders therefore matter.
//!
//! The analysis is conservative: a result that may be a view is treated as one, and an operation the table
//! does not know is treated as if it wrote into all its arguments.

use super::{Arg, Call, Graph, NodeId};
use crate::ops::{Alias, Bound, Class};
use std::borrow::Borrow;

/// The effects of a graph's calls.
#[derive(Debug)]
pub struct Effects {
    /// For every node, the smallest node whose memory it may share: aliases have the same root.
    roots: Vec<NodeId>,
    /// For every node, the roots it writes.
    writes: Vec<Vec<NodeId>>,
    /// Whether a node has an effect beyond its result and its writes (random state, modes, assertions).
    global: Vec<bool>,
    /// Whether a node works on metadata only: it neither reads nor writes elements.
    metadata: Vec<bool>,
}

impl Effects {
    /// Follows views and writes through the graph once.
    pub fn of(graph: &Graph) -> Self {
        Self::with(graph, |_, call| call.bind().ok())
    }

    /// The same for a caller that has the calls laid out already; `bind` gives `None` for those that do not fit
    /// their operation.
    pub fn with<'g, B: Borrow<Bound<'g>>>(
        graph: &'g Graph,
        bind: impl Fn(NodeId, &'g Call) -> Option<B>,
    ) -> Self {
        let count = graph.nodes().len();
        let mut effects = Effects {
            roots: (0..count).map(NodeId::new).collect(),
            writes: vec![Vec::new(); count],
            global: vec![false; count],
            metadata: vec![false; count],
        };
        for (id, call) in graph.calls() {
            if let Some(replacement) = call.target.replacement() {
                // What it updates in place it also returns: the results may share that memory. Of what nobody uses
                // any more it may make what it likes.
                let written = replacement.writes.iter().chain(&replacement.dead);
                for arg in written.filter_map(|&index| call.args.get(index)) {
                    effects.write(id, arg);
                    effects.join_first(id, Some(arg));
                }
                continue;
            }
            match bind(id, call).as_ref().map(Borrow::borrow) {
                Some(bound) => {
                    for target in bound.mutated().into_iter().chain(bound.updated()) {
                        effects.write(id, target);
                    }
                    if bound.alias() != Alias::Fresh {
                        effects.join_first(id, call.args.first());
                    }
                    effects.metadata[id.index()] =
                        bound.class() == Class::View && bound.alias() == Alias::View;
                    effects.global[id.index()] =
                        bound.is_random() || bound.class() == Class::Effect;
                }
                None => {
                    for arg in call.all_args() {
                        effects.write(id, arg);
                    }
                    effects.join_first(id, call.args.first());
                    effects.global[id.index()] = true;
                }
            }
        }
        effects
    }

    fn write(&mut self, writer: NodeId, target: &Arg) {
        let roots = &self.roots;
        let writes = &mut self.writes[writer.index()];
        target.for_each_node(&mut |id| writes.push(find(roots, id)));
    }

    /// A list of tensors (as `meshgrid` takes) may share memory with each of its elements.
    fn join_first(&mut self, id: NodeId, first: Option<&Arg>) {
        let Some(first) = first else { return };
        let roots = &mut self.roots;
        first.for_each_node(&mut |source| {
            let (a, b) = (find(roots, id), find(roots, source));
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            roots[high.index()] = low;
        });
    }

    /// Whether two values may share memory.
    pub fn may_alias(&self, a: NodeId, b: NodeId) -> bool {
        find(&self.roots, a) == find(&self.roots, b)
    }

    /// The earliest value that may share memory with it, or itself.
    pub fn root(&self, id: NodeId) -> NodeId {
        find(&self.roots, id)
    }

    /// The values whose memory this node writes, by root.
    pub fn writes(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        self.writes[id.index()].iter().map(|root| find(&self.roots, *root))
    }

    /// Whether a call changes what the graph was given.
    pub fn write_inputs(&self, graph: &Graph) -> bool {
        let is_input = |written: NodeId| written.index() < graph.placeholder_count();
        graph.calls().any(|(id, _)| self.writes(id).any(is_input))
    }

    /// Whether the call writes into an argument.
    pub fn mutates(&self, id: NodeId) -> bool {
        !self.writes[id.index()].is_empty()
    }

    /// Whether the node draws random numbers, switches a mode or asserts.
    pub fn is_global(&self, id: NodeId) -> bool {
        self.global[id.index()]
    }

    /// For every node, the earlier nodes it must stay after although it does not use their results: a read
    /// after the write before it, a write after the reads and the write before it, and effects in order.
    /// A view reads no elements: only an in-place change of metadata (`x.t_()`) may not pass it.
    pub fn order(&self, graph: &Graph) -> Vec<Vec<NodeId>> {
        self.order_without(graph, |_| false)
    }

    /// The same where some effects have no place among the others: of a whole mapped region that is taken out, hiding and
    /// restoring a dimension is arithmetic on indices.
    pub fn order_without(
        &self,
        graph: &Graph,
        is_left_out: impl Fn(NodeId) -> bool,
    ) -> Vec<Vec<NodeId>> {
        let count = graph.nodes().len();
        let mut order = vec![Vec::new(); count];
        let mut last_write: Vec<Option<NodeId>> = vec![None; count];
        let mut last_reshape: Vec<Option<NodeId>> = vec![None; count];
        let mut reads: Vec<Vec<NodeId>> = vec![Vec::new(); count];
        let mut views: Vec<Vec<NodeId>> = vec![Vec::new(); count];
        let mut written = vec![false; count];
        for id in graph.ids() {
            for root in self.writes(id) {
                written[root.index()] = true;
            }
        }
        let mut last_global = None;
        for (id, call) in graph.calls() {
            let after = &mut order[id.index()];
            let metadata = self.metadata[id.index()];
            call.for_each_input(|input| {
                let root = self.root(input).index();
                if written[root] {
                    let (last, uses) = if metadata {
                        (last_reshape[root], &mut views[root])
                    } else {
                        (last_write[root], &mut reads[root])
                    };
                    after.extend(last);
                    uses.push(id);
                }
            });
            for root in self.writes(id).map(NodeId::index) {
                after.append(&mut reads[root]);
                after.extend(last_write[root]);
                last_write[root] = Some(id);
                if metadata {
                    after.append(&mut views[root]);
                    last_reshape[root] = Some(id);
                }
            }
            if self.is_global(id) && !is_left_out(id) {
                after.extend(last_global);
                last_global = Some(id);
            }
            after.sort_unstable();
            after.dedup();
            after.retain(|earlier| *earlier != id);
        }
        order
    }
}

fn find(roots: &[NodeId], mut id: NodeId) -> NodeId {
    while roots[id.index()] != id {
        id = roots[id.index()];
    }
    id
}
