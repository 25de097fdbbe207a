//! Whole graphs: outputs as PyTorch gives them, errors that name the node and its line.
//!
//! Goldens: `python/goldens/graph_goldens.py`, PyTorch 2.11.

mod support;

use passnet_engine::native::tensor::Budget;
use passnet_engine::native::{NativeEngine, Tensor, TensorError, Wrappers};
use passnet_engine::{Engine, EngineError, ErrorKind, Precision, RunOptions, Value, dump};
use passnet_graph::syntax::Source;
use passnet_graph::{DType, Graph, read};
use support::{load, tensor};

fn graph(text: &str) -> Graph {
    read::read_model(&Source::new("model.py", text)).unwrap_or_else(|error| panic!("{error}"))
}

/// A graph of one or more statements over `x` (and `y`).
fn model(arguments: &str, body: &str) -> Graph {
    graph(&format!(
        "import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, {arguments}):\n        {}\n",
        body.replace("; ", "\n        ")
    ))
}

fn run(graph: &Graph, inputs: &[Value], precision: Precision) -> Result<Vec<Tensor>, EngineError> {
    let outputs = NativeEngine
        .prepare(graph, precision, &Wrappers::default())?
        .run(inputs, &RunOptions::default())?;
    Ok(dump::output_tensors(&outputs).unwrap())
}

/// The largest difference, as a multiple of the type's rounding at that magnitude.
fn distance(got: &Tensor, want: &Tensor) -> f64 {
    let unit = match want.dtype() {
        DType::Float16 => 2f64.powi(-10),
        DType::BFloat16 => 2f64.powi(-7),
        DType::Float64 => 2f64.powi(-52),
        _ => 2f64.powi(-23),
    };
    let (got, want) = (got.to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
    let largest = want.iter().fold(1e-6, |most: f64, v| most.max(v.abs()));
    let gap = |(a, b): (&f64, &f64)| {
        if a == b || (a.is_nan() && b.is_nan()) { 0.0 } else { (a - b).abs() }
    };
    got.iter()
        .zip(&want)
        .map(gap)
        .fold(0.0, |most: f64, v| if v.is_nan() { f64::INFINITY } else { most.max(v) })
        / (largest * unit)
}

#[test]
fn graphs_equal_torch() {
    for case in load("graphs.json") {
        let name = case["name"].as_str().unwrap();
        let graph = graph(case["source"].as_str().unwrap());
        let inputs: Vec<Value> = graph
            .placeholders()
            .iter()
            .map(|node| match &case["inputs"][&*node.name] {
                value if value.is_i64() => Value::int(value.as_i64().unwrap()),
                value => Value::Tensor(tensor(value)),
            })
            .collect();
        let got =
            run(&graph, &inputs, Precision::AsWritten).unwrap_or_else(|e| panic!("{name}: {e}"));
        let want: Vec<Tensor> = case["outputs"].as_array().unwrap().iter().map(tensor).collect();
        assert_eq!(got.len(), want.len(), "{name}");
        for (index, (got, want)) in got.iter().zip(&want).enumerate() {
            assert_eq!(got.dtype(), want.dtype(), "{name}, output {index}");
            assert_eq!(got.shape(), want.shape(), "{name}, output {index}");
            let limit = if want.dtype().is_float() { 4.0 } else { 0.0 };
            let off = distance(got, want);
            assert!(off <= limit, "{name}, output {index}: {off} roundings off");
        }
    }
}

/// One program runs many times; a run leaves nothing behind and its own inputs alone.
#[test]
fn a_program_runs_again_with_the_same_result() {
    let graph = model("x: torch.Tensor", "y = x * 2.0; z = torch.relu(y); w = z + y; return (w,)");
    let prepared =
        NativeEngine.prepare(&graph, Precision::AsWritten, &Wrappers::default()).unwrap();
    let input = Tensor::from_slice(&[-1.0f32, 2.0, 3.0], &[3]).unwrap();
    for _ in 0..3 {
        let outputs = prepared.run(&[input.clone().into()], &RunOptions::default()).unwrap();
        assert_eq!(outputs[0].as_tensor().unwrap().to_vec::<f32>().unwrap(), [-2.0, 8.0, 12.0]);
        assert_eq!(input.to_vec::<f32>().unwrap(), [-1.0, 2.0, 3.0]);
    }
}

/// A value whose memory is reused must not be one that a view still shows.
#[test]
fn memory_is_not_reused_under_a_view() {
    let graph = model(
        "x: torch.Tensor",
        "y = x + 1.0; v = y[0]; z = torch.relu(y); w = v * 1.0; return (w, z)",
    );
    let input = Tensor::from_slice(&[-3.0f32, 2.0], &[2, 1]).unwrap();
    let outputs = run(&graph, &[input.into()], Precision::AsWritten).unwrap();
    assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [-2.0]);
    assert_eq!(outputs[1].to_vec::<f32>().unwrap(), [0.0, 3.0]);
}

