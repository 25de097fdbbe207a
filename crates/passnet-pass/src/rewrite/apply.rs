//! Applying a patch to a copy of the graph.

use super::patch::ADDED;
use super::{Patch, RewriteError, verify};
use crate::mapped::maps;
use passnet_graph::graph::effects::Effects;
use passnet_graph::graph::{CalleeKind, Target};
use passnet_graph::{Arg, Call, Graph, NodeId, NodeKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// The graph with the patch applied, or why it cannot be. The given graph is not touched.
pub fn apply(graph: &Graph, patch: &Patch) -> Result<Graph, RewriteError> {
    let error = |message: String| RewriteError { pass: patch.pass.clone(), message };
    let removed = check_fresh(graph, patch).map_err(error)?;
    let late = late_nodes(graph, &removed).map_err(error)?;
    let (Some(&first), Some(&last)) = (removed.first(), removed.last()) else {
        return Err(error("the patch removes nothing".into()));
    };
    let mut builder = Builder::new(graph, patch);
    for id in graph.ids() {
        if id <= last && !removed.contains(&id) && !late.contains(&id) {
            builder.copy(id);
        }
    }
    debug_assert!(first <= last);
    builder.insert(patch).map_err(error)?;
    for &id in &late {
        builder.copy(id);
    }
    for id in graph.ids().skip(last.index() + 1) {
        builder.copy(id);
    }
    let new = builder.finish(graph);
    verify(graph, &new, patch).map_err(error)?;
    Ok(new)
}

/// A patch fits only the graph it was made for: what it removes must still be there.
fn check_fresh(graph: &Graph, patch: &Patch) -> Result<Vec<NodeId>, String> {
    let mut removed = Vec::with_capacity(patch.removes.len());
    for (id, call) in &patch.removes {
        if graph.call(*id) != Some(call) {
            return Err(format!("the patch is stale: node {} is not what it was", id.index()));
        }
        removed.push(*id);
    }
    removed.sort_unstable();
    if let Some(output) = patch.replaces.iter().find(|id| !removed.contains(id)) {
        return Err(format!("replaced value {} is not among the removed nodes", output.index()));
    }
    for tap in &patch.taps {
        let mut bad = None;
        tap.for_each_node(&mut |id| {
            if id.index() >= graph.nodes().len() || removed.contains(&id) {
                bad = Some(id);
            }
        });
        if let Some(id) = bad {
            return Err(format!("value {} is tapped but would be gone", id.index()));
        }
    }
    Ok(removed)
}

/// The nodes between the removed ones that need one of them, and therefore go after the replacement.
fn late_nodes(graph: &Graph, removed: &[NodeId]) -> Result<Vec<NodeId>, String> {
    let (Some(first), Some(last)) = (removed.first(), removed.last()) else {
        return Ok(Vec::new());
    };
    let is_taken = |id: NodeId| maps(graph, id) && removed.binary_search(&id).is_ok();
    let order = Effects::of(graph).order_without(graph, is_taken);
    let mut late: Vec<NodeId> = Vec::new();
    let window = order.iter().enumerate().take(last.index() + 1).skip(first.index());
    for (index, order) in window {
        let id = NodeId::new(index);
        let Some(call) = graph.call(id) else { continue };
        let inside = removed.binary_search(&id).is_ok();
        let mut needs_late = false;
        let mut visit = |input: NodeId| {
            needs_late |= late.binary_search(&input).is_ok();
            needs_late |= !inside && removed.binary_search(&input).is_ok();
        };
        call.for_each_input(&mut visit);
        order.iter().copied().for_each(&mut visit);
        match (needs_late, inside) {
            (true, true) => {
                let name = &graph.node(id).name;
                return Err(format!("`{name}` would depend on the replacement of itself"));
            }
            (true, false) => late.push(id),
            _ => {}
        }
    }
    Ok(late)
}

/// Builds the new graph and keeps track of where values went.
struct Builder<'g> {
    old: &'g Graph,
    new: Graph,
    moved: FxHashMap<NodeId, Arg>,
    names: FxHashSet<Box<str>>,
}

impl<'g> Builder<'g> {
    fn new(old: &'g Graph, patch: &Patch) -> Self {
        let gone: FxHashSet<NodeId> = patch.removes.iter().map(|(id, _)| *id).collect();
        let kept = old.ids().filter(|id| !gone.contains(id));
        // A value with the wrapper's name would hide the wrapper from the printed call.
        let wrappers = patch.adds.iter().filter_map(|call| call.target.replacement());
        let names = kept
            .map(|id| old.node(id).name.clone())
            .chain(wrappers.map(|replacement| replacement.wrapper.clone()))
            .collect();
        Builder { old, new: Graph::new(), moved: FxHashMap::default(), names }
    }

    fn value(&self, id: NodeId) -> Arg {
        self.moved.get(&id).cloned().unwrap_or(Arg::None)
    }

    fn copy(&mut self, id: NodeId) {
        let node = self.old.node(id);
        let new = match &node.kind {
            NodeKind::Placeholder(annotation) => {
                self.new.push_placeholder(node.name.clone(), *annotation, node.line)
            }
            NodeKind::Call(call) => {
                let mut call = call.clone();
                call.map_inputs(|input| self.value(input));
                self.new.push_call(node.name.clone(), call, node.line)
            }
        };
        self.moved.insert(id, Arg::Node(new));
    }

    fn insert(&mut self, patch: &Patch) -> Result<(), String> {
        let mut added = Vec::with_capacity(patch.adds.len());
        let count = patch.adds.len();
        for (index, call) in patch.adds.iter().enumerate() {
            let mut call = call.clone();
            let mut missing = false;
            call.map_inputs(|input| match input.index().checked_sub(ADDED) {
                Some(earlier) => match added.get(earlier) {
                    Some(id) => Arg::Node(*id),
                    None => {
                        missing = true;
                        Arg::None
                    }
                },
                None => self.value(input),
            });
            if missing {
                return Err("an added call uses a later one".into());
            }
            // With one output the replacement takes the name of what it replaces.
            let name = match patch.replaces.as_slice() {
                [only] if index + 1 == count => self.claim(&self.old.node(*only).name.clone()),
                _ => self.claim(&call.target.op_name()),
            };
            added.push(self.new.push_call(name, call, 0));
        }
        let Some(&wrapper) = added.last() else { return Err("the patch adds nothing".into()) };
        if let [only] = patch.replaces.as_slice() {
            self.moved.insert(*only, Arg::Node(wrapper));
            return Ok(());
        }
        for (index, output) in patch.replaces.iter().enumerate() {
            let name = self.claim(&self.old.node(*output).name.clone());
            let call = Call {
                target: Target::resolve(CalleeKind::Operator, "getitem"),
                args: vec![Arg::Node(wrapper), Arg::Int(index as i64)],
                kwargs: Vec::new(),
            };
            let id = self.new.push_call(name, call, self.old.node(*output).line);
            self.moved.insert(*output, Arg::Node(id));
        }
        Ok(())
    }

    fn claim(&mut self, wanted: &str) -> Box<str> {
        let last = wanted.rsplit('.').next().unwrap_or(wanted);
        let numbered = (1..).map(|n| format!("{last}_{n}").into_boxed_str());
        let mut names = std::iter::once(last.into()).chain(numbered);
        let name = names.find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(name.clone());
        name
    }

    fn finish(mut self, old: &Graph) -> Graph {
        let mut outputs = old.outputs.clone();
        for output in &mut outputs {
            output.map_nodes(&mut |id| self.value(id));
        }
        self.new.outputs = outputs;
        self.new
    }
}
