//! Normalisation: batch, layer, group, instance, RMS, and by a vector's length.

mod single_rows;

use super::pointwise::{self, Unary, blocks, unary::pick};
use super::reduce::{self, Term, moments, row_moments, sum_run};
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::{Dims, suggests_channels_last};
use crate::native::tensor::{Arg, Buffer, Scalar, Tensor, Values};
use passnet_cpu::multiversion;
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;
use single_rows::{Elements, PART, Place, by_single_rows};

/// Parameters of a batch or instance normalisation; statistics are updated in place when training.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    pub running_mean: Option<Tensor>,
    pub running_var: Option<Tensor>,
    pub weight: Option<Tensor>,
    pub bias: Option<Tensor>,
}

/// One value per channel, in double precision.
fn per_channel(
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
    fn fused_one[T: Real](x: &[T], scale: T, shift: T, out: &mut [T]) {
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
        t.as_ref().map(|t| super::movement::repeat(t, &[batch])).transpose()
    };
    let own = Statistics {
        weight: repeated(&statistics.weight)?,
        bias: repeated(&statistics.bias)?,
        ..Statistics::default()
    };
    let result = batch_norm(&input.contiguous()?.reshape_to(&folded)?, &own, true, momentum, eps)?;
    result.reshape_to(input.shape())
}

/// A weight or bias over the normalised elements.
fn check_affine(tensor: Option<&Tensor>, shape: &[usize], name: &str) -> Result<()> {
    if let Some(tensor) = tensor {
        ensure!(
            tensor.shape() == shape,
            Shape,
            "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and normalized_shape = {shape:?}",
            tensor.shape()
        );
    }
    Ok(())
}

fn check_normalized(input: &Tensor, shape: &[usize]) -> Result<()> {
    ensure!(
        !shape.is_empty() && shape.len() <= input.ndim() && input.shape().ends_with(shape),
        Shape,
        "Given normalized_shape={shape:?}, expected input with shape [*, {shape:?}], but got input of size{:?}",
        input.shape()
    );
    ensure!(
        input.dtype().is_float(),
        DType,
        "normalisation is not implemented for '{}'",
        input.dtype()
    );
    Ok(())
}

/// `torch.nn.functional.layer_norm`.
pub fn layer_norm(
    input: &Tensor,
    normalized_shape: &[usize],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    check_normalized(input, normalized_shape)?;
    check_affine(weight, normalized_shape, "weight")?;
    check_affine(bias, normalized_shape, "bias")?;
    match input.dtype() {
        DType::Float64 => normalize_rows::<f64>(input, normalized_shape, weight, bias, eps),
        _ => normalize_rows::<f32>(input, normalized_shape, weight, bias, eps),
    }
}

fn normalize_rows<T: Real>(
    input: &Tensor,
    normalized: &[usize],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    let length: usize = normalized.iter().product();
    if input.dtype() != T::DTYPE {
        let (weight, bias) = (row_major(weight)?, row_major(bias)?);
        let weight = weight.as_ref().map(Elements::new).transpose()?;
        let bias = bias.as_ref().map(Elements::new).transpose()?;
        let apply = |&(mean, scale): &(T, T), at: Place, part: &[T], out: &mut [T]| {
            let (mut weights, mut biases) = ([T::ONE; PART], [T::ZERO; PART]);
            if let Some(weight) = &weight {
                weight.load(at.column, &mut weights[..part.len()]);
            }
            if let Some(bias) = &bias {
                bias.load(at.column, &mut biases[..part.len()]);
            }
            normalize_part(part, mean, scale, &weights, &biases, out);
        };
        return by_single_rows(input, length, |row| row_scale(row, eps), apply);
    }
    let values = input.values::<T>()?;
    let (weight, bias) = (table_or::<T>(weight, length, 1.0)?, table_or::<T>(bias, length, 0.0)?);
    let mut out = Buffer::<T>::new(values.len())?;
    if let Some(rows) = (GRAIN / 2).checked_div(length) {
        let rows = rows.max(1);
        for_each_chunk(&mut out, rows * length, |index, piece| {
            let from = &values[index * rows * length..][..piece.len()];
            normalize_block(from, &weight, &bias, eps, piece);
        });
    }
    Tensor::from_buffer(out, input.shape())
}

