//! Random graphs: printing and reading are inverse, and identity sees meaning, not text.

use passnet_graph::graph::effects::Effects;
use passnet_graph::graph::{Annotation, CalleeKind, NodeKind, Target};
use passnet_graph::print::print_model;
use passnet_graph::syntax::Source;
use passnet_graph::{Arg, Call, Graph, NodeId, identify, read};
use proptest::prelude::*;

/// One random statement: which operation, which earlier values, which literal.
#[derive(Debug, Clone)]
struct Step {
    operation: usize,
    left: prop::sample::Index,
    right: prop::sample::Index,
    literal: i64,
}

fn step() -> impl Strategy<Value = Step> {
    (0..8_usize, any::<prop::sample::Index>(), any::<prop::sample::Index>(), -3..4_i64)
        .prop_map(|(operation, left, right, literal)| Step { operation, left, right, literal })
}

fn build(arguments: usize, steps: &[Step]) -> Graph {
    let mut graph = Graph::new();
    for index in 0..arguments {
        graph.push_placeholder(format!("in_{index}"), Annotation::None, 0);
    }
    for (index, step) in steps.iter().enumerate() {
        let count = graph.nodes().len();
        let left = Arg::Node(NodeId::new(step.left.index(count)));
        let right = Arg::Node(NodeId::new(step.right.index(count)));
        let literal = Arg::Int(step.literal);
        let (kind, path, args) = match step.operation {
            0 => (CalleeKind::Function, "torch.relu", vec![left]),
            1 => (CalleeKind::Operator, "add", vec![left, right]),
            2 => (CalleeKind::Operator, "sub", vec![literal, left]),
            3 => (CalleeKind::Method, "mul", vec![left, right]),
            4 => (CalleeKind::Method, "transpose", vec![left, Arg::Int(0), literal]),
            5 => (CalleeKind::Function, "torch.cat", vec![Arg::List(vec![left, right]), literal]),
            6 => (CalleeKind::Method, "add_", vec![left, right]),
            _ => (
                CalleeKind::Operator,
                "getitem",
                vec![
                    left,
                    Arg::Tuple(vec![
                        Arg::None,
                        Arg::Slice(Box::new([literal, Arg::None, Arg::Int(2)])),
                    ]),
                ],
            ),
        };
        let call = Call { target: Target::resolve(kind, path), args, kwargs: Vec::new() };
        graph.push_call(format!("tmp_{index}"), call, 0);
    }
    let last = graph.nodes().len() - 1;
    graph.outputs = vec![Arg::Node(NodeId::new(last)), Arg::Node(NodeId::new(last / 2))];
    graph
}

/// The same graph with its arguments reversed and its calls in another order that keeps every dependency.
fn reorder(graph: &Graph, picks: &[prop::sample::Index]) -> Graph {
    let order = Effects::of(graph).order(graph);
    let mut waiting: Vec<NodeId> = graph.calls().map(|(id, _)| id).collect();
    let mut new_ids: Vec<Option<NodeId>> = vec![None; graph.nodes().len()];
    let mut result = Graph::new();
    for index in (0..graph.placeholder_count()).rev() {
        new_ids[index] = Some(result.push_placeholder(format!("p{index}"), Annotation::None, 0));
    }
    let mut pick = picks.iter().cycle();
    while !waiting.is_empty() {
        let ready: Vec<usize> = (0..waiting.len())
            .filter(|&position| {
                let id = waiting[position];
                let mut done =
                    order[id.index()].iter().all(|earlier| new_ids[earlier.index()].is_some());
                graph
                    .call(id)
                    .expect("a call")
                    .for_each_input(|input| done &= new_ids[input.index()].is_some());
                done
            })
            .collect();
        let chosen = ready[pick.next().map_or(0, |index| index.index(ready.len()))];
        let id = waiting.remove(chosen);
        let NodeKind::Call(mut call) = graph.node(id).kind.clone() else { continue };
        call.map_inputs(|input| Arg::Node(new_ids[input.index()].expect("defined before")));
        let name = format!("v{}", result.nodes().len());
        new_ids[id.index()] = Some(result.push_call(name, call, 0));
    }
    result.outputs = graph.outputs.clone();
    for output in &mut result.outputs {
        output.map_nodes(&mut |id| Arg::Node(new_ids[id.index()].expect("every node is placed")));
    }
    result
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn printed_graphs_read_back(
        arguments in 1..4_usize, steps in proptest::collection::vec(step(), 1..25)
    ) {
        let graph = build(arguments, &steps);
        prop_assert_eq!(graph.verify(), Ok(()));
        let text = print_model(&graph);
        let again = read::read_model(&Source::new("printed", text.clone()))
            .map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(again, graph);
    }

    #[test]
    fn identity_ignores_names_and_order(
        arguments in 1..4_usize,
        steps in proptest::collection::vec(step(), 1..25),
        picks in proptest::collection::vec(any::<prop::sample::Index>(), 1..25),
    ) {
        let graph = build(arguments, &steps);
        let other = reorder(&graph, &picks);
        prop_assert_eq!(other.verify(), Ok(()));
        prop_assert_eq!(identify(&graph, &[]), identify(&other, &[]));
    }

    #[test]
    fn identity_sees_a_changed_operation(
        arguments in 1..4_usize,
        steps in proptest::collection::vec(step(), 1..25),
        changed in any::<prop::sample::Index>(),
    ) {
        let graph = build(arguments, &steps);
        let mut other_steps = steps.clone();
        let step = &mut other_steps[changed.index(steps.len())];
        step.operation = if step.operation == 0 { 4 } else { 0 };
        let other = build(arguments, &other_steps);
        prop_assert_ne!(identify(&graph, &[]).structure, identify(&other, &[]).structure);
    }
}
