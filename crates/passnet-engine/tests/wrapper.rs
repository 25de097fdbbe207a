//! Replaced nodes run as launch plans: the pass's text is the only thing the engine gets.

use passnet_engine::native::{NativeEngine, Tensor, Wrappers};
use passnet_engine::{Engine, EngineError, ErrorKind, Precision, RunOptions, Value};
use passnet_graph::graph::{Annotation, Replacement, Target};
use passnet_graph::syntax::Source;
use passnet_graph::{Arg, Call, Graph};
use passnet_kernel::ModuleSet;

const PASS: &str = r#"
import torch
import triton
import triton.language as tl

@triton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    tl.store(out_ptr + place, tl.load(x_ptr + place, mask=inside) * factor, mask=inside)

def scale(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), factor, BLOCK=64)
    return out

def both(x, factor):
    out = scale(x, factor)
    return out, out[:, 1:]

def in_place(x, factor):
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, x, x.numel(), factor, BLOCK=64)
    return x

def nothing(x, factor):
    return torch.empty_like(x)

def short(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel() - 1, factor, BLOCK=64)
    return out

def outside(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel() + 1, factor, BLOCK=64)
    return out

@triton.autotune(
    configs=[triton.Config({"BLOCK": block}) for block in (2048, 16, 64)],
    key=["n"],
    restore_value=["x_ptr"],
)
@triton.jit
def tuned_kernel(x_ptr, n, factor, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK <= 1024, "too wide")
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n
    tl.store(x_ptr + place, tl.load(x_ptr + place, mask=inside) * factor, mask=inside)

def tuned(x, factor):
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    tuned_kernel[grid](x, x.numel(), factor)
    return x

@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (64, 128)], key=["n"])
@triton.jit
def unmasked_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (place < n) | (BLOCK == 128)
    tl.store(out_ptr + place, tl.load(x_ptr + place, mask=inside), mask=inside)

def unmasked(x, factor):
    out = torch.empty_like(x)
    unmasked_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out

def foreign(x, factor):
    return torch.relu(x)
"#;

fn graph(wrapper: &str, outputs: usize, writes: Vec<usize>) -> Graph {
    let mut graph = Graph::new();
    let x = graph.push_placeholder("x", Annotation::Tensor, 1);
    let replacement = Replacement {
        pass: "scale".into(),
        module: "scale".into(),
        wrapper: wrapper.into(),
        outputs,
        gives_tuple: false,
        writes,
        dead: Vec::new(),
    };
    let call = Call {
        target: Target::Replacement(Box::new(replacement)),
        args: vec![Arg::Node(x), Arg::Float(2.0)],
        kwargs: Vec::new(),
    };
    let y = graph.push_call("y", call, 2);
    graph.outputs = vec![Arg::Node(y)];
    graph
}

fn wrappers() -> Wrappers {
    let mut wrappers = Wrappers::default();
    let source = Source::new("scale.py", PASS);
    wrappers.add("scale", ModuleSet::new(vec![("scale".into(), source)]).unwrap());
    wrappers
}

fn input() -> Tensor {
    let values: Vec<f32> = (0..200).map(|i| i as f32).collect();
    Tensor::from_slice(&values, &[2, 100]).unwrap()
}

fn run(graph: &Graph, x: &Tensor) -> Result<Vec<Value>, EngineError> {
    let prepared = NativeEngine.prepare(graph, Precision::AsWritten, &wrappers())?;
    prepared.run(&[Value::Tensor(x.clone())], &RunOptions::default())
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_tensor().unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn a_wrapper_runs_and_leaves_its_arguments_alone() {
    let x = input();
    let doubled: Vec<f32> = (0..200).map(|i| 2.0 * i as f32).collect();
    let outputs = run(&graph("scale", 1, vec![]), &x).unwrap();
    assert_eq!(floats(&outputs[0]), doubled);
    assert_eq!(x.to_vec::<f32>().unwrap()[199], 199.0);
    assert!(!outputs[0].as_tensor().unwrap().shares_storage(&x));
}

#[test]
fn strided_and_shifted_arguments_are_seen_as_they_lie() {
    let x = input();
    let half = x.narrow(1, 50, 50).unwrap().narrow(0, 1, 1).unwrap();
    let outputs = run(&graph("scale", 1, vec![]), &half).unwrap();
    assert_eq!(floats(&outputs[0])[..2], [300.0, 302.0]);
}

#[test]
fn several_results_may_share_memory() {
    let outputs = run(&graph("both", 2, vec![]), &input()).unwrap();
    let Value::Sequence(parts) = &outputs[0] else { panic!("{outputs:?}") };
    assert_eq!(parts[1].as_tensor().unwrap().shape(), [2, 99]);
    assert_eq!(floats(&parts[1])[0], 2.0);
}

#[test]
fn writing_an_argument_is_refused_unless_the_replaced_code_did_it_too() {
    let refused = run(&graph("in_place", 1, vec![]), &input()).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Plan);
    assert!(refused.message.contains("writes into its argument `x`"), "{refused}");
    let x = input();
    let outputs = run(&graph("in_place", 1, vec![0]), &x).unwrap();
    assert!(outputs[0].as_tensor().unwrap().shares_storage(&x));
    assert_eq!(x.to_vec::<f32>().unwrap()[3], 6.0);
}

