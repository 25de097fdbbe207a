//! `torch.einsum`: each pair of operands becomes one batched matrix product.

use super::{matmul, pointwise, reduce};
use crate::native::error::{Result, bail, ensure, err};
use crate::native::tensor::Tensor;
use crate::native::tensor::layout::broadcast_shapes;

/// A label of a dimension: a letter, or a position within the ellipsis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Ellipsis(usize),
    Letter(char),
}

/// A tensor whose dimensions have labels, none twice.
#[derive(Debug, Clone)]
struct Labelled {
    tensor: Tensor,
    labels: Vec<Label>,
}

/// `torch.einsum`.
pub fn einsum(equation: &str, operands: &[Tensor]) -> Result<Tensor> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(right)),
        None => (equation.as_str(), None),
    };
    let terms: Vec<&str> = left.split(',').collect();
    ensure!(
        terms.len() == operands.len(),
        Value,
        "einsum(): fewer or more operands were provided than specified in the equation: {} and {}",
        operands.len(),
        terms.len()
    );
    let mut ellipsis = 0;
    for (term, operand) in terms.iter().zip(operands) {
        if term.contains("...") {
            ellipsis = ellipsis.max(operand.ndim().saturating_sub(term.len() - 3));
        }
    }
    let mut labelled = terms
        .iter()
        .zip(operands)
        .map(|(term, operand)| label(term, operand, ellipsis))
        .collect::<Result<Vec<_>>>()?;
    let output = output_labels(right, &terms, ellipsis)?;
    for l in &output {
        ensure!(
            labelled.iter().any(|o| o.labels.contains(l)),
            Value,
            "einsum(): output subscript {l:?} does not appear in the equation for any input operand"
        );
    }
    let mut current = labelled.remove(0);
    for i in 0..labelled.len() {
        let later: Vec<Label> = labelled[i + 1..].iter().flat_map(|o| o.labels.clone()).collect();
        current = contract(current, labelled[i].clone(), &output, &later)?;
    }
    let summed: Vec<Label> =
        current.labels.iter().copied().filter(|l| !output.contains(l)).collect();
    let current = sum_out(current, &summed)?;
    arrange(&current, &output)
}

/// Labels of an operand, repeated ones reduced to their diagonal.
fn label(term: &str, operand: &Tensor, ellipsis: usize) -> Result<Labelled> {
    let letters = |text: &str| -> Result<Vec<Label>> {
        text.chars()
            .map(|c| {
                if c.is_ascii_alphabetic() {
                    Ok(Label::Letter(c))
                } else {
                    Err(err!(
                        Value,
                        "einsum(): invalid subscript given: {c}, subscripts must be in [a-zA-Z]"
                    ))
                }
            })
            .collect()
    };
    let mut labels = match term.split_once("...") {
        Some((before, after)) => {
            let named = before.len() + after.len();
            ensure!(
                operand.ndim() >= named,
                Shape,
                "einsum(): the number of subscripts in the equation ({named}) is more than the number of dimensions ({})",
                operand.ndim()
            );
            let own = operand.ndim() - named;
            let mut labels = letters(before)?;
            labels.extend((ellipsis - own..ellipsis).map(Label::Ellipsis));
            labels.extend(letters(after)?);
            labels
        }
        None => letters(term)?,
    };
    ensure!(
        labels.len() == operand.ndim(),
        Shape,
        "einsum(): the number of subscripts in the equation ({}) does not match the number of dimensions ({})",
        labels.len(),
        operand.ndim()
    );
    let mut tensor = operand.clone();
    let mut i = 0;
    while i < labels.len() {
        match labels[i + 1..].iter().position(|l| *l == labels[i]) {
            Some(offset) => {
                let j = i + 1 + offset;
                let repeated = labels[i];
                tensor = tensor.diagonal(0, i as i64, j as i64)?;
                labels.remove(j);
                labels.remove(i);
                labels.push(repeated);
            }
            None => i += 1,
        }
    }
    Ok(Labelled { tensor, labels })
}

fn output_labels(right: Option<&str>, terms: &[&str], ellipsis: usize) -> Result<Vec<Label>> {
    let all_ellipsis = (0..ellipsis).map(Label::Ellipsis);
    let Some(right) = right else {
        // Without an arrow: the ellipsis, then letters that occur once, in order.
        let joined: String = terms.concat();
        let mut letters: Vec<char> = joined.chars().filter(char::is_ascii_alphabetic).collect();
        letters.sort_unstable();
        let once = letters.iter().filter(|c| letters.iter().filter(|d| d == c).count() == 1);
        return Ok(all_ellipsis.chain(once.map(|c| Label::Letter(*c))).collect());
    };
    let mut labels = Vec::new();
    match right.split_once("...") {
        Some((before, after)) => {
            labels.extend(before.chars().map(Label::Letter));
            labels.extend(all_ellipsis);
            labels.extend(after.chars().map(Label::Letter));
        }
        None => labels.extend(right.chars().map(Label::Letter)),
    }
    for (i, l) in labels.iter().enumerate() {
        if labels[..i].contains(l) {
            bail!(Value, "einsum(): output subscript {l:?} appears more than once in the output");
        }
    }
    Ok(labels)
}

