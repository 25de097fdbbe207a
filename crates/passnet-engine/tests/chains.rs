//! Elementwise operations done in one pass give the same bits, shapes and layouts as done one by one.
//!
//! Whoever observes a run sees every node, so an observed run never joins them: that is the yardstick here.

use passnet_engine::native::executor::{NodeTime, Observer, Step};
use passnet_engine::native::random::Generator;
use passnet_engine::native::tensor::Budget;
use passnet_engine::native::{Program, Tensor, Wrappers};
use passnet_engine::{Precision, Prepared, RunOptions, Value, dump};
use passnet_graph::syntax::Source;
use passnet_graph::{DType, read};
use proptest::prelude::*;
use std::sync::Arc;

/// Counts the nodes it sees.
struct Counter(usize);

impl Observer for Counter {
    const ACTIVE: bool = true;

    fn node(&mut self, _: &Step, _: &NodeTime<'_>) {
        self.0 += 1;
    }
}

fn program(body: &str) -> Program {
    let text = format!(
        "import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x: torch.Tensor, y: torch.Tensor, \
         b: torch.Tensor, m: torch.Tensor, v: torch.Tensor):\n        {}\n",
        body.replace("; ", "\n        ")
    );
    let graph = read::read_model(&Source::new("model.py", &text)).unwrap_or_else(|e| panic!("{e}"));
    Program::compile(&graph, Precision::AsWritten, &Wrappers::default())
        .unwrap_or_else(|e| panic!("{text}\n{e}"))
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    Rows,
    Transposed,
    ChannelsLast,
}

/// `x` and `y` of one shape, `b` of one value per channel to be broadcast, `m` and `v` statistics of the channels.
fn inputs(dtype: DType, layout: Layout, size: usize) -> Vec<Value> {
    let mut generator = Generator::new(size as u64);
    let mut draw = |shape: &[usize]| generator.randn(shape, DType::Float32).unwrap();
    let lay = |t: Tensor| match layout {
        Layout::Rows => t,
        Layout::Transposed => t.transpose(2, 3).unwrap(),
        Layout::ChannelsLast => t.channels_last().unwrap(),
    };
    let shape = [2, 3, size, size];
    let x = lay(draw(&shape).to_dtype(dtype).unwrap());
    let y = lay(draw(&shape).to_dtype(dtype).unwrap());
    let b = draw(&[3, 1, 1]).to_dtype(dtype).unwrap();
    let m = draw(&[3]).to_dtype(dtype).unwrap();
    let v = passnet_engine::native::ops::pointwise::unary(
        passnet_engine::native::ops::pointwise::Unary::Square,
        &draw(&[3]),
    )
    .unwrap();
    vec![x.into(), y.into(), b.into(), m.into(), v.to_dtype(dtype).unwrap().into()]
}

fn copies(values: &[Value]) -> Vec<Value> {
    values.iter().map(|v| v.as_tensor().unwrap().copy().unwrap().into()).collect()
}

/// Outputs joined and one by one, as bytes with shape, strides and type.
fn both(program: &Program, given: &[Value]) -> [Vec<String>; 2] {
    let describe = |outputs: &[Value]| -> Vec<String> {
        let tensors = dump::output_tensors(outputs).unwrap();
        let show = |t: &Tensor| format!("{t:?} {:?}", t.to_bytes().unwrap());
        tensors.iter().map(show).collect()
    };
    let options = RunOptions::default();
    let joined = program.run(&copies(given), &options).unwrap();
    let mut counter = Counter(0);
    let alone = program.run_observed(&copies(given), &options, &mut counter).unwrap();
    assert_eq!(counter.0, program.steps().len());
    [describe(&joined), describe(&alone)]
}

const STATEMENTS: [&str; 16] = [
    "{t} = {a} + {c}",
    "{t} = {a} - y",
    "{t} = {a} * b",
    "{t} = {a} * 0.3",
    "{t} = 1.5 - {a}",
    "{t} = {a} / 3",
    "{t} = torch.relu({a})",
    "{t} = torch.nn.functional.gelu({a})",
    "{t} = torch.sigmoid({a})",
    "{t} = {a} ** 2",
    "{t} = torch.nn.functional.leaky_relu({a}, 0.1, True)",
    "{t} = torch.nn.functional.dropout({a}, 0.1, False, False)",
    "{t} = torch.nn.functional.batch_norm({a}, m, v, m, None, False, 0.1, 1e-05)",
    "{t} = torch.add({a}, {c}, alpha=0.7)",
    "{t} = torch.maximum({a}, b)",
    "{t} = {a}.tanh()",
];

