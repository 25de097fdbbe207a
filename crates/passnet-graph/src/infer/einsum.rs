//! `einsum`: operands brought to common labels, then contracted pair by pair from the left, as torch does.

use super::args::Args;
use super::dim::Dim;
use super::pointwise::elementwise;
use super::problem::{Inferred, Problem};
use super::promote::message_name;
use super::strides;
use super::value::{Shape, Strides, TensorType, Value};
use crate::view::region::{diagonal, permuted, unsqueezed};
use smallvec::SmallVec;

/// A subscript letter, or a dimension covered by `...` (counted from the right).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Covered(std::cmp::Reverse<usize>),
    Letter(char),
}

pub(super) fn einsum(args: &Args) -> Inferred<Value> {
    let equation = args.text("equation")?.unwrap_or_default();
    let operands = args.tensors("operands")?;
    let (inputs, output) = parse(&equation, &operands)?;
    check_sizes(args, &inputs, &operands)?;
    let mut all: Vec<Label> = output.clone();
    let mut contracted: Vec<Label> =
        inputs.iter().flatten().copied().filter(|label| !output.contains(label)).collect();
    contracted.sort_unstable();
    contracted.dedup();
    all.extend(&contracted);
    let mut waiting = Vec::new();
    for (labels, operand) in inputs.iter().zip(&operands) {
        waiting.push(aligned(operand, labels, &all)?);
    }
    let mut pending = waiting.into_iter();
    let Some(mut result) = pending.next() else {
        return Err(Problem::invalid("einsum(): must provide at least one operand"));
    };
    let rest: Vec<TensorType> = pending.collect();
    if rest.is_empty() {
        return Ok(fold_single(result, output.len()).into());
    }
    for (place, operand) in rest.iter().enumerate() {
        if operand.dtype != result.dtype {
            return Err(Problem::invalid(format!(
                "expected m1 and m2 to have the same dtype, but got: {} != {}",
                message_name(result.dtype),
                message_name(operand.dtype)
            )));
        }
        // A label is summed with the last operand that has it.
        let is_last = |axis: usize| {
            axis >= output.len()
                && rest[place + 1..].iter().all(|later| later.shape[axis].size == 1)
        };
        let summed: SmallVec<[bool; 8]> = (0..all.len()).map(is_last).collect();
        result = contract(args, &result, operand, &summed)?;
    }
    result.shape.truncate(output.len());
    result.strides.truncate(output.len());
    Ok(result.into())
}

/// One operand: its remaining labels are summed.
fn fold_single(operand: TensorType, kept: usize) -> TensorType {
    if operand.rank() == kept {
        return operand;
    }
    TensorType::contiguous(operand.dtype, Shape::from(&operand.shape[..kept]))
}

fn parse(equation: &str, operands: &[&TensorType]) -> Inferred<(Vec<Vec<Label>>, Vec<Label>)> {
    let compact: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match compact.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (compact.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != operands.len() {
        return Err(Problem::invalid(format!(
            "einsum(): {} subscripts in the equation for {} operands",
            terms.len(),
            operands.len()
        )));
    }
    let mut inputs = Vec::new();
    let mut covered = 0;
    for (term, operand) in terms.iter().zip(operands) {
        let letters = term.replace("...", "").chars().count();
        let hidden =
            if term.contains("...") { operand.rank().checked_sub(letters) } else { Some(0) };
        let Some(hidden) = hidden.filter(|hidden| hidden + letters == operand.rank()) else {
            return Err(Problem::invalid(format!(
                "einsum(): the number of subscripts in the equation ({letters}) does not match the number of dimensions ({}) for operand `{term}`",
                operand.rank()
            )));
        };
        covered = covered.max(hidden);
        inputs.push(labels(term, hidden)?);
    }
    let output = match right {
        Some(right) => labels(right, covered)?,
        None => {
            let mut once: Vec<Label> = inputs.iter().flatten().copied().collect();
            once.sort_unstable();
            let is_single = |label: &Label| match label {
                Label::Covered(_) => true,
                letter => inputs.iter().flatten().filter(|other| *other == letter).count() == 1,
            };
            once.retain(is_single);
            once.dedup();
            once
        }
    };
    for (place, label) in output.iter().enumerate() {
        let known = inputs.iter().flatten().any(|other| other == label);
        if !known || output[..place].contains(label) {
            return Err(Problem::invalid(
                "einsum(): an output subscript appears twice or in no operand",
            ));
        }
    }
    Ok((inputs, output))
}

fn labels(term: &str, covered: usize) -> Inferred<Vec<Label>> {
    let mut labels = Vec::new();
    let mut rest = term;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            labels.extend((0..covered).rev().map(|place| Label::Covered(std::cmp::Reverse(place))));
            rest = after;
        } else if next.is_ascii_alphabetic() {
            labels.push(Label::Letter(next));
            rest = &rest[1..];
        } else {
            return Err(Problem::invalid(format!(
                "einsum(): invalid subscript given: `{next}`, subscripts must be in [a-zA-Z]"
            )));
        }
    }
    Ok(labels)
}

