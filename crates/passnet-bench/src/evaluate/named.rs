//! Numbers that a graph compares with: an ordinary draw hardly ever meets them.
//!
//! A mask made by `ids != 1` is all true on token numbers drawn from thirty thousand. A pass that never computes it would be
//! right, so inputs that hold such numbers are asked for, too.

use passnet_graph::graph::{Arg, Graph, NodeKind};
use passnet_graph::ops::Op;

/// Further numbers of either kind are left out.
const MOST: usize = 16;
/// Further numbers that follow from two of them are left out.
const MOST_FOLLOWING: usize = 64;
/// Larger reals are not put into inputs: what overflows is another question.
const LARGEST_REAL: f64 = 1e3;

/// The numbers that inputs are made to hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Named {
    /// What the graph compares with.
    compared: Vec<f64>,
    /// The other numbers of a graph that compares: `ids == pad` may have its number in a tensor, and `ids - 1 == 0` in another
    /// operation.
    others: Vec<f64>,
    /// What follows from one of either: `2 * ids == 50` is decided at 25.
    following: Vec<f64>,
}

impl Named {
    pub(super) fn of(graph: &Graph) -> Named {
        let (mut named, mut compares) = (Named::default(), false);
        for node in graph.nodes() {
            let NodeKind::Call(call) = &node.kind else { continue };
            let is_comparison = matches!(
                call.op(),
                Some(Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::IsIn)
            );
            compares |= is_comparison;
            let numbers = if is_comparison { &mut named.compared } else { &mut named.others };
            let arguments = call.args.iter().chain(call.kwargs.iter().map(|(_, value)| value));
            arguments.for_each(|argument| add(argument, numbers));
        }
        named.following = following(&named.compared, &named.others);
        if compares { named } else { Named::default() }
    }

    /// Those that an integer input may hold, and their neighbours: a comparison is decided between two of them. Numbers that
    /// are compared with stand there more often.
    pub(super) fn integers(&self, range: (i64, i64)) -> Vec<i64> {
        let mut integers = within(&self.compared, &[0, 0, 0, -1, 1], range);
        integers.extend(within(&self.others, &[0], range));
        integers.extend(within(&self.following, &[0], range));
        integers
    }

    /// Those that a whole row may hold: what is compared with, where that is known.
    pub(super) fn integers_of_rows(&self, range: (i64, i64)) -> Vec<i64> {
        match within(&self.compared, &[0, 0, 0, -1, 1], range) {
            none if none.is_empty() => within(&self.others, &[0], range),
            integers => integers,
        }
    }

    /// Those that an input of reals may hold.
    pub(super) fn reals(&self) -> Vec<f32> {
        let all = self.compared.iter().chain(&self.others).chain(&self.following);
        all.filter(|number| number.abs() <= LARGEST_REAL).map(|number| *number as f32).collect()
    }
}

/// Where a number compared with lies before one other operation with another number.
fn following(compared: &[f64], others: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::new();
    let pairs = compared.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    for number in
        pairs.flat_map(|(one, other)| [one / other, one - other, one + other, one * other])
    {
        let is_known = [compared, others, &all].iter().any(|known| known.contains(&number));
        if number.is_finite() && !is_known && all.len() < MOST_FOLLOWING {
            all.push(number);
        }
    }
    all
}

/// Whole numbers, each with these distances added, as far as they are in the range.
fn within(numbers: &[f64], near: &[i64], (least, largest): (i64, i64)) -> Vec<i64> {
    let whole = numbers.iter().filter(|number| number.fract() == 0.0);
    let all = whole.flat_map(|number| near.iter().map(|by| (*number as i64).saturating_add(*by)));
    all.filter(|integer| (least..=largest).contains(integer)).collect()
}

/// Adds the numbers of an argument, those in lists included.
fn add(argument: &Arg, numbers: &mut Vec<f64>) {
    match argument {
        Arg::Int(_) | Arg::Float(_) => {
            let is_new = |number: &f64| number.is_finite() && !numbers.contains(number);
            let number = argument.as_float().filter(is_new).filter(|_| numbers.len() < MOST);
            numbers.extend(number);
        }
        compound => compound.parts().iter().for_each(|part| add(part, numbers)),
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
            of(&["mask = x != 7", "small = x < -1e9", "y = x * 30", "return (mask, small, y)"]);
        assert_eq!(named.integers((0, 20)), [7, 7, 7, 6, 8]);
        assert_eq!(named.integers((8, 9)), [8]);
        assert_eq!(named.reals()[..2], [7.0, 30.0]);
        let twice = of(&["mask = x * 2 == 50", "return (mask,)"]);
        assert_eq!(twice.integers((20, 40)), [25]);
        assert_eq!(twice.reals(), [50.0, 2.0, 25.0, 48.0, 52.0, 100.0]);
        let in_tensor = of(&["pad = torch.tensor([5])", "mask = x == pad", "return (mask,)"]);
        assert_eq!(in_tensor.integers((0, 100)), [5]);
        assert_eq!(in_tensor.integers_of_rows((0, 100)), [5]);
        let moved = of(&["mask = x - 9 == 0", "return (mask,)"]);
        assert_eq!(moved.integers((0, 100)), [0, 0, 0, 1, 9]);
        assert_eq!(moved.integers_of_rows((0, 100)), [0, 0, 0, 1]);
        let none = of(&["y = x.clamp(-1.0, 6)", "return (y,)"]);
        assert!(none.reals().is_empty() && none.integers((0, 100)).is_empty());
    }
}