/// A body of statements, each reading two earlier values, and some of them returned.
fn body(choices: &[(usize, usize, usize, bool)]) -> String {
    let mut names = vec!["x".to_string(), "y".to_string()];
    let mut lines = Vec::new();
    let mut returned = Vec::new();
    for (at, (statement, a, c, keep)) in choices.iter().enumerate() {
        let target = format!("t{at}");
        lines.push(
            STATEMENTS[statement % STATEMENTS.len()]
                .replace("{t}", &target)
                .replace("{a}", &names[a % names.len()])
                .replace("{c}", &names[c % names.len()]),
        );
        if *keep {
            returned.push(target.clone());
        }
        names.push(target);
    }
    returned.extend(names.last().cloned());
    lines.push(format!("return ({},)", returned.join(", ")));
    lines.join("; ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn one_pass_gives_the_same_bits(
        choices in prop::collection::vec((0..16usize, 0..9usize, 0..9usize, any::<bool>()), 2..9),
        dtype in prop::sample::select(vec![DType::Float32, DType::Float16, DType::BFloat16, DType::Float64]),
        layout in prop::sample::select(vec![Layout::Rows, Layout::Transposed, Layout::ChannelsLast]),
        size in prop::sample::select(vec![1usize, 5, 17, 60]),
    ) {
        let body = body(&choices);
        let [joined, alone] = both(&program(&body), &inputs(dtype, layout, size));
        prop_assert!(joined == alone, "{body}");
    }
}

/// What a chain writes in place is seen by every name of the tensor, and by nothing else.
#[test]
fn writing_in_place_inside_a_chain() {
    for body in [
        "t = x + y; u = torch.nn.functional.relu(t, inplace=True); w = t * 2.0; return (t, u, w)",
        "t = x + y; s = t * 3.0; t += s; d = torch.nn.functional.dropout(t, 0.5, False, False); d *= 2.0; return (t, s)",
        "d = torch.nn.functional.dropout(x, 0.5, False, False); t = d + y; u = t * d; return (d, u)",
        "x += y; t = x * 2.0; u = t + x; return (x, u)",
    ] {
        let [joined, alone] = both(&program(body), &inputs(DType::Float32, Layout::Rows, 5));
        assert_eq!(joined, alone, "{body}");
    }
}

/// Operands that do not suit one pass: other shapes, other types.
#[test]
fn what_does_not_suit_one_pass_runs_one_by_one() {
    for body in [
        "s = b + 1.0; t = s * b; u = t + x; w = u * y; return (w, s)",
        "i = torch.arange(5); t = i * 2; u = t + 1; w = x + u; return (w, t)",
        "h = x.to(torch.float16); t = h + x; u = t * h; return (u,)",
        "k = x.sum(); t = x * k; u = t - k; return (u,)",
    ] {
        let [joined, alone] = both(&program(body), &inputs(DType::Float32, Layout::Rows, 5));
        assert_eq!(joined, alone, "{body}");
    }
}

/// Eager is the yardstick of every speed-up: it holds what one operation after the other holds, a joined pass less.
#[test]
fn eager_joins_nothing() {
    let body = "t = x + y; u = t * x; w = u - y; s = w + t; return (s,)";
    let given = inputs(DType::Float32, Layout::Rows, 64);
    let options = RunOptions::default();
    let peak = |run: &dyn Fn(&Arc<Budget>)| {
        let budget = Budget::new(1 << 30);
        run(&budget);
        budget.peak()
    };
    let observed = peak(&|budget| {
        program(body).run_within(budget, &given, &options, &mut Counter(0)).unwrap();
    });
    let eager = program(body).one_by_one();
    let eager = peak(&|budget| drop(eager.run_within(budget, &given, &options, &mut ()).unwrap()));
    let joined = program(body);
    let joined =
        peak(&|budget| drop(joined.run_within(budget, &given, &options, &mut ()).unwrap()));
    assert_eq!(eager, observed);
    assert!(joined < eager, "{joined} {eager}");
}
