//! Losses that are zero once scores are far enough apart.

use super::Reduction;
use super::each::{float_type, log_sigmoid, map};
use crate::native::error::{Result, ensure};
use crate::native::ops::pointwise::{self, Binary};
use crate::native::ops::reduce;
use crate::native::tensor::{Buffer, Scalar, Tensor};
use passnet_graph::DType;

/// `torch.nn.functional.soft_margin_loss`.
pub fn soft_margin(input: &Tensor, target: &Tensor, reduction: Reduction) -> Result<Tensor> {
    let each = map([input, target], float_type(&[input])?, |[x, t]| (-x * t).exp().ln_1p())?;
    reduction.of(each)
}

/// `torch.nn.functional.hinge_embedding_loss`.
pub fn hinge_embedding(
    input: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    let each = map([input, target], float_type(&[input])?, |[x, t]| {
        let apart = if t == 1.0 { 0.0 } else { rise(margin - x) };
        apart + if t == -1.0 { 0.0 } else { x }
    })?;
    reduction.of(each)
}

/// Nothing below zero; NaN stays.
fn rise(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// `torch.nn.functional.margin_ranking_loss`.
pub fn margin_ranking(
    first: &Tensor,
    second: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    let tensors = [target, first, second];
    let each = map(tensors, float_type(&tensors)?, |[t, a, b]| rise(-t * (a - b) + margin))?;
    reduction.of(each)
}

/// `torch.nn.functional.cosine_embedding_loss` of vectors along the last dimension.
pub fn cosine_embedding(
    first: &Tensor,
    second: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    ensure!(
        first.ndim() == target.ndim() + 1 && second.ndim() == first.ndim() && target.ndim() < 2,
        Shape,
        "0D or 1D target tensor expected, and inputs of one dimension more"
    );
    let dtype = float_type(&[first, second])?;
    let product = |a: &Tensor, b: &Tensor| -> Result<Tensor> {
        let products = map([a, b], DType::Float64, |[a, b]| a * b)?;
        reduce::sum(&products, Some(&[-1]), false, None)
    };
    let (both, one, two) =
        (product(first, second)?, product(first, first)?, product(second, second)?);
    let each = map([&both, &one, &two, target], dtype, |[both, one, two, t]| {
        // Torch's guard against vectors of no length.
        let cosine = both / ((one + 1e-12) * (two + 1e-12)).sqrt();
        match t {
            1.0 => 1.0 - cosine,
            -1.0 => rise(cosine - margin),
            _ => 0.0,
        }
    })?;
    reduction.of(each)
}

/// What `torch.nn.functional.triplet_margin_loss` takes besides its vectors.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "fields are torch's arguments")]
pub struct TripletMargin {
    pub margin: f64,
    pub p: f64,
    pub eps: f64,
    pub swap: bool,
    pub reduction: Reduction,
}

impl TripletMargin {
    /// The loss of vectors along the last dimension.
    pub fn of(&self, anchor: &Tensor, positive: &Tensor, negative: &Tensor) -> Result<Tensor> {
        let dtype = float_type(&[anchor, positive, negative])?;
        let distance = |a: &Tensor, b: &Tensor| -> Result<Tensor> {
            let apart = map([a, b], DType::Float64, |[a, b]| a - b + self.eps)?;
            reduce::vector_norm(&apart, self.p, Some(&[-1]), false, None)
        };
        let near = distance(anchor, positive)?;
        let mut far = distance(anchor, negative)?;
        if self.swap {
            let other = distance(positive, negative)?;
            far = pointwise::binary(Binary::Minimum, &far.into(), &other.into())?;
        }
        self.reduction.of(map([&near, &far], dtype, |[near, far]| rise(self.margin + near - far))?)
    }
}

/// `torch.nn.functional.multi_margin_loss`: how far other classes come close to the one that is right.
pub fn multi_margin(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    p: i64,
    margin: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    ensure!(matches!(p, 1 | 2), Value, "only p == 1 and p == 2 supported");
    let dtype = float_type(&[input])?;
    ensure!(
        matches!(input.ndim(), 1 | 2) && target.ndim() <= 1 && input.numel() > 0,
        Shape,
        "multi_margin_loss expects scores of 1 or 2 dimensions, got {:?}",
        input.shape()
    );
    let classes = input.shape()[input.ndim() - 1];
    let (scores, targets) = (input.values::<f64>()?, target.values::<i64>()?);
    ensure!(
        targets.len() == scores.len() / classes,
        Shape,
        "inconsistent target size, got: {:?}",
        target.shape()
    );
    let weights = weight.map(Tensor::to_vec::<f64>).transpose()?;
    ensure!(
        weights.as_ref().is_none_or(|weights| weights.len() == classes),
        Shape,
        "inconsistent weight size, expected {classes} but got {:?}",
        weight.map(Tensor::shape)
    );
    let mut losses = Buffer::<f64>::new(targets.len())?;
    for ((loss, row), target) in losses.iter_mut().zip(scores.chunks(classes)).zip(targets.iter()) {
        let right = usize::try_from(*target).ok().filter(|class| *class < classes);
        let Some(right) = right else {
            return Err(crate::native::error::err!(Index, "target out of range"));
        };
        let close =
            row.iter().enumerate().filter(|(class, _)| *class != right).map(|(_, score)| {
                let close = rise(margin - row[right] + score);
                if p == 1 { close } else { close * close }
            });
        let factor = weights.as_ref().map_or(1.0, |weights| weights[right]);
        *loss = close.sum::<f64>() * factor / classes as f64;
    }
    let each = Tensor::from_buffer(losses, target.shape())?.to_dtype(dtype)?;
    reduction.of(each)
}

/// `torch.nn.functional.multilabel_soft_margin_loss`: the mean over the classes, which are the last dimension.
pub fn multilabel_soft_margin(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    ensure!(input.ndim() > 0, Shape, "multilabel_soft_margin_loss needs a score for each class");
    let one = Tensor::scalar(1.0, input.dtype())?;
    let weight = weight.unwrap_or(&one);
    let dtype = float_type(&[input, target, weight])?;
    let each = map([input, target, weight], DType::Float64, |[x, t, w]| {
        -w * (t * log_sigmoid(x) + (1.0 - t) * log_sigmoid(-x))
    })?;
    let sums = reduce::sum(&each, Some(&[-1]), false, None)?;
    let classes = Scalar::Int(input.shape()[input.ndim() - 1] as i64);
    let means = pointwise::div(&sums.into(), &classes.into())?;
    reduction.of(means.to_dtype(dtype)?)
}
