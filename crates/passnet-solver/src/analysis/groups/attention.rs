//! What lies in memory as attention's result does. Attention lays its result out as its query lies, or with the heads behind the
//! places, as suits its own kernel: how it lies is not known before the graph runs.

use super::{Refusal, outputs_of, refuse};
use passnet_graph::ops::{Class, Op};
use passnet_graph::{Arg, Graph, NodeId};
use std::collections::BTreeSet;

/// Whether a node shows what attention gives, or a view of it: what looks like a copy of it is most often a view, and nothing to
/// compute.
pub(super) fn shows_attention(graph: &Graph, id: NodeId) -> bool {
    let mut shown = id;
    while class(graph, shown) == Some(Class::View) {
        match graph.call(shown).and_then(|call| call.args.first()?.as_node()) {
            Some(source) => shown = source,
            None => return false,
        }
    }
    shown != id && class(graph, shown) == Some(Class::Attention)
}

/// A kernel writes what others read in an order that is known beforehand: eager must, too.
pub(super) fn check_outputs(graph: &Graph, members: &BTreeSet<NodeId>) -> Result<(), Refusal> {
    let lies_like_attention = lying_like_attention(graph);
    match outputs_of(graph, members).into_iter().find(|id| lies_like_attention[id.index()]) {
        Some(id) => {
            refuse!("eager lays out `{}` as attention's result lies", graph.node(id).name)
        }
        None => Ok(()),
    }
}

/// Whether eager lays a node out as attention's result lies, for every node: attention, its views, and what is computed of them
/// for each element.
pub(super) fn lying_like_attention(graph: &Graph) -> Vec<bool> {
    let mut lies = vec![false; graph.nodes().len()];
    for (id, call) in graph.calls() {
        let first = || call.args.first().and_then(Arg::as_node).is_some_and(|id| lies[id.index()]);
        let found = match (call.op(), class(graph, id)) {
            (Some(Op::ScaledDotProductAttention), _) => true,
            // In this order, whatever the order was before.
            (Some(Op::Contiguous | Op::Reshape | Op::Flatten), _) => false,
            (Some(Op::Clone), _) => call.kwargs.is_empty() && first(),
            (_, Some(Class::View | Class::Random)) => first(),
            (_, Some(Class::Pointwise | Class::Reduction)) => {
                let mut found = false;
                call.for_each_input(|input| found |= lies[input.index()]);
                found
            }
            _ => false,
        };
        lies[id.index()] = found;
    }
    lies
}

fn class(graph: &Graph, id: NodeId) -> Option<Class> {
    graph.call(id)?.op().map(Op::class)
}
