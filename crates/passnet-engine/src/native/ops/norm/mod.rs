//! Normalisation: batch, layer, group, instance, RMS, and by a vector's length.

mod batch;
mod single_rows;

pub(crate) use batch::{Given, channel_table, fused_block};
pub use batch::{Statistics, batch_norm, instance_norm};

use super::pointwise::{self, Unary};
use super::reduce::{self, Term, moments, row_moments, sum_run};
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::layout::suggests_channels_last;
use crate::native::tensor::{Arg, Buffer, Scalar, Tensor, Values};
use batch::{fused_one, per_channel};
use passnet_cpu::multiversion;
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;
use single_rows::{Elements, PART, RowPart, by_single_rows};

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
        let apply = |&(mean, scale): &(T, T), at: RowPart, part: &[T], out: &mut [T]| {
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
    let apply = |&(mean, scale): &(f64, f64), at: RowPart, part: &[T], out: &mut [T]| {
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
            apply(&measure(values), RowPart { row, column: 0 }, values, target);
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
