//! Statistics of channels: batch and instance normalisation.

use crate::native::error::{Result, ensure};
use crate::native::ops::pointwise::blocks;
use crate::native::ops::pointwise::unary::pick;
use crate::native::ops::{movement, reduce};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::multiversion;
use passnet_graph::DType;

/// Parameters of a batch or instance normalisation; statistics are updated in place when training.
#[derive(Debug, Clone, Default)]
#[expect(missing_docs, reason = "fields are torch's arguments of the same names")]
pub struct Statistics {
    pub running_mean: Option<Tensor>,
    pub running_var: Option<Tensor>,
    pub weight: Option<Tensor>,
    pub bias: Option<Tensor>,
}

/// One value per channel, in double precision.
pub(super) fn per_channel(
    tensor: Option<&Tensor>,
    channels: usize,
    default: f64,
    name: &str,
) -> Result<Vec<f64>> {
    match tensor {
        None => Ok(vec![default; channels]),
        Some(tensor) => {
            ensure!(
                tensor.shape() == [channels],
                Shape,
                "{name} should contain {channels} elements not {}",
                tensor.numel()
            );
            tensor.to_vec::<f64>()
        }
    }
}

/// What a batch normalisation outside training is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) mean: &'a Tensor,
    pub(crate) var: &'a Tensor,
    pub(crate) weight: Option<&'a Tensor>,
    pub(crate) bias: Option<&'a Tensor>,
    pub(crate) eps: f64,
}

/// The factor (or the addend) of every channel, to be broadcast over an input of `rank` dimensions and the type `dtype`;
/// nothing where the parameters do not fit each other.
pub(crate) fn channel_table(
    given: &Given<'_>,
    rank: usize,
    dtype: DType,
    addend: bool,
) -> Result<Option<Tensor>> {
    let channels = given.mean.numel();
    let all = [Some(given.mean), Some(given.var), given.weight, given.bias];
    if rank < 2 || all.iter().flatten().any(|t| t.shape() != [channels]) {
        return Ok(None);
    }
    let (mean, var) = (given.mean.to_vec::<f64>()?, given.var.to_vec::<f64>()?);
    let weight = per_channel(given.weight, channels, 1.0, "weight")?;
    let bias = per_channel(given.bias, channels, 0.0, "bias")?;
    let (scale, shift) = factors(&mean, &var, &weight, &bias, given.eps);
    let mut shape: Dims = smallvec::smallvec![1; rank];
    shape[1] = channels;
    table(if addend { &shift } else { &scale }, &shape, dtype).map(Some)
}

/// One multiplication and one addition per element.
fn factors(
    mean: &[f64],
    var: &[f64],
    weight: &[f64],
    bias: &[f64],
    eps: f64,
) -> (Vec<f64>, Vec<f64>) {
    let scale: Vec<f64> = weight.iter().zip(var).map(|(w, v)| w / (v + eps).sqrt()).collect();
    let shift = bias.iter().zip(mean).zip(&scale).map(|((b, m), s)| b - m * s).collect();
    (scale, shift)
}

/// Numbers in the type in which elements of `dtype` are computed.
fn table(values: &[f64], shape: &[usize], dtype: DType) -> Result<Tensor> {
    if dtype == DType::Float64 {
        return Tensor::from_slice(values, shape);
    }
    let mut narrow = Buffer::<f32>::new(values.len())?;
    for (o, v) in narrow.iter_mut().zip(values) {
        *o = *v as f32;
    }
    Tensor::from_buffer(narrow, shape)
}

/// `torch.nn.functional.batch_norm`.
pub fn batch_norm(
    input: &Tensor,
    statistics: &Statistics,
    training: bool,
    momentum: f64,
    eps: f64,
) -> Result<Tensor> {
    ensure!(input.ndim() >= 2, Shape, "expected at least 2D input (got {}D input)", input.ndim());
    ensure!(
        input.dtype().is_float(),
        DType,
        "\"batch_norm\" not implemented for '{}'",
        input.dtype()
    );
    let channels = input.shape()[1];
    let (mean, var) = if training {
        batch_statistics(input, statistics, momentum)?
    } else {
        ensure!(
            statistics.running_mean.is_some() && statistics.running_var.is_some(),
            Value,
            "Expected running_mean and running_var to be defined when training=False"
        );
        (
            per_channel(statistics.running_mean.as_ref(), channels, 0.0, "running_mean")?,
            per_channel(statistics.running_var.as_ref(), channels, 1.0, "running_var")?,
        )
    };
    let weight = per_channel(statistics.weight.as_ref(), channels, 1.0, "weight")?;
    let bias = per_channel(statistics.bias.as_ref(), channels, 0.0, "bias")?;
    let (scale, shift) = factors(&mean, &var, &weight, &bias, eps);
    affine(input, &scale, &shift)
}

