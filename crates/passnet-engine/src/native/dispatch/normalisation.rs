//! Normalisations, softmax, dropout.

use super::{Args, Kernel};
use crate::engine::Value;
use crate::native::error::{Result, bail, ensure};
use crate::native::ops::norm::{self, Statistics};
use crate::native::ops::{composite, pointwise, reduce};
use crate::native::tensor::{Scalar, Tensor};
use passnet_graph::ops::Op;

pub(super) fn kernel(op: Op) -> Option<Kernel> {
    Some(match op {
        Op::LayerNorm | Op::RmsNorm => over_trailing,
        Op::BatchNorm | Op::InstanceNorm => by_channel,
        Op::GroupNorm => group_norm,
        Op::LocalResponseNorm | Op::Normalize | Op::WeightNorm => scaled,
        Op::Softmax | Op::LogSoftmax => softmax,
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
            let dims = args.ints("dim")?;
            let [dim] = dims.as_slice() else {
                bail!(Unsupported, "normalize over several dimensions is not supported yet")
            };
            norm::normalize(input, args.float("p")?, *dim, args.float("eps")?)?
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
    let mut mask_shape = input.shape().to_vec();
    match args.op {
        Op::AlphaDropout => bail!(Unsupported, "alpha dropout in training is not supported yet"),
        Op::Dropout => {}
        // Whole channels are dropped together.
        _ => mask_shape.iter_mut().skip(2).for_each(|size| *size = 1),
    }
    let keep = Tensor::full(&mask_shape, Scalar::Float(1.0 - p), input.dtype())?;
    let mask = args.context.generator.borrow_mut().bernoulli(&keep)?;
    let mask = if p == 1.0 { mask } else { pointwise::div(&mask.into(), &(1.0 - p).into())? };
    Ok(pointwise::mul(&input.into(), &mask.into())?.into())
}