fn row_major(tensor: Option<&Tensor>) -> Result<Option<Tensor>> {
    tensor.map(Tensor::contiguous).transpose()
}

/// A weight or bias as it lies in memory, or `length` times the same number.
fn table_or<T: Real>(given: Option<&Tensor>, length: usize, number: f64) -> Result<Values<'_, T>> {
    if let Some(given) = given {
        return given.values();
    }
    let mut table = Buffer::<T>::new(length)?;
    table.fill(T::constant(number));
    Ok(Values::Owned(table))
}

multiversion! {
    /// Rows as long as the weight and the bias.
    fn normalize_block[T: Real](rows: &[T], weight: &[T], bias: &[T], eps: f64, out: &mut [T]) {
        let length = weight.len();
        for (row, target) in rows.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
            let (mean, squares) = row_moments(row);
            let scale = T::from_f64(1.0 / (squares / length as f64 + eps).sqrt());
            let mean = T::from_f64(mean);
            let (weight, bias) = (&weight[..length], &bias[..length]);
            for i in 0..length {
                target[i] = ((row[i] - mean) * scale).fused(weight[i], bias[i]);
            }
        }
    }
}

/// What a row's mean and the inverse of its deviation are.
fn row_scale<T: Real>(row: &[T], eps: f64) -> (T, T) {
    let (mean, squares) = moments(row);
    let scale = 1.0 / (squares / row.len() as f64 + eps).sqrt();
    (T::from_f64(mean), T::from_f64(scale))
}

multiversion! {
    fn normalize_part[T: Real](row: &[T], mean: T, scale: T, weight: &[T], bias: &[T], out: &mut [T]) {
        for (((o, v), w), b) in out.iter_mut().zip(row).zip(weight).zip(bias) {
            *o = ((*v - mean) * scale).fused(*w, *b);
        }
    }
}

/// `torch.nn.functional.rms_norm`; the default eps is the type's own.
pub fn rms_norm(
    input: &Tensor,
    normalized_shape: &[usize],
    weight: Option<&Tensor>,
    eps: Option<f64>,
) -> Result<Tensor> {
    check_normalized(input, normalized_shape)?;
    check_affine(weight, normalized_shape, "weight")?;
    let dtype = input.dtype();
    let eps = eps.unwrap_or(match dtype {
        DType::Float64 => f64::EPSILON,
        // Half-precision inputs are normalised in float32, with its eps.
        _ => f64::from(f32::EPSILON),
    });
    let length: usize = normalized_shape.iter().product();
    let scaled = match dtype {
        DType::Float64 => scale_rows::<f64>(input, length, eps)?,
        _ => scale_rows::<f32>(input, length, eps)?,
    };
    match weight {
        Some(weight) if weight.dtype() == dtype => {
            pointwise::binary_in_place(pointwise::Binary::Mul, &scaled, &weight.into())?;
            Ok(scaled)
        }
        Some(weight) => pointwise::mul(&scaled.into(), &weight.into()),
        None => Ok(scaled),
    }
}

/// Each row divided by its root mean square.
fn scale_rows<T: Real>(input: &Tensor, length: usize, eps: f64) -> Result<Tensor> {
    let scale =
        |row: &[T]| T::from_f64(1.0 / (sum_run(Term::Square, row) / length as f64 + eps).sqrt());
    if input.dtype() != T::DTYPE {
        return by_single_rows(input, length, scale, |scale, _, part, out| {
            fused_one(part, *scale, -T::ZERO, out);
        });
    }
    let values = input.values::<T>()?;
    let mut out = Buffer::<T>::new(values.len())?;
    if let Some(rows) = (GRAIN / 2).checked_div(length) {
        let rows = rows.max(1);
        for_each_chunk(&mut out, rows * length, |index, piece| {
            for (r, target) in piece.chunks_mut(length).enumerate() {
                let row = &values[(index * rows + r) * length..][..length];
                fused_one(row, scale(row), -T::ZERO, target);
            }
        });
    }
    Tensor::from_buffer(out, input.shape())
}