#[test]
fn memory_that_nothing_wrote_reads_as_nan_in_every_call() {
    let prepared = NativeEngine
        .prepare(&graph("nothing", 1, vec![]), Precision::AsWritten, &wrappers())
        .unwrap();
    for call in 0..4 {
        // As a timed call finds it, and as a verified one does.
        if call % 2 == 1 {
            prepared.scrub_memory();
        }
        let inputs = [Value::Tensor(input())];
        let outputs = prepared.run(&inputs, &RunOptions::default()).unwrap();
        let output = outputs[0].as_tensor().unwrap();
        assert!(floats(&outputs[0]).iter().all(|value| value.is_nan()), "call {call}");
        // What this call leaves behind must not be found by the next one.
        output.fill(3.0.into()).unwrap();
    }
}

#[test]
fn checks_find_holes_and_overruns() {
    let rules = |wrapper: &str| {
        let prepared = NativeEngine
            .prepare(&graph(wrapper, 1, vec![]), Precision::AsWritten, &wrappers())
            .unwrap();
        let found = prepared.check(&[Value::Tensor(input())], &RunOptions::default());
        found.map(|found| found.iter().map(|finding| finding.rule).collect::<Vec<_>>())
    };
    assert_eq!(rules("scale").unwrap(), Vec::<&str>::new());
    assert_eq!(rules("short").unwrap(), ["output-not-written"]);
    assert_eq!(rules("outside").unwrap(), ["out-of-bounds"]);
}

#[test]
fn what_cannot_be_planned_says_why_and_where() {
    let error = run(&graph("foreign", 1, vec![]), &input()).unwrap_err();
    assert_eq!((error.kind, &*error.node), (ErrorKind::Plan, "y"));
    assert!(error.message.contains("scale.py:"), "{error}");
    let error = run(&graph("both", 1, vec![]), &input()).unwrap_err();
    assert!(error.message.contains("returns 2 tensors"), "{error}");
    let error = NativeEngine
        .prepare(&graph("scale", 1, vec![]), Precision::AsWritten, &Wrappers::default())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    let error = NativeEngine
        .prepare(&graph("scale", 1, vec![]), Precision::Double, &wrappers())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
}

/// Every configuration is compiled and timed, on arguments that are as before afterwards; what was chosen is told.
#[test]
fn configurations_are_timed_and_the_choice_is_told() {
    let wrappers = wrappers();
    let graph = graph("tuned", 1, vec![0]);
    let prepared = NativeEngine.prepare(&graph, Precision::AsWritten, &wrappers).unwrap();
    assert!(prepared.tuned().is_empty());
    let x = input();
    let outputs = prepared.run(&[Value::Tensor(x.clone())], &RunOptions::default()).unwrap();
    assert_eq!(floats(&outputs[0])[199], 398.0, "it ran once in all");
    let [tuned] = &prepared.tuned()[..] else { panic!("{:?}", prepared.tuned()) };
    assert_eq!(tuned.key, "tuned_kernel(n=200, float32)");
    assert_eq!(tuned.candidates.len(), 3);
    assert!(tuned.candidates[0].skipped.as_ref().unwrap().contains("too wide"));
    assert!(tuned.chosen > 0 && tuned.candidates[tuned.chosen].ms.is_some());
    // Whoever prepares the graph again finds the choice made.
    let again = NativeEngine.prepare(&graph, Precision::AsWritten, &wrappers).unwrap();
    again.run(&[Value::Tensor(x)], &RunOptions::default()).unwrap();
    assert_eq!(again.tuned(), std::slice::from_ref(tuned));
}

/// Until one is chosen, each configuration is watched.
#[test]
fn every_open_configuration_is_watched() {
    let prepared = NativeEngine
        .prepare(&graph("unmasked", 1, vec![]), Precision::AsWritten, &wrappers())
        .unwrap();
    let findings = prepared.check(&[Value::Tensor(input())], &RunOptions::default()).unwrap();
    assert!(!findings.is_empty());
    let told = |finding: &passnet_kernel::check::Finding| {
        finding.message.contains("configuration `BLOCK: 128")
    };
    assert!(findings.iter().all(told), "{findings:?}");
}
