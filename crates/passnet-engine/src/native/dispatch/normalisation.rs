//! Normalisations, softmax, dropout.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, ensure};
use crate::native::ops::norm::{self, Statistics};
use crate::native::ops::{composite, pointwise, reduce};
use crate::native::tensor::{Scalar, Tensor};
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::LayerNorm | Op::RmsNorm => over_trailing,
        Op::BatchNorm | Op::InstanceNorm => by_channel,
        Op::GroupNorm => group_norm,
        Op::LocalResponseNorm | Op::Normalize | Op::WeightNorm => scaled,
        Op::Softmax | Op::LogSoftmax | Op::Softmin => softmax,
        Op::Glu => glu,
        Op::Dropout | Op::Dropout1d | Op::Dropout2d | Op::Dropout3d | Op::AlphaDropout => dropout,
        _ => return None,
    })
}

fn over_trailing(args: &Args<'_>) -> Result<Value> {
    let input = args.tensor("input")?;
    let shape = args.sizes("normalized_shape")?;
    let weight = args.optional_tensor("weight")?;
    Ok(match args.op {
        Op::LayerNorm => norm::layer_norm(
            input,
            &shape,
            weight,
            args.optional_tensor("bias")?,
            args.float("eps")?,
        )?,
        _ => norm::rms_norm(input, &shape, weight, args.optional_float("eps")?)?,
    }
    .into())
}

fn by_channel(args: &Args<'_>) -> Result<Value> {
    let input = args.tensor("input")?;
    let owned = |name: &str| -> Result<Option<Tensor>> { Ok(args.optional_tensor(name)?.cloned()) };
    let statistics = Statistics {
        running_mean: owned("running_mean")?,
        running_var: owned("running_var")?,
        weight: owned("weight")?,
        bias: owned("bias")?,
    };
    let (momentum, eps) = (args.float("momentum")?, args.float("eps")?);
    Ok(match args.op {
        Op::BatchNorm => {
            norm::batch_norm(input, &statistics, args.flag("training")?, momentum, eps)?
        }
        _ => {
            let own = args.flag("use_input_stats")?;
            norm::instance_norm(input, &statistics, own, momentum, eps)?
        }
    }
    .into())
}

fn group_norm(args: &Args<'_>) -> Result<Value> {
    let (weight, bias) = (args.optional_tensor("weight")?, args.optional_tensor("bias")?);
    let groups = args.size("num_groups")?;
    Ok(norm::group_norm(args.tensor("input")?, groups, weight, bias, args.float("eps")?)?.into())
}

fn scaled(args: &Args<'_>) -> Result<Value> {
    Ok(match args.op {
        Op::LocalResponseNorm => composite::local_response_norm(
            args.tensor("input")?,
            args.size("size")?,
            args.float("alpha")?,
            args.float("beta")?,
            args.float("k")?,
        )?,
        Op::Normalize => {
            let input = args.tensor("input")?;
            norm::normalize(input, args.float("p")?, &args.ints("dim")?, args.float("eps")?)?
        }
        _ => norm::weight_norm(args.tensor("v")?, args.tensor("g")?, args.int("dim")?)?,
    }
    .into())
}

fn softmax(args: &Args<'_>) -> Result<Value> {
    let input = args.tensor("input")?;
    let dim = match args.optional_int("dim")? {
        Some(dim) => dim,
        // The old default that torch still honours.
        None => i64::from(!matches!(input.ndim(), 0 | 1 | 3)),
    };
    let dtype = args.dtype("dtype");
    Ok(match args.op {
        Op::Softmax => reduce::softmax(input, dim, dtype)?,
        Op::Softmin => {
            let negated = pointwise::unary(pointwise::Unary::Neg, input)?;
            reduce::softmax(&negated, dim, dtype)?
        }
        _ => reduce::log_softmax(input, dim, dtype)?,
    }
    .into())
}

fn glu(args: &Args<'_>) -> Result<Value> {
    Ok(composite::glu(args.input()?, args.int("dim")?)?.into())
}

/// Outside training dropout is its argument itself.
fn dropout(args: &Args<'_>) -> Result<Value> {
    let input = args.tensor("input")?;
    let p = args.float("p")?;
    let name = if args.has("training") { "training" } else { "train" };
    ensure!(
        (0.0..=1.0).contains(&p),
        Value,
        "dropout probability has to be between 0 and 1, but got {p}"
    );
    if !args.flag(name)? || p == 0.0 || input.numel() == 0 {
        args.wrote.set(true);
        return Ok(input.clone().into());
    }
    if p == 1.0 {
        let nothing = Tensor::zeros(input.shape(), input.dtype())?;
        return Ok(pointwise::mul(&input.into(), &nothing.into())?.into());
    }
    let mut generator = args.context.generator();
    if args.op == Op::AlphaDropout {
        return alpha_dropout(input, &generator.bernoulli_like(input, 1.0 - p)?, p);
    }
    let mask = if args.op == Op::Dropout {
        generator.bernoulli_like(input, 1.0 - p)?
    } else {
        // Whole channels are dropped together.
        ensure!(
            input.ndim() >= 2,
            Shape,
            "Feature dropout requires at least 2 dimensions in the input"
        );
        let mut shape = input.shape().to_vec();
        shape.iter_mut().skip(2).for_each(|size| *size = 1);
        generator.bernoulli_like(&Tensor::zeros(&shape, input.dtype())?, 1.0 - p)?
    };
    let mask = pointwise::div(&mask.into(), &(1.0 - p).into())?;
    Ok(pointwise::mul(&input.into(), &mask.into())?.into())
}

/// Dropped elements take the value a SELU saturates at; scale and shift keep mean and variance.
fn alpha_dropout(input: &Tensor, mask: &Tensor, p: f64) -> Result<Value> {
    const SATURATION: f64 = 1.758_099_340_847_376_6;
    let scale = 1.0 / ((SATURATION * SATURATION * p + 1.0) * (1.0 - p)).sqrt();
    let dropped = pointwise::add(&mask.into(), &(-1.0).into(), Scalar::Int(1))?;
    let shift = pointwise::mul(&dropped.into(), &(SATURATION * scale).into())?;
    let shift = pointwise::add(&shift.into(), &(SATURATION * scale * p).into(), Scalar::Int(1))?;
    let mask = pointwise::mul(&mask.into(), &scale.into())?;
    let kept = pointwise::mul(&input.into(), &mask.into())?;
    Ok(pointwise::add(&kept.into(), &shift.into(), Scalar::Int(1))?.into())
}
