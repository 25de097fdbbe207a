//! Losses, and membership.

use super::args::Args;
use super::dim::Dim;
use super::pointwise::elementwise;
use super::problem::{Inferred, Problem};
use super::promote::{Operand, message_name, result_type};
use super::strides;
use super::value::{Shape, TensorType, Value};
use crate::dtype::{DType, Kind};
use crate::ops::Op;
use crate::view::region::unsqueezed;

fn invalid<T>(message: impl Into<String>) -> Inferred<T> {
    Err(Problem::invalid(message.into()))
}

/// The type of a loss over these tensors, which are floats where one of them is.
fn float_type(tensors: &[&TensorType]) -> Inferred<DType> {
    let operands: Vec<Operand> = tensors.iter().map(|tensor| Operand::Tensor(tensor)).collect();
    let dtype = result_type(&operands);
    match dtype.kind() == Kind::Float {
        true => Ok(dtype),
        false => invalid("a loss needs floating point inputs"),
    }
}

fn named<'a>(args: &Args<'a, '_>, names: &[&str]) -> Inferred<Vec<&'a TensorType>> {
    names.iter().map(|name| args.tensor(name)).collect()
}

/// A loss of each element, from the elements at the same place.
fn over(args: &Args, tensors: &[&TensorType]) -> Inferred<Value> {
    let each = elementwise(args, float_type(tensors)?, tensors)?;
    Ok(reduced(args, each)?.into())
}

/// `mse_loss`, `l1_loss`, `smooth_l1_loss`, `huber_loss`.
pub(super) fn difference(args: &Args) -> Inferred<Value> {
    let mut tensors = named(args, &["input", "target"])?;
    if let Some(weight) = args.optional_tensor("weight")? {
        if weight.sizes() != tensors[0].sizes() {
            return invalid("Weights and input must have the same size.");
        }
        tensors.push(weight);
    }
    if args.number("beta")?.is_some_and(|beta| beta < 0.0) {
        return invalid("smooth_l1_loss does not support negative values for beta.");
    }
    if args.number("delta")?.is_some_and(|delta| delta <= 0.0) {
        return invalid("huber_loss does not support non-positive values for delta.");
    }
    over(args, &tensors)
}

/// `kl_div`, `poisson_nll_loss`, `gaussian_nll_loss`.
pub(super) fn divergence(args: &Args) -> Inferred<Value> {
    let mut tensors = named(args, &["input", "target"])?;
    if args.op() != Op::GaussianNllLoss {
        return over(args, &tensors);
    }
    let value = args.value("var")?;
    let Value::Tensor(var) = &*value else { return over(args, &tensors) };
    let input = tensors[0];
    let leading = &input.shape[..input.rank().saturating_sub(1)];
    let same = |a: &[Dim], b: &[Dim]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| args.scope.same(a, b))
    };
    if same(&var.shape, &input.shape) {
        tensors.push(var);
        return over(args, &tensors);
    }
    if var.rank() + 1 == input.rank() && same(&var.shape, leading) {
        let column = unsqueezed(var, var.rank());
        tensors.push(&column);
        return over(args, &tensors);
    }
    let unlike: Vec<i64> = (input.shape.iter().zip(&var.shape))
        .filter(|(own, given)| own.size != given.size)
        .map(|(_, given)| given.size)
        .collect();
    if input.rank() != var.rank() || unlike != [1] {
        return invalid("var is of incorrect size");
    }
    tensors.push(var);
    over(args, &tensors)
}

/// `binary_cross_entropy`, of probabilities or of what a sigmoid makes them from.
pub(super) fn binary_cross_entropy(args: &Args) -> Inferred<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    if input.sizes() != target.sizes() {
        return invalid(format!(
            "Target size ({}) must be the same as input size ({})",
            strides::describe(&target.shape),
            strides::describe(&input.shape)
        ));
    }
    for (own, given) in input.shape.iter().zip(&target.shape) {
        args.scope.same(own, given);
    }
    for name in ["weight", "pos_weight"] {
        if let Some(weight) = args.optional_tensor(name)? {
            args.scope.expand(weight, &input.shape)?;
        }
    }
    if !input.dtype.is_float() || !target.dtype.is_float() {
        return invalid("binary_cross_entropy needs floating point inputs and targets");
    }
    let each = match args.op() {
        Op::BinaryCrossEntropy if input.dtype != target.dtype => {
            return invalid(format!(
                "Found dtype {} but expected {}",
                message_name(target.dtype),
                message_name(input.dtype)
            ));
        }
        Op::BinaryCrossEntropy => strides::like_tensor(input, input.dtype),
        // Computed in place of `1 - target`.
        _ => elementwise(args, target.dtype, &[target])?,
    };
    Ok(reduced(args, each)?.into())
}

/// `soft_margin_loss`, `hinge_embedding_loss`, `margin_ranking_loss`.
pub(super) fn margin(args: &Args) -> Inferred<Value> {
    match args.op() {
        Op::SoftMarginLoss => {
            let (input, target) = (args.tensor("input")?, args.tensor("target")?);
            args.scope.expand(target, &input.shape)?;
            float_type(&[input])?;
            let each = elementwise(args, input.dtype, &[input])?;
            Ok(reduced(args, each)?.into())
        }
        Op::HingeEmbeddingLoss => {
            let tensors = named(args, &["input", "target"])?;
            let each = elementwise(args, float_type(&tensors[..1])?, &tensors)?;
            Ok(reduced(args, each)?.into())
        }
        _ => {
            let tensors = named(args, &["target", "input1", "input2"])?;
            if tensors.iter().any(|tensor| tensor.rank() != tensors[0].rank()) {
                return invalid(
                    "margin_ranking_loss : All input tensors should have same dimension",
                );
            }
            over(args, &tensors)
        }
    }
}

