//! Updates in place: which value a name stands for after them, and which views must not be read any more.

use super::{Piece, Refusal, refuse};
use passnet_graph::infer::Value;
use passnet_graph::ops::{Bound, Class, Op};
use passnet_graph::{Arg, Call, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// What is known while the calls of a pattern are followed in order.
#[derive(Default)]
struct Memory {
    /// Whose elements a view shows, for every view and list of views.
    views: BTreeMap<NodeId, NodeId>,
    /// Views of what was updated since.
    stale: BTreeSet<NodeId>,
    /// What a view that was updated shows: it is not what it was, until the view is assigned back.
    open: BTreeMap<NodeId, NodeId>,
}

impl Memory {
    /// What is updated makes its views stale, but for one.
    fn update(&mut self, root: NodeId, except: Option<NodeId>) {
        let of_root = self.views.iter().filter(|(view, of)| **of == root && Some(**view) != except);
        self.stale.extend(of_root.map(|(view, _)| *view));
    }
}

/// Whether several elements of a tensor are one in memory.
fn is_spread(value: &Value) -> bool {
    let Some(tensor) = value.as_tensor() else { return false };
    let mut dims = tensor.shape.iter().zip(&tensor.strides);
    dims.any(|(dim, stride)| dim.size > 1 && *stride == 0)
}

impl Piece {
    /// Follows updates in place, so that later readers see the new value.
    pub(super) fn follow_updates(&mut self) -> Result<(), Refusal> {
        self.current = vec![BTreeMap::new(); self.graph.nodes().len()];
        self.object = self.graph.ids().collect();
        let mut memory = Memory::default();
        let calls: Vec<(NodeId, Call)> =
            self.graph.calls().map(|(id, call)| (id, call.clone())).collect();
        for (id, call) in calls {
            let mut inputs = Vec::new();
            call.for_each_input(|input| inputs.push(input));
            let bound = call.bind().map_err(Refusal::new)?;
            let closed = self.closed(&memory, &bound);
            for input in inputs {
                let object = self.object[input.index()];
                let root = memory.views.get(&object).copied().unwrap_or(object);
                let is_open = memory.open.get(&root).is_some_and(|view| *view != object);
                if memory.stale.contains(&object) || (is_open && closed != Some(root)) {
                    refuse!("`{}` updates memory that has views", self.name(id));
                }
                if let Some(now) = self.latest.get(&object) {
                    self.current[id.index()].insert(input, *now);
                }
            }
            if let Some(source) = self.same_tensor(id, &call, &bound) {
                self.object[id.index()] = self.object[source.index()];
            } else if let Some(target) = bound.mutated() {
                let Some(target) = target.as_node() else {
                    refuse!("`{}` updates something that is no value", self.name(id))
                };
                self.update(&mut memory, id, &bound, self.object[target.index()], closed)?;
            } else if let Some(source) = call.args.first().and_then(Arg::as_node)
                && self.is_view(id, source, &bound, &memory)
            {
                let object = self.object[source.index()];
                let root = memory.views.get(&object).copied().unwrap_or(object);
                memory.views.insert(id, root);
            }
        }
        let is_part = |output: &NodeId| {
            let object = &self.object[output.index()];
            let is_updated = self.latest.contains_key(object);
            memory.stale.contains(object) || (is_updated && memory.views.contains_key(object))
        };
        if !memory.open.is_empty() || self.outputs.iter().any(is_part) {
            refuse!("a view is updated, and what it shows is needed");
        }
        Ok(())
    }

    /// Takes an update of an object into account.
    fn update(
        &mut self,
        memory: &mut Memory,
        id: NodeId,
        bound: &Bound<'_>,
        root: NodeId,
        closed: Option<NodeId>,
    ) -> Result<(), Refusal> {
        if bound.class() == Class::View {
            refuse!("`{}` updates memory that has views", self.name(id));
        }
        if self.is_param(root) && self.types[root.index()].iter().any(is_spread) {
            refuse!("`{}` updates elements that lie at one place", self.name(id));
        }
        if let Some(shown) = memory.views.get(&root).copied() {
            let made = self.graph.call(root).and_then(|call| Some((call.op()?, call)));
            let is_part = made.is_some_and(|(op, call)| {
                op == Op::GetItem && call.args.first() == Some(&Arg::Node(shown))
            });
            if !is_part || memory.open.contains_key(&shown) {
                refuse!("`{}` updates memory that has views", self.name(id));
            }
            memory.update(shown, Some(root));
            memory.open.insert(shown, root);
        } else {
            let view = memory.open.remove(&root).filter(|_| closed == Some(root));
            memory.update(root, view);
        }
        self.object[id.index()] = root;
        self.latest.insert(root, id);
        Ok(())
    }

    /// What is whole again because a view of it that was updated is assigned to where it was taken from.
    fn closed(&self, memory: &Memory, bound: &Bound<'_>) -> Option<NodeId> {
        if bound.op != Op::SetItem {
            return None;
        }
        let root = self.object[bound.arg("input").as_node()?.index()];
        let value = self.object[bound.arg("value").as_node()?.index()];
        let taken = self.graph.call(value)?.bind().ok()?;
        let is_same = memory.open.get(&root) == Some(&value)
            && taken.op == Op::GetItem
            && taken.arg("index") == bound.arg("index");
        is_same.then_some(root)
    }

    /// The tensor that a call without effect gives back as it is, such as dropout at inference: a second name of one object.
    fn same_tensor(&self, id: NodeId, call: &Call, bound: &Bound<'_>) -> Option<NodeId> {
        let gives_back = matches!(
            bound.op,
            Op::Dropout | Op::Dropout1d | Op::Dropout2d | Op::Dropout3d | Op::AlphaDropout
        ) && !bound.is_random()
            && bound.mutated().is_none();
        let source = call.args.first()?.as_node().filter(|_| gives_back)?;
        let same = |(result, source): (&Value, &Value)| match (result, source) {
            (Value::Tensor(result), Value::Tensor(source)) => result.shares_memory_with(source),
            _ => false,
        };
        let types = self.types[id.index()].iter().zip(&self.types[source.index()]);
        types.into_iter().all(same).then_some(source)
    }

    /// Whether a result shows elements of what it is made from.
    fn is_view(&self, id: NodeId, source: NodeId, bound: &Bound<'_>, memory: &Memory) -> bool {
        match (&self.types[id.index()][0], self.types[source.index()].first()) {
            (Value::Tensor(result), Some(Value::Tensor(source))) => {
                result.shares_memory_with(source)
            }
            (Value::Sequence(_), Some(Value::Tensor(_))) => bound.class() == Class::View,
            (Value::Tensor(_), Some(Value::Sequence(_))) => {
                memory.views.contains_key(&self.object[source.index()])
            }
            _ => false,
        }
    }
}
