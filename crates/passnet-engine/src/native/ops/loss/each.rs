//! Losses whose elements each come from the elements at the same place: computed in double precision, rounded once.

use super::Reduction;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::pointwise::blocks;
use crate::native::ops::pointwise::unary::pick;
use crate::native::ops::{pointwise, reduce};
use crate::native::tensor::{Arg, Tensor, promote};
use passnet_graph::DType;
use std::f64::consts::PI;

/// The type of a loss over these tensors.
pub(super) fn float_type(tensors: &[&Tensor]) -> Result<DType> {
    let args: Vec<Arg> = tensors.iter().map(|tensor| Arg::from(*tensor)).collect();
    let dtype = promote::result_type(args.iter());
    ensure!(dtype.is_float(), DType, "a loss needs floating point inputs, got {dtype}");
    Ok(dtype)
}

/// A function of the elements of `N` tensors at the same place.
pub(super) fn map<const N: usize>(
    tensors: [&Tensor; N],
    dtype: DType,
    function: impl Fn([f64; N]) -> f64 + Sync,
) -> Result<Tensor> {
    blocks::map::<f64>(&tensors, dtype, &|inputs, out| {
        for (at, out) in out.iter_mut().enumerate() {
            let mut values = [0.0; N];
            for (value, input) in values.iter_mut().zip(inputs) {
                *value = pick(input, at);
            }
            *out = function(values);
        }
    })
}

/// `torch.nn.functional.smooth_l1_loss`: a parabola up to `beta`, a line beyond.
pub fn smooth_l1(
    input: &Tensor,
    target: &Tensor,
    beta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    ensure!(beta >= 0.0, Value, "smooth_l1_loss does not support negative values for beta.");
    let each = map([input, target], float_type(&[input, target])?, |[x, t]| {
        let apart = (x - t).abs();
        if apart < beta { 0.5 * apart * apart / beta } else { apart - 0.5 * beta }
    })?;
    reduction.of(each)
}

/// `torch.nn.functional.huber_loss`.
pub fn huber(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    delta: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    ensure!(delta > 0.0, Value, "huber_loss does not support non-positive values for delta.");
    let each = map([input, target], float_type(&[input, target])?, |[x, t]| {
        let apart = (x - t).abs();
        if apart <= delta { 0.5 * apart * apart } else { delta * (apart - 0.5 * delta) }
    })?;
    reduction.of(weighed(each, weight)?)
}

fn weighed(each: Tensor, weight: Option<&Tensor>) -> Result<Tensor> {
    match weight {
        Some(weight) => pointwise::mul(&each.into(), &weight.into()),
        None => Ok(each),
    }
}

/// `torch.nn.functional.binary_cross_entropy`, whose logarithms are bounded from below.
pub fn binary_cross_entropy(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    ensure!(
        input.values::<f64>()?.iter().all(|p| (0.0..=1.0).contains(p)),
        Value,
        "all elements of input should be between 0 and 1"
    );
    check_sizes(input, target)?;
    let each = map([input, target], float_type(&[input])?, |[p, t]| {
        (t - 1.0) * (-p).ln_1p().max(-100.0) - t * p.ln().max(-100.0)
    })?;
    reduction.of(weighed(each, weight)?)
}

fn check_sizes(input: &Tensor, target: &Tensor) -> Result<()> {
    ensure!(
        input.shape() == target.shape(),
        Value,
        "Target size ({:?}) must be the same as input size ({:?})",
        target.shape(),
        input.shape()
    );
    Ok(())
}

/// ln(σ(x)).
pub(super) fn log_sigmoid(x: f64) -> f64 {
    x.min(0.0) - (-x.abs()).exp().ln_1p()
}

/// `torch.nn.functional.binary_cross_entropy_with_logits`.
pub fn binary_cross_entropy_with_logits(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: Reduction,
) -> Result<Tensor> {
    check_sizes(input, target)?;
    let dtype = float_type(&[target])?;
    let one = Tensor::scalar(1.0, dtype)?;
    let each = map([target, input, pos_weight.unwrap_or(&one)], dtype, |[t, x, positive]| {
        (1.0 - t) * x - (1.0 + (positive - 1.0) * t) * log_sigmoid(x)
    })?;
    reduction.of(weighed(each, weight)?)
}

/// `torch.nn.functional.kl_div`; `by_batch` divides the sum by the number of samples.
pub fn kl_div(
    input: &Tensor,
    target: &Tensor,
    log_target: bool,
    by_batch: bool,
    reduction: Reduction,
) -> Result<Tensor> {
    let each = map([input, target], float_type(&[input, target])?, |[x, t]| {
        match log_target {
            true => t.exp() * (t - x),
            // Nothing is lost where nothing is expected, however unlikely.
            false if t == 0.0 => -t * x,
            false => t * t.ln() - t * x,
        }
    })?;
    if !by_batch {
        return reduction.of(each);
    }
    let sum = reduce::sum(&each, None, false, None)?;
    match input.shape().first() {
        Some(samples) => pointwise::div(&sum.into(), &(*samples as i64).into()),
        None => Ok(sum),
    }
}

/// `torch.nn.functional.poisson_nll_loss`; `full` adds Stirling's formula where targets are above one.
pub fn poisson_nll(
    input: &Tensor,
    target: &Tensor,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    let each = map([input, target], float_type(&[input, target])?, |[x, t]| {
        let loss = if log_input { x.exp() - t * x } else { x - t * (x + eps).ln() };
        match full && t > 1.0 {
            true => loss + t * t.ln() - t + 0.5 * (2.0 * PI * t).ln(),
            false => loss,
        }
    })?;
    reduction.of(each)
}

/// `torch.nn.functional.gaussian_nll_loss`.
pub fn gaussian_nll(
    input: &Tensor,
    target: &Tensor,
    var: &Arg,
    full: bool,
    eps: f64,
    reduction: Reduction,
) -> Result<Tensor> {
    let var = match var {
        Arg::Tensor(var) => var.clone(),
        Arg::Scalar(value) => Tensor::scalar(*value, input.dtype())?,
    };
    ensure!(
        !var.values::<f64>()?.iter().any(|v| *v < 0.0),
        Value,
        "var has negative entry/entries"
    );
    let short = input.ndim().checked_sub(1) == Some(var.ndim())
        && var.shape() == &input.shape()[..var.ndim()]
        && var.shape() != input.shape();
    let var = if short { var.unsqueeze(-1)? } else { var };
    if var.ndim() > input.ndim() {
        bail!(Value, "var is of incorrect size");
    }
    let shift = if full { 0.5 * (2.0 * PI).ln() } else { 0.0 };
    let each = map([input, target, &var], float_type(&[input, target, &var])?, |[x, t, v]| {
        let v = if v < eps { eps } else { v };
        0.5 * (v.ln() + (x - t) * (x - t) / v) + shift
    })?;
    reduction.of(each)
}
