//! Inference answers on any graph: every spelling of every operation, called with arguments that make no
//! sense, gives a type, a located failure or an unknown, never a panic, and in bounded time.

use passnet_graph::graph::{Annotation, Arg, Call, Graph, NodeId, Target};
use passnet_graph::infer::{Dim, TensorType, Value, infer};
use passnet_graph::ops::{Op, Spelling, spellings};
use passnet_graph::{DType, Device};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

const INPUTS: usize = 8;

/// Inputs of many ranks, one of them symbolic, empty, huge, overlapping or a number.
fn inputs() -> Vec<Value> {
    let symbolic = TensorType::contiguous(
        DType::Float32,
        [Dim::symbol("S0", 2), Dim::fixed(3), Dim::symbol("S1", 8), Dim::fixed(8)]
            .into_iter()
            .collect::<passnet_graph::infer::Shape>(),
    );
    let overlapping = TensorType::strided(
        DType::Int64,
        [Dim::fixed(4), Dim::fixed(4)].into_iter().collect(),
        [0, 0].into_iter().collect(),
    );
    vec![
        symbolic.into(),
        TensorType::from_sizes(DType::Float16, &[3, 4]).into(),
        TensorType::from_sizes(DType::Int64, &[]).with_elements(vec![-7.0]).into(),
        TensorType::from_sizes(DType::Bool, &[0, 5]).into(),
        TensorType::from_sizes(DType::Complex64, &[1 << 20, 1 << 20, 1]).into(),
        overlapping.into(),
        Value::dim(Dim::symbol("s0", i64::MAX)),
        Value::Sequence(vec![Value::int(-1), Value::None, Value::float(f64::NAN)]),
    ]
}

fn literal() -> impl Strategy<Value = Arg> {
    prop_oneof![
        Just(Arg::None),
        any::<bool>().prop_map(Arg::Bool),
        prop_oneof![-9i64..9, Just(i64::MAX), Just(i64::MIN), Just(1 << 40)].prop_map(Arg::Int),
        prop_oneof![-3.0..3.0f64, Just(f64::NAN), Just(f64::INFINITY), Just(1e300)]
            .prop_map(Arg::Float),
        prop_oneof![Just("same"), Just("bilinear"), Just("ij,jk->ik"), Just("...i->...")]
            .prop_map(|text| Arg::Str(text.into())),
        Just(Arg::Dtype(DType::BFloat16)),
        Just(Arg::Device(Device::CPU)),
        Just(Arg::Ellipsis),
        Just(Arg::Constant("torch.channels_last".into())),
    ]
}

fn argument(nodes: usize) -> impl Strategy<Value = Arg> {
    let leaf = prop_oneof![
        3 => (0..nodes).prop_map(|index| Arg::Node(NodeId::new(index))),
        2 => literal(),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Arg::Tuple),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Arg::List),
            [inner.clone(), inner.clone(), inner].prop_map(|parts| Arg::Slice(Box::new(parts))),
        ]
    })
}

/// A call of one operation, positional and by keyword.
fn call(spelling: &'static Spelling, nodes: usize) -> impl Strategy<Value = Call> {
    let keywords: Vec<&'static str> = spelling.op.entry().signatures[0]
        .params
        .iter()
        .rev()
        .take(3)
        .map(|param| param.name)
        .collect();
    let first = (0..nodes).prop_map(|index| Arg::Node(NodeId::new(index)));
    let rest = prop::collection::vec(argument(nodes), 0..4);
    let named = prop::collection::vec(prop::option::of(argument(nodes)), keywords.len());
    (first, rest, named).prop_map(move |(first, rest, named)| Call {
        target: Target::Known(spelling),
        args: std::iter::once(first).chain(rest).collect(),
        kwargs: keywords
            .iter()
            .zip(named)
            .filter_map(|(name, arg)| Some(((*name).into(), arg?)))
            .collect(),
    })
}

#[test]
fn every_spelling_survives_any_arguments() {
    let values = inputs();
    assert_eq!(values.len(), INPUTS);
    let mut inferred = vec![false; Op::COUNT];
    for spelling in spellings() {
        let config = Config { cases: 12, rng_seed: RngSeed::Fixed(7), ..Config::default() };
        let mut runner = TestRunner::new(config);
        let outcome = runner.run(&(call(spelling, INPUTS), call(spelling, INPUTS + 1)), |calls| {
            let mut graph = Graph::new();
            for index in 0..INPUTS {
                graph.push_placeholder(format!("x{index}"), Annotation::None, 1);
            }
            graph.push_call("first", calls.0, 2);
            graph.push_call("second", calls.1, 3);
            let inference = infer(&graph, &values);
            prop_assert_eq!(inference.values.len(), INPUTS + 2);
            for failure in &inference.failures {
                prop_assert!(failure.line >= 2 && !failure.message.is_empty());
            }
            for value in &inference.values {
                prop_assert!(value.to_json().is_object());
            }
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{}: {error}", spelling.path);
        }
        inferred[spelling.op as usize] = true;
    }
    assert!(inferred.iter().all(|seen| *seen), "an operation has no spelling");
}

#[test]
fn long_chains_stay_cheap() {
    let mut graph = Graph::new();
    let start = graph.push_placeholder("n", Annotation::SymInt, 1);
    let mut last = start;
    for step in 0..20_000 {
        let path = ["add", "floordiv", "mul", "mod"][step % 4];
        let args = vec![Arg::Node(last), Arg::Int([3, 2, 2, 1_000_003][step % 4])];
        let target = Target::resolve(passnet_graph::graph::CalleeKind::Operator, path);
        last = graph.push_call(format!("v{step}"), Call { target, args, kwargs: Vec::new() }, 2);
    }
    let inference = infer(&graph, &[Value::dim(Dim::symbol("s0", 5))]);
    assert!(inference.failures.is_empty(), "{:?}", inference.failures.first());
    assert!(!inference.value(last).is_unknown());
}
