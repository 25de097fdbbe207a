//! Softmax and its logarithm, and log-sum-exp.

use super::extremes::{Extreme, Ordered, best_of_run, extreme_run};
use super::plan::Reduction;
use super::sums::{LANES, STRETCH, lane_sum, rounded_rows};
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::multiversion;
use passnet_cpu::parallel::{GRAIN, Shared, for_each_task, for_each_weighted_chunk};
use passnet_cpu::vector::add_lanes;
use passnet_graph::DType;

/// What is made of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Softmax,
    LogSoftmax,
}

/// `torch.softmax`; the type is given by the caller where it differs from the input's.
pub fn softmax(input: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    along(input, dim, dtype, Kind::Softmax)
}

/// `torch.log_softmax`.
pub fn log_softmax(input: &Tensor, dim: i64, dtype: Option<DType>) -> Result<Tensor> {
    along(input, dim, dtype, Kind::LogSoftmax)
}

fn along(input: &Tensor, dim: i64, dtype: Option<DType>, kind: Kind) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(input.dtype());
    ensure!(
        dtype.is_float(),
        DType,
        "\"softmax_lastdim_kernel_impl\" not implemented for '{dtype}'"
    );
    let d = input.dim(dim)?;
    // Along the last dimension, torch keeps the sum and the differences of a half-precision logarithm in that type.
    let stepwise = kind == Kind::LogSoftmax && d + 1 == input.ndim();
    let round: fn(f32) -> f32 = match dtype {
        DType::Float16 if stepwise => |v| half::f16::from_f32(v).to_f32(),
        DType::BFloat16 if stepwise => |v| half::bf16::from_f32(v).to_f32(),
        _ => |v| v,
    };
    let result = if dtype == DType::Float64 {
        rows::<f64>(input, d, kind, |v| v)?
    } else {
        rows::<f32>(&input.to_dtype(dtype)?, d, kind, round)?
    };
    result.to_dtype(dtype)
}

/// What an exponential costs, in additions.
const EXPONENTIAL: usize = 8;

/// Floats as kernels take them.
trait RealOrdered: Real + Ordered {}
impl<T: Real + Ordered> RealOrdered for T {}

fn rows<T: RealOrdered>(input: &Tensor, d: usize, kind: Kind, round: fn(T) -> T) -> Result<Tensor> {
    if input.ndim() == 0 {
        return rows::<T>(&input.unsqueeze(0)?, 0, kind, round)?.squeeze(None);
    }
    let length = input.shape()[d];
    let inner = input.shape()[d + 1..].iter().product();
    if kind == Kind::Softmax && inner > 1 && input.is_contiguous() {
        return columns::<T>(input, length, inner);
    }
    let last_first = input.movedim(&[d as i64], &[-1])?;
    let values = last_first.values::<T>()?;
    let mut out = Buffer::<T>::new(values.len())?;
    let per_chunk = (GRAIN / EXPONENTIAL / length.max(1)).max(1) * length.max(1);
    for_each_weighted_chunk(&mut out, per_chunk, EXPONENTIAL, |index, piece| {
        let from = &values[index * per_chunk..index * per_chunk + piece.len()];
        if kind == Kind::Softmax {
            return softmax_block(from, length, piece);
        }
        for (row, out) in from.chunks(length).zip(piece.chunks_mut(length)) {
            let most = extreme_run(Extreme::Max, T::LOWEST, row);
            let sum = exponentials(row, most, out);
            let log = round(T::from_f64(round(T::from_f64(sum)).to_f64().ln()));
            shift(row, most, log, out, round);
        }
    });
    let dense = Tensor::from_buffer(out, last_first.shape())?;
    dense.movedim(&[-1], &[d as i64])?.contiguous()
}

multiversion! {
    /// exp(x - most) for a row, and the sum of it.
    pub(crate) fn exponentials[T: Real](row: &[T], most: T, out: &mut [T]) -> f64 {
        row_exponentials(row, most, out)
    }
}

/// As `exponentials`, for kernels that are compiled for an instruction set themselves.
#[inline(always)]
fn row_exponentials<T: Real>(row: &[T], most: T, out: &mut [T]) -> f64 {
    let out = &mut out[..row.len()];
    for i in 0..row.len() {
        out[i] = (row[i] - most).exp();
    }
    lane_sum!(T, out, lane, v => lane + v)
}