/// `torch.nn.functional.group_norm`.
pub fn group_norm(
    input: &Tensor,
    groups: usize,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Tensor> {
    ensure!(
        input.ndim() >= 2,
        Shape,
        "Expected at least 2 dimensions for input tensor but received {}",
        input.ndim()
    );
    ensure!(
        input.dtype().is_float(),
        DType,
        "\"GroupNormKernelImpl\" not implemented for '{}'",
        input.dtype()
    );
    let (batch, channels) = (input.shape()[0], input.shape()[1]);
    ensure!(
        groups > 0 && channels.is_multiple_of(groups),
        Value,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape {:?} and num_groups={groups}",
        input.shape()
    );
    let weight = per_channel(weight, channels, 1.0, "weight")?;
    let bias = per_channel(bias, channels, 0.0, "bias")?;
    let result = match input.dtype() {
        DType::Float64 => group_rows::<f64>(input, batch, groups, &weight, &bias, eps)?,
        _ => group_rows::<f32>(input, batch, groups, &weight, &bias, eps)?,
    };
    if suggests_channels_last(input.shape(), input.strides()) {
        result.channels_last()
    } else {
        Ok(result)
    }
}

fn group_rows<T: Real>(
    input: &Tensor,
    batch: usize,
    groups: usize,
    weight: &[f64],
    bias: &[f64],
    eps: f64,
) -> Result<Tensor> {
    let channels = weight.len();
    let per_group = channels / groups;
    let length = input.numel() / (batch * groups).max(1);
    let plane = (length / per_group.max(1)).max(1);
    let measure = |row: &[T]| {
        let (mean, squares) = moments(row);
        (mean, 1.0 / (squares / length as f64 + eps).sqrt())
    };
    // Neighbours of one channel have one factor and one addend.
    let apply = |&(mean, scale): &(f64, f64), at: Place, part: &[T], out: &mut [T]| {
        let (first, mut done) = (at.row % groups * per_group, 0);
        while done < part.len() {
            let column = at.column + done;
            let end = (done + plane - column % plane).min(part.len());
            let factor = weight[first + column / plane] * scale;
            let shift = bias[first + column / plane] - mean * factor;
            let (factor, shift) = (T::from_f64(factor), T::from_f64(shift));
            fused_one(&part[done..end], factor, shift, &mut out[done..end]);
            done = end;
        }
    };
    if input.dtype() != T::DTYPE {
        return by_single_rows(input, length, measure, apply);
    }
    let values = input.values::<T>()?;
    let mut out = Buffer::<T>::new(values.len())?;
    if length > 0 {
        for_each_chunk(&mut out, length, |row, target| {
            let values = &values[row * length..][..length];
            apply(&measure(values), Place { row, column: 0 }, values, target);
        });
    }
    Tensor::from_buffer(out, input.shape())
}

/// `torch.nn.functional.normalize`.
pub fn normalize(input: &Tensor, p: f64, dims: &[i64], eps: f64) -> Result<Tensor> {
    let length = reduce::vector_norm(input, p, Some(dims), true, None)?;
    let bounded = pointwise::clamp_scalar(&length, Some(Scalar::Float(eps)), None)?;
    pointwise::div(&input.into(), &bounded.into())
}

/// `torch._weight_norm`: `v * g / |v|`, lengths taken over all dimensions but one.
pub fn weight_norm(v: &Tensor, g: &Tensor, dim: i64) -> Result<Tensor> {
    let d = v.dim(dim)? as i64;
    let dims: Vec<i64> = (0..v.ndim() as i64).filter(|i| *i != d).collect();
    let length = if dims.is_empty() {
        pointwise::unary(Unary::Abs, v)?
    } else {
        reduce::vector_norm(v, 2.0, Some(&dims), true, None)?
    };
    let ratio = pointwise::div(&g.into(), &length.into())?;
    pointwise::mul(&Arg::from(v), &ratio.into())
}
