//! The way back: every call of a pass's wrapper replaced by the pattern it stands for.
//!
//! A rewritten graph that is restored must compute what the original did. Tests and the bench use this to
//! tell a wrong rewrite from a wrong kernel.

use super::RewriteError;
use crate::matcher::Pattern;
use crate::trace::Pass;
use passnet_graph::ops::Op;
use passnet_graph::{Arg, Call, Graph, NodeId, NodeKind};
use rustc_hash::{FxHashMap, FxHashSet};

/// The graph with the pattern in place of the pass's wrapper. The wrapper must be given every argument of the
/// pattern as it is.
pub fn restore(graph: &Graph, pass: &Pass) -> Result<Graph, RewriteError> {
    let places = argument_places(pass)?;
    let mut restorer = Restorer {
        pass,
        outputs: Pattern::new(&pass.pattern.graph).outputs().to_vec(),
        new: Graph::new(),
        values: FxHashMap::default(),
        several: FxHashMap::default(),
        names: graph.nodes().iter().map(|node| node.name.clone()).collect(),
    };
    for id in graph.ids() {
        restorer.node(graph, id, &places);
    }
    let mut outputs = graph.outputs.clone();
    for output in &mut outputs {
        output.map_nodes(&mut |id| restorer.value(id));
    }
    restorer.new.outputs = outputs;
    Ok(restorer.new)
}

/// For every argument of the pattern, which argument of the wrapper it is.
fn argument_places(pass: &Pass) -> Result<Vec<usize>, RewriteError> {
    let outputs = &pass.arguments.graph.outputs;
    let place = |index: usize| {
        let wanted = Arg::Node(NodeId::new(index));
        outputs.iter().position(|arg| *arg == wanted).ok_or_else(|| RewriteError {
            pass: pass.name.clone(),
            message: format!("`replacement_args` does not pass argument {index} on as it is"),
        })
    };
    (0..pass.pattern.graph.placeholder_count()).map(place).collect()
}

struct Restorer<'p> {
    pass: &'p Pass,
    outputs: Vec<NodeId>,
    new: Graph,
    values: FxHashMap<NodeId, Arg>,
    /// The values of a wrapper that returns several.
    several: FxHashMap<NodeId, Vec<Arg>>,
    names: FxHashSet<Box<str>>,
}

impl Restorer<'_> {
    fn value(&self, id: NodeId) -> Arg {
        self.values.get(&id).cloned().unwrap_or(Arg::None)
    }

    fn node(&mut self, graph: &Graph, id: NodeId, places: &[usize]) {
        let node = graph.node(id);
        let call = match &node.kind {
            NodeKind::Placeholder(annotation) => {
                let new = self.new.push_placeholder(node.name.clone(), *annotation, node.line);
                self.values.insert(id, Arg::Node(new));
                return;
            }
            NodeKind::Call(call) => call,
        };
        if let Some(replacement) = call.target.replacement()
            && *replacement.pass == *self.pass.name
        {
            return self.inline(id, call, places);
        }
        if let (Some(Op::GetItem), [Arg::Node(from), Arg::Int(index)]) = (call.op(), &call.args[..])
            && let Some(values) = self.several.get(from)
        {
            let value = usize::try_from(*index).ok().and_then(|index| values.get(index)).cloned();
            self.values.insert(id, value.unwrap_or(Arg::None));
            return;
        }
        let mut call = call.clone();
        call.map_inputs(|input| self.value(input));
        let new = self.new.push_call(node.name.clone(), call, node.line);
        self.values.insert(id, Arg::Node(new));
    }

    fn inline(&mut self, id: NodeId, wrapper: &Call, places: &[usize]) {
        let pattern = &self.pass.pattern.graph;
        let mut inner: Vec<Arg> = places
            .iter()
            .map(|&place| {
                let mut arg = wrapper.args.get(place).cloned().unwrap_or(Arg::None);
                arg.map_nodes(&mut |node| self.value(node));
                arg
            })
            .collect();
        for (pattern_id, call) in pattern.calls() {
            let mut call = call.clone();
            call.map_inputs(|input| inner[input.index()].clone());
            let name = self.fresh(&pattern.node(pattern_id).name);
            inner.push(Arg::Node(self.new.push_call(name, call, 0)));
        }
        let values: Vec<Arg> = self.outputs.iter().map(|o| inner[o.index()].clone()).collect();
        match values.as_slice() {
            [only] => {
                self.values.insert(id, only.clone());
            }
            _ => {
                self.several.insert(id, values);
            }
        }
    }

    fn fresh(&mut self, base: &str) -> Box<str> {
        let numbered = (1..).map(|n| format!("{base}_{n}").into_boxed_str());
        let mut names = std::iter::once(base.into()).chain(numbered);
        let name = names.find(|name| !self.names.contains(name)).unwrap_or_default();
        self.names.insert(name.clone());
        name
    }
}
