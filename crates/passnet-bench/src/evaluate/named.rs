//! Numbers that a graph compares with: an ordinary draw hardly ever meets them.
//!
//! A mask made by `ids != 1` is all true on token numbers drawn from thirty thousand. A pass that never computes it would be
//! right, so inputs that hold such numbers are asked for, too.

use passnet_graph::graph::{Arg, Graph, NodeKind};
use passnet_graph::ops::Op;

/// Further numbers of a graph are left out.
const MOST: usize = 16;
/// Larger reals are not put into inputs: what overflows is another question.
const LARGEST_REAL: f64 = 1e3;

/// The numbers that inputs are made to hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Named(Vec<f64>);

impl Named {
    /// What the graph compares with.
    pub(super) fn of(graph: &Graph) -> Named {
        let mut numbers = Vec::new();
        for node in graph.nodes() {
            let NodeKind::Call(call) = &node.kind else { continue };
            if !matches!(call.op(), Some(Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge)) {
                continue;
            }
            let arguments = call.args.iter().chain(call.kwargs.iter().map(|(_, value)| value));
            for number in arguments.filter_map(Arg::as_float) {
                if number.is_finite() && !numbers.contains(&number) && numbers.len() < MOST {
                    numbers.push(number);
                }
            }
        }
        Named(numbers)
    }

    /// Those that an integer input may hold, each three times, and their neighbours: a comparison is decided between two of
    /// them.
    pub(super) fn integers(&self, (least, largest): (i64, i64)) -> Vec<i64> {
        let whole = self.0.iter().filter(|number| number.fract() == 0.0);
        let near = |number: &f64| [0, 0, 0, -1, 1].map(|by| (*number as i64).saturating_add(by));
        let mut integers: Vec<i64> = whole.flat_map(near).collect();
        integers.retain(|integer| (least..=largest).contains(integer));
        integers
    }

    /// Those that an input of reals may hold.
    pub(super) fn reals(&self) -> Vec<f32> {
        let moderate = self.0.iter().filter(|number| number.abs() <= LARGEST_REAL);
        moderate.map(|number| *number as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Named {
        let lines: String = lines.iter().map(|line| format!("        {line}\n")).collect();
        let text = format!(
            "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n{lines}"
        );
        let source = passnet_graph::syntax::Source::new("model.py", text);
        Named::of(&passnet_graph::read::read_model(&source).unwrap())
    }

    #[test]
    fn what_a_graph_compares_with_is_named() {
        let named =
            of(&["mask = x != 7", "small = x < -1e9", "y = x * 3", "return (mask, small, y)"]);
        assert_eq!(named.integers((0, 100)), [7, 7, 7, 6, 8]);
        assert_eq!(named.integers((8, 9)), [8]);
        assert_eq!(named.reals(), [7.0]);
        let none = of(&["y = x.clamp(-1.0, 6)", "return (y,)"]);
        assert!(none.reals().is_empty() && none.integers((0, 100)).is_empty());
    }
}
