//! A rewrite as a value.

use super::RewriteError;
use crate::load::Program;
use crate::matcher::{Match, Pattern};
use crate::trace::Pass;
use passnet_graph::graph::effects::Effects;
use passnet_graph::graph::{Replacement, Target};
use passnet_graph::{Arg, Call, Graph, NodeId};

/// What a pass does to a graph at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The name of the pass.
    pub pass: String,
    /// The values of the graph that the new calls read, one for each argument of the pattern.
    pub taps: Vec<Arg>,
    /// The calls that go, with what they were when the patch was made.
    pub removes: Vec<(NodeId, Call)>,
    /// The values that are replaced, in the order in which the wrapper returns them.
    pub replaces: Vec<NodeId>,
    /// The calls that come, the wrapper's last.
    pub adds: Vec<Call>,
}

/// Stands in [`Patch::adds`] for the result of an earlier added call: node ids from here on.
pub(super) const ADDED: usize = 1 << 30;

impl Patch {
    /// The patch for a match of a pass.
    pub fn new(
        program: &Program,
        pass: &Pass,
        graph: &Graph,
        found: &Match,
    ) -> Result<Self, RewriteError> {
        let error =
            |message: &str| RewriteError { pass: pass.name.clone(), message: message.into() };
        let arguments = &pass.arguments.graph;
        let count = arguments.placeholder_count();
        let taps: Vec<Arg> = found.bindings.iter().take(count).cloned().collect();
        if taps.len() != count {
            return Err(error("`replacement_args` takes other arguments than `pattern`"));
        }
        let place = |id: NodeId| match id.index().checked_sub(count) {
            None => taps[id.index()].clone(),
            Some(added) => Arg::Node(NodeId::new(ADDED + added)),
        };
        let mut adds = Vec::with_capacity(arguments.op_count() + 1);
        for (_, call) in arguments.calls() {
            let mut call = call.clone();
            call.map_inputs(place);
            adds.push(call);
        }
        let mut args = arguments.outputs.clone();
        for arg in &mut args {
            arg.map_nodes(&mut |id| place(id));
        }
        let pattern = Pattern::new(&pass.pattern.graph);
        let replacement = Replacement {
            pass: pass.name.as_str().into(),
            module: program.module(pass.wrapper.module).name.as_str().into(),
            wrapper: pass.wrapper.function.as_str().into(),
            outputs: pattern.outputs().len(),
            gives_tuple: gives_tuple(&pattern),
            writes: written_arguments(pass),
            dead: dead_arguments(graph, found, &args, &adds),
        };
        adds.push(Call {
            target: Target::Replacement(Box::new(replacement)),
            args,
            kwargs: Vec::new(),
        });
        let removes = found.nodes.iter().map(|&id| {
            graph.call(id).map(|call| (id, call.clone())).ok_or_else(|| error("matches an input"))
        });
        Ok(Patch {
            pass: pass.name.clone(),
            removes: removes.collect::<Result<_, _>>()?,
            replaces: found.outputs.clone(),
            taps,
            adds,
        })
    }
}

/// Whether the pattern returns one value, and that is a tuple.
fn gives_tuple(pattern: &Pattern<'_>) -> bool {
    let [only] = pattern.outputs() else { return false };
    let bound = pattern.graph.call(*only).and_then(|call| call.bind().ok());
    bound.is_some_and(|bound| bound.gives_tuple())
}

/// The wrapper's arguments that nobody uses any more once the match has run, neither themselves nor a value that shares
/// their memory. Who uses them before is no matter: that stays before the replacement.
fn dead_arguments(graph: &Graph, found: &Match, args: &[Arg], adds: &[Call]) -> Vec<usize> {
    let effects = Effects::of(graph);
    let Some(&first) = found.nodes.iter().min() else { return Vec::new() };
    let is_dead = |arg: &Arg| {
        let Arg::Node(value) = arg else { return false };
        if value.index() >= graph.nodes().len() {
            return false;
        }
        let is_known = graph.call(*value).is_some_and(|call| call.target.op().is_some());
        let mut dead = is_known && effects.root(*value).index() >= graph.placeholder_count();
        let shares = |id: NodeId| !found.nodes.contains(&id) && effects.may_alias(id, *value);
        for output in &graph.outputs {
            output.for_each_node(&mut |id| dead &= !shares(id));
        }
        for (id, call) in graph.calls().skip(first.index() - graph.placeholder_count()) {
            if !found.nodes.contains(&id) {
                call.for_each_input(|input| dead &= !shares(input));
                dead &= id == *value || !shares(id);
            }
        }
        adds.iter().for_each(|call| call.for_each_input(|input| dead &= input != *value));
        dead
    };
    let once = |arg: &Arg| args.iter().filter(|other| *other == arg).count() == 1;
    let arguments = args.iter().enumerate();
    arguments.filter(|(_, arg)| is_dead(arg) && once(arg)).map(|(index, _)| index).collect()
}

/// The wrapper's arguments that the pattern updates in place.
fn written_arguments(pass: &Pass) -> Vec<usize> {
    let pattern = &pass.pattern.graph;
    let effects = Effects::of(pattern);
    let mut written: Vec<usize> = Vec::new();
    for (id, _) in pattern.calls() {
        written.extend(effects.writes(id).map(NodeId::index));
    }
    let is_written = |arg: &Arg| {
        let mut found = false;
        arg.for_each_node(&mut |id| {
            found |= id.index() < pattern.placeholder_count() && written.contains(&id.index());
        });
        found
    };
    let outputs = pass.arguments.graph.outputs.iter().enumerate();
    outputs.filter(|(_, arg)| is_written(arg)).map(|(index, _)| index).collect()
}
