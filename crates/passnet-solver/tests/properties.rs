//! Random graphs of pointwise operations, reductions, views and joins: whatever is generated must be right.

mod common;

use common::{GraphText, Task};
use passnet_bench::verdict::VerdictKind;
use passnet_solver::solve::SolveError;
use proptest::prelude::*;

/// A step: which operation, and two numbers that choose its operands.
type Step = (u8, u8, u8);

/// Statements over values of known shapes.
struct Program {
    values: Vec<(String, [i64; 3])>,
    lines: Vec<String>,
}

impl Program {
    fn new(shape: [i64; 3], steps: &[Step]) -> Program {
        let [a, b, c] = shape;
        let mut program = Program {
            values: vec![
                ("x".into(), shape),
                ("y".into(), shape),
                ("row".into(), [1, 1, c]),
                ("column".into(), [a, b, 1]),
            ],
            lines: Vec::new(),
        };
        for step in steps {
            program.step(*step);
        }
        program
    }

    fn step(&mut self, (kind, first, second): Step) {
        let (name, shape) = self.values[first as usize % self.values.len()].clone();
        let [a, b, c] = shape;
        let fits =
            |other: &[i64; 3]| shape.iter().zip(other).all(|(x, y)| x == y || *x == 1 || *y == 1);
        let partners: Vec<(String, [i64; 3])> =
            self.values.iter().filter(|(_, other)| fits(other)).cloned().collect();
        let (other, other_shape) = partners[second as usize % partners.len()].clone();
        let broadcast = [0, 1, 2].map(|dim| shape[dim].max(other_shape[dim]));
        let (text, result) = match kind % 14 {
            0 => (format!("torch.nn.functional.relu({name}, inplace=False)"), shape),
            1 => (format!("torch.sigmoid({name})"), shape),
            2 => (format!("torch.nn.functional.gelu({name})"), shape),
            3 => (format!("{name} * 0.5"), shape),
            4 | 5 => (format!("{name} + {other}"), broadcast),
            6 => (format!("{name} * {other}"), broadcast),
            7 => (format!("torch.nn.functional.softmax({name}, dim=-1)"), shape),
            8 => (format!("{name}.mean(-1, keepdim=True)"), [a, b, 1]),
            9 => (
                format!("torch.nn.functional.layer_norm({name}, ({c},), None, None, 1e-05)"),
                shape,
            ),
            10 => (format!("{name}.transpose(1, 2)"), [a, c, b]),
            11 => (format!("{name}.reshape({b}, {a}, {c})"), [b, a, c]),
            12 => (format!("torch.cat([{name}, {name}], 1)"), [a, 2 * b, c]),
            _ if b > 1 => {
                (format!("{name}[slice(None, None, None), slice(1, None, None)]"), [a, b - 1, c])
            }
            _ => (format!("torch.tanh({name})"), shape),
        };
        let new = format!("tmp_{}", self.lines.len());
        self.lines.push(format!("{new} = {text}"));
        self.values.push((new, result));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs_are_solved_rightly(
        shape in [1i64..5, 1i64..7, 2i64..20],
        steps in prop::collection::vec(any::<Step>(), 1..9),
    ) {
        let program = Program::new(shape, &steps);
        let [a, b, c] = shape;
        let inputs = [
            format!("x float32 [{a}, {b}, {c}]"),
            format!("y float32 [{a}, {b}, {c}]"),
            format!("row float32 [1, 1, {c}]"),
            format!("column float32 [{a}, {b}, 1]"),
        ];
        let last = program.lines.len() - 1;
        let returned = format!("return (tmp_{last}, tmp_{})", last / 2);
        let mut body: Vec<&str> = program.lines.iter().map(String::as_str).collect();
        body.push(&returned);
        let task = Task::new(&[GraphText { inputs: inputs.iter().map(String::as_str).collect(), body }]);
        match task.solve() {
            Ok(_) => {
                for evaluation in task.evaluate() {
                    let verdict = &evaluation.judged.verdict;
                    let text = common::written(&task.passes());
                    prop_assert_eq!(verdict.kind, VerdictKind::Correct, "{}\n{}\n{}", verdict, program.lines.join("\n"), text);
                }
            }
            // Nothing but views: nothing to do.
            Err(SolveError::NothingToFuse { .. }) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
    }
}