/// `cosine_embedding_loss`, `triplet_margin_loss`: a loss for each vector.
pub(super) fn distance(args: &Args) -> Inferred<Value> {
    if args.op() == Op::TripletMarginLoss {
        let tensors = named(args, &["anchor", "positive", "negative"])?;
        if tensors.iter().any(|tensor| tensor.rank() != tensors[0].rank()) {
            return invalid(
                "The anchor, positive, and negative tensors are expected to have the same number of dimensions",
            );
        }
        if args.number("margin")?.is_some_and(|margin| margin <= 0.0) {
            return invalid("margin must be greater than 0");
        }
        let mut shape =
            args.scope.broadcast(tensors.iter().map(|tensor| tensor.shape.as_slice()))?;
        shape.pop();
        return Ok(reduced(args, TensorType::contiguous(float_type(&tensors)?, shape))?.into());
    }
    let tensors = named(args, &["input1", "input2"])?;
    let target = args.tensor("target")?;
    if target.rank() > 1 || tensors.iter().any(|tensor| tensor.rank() != target.rank() + 1) {
        return invalid("0D or 1D target tensor expected, and inputs of one dimension more");
    }
    let mut shape = args.scope.broadcast([&tensors[0].shape[..], &tensors[1].shape[..]])?;
    shape.pop();
    let shape = args.scope.broadcast([shape.as_slice(), target.shape.as_slice()])?;
    Ok(reduced(args, TensorType::contiguous(float_type(&tensors)?, shape))?.into())
}

/// `nll_loss` and `multi_margin_loss`: a loss for each sample, whose class is an index.
pub(super) fn of_classes(args: &Args) -> Inferred<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    float_type(&[input])?;
    if input.rank() == 0 || (args.op() == Op::MultiMarginLoss && input.rank() > 2) {
        return invalid("a loss of classes expects an input with one score for each class");
    }
    let mut shape: Shape = input.shape.clone();
    let classes = shape.remove(usize::from(input.rank() > 1));
    let alone = args.op() == Op::MultiMarginLoss && shape.is_empty() && target.elements() == 1;
    let fits = target.rank() == shape.len()
        && target.shape.iter().zip(&shape).all(|(a, b)| args.scope.same(a, b));
    if !fits && !alone {
        return invalid(format!(
            "Expected target size {}, got {}",
            strides::describe(&shape),
            strides::describe(&target.shape)
        ));
    }
    let takes = match args.op() {
        Op::NllLoss => matches!(target.dtype, DType::Int64 | DType::UInt8),
        _ => target.dtype == DType::Int64,
    };
    if !takes {
        return invalid(format!(
            "expected scalar type Long but found {}",
            message_name(target.dtype)
        ));
    }
    if let Some(weight) = args.optional_tensor("weight")?
        && (weight.rank() != 1
            || !args.scope.same(&weight.shape[0], &classes)
            || weight.dtype != input.dtype)
    {
        return invalid(format!(
            "weight tensor should be defined either for all {} classes or no classes but got weight tensor of shape: {}",
            classes.size,
            strides::describe(&weight.shape)
        ));
    }
    let shape = if alone { target.shape.clone() } else { shape };
    Ok(reduced(args, TensorType::contiguous(input.dtype, shape))?.into())
}

/// `ctc_loss`: a loss for each sequence of `[time, batch, classes]`.
pub(super) fn of_sequences(args: &Args) -> Inferred<Value> {
    let (input, targets) = (args.tensor("log_probs")?, args.tensor("targets")?);
    float_type(&[input])?;
    if !matches!(input.rank(), 2 | 3) || !matches!(targets.rank(), 1 | 2) {
        return invalid("ctc_loss expects log_probs of 2 or 3 dimensions and targets of 1 or 2");
    }
    if !matches!(targets.dtype, DType::Int32 | DType::Int64) {
        return invalid("targets must be integral tensor (int32 or int64)");
    }
    let shape: Shape = input.shape[1..input.rank() - 1].into();
    Ok(reduced(args, TensorType::contiguous(input.dtype, shape))?.into())
}

/// `multilabel_soft_margin_loss`: the classes are the last dimension.
pub(super) fn multilabel(args: &Args) -> Inferred<Value> {
    let mut tensors = named(args, &["input", "target"])?;
    tensors.extend(args.optional_tensor("weight")?);
    if tensors[0].rank() == 0 {
        return invalid("multilabel_soft_margin_loss needs a score for each class");
    }
    let mut each = elementwise(args, float_type(&tensors)?, &tensors)?;
    each.shape.pop();
    Ok(reduced(args, TensorType::contiguous(each.dtype, each.shape))?.into())
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
        Some("batchmean") if args.op() == Op::KlDiv => {
            Ok(TensorType::contiguous(each.dtype, Shape::new()))
        }
        Some("mean" | "sum") => Ok(TensorType::contiguous(each.dtype, Shape::new())),
        _ => Err(Problem::invalid("a reduction is `none`, `mean` or `sum`")),
    }
}