fn sum_out(operand: Labelled, labels: &[Label]) -> Result<Labelled> {
    if labels.is_empty() {
        return Ok(operand);
    }
    let dims: Vec<i64> = (0..operand.labels.len())
        .filter(|&d| labels.contains(&operand.labels[d]))
        .map(|d| d as i64)
        .collect();
    Ok(Labelled {
        tensor: reduce::sum(&operand.tensor, Some(&dims), false, Some(operand.tensor.dtype()))?,
        labels: operand.labels.into_iter().filter(|l| !labels.contains(l)).collect(),
    })
}

/// The tensor with dimensions in the given order; labels it lacks become dimensions of size one.
fn arrange(operand: &Labelled, order: &[Label]) -> Result<Tensor> {
    let present: Vec<i64> = order
        .iter()
        .filter_map(|l| operand.labels.iter().position(|o| o == l))
        .map(|d| d as i64)
        .collect();
    let mut tensor = operand.tensor.permute(&present)?;
    for (d, l) in order.iter().enumerate() {
        if !operand.labels.contains(l) {
            tensor = tensor.unsqueeze(d as i64)?;
        }
    }
    Ok(tensor)
}

/// Multiplies two operands and sums over the labels that nothing needs any more.
fn contract(a: Labelled, b: Labelled, output: &[Label], later: &[Label]) -> Result<Labelled> {
    let keep = |l: &Label| output.contains(l) || later.contains(l);
    let only = |x: &Labelled, y: &Labelled| -> Vec<Label> {
        x.labels.iter().copied().filter(|l| !y.labels.contains(l)).collect()
    };
    let drop_a: Vec<Label> = only(&a, &b).into_iter().filter(|l| !keep(l)).collect();
    let drop_b: Vec<Label> = only(&b, &a).into_iter().filter(|l| !keep(l)).collect();
    let (a, b) = (sum_out(a, &drop_a)?, sum_out(b, &drop_b)?);
    let shared: Vec<Label> = a.labels.iter().copied().filter(|l| b.labels.contains(l)).collect();
    let (batch, summed): (Vec<Label>, Vec<Label>) = shared.into_iter().partition(keep);
    let (mut rows, mut columns) = (only(&a, &b), only(&b, &a));
    let by_output = |labels: &mut Vec<Label>| {
        labels.sort_by_key(|l| output.iter().position(|o| o == l).unwrap_or(usize::MAX));
    };
    let mut batch = batch;
    by_output(&mut batch);
    by_output(&mut rows);
    by_output(&mut columns);
    if summed.is_empty() {
        // Nothing is summed: an elementwise product with broadcasting.
        let labels: Vec<Label> = batch.iter().chain(&rows).chain(&columns).copied().collect();
        let product = pointwise::mul(&arrange(&a, &labels)?.into(), &arrange(&b, &labels)?.into())?;
        return Ok(Labelled { tensor: product, labels });
    }
    let order = |parts: [&[Label]; 3]| parts.concat();
    let left = arrange(&a, &order([&batch, &rows, &summed]))?;
    let right = arrange(&b, &order([&batch, &summed, &columns]))?;
    // Sizes of one broadcast against the other operand's.
    let n = batch.len();
    let common = broadcast_shapes(&[&left.shape()[..n], &right.shape()[..n]])?;
    let inner =
        broadcast_shapes(&[&left.shape()[n + rows.len()..], &right.shape()[n..n + summed.len()]])?;
    let row_shape = &left.shape()[n..n + rows.len()];
    let column_shape = &right.shape()[n + summed.len()..];
    let left = left.expand_to(&[&common, row_shape, &inner].concat())?;
    let right = right.expand_to(&[&common, &inner, column_shape].concat())?;
    let size = |s: &[usize]| s.iter().product::<usize>();
    let (m, k, c, g) = (size(row_shape), size(&inner), size(column_shape), size(&common));
    let product = matmul::bmm(&left.reshape_to(&[g, m, k])?, &right.reshape_to(&[g, k, c])?)?;
    let shape = [&common, row_shape, column_shape].concat();
    Ok(Labelled { tensor: product.reshape_to(&shape)?, labels: order([&batch, &rows, &columns]) })
}