multiversion! {
    fn softmax_block[T: RealOrdered](rows: &[T], length: usize, out: &mut [T]) {
        for (row, out) in rows.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
            let most = best_of_run(Extreme::Max, T::LOWEST, row);
            let sum = T::from_f64(row_exponentials(row, most, out));
            for value in out.iter_mut() {
                *value = *value / sum;
            }
        }
    }
}

/// Columns taken together: their maxima and sums stay in the first-level cache.
const COLUMNS: usize = 256;

/// Softmax over the middle of `[outer, length, inner]`, many columns at a time.
fn columns<T: RealOrdered>(input: &Tensor, length: usize, inner: usize) -> Result<Tensor> {
    let values = input.values::<T>()?;
    let mut out = Buffer::<T>::new(values.len())?;
    let shared = Shared::new(&mut out);
    let strips = inner.div_ceil(COLUMNS);
    let outer = values.len() / (length * inner).max(1);
    let task = |task: usize| {
        let (start, first) = (task / strips * length * inner, task % strips * COLUMNS);
        let count = COLUMNS.min(inner - first);
        let (mut most, mut sums) = ([T::LOWEST; COLUMNS], [T::ZERO; COLUMNS]);
        let (most, sums) = (&mut most[..count], &mut sums[..count]);
        let row = |r: usize| start + r * inner + first;
        for r in 0..length {
            keep_most(most, &values[row(r)..row(r) + count]);
        }
        for r in 0..length {
            // SAFETY: each task has its own columns.
            let target = unsafe { shared.slice(row(r), count) };
            add_exponentials(&values[row(r)..row(r) + count], most, target, sums);
        }
        for r in 0..length {
            // SAFETY: as above.
            divide(unsafe { shared.slice(row(r), count) }, sums);
        }
    };
    if values.len() * EXPONENTIAL < 2 * GRAIN {
        (0..outer * strips).for_each(task);
    } else {
        // Short columns are handed out several at a time.
        let together = (GRAIN / EXPONENTIAL / (length * COLUMNS.min(inner))).max(1);
        for_each_task((outer * strips).div_ceil(together), |many, _| {
            (many * together..(outer * strips).min((many + 1) * together)).for_each(task);
        });
    }
    Tensor::from_buffer(out, input.shape())
}

multiversion! {
    fn keep_most[T: RealOrdered](most: &mut [T], row: &[T]) {
        for (most, value) in most.iter_mut().zip(row) {
            *most = most.most(*value);
        }
    }
}

multiversion! {
    fn add_exponentials[T: RealOrdered](row: &[T], most: &[T], out: &mut [T], sums: &mut [T]) {
        for i in 0..row.len().min(out.len()).min(most.len()).min(sums.len()) {
            let value = (row[i] - most[i]).exp();
            out[i] = value;
            sums[i] = sums[i] + value;
        }
    }
}

multiversion! {
    fn divide[T: RealOrdered](row: &mut [T], sums: &[T]) {
        for (value, sum) in row.iter_mut().zip(sums) {
            *value = *value / *sum;
        }
    }
}

fn shift<T: Real>(row: &[T], most: T, log: T, out: &mut [T], round: fn(T) -> T) {
    for (o, v) in out.iter_mut().zip(row) {
        *o = round(*v - most) - log;
    }
}

/// `torch.logsumexp`.
pub fn logsumexp(input: &Tensor, dims: &[i64], keepdim: bool) -> Result<Tensor> {
    ensure!(
        input.dtype().is_float(),
        DType,
        "logsumexp(): Expected floating point type for result tensor, but got: {}",
        input.dtype()
    );
    let reduction = Reduction::new(input, Some(dims), keepdim)?;
    rounded_rows::<f64>(input, &reduction, input.dtype(), |row| {
        let most = extreme_run(Extreme::Max, f64::NEG_INFINITY, row);
        let shift = if most.is_finite() { most } else { 0.0 };
        shift + row.iter().map(|v| (v - shift).exp()).sum::<f64>().ln()
    })
}
