//! Losses.

use super::{Args, OpFunction};
use crate::engine::Value;
use crate::native::error::{Result, bail};
use crate::native::ops::loss::{self, CrossEntropy, Ctc, Reduction, TripletMargin};
use passnet_graph::ops::Op;

pub(super) fn function_of(op: Op) -> Option<OpFunction> {
    Some(match op {
        Op::MseLoss | Op::L1Loss | Op::SmoothL1Loss | Op::HuberLoss => difference,
        Op::CrossEntropy | Op::NllLoss => cross_entropy,
        Op::BinaryCrossEntropy | Op::BinaryCrossEntropyWithLogits => binary_cross_entropy,
        Op::KlDiv | Op::PoissonNllLoss | Op::GaussianNllLoss => divergence,
        Op::SoftMarginLoss | Op::HingeEmbeddingLoss | Op::MultilabelSoftMarginLoss => of_targets,
        Op::MultiMarginLoss => multi_margin,
        Op::MarginRankingLoss | Op::CosineEmbeddingLoss => of_pairs,
        Op::TripletMarginLoss => of_triplets,
        Op::CtcLoss => ctc,
        _ => return None,
    })
}

fn reduction(args: &Args<'_>) -> Result<Reduction> {
    if !matches!((args.value("size_average"), args.value("reduce")), (Value::None, Value::None)) {
        bail!(Unsupported, "`size_average` and `reduce` were replaced by `reduction`");
    }
    Reduction::from_name(args.text("reduction"))
}

fn difference(args: &Args<'_>) -> Result<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    let (weight, reduction) = (args.optional_tensor("weight")?, reduction(args)?);
    Ok(match args.op {
        Op::SmoothL1Loss => loss::smooth_l1(input, target, args.float("beta")?, reduction)?,
        Op::HuberLoss => loss::huber(input, target, weight, args.float("delta")?, reduction)?,
        op => loss::difference(input, target, weight, op == Op::MseLoss, reduction)?,
    }
    .into())
}

fn cross_entropy(args: &Args<'_>) -> Result<Value> {
    let is_nll = args.op == Op::NllLoss;
    let loss = CrossEntropy {
        weight: args.optional_tensor("weight")?,
        ignored: args.int("ignore_index")?,
        smoothing: if is_nll { 0.0 } else { args.float("label_smoothing")? },
        reduction: reduction(args)?,
    };
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    Ok(if is_nll { loss.of_scores(input, target)? } else { loss.of(input, target)? }.into())
}

fn binary_cross_entropy(args: &Args<'_>) -> Result<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    let (weight, reduction) = (args.optional_tensor("weight")?, reduction(args)?);
    Ok(match args.op {
        Op::BinaryCrossEntropy => loss::binary_cross_entropy(input, target, weight, reduction)?,
        _ => {
            let positive = args.optional_tensor("pos_weight")?;
            loss::binary_cross_entropy_with_logits(input, target, weight, positive, reduction)?
        }
    }
    .into())
}

fn divergence(args: &Args<'_>) -> Result<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    if args.op == Op::KlDiv {
        let by_batch = args.text("reduction") == Some("batchmean");
        let reduction = if by_batch { Reduction::Sum } else { reduction(args)? };
        let of_logarithms = args.flag("log_target")?;
        return Ok(loss::kl_div(input, target, of_logarithms, by_batch, reduction)?.into());
    }
    let (full, eps, reduction) = (args.flag("full")?, args.float("eps")?, reduction(args)?);
    Ok(match args.op {
        Op::PoissonNllLoss => {
            let log_input = args.flag("log_input")?;
            loss::poisson_nll(input, target, log_input, full, eps, reduction)?
        }
        _ => {
            let var = args.operand("var")?;
            loss::gaussian_nll(input, target, &var, full, eps, reduction)?
        }
    }
    .into())
}

fn of_targets(args: &Args<'_>) -> Result<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    let reduction = reduction(args)?;
    Ok(match args.op {
        Op::SoftMarginLoss => loss::soft_margin(input, target, reduction)?,
        Op::HingeEmbeddingLoss => {
            loss::hinge_embedding(input, target, args.float("margin")?, reduction)?
        }
        _ => {
            let weight = args.optional_tensor("weight")?;
            loss::multilabel_soft_margin(input, target, weight, reduction)?
        }
    }
    .into())
}

fn multi_margin(args: &Args<'_>) -> Result<Value> {
    let (input, target) = (args.tensor("input")?, args.tensor("target")?);
    let weight = args.optional_tensor("weight")?;
    let (p, margin) = (args.int("p")?, args.float("margin")?);
    Ok(loss::multi_margin(input, target, weight, p, margin, reduction(args)?)?.into())
}

fn of_pairs(args: &Args<'_>) -> Result<Value> {
    let (first, second) = (args.tensor("input1")?, args.tensor("input2")?);
    let (target, margin) = (args.tensor("target")?, args.float("margin")?);
    let function = match args.op {
        Op::MarginRankingLoss => loss::margin_ranking,
        _ => loss::cosine_embedding,
    };
    Ok(function(first, second, target, margin, reduction(args)?)?.into())
}

fn of_triplets(args: &Args<'_>) -> Result<Value> {
    let loss = TripletMargin {
        margin: args.float("margin")?,
        p: args.float("p")?,
        eps: args.float("eps")?,
        swap: args.flag("swap")?,
        reduction: reduction(args)?,
    };
    let anchor = args.tensor("anchor")?;
    Ok(loss.of(anchor, args.tensor("positive")?, args.tensor("negative")?)?.into())
}

fn ctc(args: &Args<'_>) -> Result<Value> {
    let lengths = |name: &str| match args.value(name) {
        Value::Tensor(lengths) => lengths.to_vec::<i64>(),
        _ => Ok(args.ints(name)?.to_vec()),
    };
    let loss = Ctc {
        input_lengths: lengths("input_lengths")?,
        target_lengths: lengths("target_lengths")?,
        blank: args.int("blank")?,
        reduction: Reduction::from_name(args.text("reduction"))?,
        zero_infinity: args.flag("zero_infinity")?,
    };
    Ok(loss.of(args.tensor("log_probs")?, args.tensor("targets")?)?.into())
}