#[test]
fn the_oracle_computes_in_float64() {
    let graph = model(
        "x: torch.Tensor",
        "h = x.to(torch.float16); y = h * 0.1; n = torch.ones(2); m = y + n; return (m,)",
    );
    let input = Tensor::from_slice(&[1.0f32, 3.0], &[2]).unwrap();
    let outputs = run(&graph, &[input.into()], Precision::Double).unwrap();
    assert_eq!(outputs[0].dtype(), DType::Float64);
    let want = [1.0 * 0.1 + 1.0, 3.0 * 0.1 + 1.0];
    assert_eq!(outputs[0].to_vec::<f64>().unwrap(), want);
}

fn float(shape: &[usize]) -> Value {
    Value::Tensor(Tensor::zeros(shape, DType::Float32).unwrap())
}

fn int(values: &[i64]) -> Value {
    Value::Tensor(Tensor::from_slice(values, &[values.len()]).unwrap())
}

const TWO: &str = "x: torch.Tensor, y: torch.Tensor";

/// Arguments, a body whose second statement makes `z` and fails, inputs, and the kind of error.
type Refusal = (&'static str, &'static str, Vec<Value>, ErrorKind);

/// Every error names the node, its operation and its line.
fn check_refusals(cases: Vec<Refusal>) {
    for (arguments, body, inputs, kind) in cases {
        let error = run(&model(arguments, body), &inputs, Precision::AsWritten).unwrap_err();
        assert_eq!(error.kind, kind, "{body}: {error}");
        assert_eq!((error.node.as_str(), error.line), ("z", 7), "{body}: {error}");
    }
}

#[test]
fn errors_name_the_node_and_the_line() {
    check_refusals(vec![
        (
            TWO,
            "a = x + 1; z = a + y; return (z,)",
            vec![float(&[2, 3]), float(&[4])],
            ErrorKind::Shape,
        ),
        (
            TWO,
            "a = x + 1; z = a @ y; return (z,)",
            vec![float(&[2, 3]), float(&[4, 2])],
            ErrorKind::Shape,
        ),
        (TWO, "a = x + 1; z = a[y]; return (z,)", vec![float(&[2]), int(&[5])], ErrorKind::Index),
        (
            TWO,
            "a = x + 1; z = torch.nn.functional.embedding(y, a); return (z,)",
            vec![float(&[3, 2]), int(&[-1])],
            ErrorKind::Index,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = a.view(7); return (z,)",
            vec![float(&[2])],
            ErrorKind::Shape,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.zeros(9999999, 9999999); return (z,)",
            vec![float(&[2])],
            ErrorKind::Memory,
        ),
        (
            TWO,
            "a = x + 1; z = a // y; return (z,)",
            vec![int(&[2]), int(&[0])],
            ErrorKind::Arithmetic,
        ),
        (
            "x: torch.Tensor",
            "a = x.size(0); z = a // 0; return (z,)",
            vec![float(&[2])],
            ErrorKind::Arithmetic,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.relu(a, a, a); return (z,)",
            vec![float(&[2])],
            ErrorKind::Arguments,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.no_such_function(a); return (z,)",
            vec![float(&[2])],
            ErrorKind::Unsupported,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.arange(float('inf')); return (z,)",
            vec![float(&[2])],
            ErrorKind::Value,
        ),
        (
            TWO,
            "a = x + 1; z = torch.conv2d(a, y, None, (9223372036854775807, 1), (4611686018427387904, 1)); return (z,)",
            vec![float(&[1, 1, 4, 4]), float(&[1, 1, 3, 3])],
            ErrorKind::Value,
        ),
        (TWO, "a = x + 1; z = a & y; return (z,)", vec![float(&[2]), float(&[2])], ErrorKind::Type),
    ]);
}