/// `input * scale + shift` by channel, in the input's type and memory order.
fn affine(input: &Tensor, scale: &[f64], shift: &[f64]) -> Result<Tensor> {
    let channels = scale.len();
    let mut shape: Dims = input.shape().iter().map(|_| 1).collect();
    shape[1] = channels;
    let dtype = input.dtype();
    let (scale, shift) = (table(scale, &shape, dtype)?, table(shift, &shape, dtype)?);
    let inputs = [input, &scale, &shift];
    if dtype == DType::Float64 {
        blocks::map::<f64>(&inputs, input.dtype(), &|i, o| fused_block(i, o))
    } else {
        blocks::map::<f32>(&inputs, input.dtype(), &|i, o| fused_block(i, o))
    }
}

pub(crate) fn fused_block<T: Real>(inputs: &[blocks::Block<'_, T>], out: &mut [T]) {
    use blocks::Block;
    match (inputs[0], inputs[1], inputs[2]) {
        (Block::Run(x), Block::One(scale), Block::One(shift)) => fused_one(x, scale, shift, out),
        (Block::Run(x), Block::Run(scale), Block::Run(shift)) => fused_runs(x, scale, shift, out),
        _ => {
            for (at, o) in out.iter_mut().enumerate() {
                *o = pick(&inputs[0], at).fused(pick(&inputs[1], at), pick(&inputs[2], at));
            }
        }
    }
}

multiversion! {
    pub(super) fn fused_one[T: Real](x: &[T], scale: T, shift: T, out: &mut [T]) {
        for (o, v) in out.iter_mut().zip(x) { *o = v.fused(scale, shift); }
    }
}

multiversion! {
    fn fused_runs[T: Real](x: &[T], scale: &[T], shift: &[T], out: &mut [T]) {
        for (((o, v), s), t) in out.iter_mut().zip(x).zip(scale).zip(shift) { *o = v.fused(*s, *t); }
    }
}

fn batch_statistics(
    input: &Tensor,
    statistics: &Statistics,
    momentum: f64,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let dims: Vec<i64> = (0..input.ndim() as i64).filter(|d| *d != 1).collect();
    let count = input.numel() / input.shape()[1].max(1);
    ensure!(
        count > 0,
        Value,
        "Expected more than 0 values per channel when training, got input size {:?}",
        input.shape()
    );
    let (mean, var) = reduce::mean_and_var(input, &dims)?;
    let unbiased = count as f64 / (count as f64 - 1.0).max(1.0);
    let update = |running: &Option<Tensor>, batch: &[f64], factor: f64| -> Result<()> {
        let Some(running) = running else { return Ok(()) };
        let old = running.to_vec::<f64>()?;
        let new: Vec<f64> = old
            .iter()
            .zip(batch)
            .map(|(o, b)| (1.0 - momentum) * o + momentum * b * factor)
            .collect();
        running.copy_from(&Tensor::from_slice(&new, &[new.len()])?)
    };
    update(&statistics.running_mean, &mean, 1.0)?;
    update(&statistics.running_var, &var, unbiased)?;
    Ok((mean, var))
}

/// `torch.nn.functional.instance_norm`: statistics of each image's channels.
pub fn instance_norm(
    input: &Tensor,
    statistics: &Statistics,
    use_input_stats: bool,
    momentum: f64,
    eps: f64,
) -> Result<Tensor> {
    ensure!(
        input.ndim() >= 3,
        Shape,
        "instance_norm expects at least 3 dimensions, got {}",
        input.ndim()
    );
    if !use_input_stats {
        return batch_norm(input, statistics, false, momentum, eps);
    }
    let (batch, channels) = (input.shape()[0], input.shape()[1]);
    let mut folded: Dims = smallvec::smallvec![1, batch * channels];
    folded.extend_from_slice(&input.shape()[2..]);
    let repeated = |t: &Option<Tensor>| -> Result<Option<Tensor>> {
        t.as_ref().map(|t| movement::repeat(t, &[batch])).transpose()
    };
    let own = Statistics {
        weight: repeated(&statistics.weight)?,
        bias: repeated(&statistics.bias)?,
        ..Statistics::default()
    };
    let result = batch_norm(&input.contiguous()?.reshape_to(&folded)?, &own, true, momentum, eps)?;
    result.reshape_to(input.shape())
}