fn check_sizes(args: &Args, inputs: &[Vec<Label>], operands: &[&TensorType]) -> Inferred<()> {
    let mut seen: Vec<(Label, Dim)> = Vec::new();
    for (place, (labels, operand)) in inputs.iter().zip(operands).enumerate() {
        for (label, dim) in labels.iter().zip(&operand.shape) {
            match seen.iter_mut().find(|(other, _)| other == label) {
                None => seen.push((*label, dim.clone())),
                Some((_, size)) if size.size == 1 => *size = dim.clone(),
                Some((_, size)) => {
                    if dim.size != 1 && !args.scope.same(size, dim) {
                        return Err(Problem::invalid(format!(
                            "einsum(): a subscript has size {} for operand {place} which does not broadcast with previously seen size {}",
                            dim.size, size.size
                        )));
                    }
                }
            }
        }
    }
    Ok(())
}

/// An operand with one dimension per label of the equation, in their order; missing ones have size one.
fn aligned(operand: &TensorType, labels: &[Label], all: &[Label]) -> Inferred<TensorType> {
    let mut view = operand.clone();
    let mut own: Vec<Label> = Vec::new();
    for label in labels {
        match own.iter().position(|other| other == label) {
            // `ii`: the diagonal, which takes the place of the first.
            Some(first) => {
                let second = own.len();
                view = diagonal(&view, 0, first, second)?;
                let mut order: SmallVec<[usize; 6]> = (0..view.rank()).collect();
                let last = order.pop().unwrap_or(0);
                order.insert(first, last);
                view = permuted(&view, &order);
            }
            None => own.push(*label),
        }
    }
    let mut order: SmallVec<[usize; 6]> = SmallVec::new();
    for label in all {
        match own.iter().position(|other| other == label) {
            Some(axis) => order.push(axis),
            None => {
                view = unsqueezed(&view, view.rank());
                order.push(view.rank() - 1);
            }
        }
    }
    Ok(permuted(&view, &order))
}

/// The product of two aligned operands, with some dimensions summed (they stay, with size one).
fn contract(
    args: &Args,
    left: &TensorType,
    right: &TensorType,
    summed: &[bool],
) -> Inferred<TensorType> {
    let folded = |tensor: &TensorType, other: &TensorType| -> TensorType {
        let alone = |axis: usize| {
            summed[axis] && tensor.shape[axis].size != 1 && other.shape[axis].size == 1
        };
        if !(0..summed.len()).any(alone) {
            return tensor.clone();
        }
        let dims = tensor.shape.iter().enumerate();
        let shape: Shape =
            dims.map(|(axis, dim)| if alone(axis) { Dim::fixed(1) } else { dim.clone() }).collect();
        TensorType::contiguous(tensor.dtype, shape)
    };
    let (left, right) = (folded(left, right), folded(right, left));
    let both = |axis: usize| left.shape[axis].size != 1 && right.shape[axis].size != 1;
    if !(0..summed.len()).any(|axis| summed[axis] && both(axis)) {
        return elementwise(args, left.dtype, &[&left, &right]);
    }
    // A batched matrix product: shared dimensions, then those of one side, then those of the other. The right
    // side comes first where all of its dimensions precede the left's in the result.
    let kept = |select: &dyn Fn(usize) -> bool| -> SmallVec<[usize; 8]> {
        (0..summed.len()).filter(|axis| !summed[*axis] && select(*axis)).collect()
    };
    let shared = kept(&both);
    let of_left = kept(&|axis| left.shape[axis].size != 1 && right.shape[axis].size == 1);
    let of_right = kept(&|axis| left.shape[axis].size == 1);
    let swapped = of_right.last().zip(of_left.first()).is_some_and(|(right, left)| right < left);
    let (first, second) = if swapped { (of_right, of_left) } else { (of_left, of_right) };
    let mut order = shared;
    order.extend(first);
    order.extend((0..summed.len()).filter(|axis| summed[*axis]));
    order.extend(second);
    let dim = |axis: usize| -> Dim {
        if summed[axis] {
            Dim::fixed(1)
        } else if left.shape[axis].size != 1 || left.shape[axis].is_symbolic() {
            left.shape[axis].clone()
        } else {
            right.shape[axis].clone()
        }
    };
    let dense: Shape = order.iter().map(|axis| dim(*axis)).collect();
    let dense_strides = strides::contiguous(&dense);
    let mut steps: Strides = SmallVec::from_elem(1, summed.len());
    for (place, axis) in order.iter().enumerate() {
        steps[*axis] = dense_strides[place];
    }
    Ok(TensorType::strided(left.dtype, (0..summed.len()).map(dim).collect(), steps))
}