#[test]
fn errors_of_rarer_operations_do_too() {
    check_refusals(vec![
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.linalg.inv(a); return (z,)",
            vec![float(&[2, 2])],
            ErrorKind::Arithmetic,
        ),
        (
            "x: torch.Tensor",
            "a = x - 1; z = torch.linalg.cholesky(a); return (z,)",
            vec![float(&[2, 2])],
            ErrorKind::Arithmetic,
        ),
        (
            "x: torch.Tensor",
            "a = x + 2; z = torch.nn.functional.binary_cross_entropy(a, x); return (z,)",
            vec![float(&[2])],
            ErrorKind::Value,
        ),
        (
            TWO,
            "a = x + 1; z = torch.nn.functional.max_unpool1d(a, y.view(1, 1), 2); return (z,)",
            vec![float(&[1, 1]), int(&[4])],
            ErrorKind::Index,
        ),
        (
            TWO,
            "a = x + 1; z = torch.rnn_tanh(a, y, [y, y], False, 1, 0.0, False, False, False); return (z,)",
            vec![float(&[2, 2, 3]), float(&[1, 2, 4])],
            ErrorKind::Shape,
        ),
        (
            TWO,
            "a = x + 1; z = torch.lstm(a, y, (a, a), [a, a], False, 1, 0.0, False, False); return (z,)",
            vec![float(&[3, 2, 2]), int(&[2])],
            ErrorKind::Shape,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.stft(a, 16, 0, return_complex=True); return (z,)",
            vec![float(&[40])],
            ErrorKind::Value,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.istft(torch.complex(a, a), 4, 2, length=1152921504606846976); return (z,)",
            vec![float(&[3, 5])],
            ErrorKind::Memory,
        ),
        (
            TWO,
            "a = x + 1; z = torch.nn.functional.ctc_loss(a, y, (9,), (1,)); return (z,)",
            vec![float(&[3, 1, 4]), int(&[1])],
            ErrorKind::Value,
        ),
        (
            "x: torch.Tensor",
            "a = x + 1; z = torch.kaiser_window(9223372036854775807); return (z,)",
            vec![float(&[2])],
            ErrorKind::Memory,
        ),
    ]);
}

#[test]
fn a_budget_bounds_what_a_run_may_hold() {
    let graph = model("x: torch.Tensor", "y = x.repeat(1000); return (y,)");
    let prepared =
        NativeEngine.prepare(&graph, Precision::AsWritten, &Wrappers::default()).unwrap();
    let input = Tensor::zeros(&[1000], DType::Float32).unwrap();
    let options = RunOptions { memory_limit: 1 << 20, ..RunOptions::default() };
    let error = prepared.run(&[input.into()], &options).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Memory, "{error}");
    let budget = Budget::new(1 << 10);
    let refused = budget.scope(|| Tensor::zeros(&[1 << 20], DType::Float32));
    assert!(matches!(refused, Err(TensorError::Allocation { .. })));
}

#[test]
fn a_wrong_number_of_inputs_is_an_error() {
    let graph = model("x: torch.Tensor", "y = x + 1; return (y,)");
    let error = run(&graph, &[], Precision::AsWritten).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Arguments);
}
