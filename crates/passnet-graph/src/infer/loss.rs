//! Losses, and membership.

use super::args::Args;
use super::pointwise::elementwise;
use super::problem::{Inferred, Problem};
use super::promote::{Operand, result_type};
use super::value::{Shape, TensorType, Value};
use crate::dtype::{DType, Kind};

/// `mse_loss` and `l1_loss`.
pub(super) fn difference(args: &Args) -> Inferred<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    let dtype = result_type(&[Operand::Tensor(input), Operand::Tensor(target)]);
    if dtype.kind() < Kind::Float {
        return Err(Problem::invalid("a loss needs floating point inputs"));
    }
    let each = elementwise(args, dtype, &[input, target])?;
    Ok(reduced(args, each)?.into())
}

/// `cross_entropy`: the dimension of the classes goes.
pub(super) fn cross_entropy(args: &Args) -> Inferred<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    if input.dtype.kind() < Kind::Float || input.rank() == 0 {
        return Err(Problem::invalid("cross_entropy needs floating point scores for each class"));
    }
    let classes = usize::from(input.rank() > 1);
    let mut shape: Shape = input.shape.clone();
    shape.remove(classes);
    let of_probabilities = target.dtype.is_float() && target.rank() == input.rank();
    let wanted: &[_] = if of_probabilities { &input.shape } else { &shape };
    let fits = target.rank() == wanted.len()
        && target.shape.iter().zip(wanted).all(|(a, b)| args.scope.same(a, b));
    if !fits || (!of_probabilities && target.dtype.kind() != Kind::Integer) {
        return Err(Problem::invalid("the target of cross_entropy does not fit its scores"));
    }
    Ok(reduced(args, TensorType::contiguous(input.dtype, shape))?.into())
}

/// `isin`: whether each element is among others.
pub(super) fn is_in(args: &Args) -> Inferred<Value> {
    match &*args.operand("elements")? {
        Value::Tensor(elements) => {
            Ok(TensorType::contiguous(DType::Bool, elements.shape.clone()).into())
        }
        _ => Ok(TensorType::contiguous(DType::Bool, Shape::new()).into()),
    }
}

fn reduced(args: &Args, each: TensorType) -> Inferred<TensorType> {
    if !args.bound.arg("size_average").is_none() || !args.bound.arg("reduce").is_none() {
        return Err(Problem::unknown("`size_average` and `reduce` were replaced by `reduction`"));
    }
    match args.text("reduction")?.as_deref() {
        Some("none") => Ok(each),
        Some("mean" | "sum") => Ok(TensorType::contiguous(each.dtype, Shape::new())),
        _ => Err(Problem::invalid("a reduction is `none`, `mean` or `sum`")),
    }
}
