//! Rewritten graphs compute what they computed before: a random piece is taken out, the pattern is put back in its
//! place, and both graphs run on the native engine, with the inputs they leave behind compared too.

mod common;

use common::random::{graph_text, lines, pattern_text, steps};
use common::{graph, pattern, trace_pass};
use passnet_engine::dump::output_tensors;
use passnet_engine::native::{NativeEngine, Tensor, Wrappers};
use passnet_engine::{Engine, EngineError, Precision, RunOptions as EngineOptions, Value};
use passnet_graph::Graph;
use passnet_pass::rewrite::{RunOptions, restore, run};
use passnet_pass::trace::Dialect;
use proptest::prelude::*;

/// Small square inputs, so that most random operations fit each other.
fn inputs(graph: &Graph) -> Vec<Value> {
    let values = |seed: usize| (0..16).map(move |i| ((i * 7 + seed * 5) % 13) as f32 / 4.0 - 1.5);
    (0..graph.placeholder_count())
        .map(|seed| {
            let values: Vec<f32> = values(seed).collect();
            Value::Tensor(Tensor::from_slice(&values, &[4, 4]).unwrap())
        })
        .collect()
}

/// Outputs, and the inputs as they are afterwards.
fn results(graph: &Graph) -> Result<Vec<Tensor>, EngineError> {
    let inputs = inputs(graph);
    let prepared = NativeEngine.prepare(graph, Precision::AsWritten, &Wrappers::default())?;
    let outputs = prepared.run(&inputs, &EngineOptions::default())?;
    let mut tensors = output_tensors(&outputs).unwrap();
    tensors.extend(output_tensors(&inputs).unwrap());
    Ok(tensors)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_global_rejects: 20_000, ..Default::default() })]

    #[test]
    fn a_rewritten_graph_with_the_pattern_put_back_gives_the_same_bits(
        steps in steps(), start in 0..14_usize, length in 1..5_usize, extra in 0..14_usize,
    ) {
        let lines = lines(&steps);
        let graph = graph(&graph_text(&lines, extra));
        let expected = results(&graph);
        prop_assume!(expected.is_ok());
        let start = start % lines.len();
        let (parameters, body) = pattern_text(&lines[start..(start + length).min(lines.len())]);
        let loaded = trace_pass(&pattern(&parameters, &body), Dialect::Plain);
        let passes = std::slice::from_ref(&loaded.pass);
        let report = run(&loaded.program, passes, &graph, &RunOptions::default()).unwrap();
        let restored = restore(&report.graph, &loaded.pass).unwrap();
        let actual = results(&restored).unwrap();
        let expected = expected.unwrap();
        prop_assert_eq!(expected.len(), actual.len());
        for (expected, actual) in expected.iter().zip(&actual) {
            prop_assert!(expected.same_bits(actual).unwrap(), "{}\n{:?}\n{:?}", body, graph, restored);
        }
    }
}
