//! Sums, products, means, variances and norms.
//!
//! Sums run in sixteen lanes over short stretches and are gathered in double precision: as accurate as torch's cascade, and the
//! same on every machine and number of threads.

use super::plan::{COLUMN_ROWS, Fold, Reduction, by_rows, fold};
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::Real;
use crate::native::tensor::element::{Complex, Compute, Element};
use crate::native::tensor::{Tensor, promote};
use passnet_cpu::multiversion;
use passnet_cpu::vector::{MOST_LANES, add_lanes};
use passnet_graph::DType;
use std::marker::PhantomData;

pub(super) const LANES: usize = MOST_LANES;
/// Elements summed in single precision before they go into the double-precision total.
pub(super) const STRETCH: usize = 16 * LANES;

/// What is summed: x, |x|, x², (x-c)², |x|^p.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Term {
    Value,
    Absolute,
    Square,
}

/// Sums over a run in lanes: `lane_sum!(T, run, lane, value => new lane)`. A macro, so that the loop is compiled for the
/// instruction set of the kernel it stands in.
macro_rules! lane_sum {
    ($T:ty, $run:expr, $lane:ident, $value:ident => $term:expr) => {{
        let mut total = 0.0;
        for stretch in $run.chunks(STRETCH) {
            let (blocks, rest) = stretch.as_chunks::<LANES>();
            let mut lanes = [<$T>::ZERO; LANES];
            for block in blocks {
                for i in 0..LANES {
                    let ($lane, $value) = (lanes[i], block[i]);
                    lanes[i] = $term;
                }
            }
            for (slot, value) in lanes.iter_mut().zip(rest) {
                let ($lane, $value) = (*slot, *value);
                *slot = $term;
            }
            total += add_lanes(lanes).to_f64();
        }
        total
    }};
}

pub(super) use lane_sum;

multiversion! {
    pub(crate) fn sum_run[T: Real](term: Term, run: &[T]) -> f64 {
        match term {
            Term::Value => lane_sum!(T, run, lane, v => lane + v),
            Term::Absolute => lane_sum!(T, run, lane, v => lane + v.abs()),
            Term::Square => lane_sum!(T, run, lane, v => v.fused(v, lane)),
        }
    }
}

multiversion! {
    /// Adds the rows of a matrix, `stride` apart, to the totals of its columns.
    fn sum_columns[T: Real](term: Term, totals: &mut [f64], rows: &[T], stride: usize) {
        let width = totals.len();
        let mut partial = [T::ZERO; 512];
        let partial = &mut partial[..width];
        for group in rows.chunks(COLUMN_ROWS * stride) {
            partial.fill(T::ZERO);
            for row in group.chunks(stride) {
                let row = &row[..width];
                match term {
                    Term::Value => for (p, v) in partial.iter_mut().zip(row) { *p = *p + *v; },
                    Term::Absolute => for (p, v) in partial.iter_mut().zip(row) { *p = *p + v.abs(); },
                    Term::Square => for (p, v) in partial.iter_mut().zip(row) { *p = v.fused(*v, *p); },
                }
            }
            for (t, p) in totals.iter_mut().zip(partial.iter()) { *t += p.to_f64(); }
        }
    }
}

struct Sum<T> {
    term: Term,
    item: PhantomData<T>,
}

impl<T: Real> Fold for Sum<T> {
    type Item = T;
    type State = f64;
    fn start(&self) -> f64 {
        0.0
    }
    fn run(&self, state: f64, run: &[T]) -> f64 {
        state + sum_run(self.term, run)
    }
    fn merge(&self, left: f64, right: f64) -> f64 {
        left + right
    }
    fn columns(&self, states: &mut [f64], rows: &[T], stride: usize) {
        sum_columns(self.term, states, rows, stride);
    }
}

/// Names the float type of a dtype.
macro_rules! with_float {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::Float64 => {
                type $t = f64;
                $body
            }
            DType::Float16 => {
                type $t = half::f16;
                $body
            }
            DType::BFloat16 => {
                type $t = half::bf16;
                $body
            }
            _ => {
                type $t = f32;
                $body
            }
        }
    };
}

/// Sums of terms, gathered in double precision, finished and rounded to the given type.
fn sums(
    input: &Tensor,
    reduction: &Reduction,
    term: Term,
    dtype: DType,
    finish: impl Fn(f64) -> f64 + Sync + Send,
) -> Result<Tensor> {
    with_float!(dtype, O => {
        let finish = |total: f64| O::from_f64(finish(total));
        let out = if input.dtype() == DType::Float64 {
            fold(input, reduction, &Sum::<f64> { term, item: PhantomData }, finish)?
        } else {
            fold(input, reduction, &Sum::<f32> { term, item: PhantomData }, finish)?
        };
        Tensor::from_buffer(out, &reduction.shape)
    })
}

/// Double-precision results of rows, rounded to the given type.
pub(super) fn rounded_rows<C: Compute>(
    input: &Tensor,
    reduction: &Reduction,
    dtype: DType,
    reduce: impl Fn(&[C]) -> f64 + Sync + Send,
) -> Result<Tensor> {
    with_float!(dtype, O => {
        let out = by_rows::<C, O>(input, reduction, |row| O::from_f64(reduce(row)))?;
        Tensor::from_buffer(out, &reduction.shape)
    })
}

/// The type of a sum or product: small integers and bools become int64.
fn sum_type(input: &Tensor, dtype: Option<DType>) -> DType {
    match (dtype, input.dtype()) {
        (Some(dtype), _) => dtype,
        (None, own) if own.is_float() || own.is_complex() => own,
        _ => DType::Int64,
    }
}

/// `torch.sum`; `dtype` is that of the result.
pub fn sum(
    input: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = sum_type(input, dtype);
    let reduction = Reduction::new(input, dims, keepdim)?;
    let shape = &reduction.shape;
    if dtype.is_complex() {
        return complex_sum(&input.to_dtype(dtype)?, &reduction);
    }
    if !dtype.is_float() {
        let input = input.to_dtype(dtype)?;
        let out = by_rows::<i64, i64>(&input, &reduction, |row| {
            row.iter().fold(0i64, |sum, v| sum.wrapping_add(*v))
        })?;
        return Tensor::from_buffer(out, shape)?.to_dtype(dtype);
    }
    let input = if dtype == DType::Float64 { input.to_dtype(dtype)? } else { input.clone() };
    sums(&input, &reduction, Term::Value, dtype, |v| v)
}

fn complex_sum(input: &Tensor, reduction: &Reduction) -> Result<Tensor> {
    let out = by_rows::<Complex<f64>, Complex<f64>>(input, reduction, |row| {
        row.iter().fold(Complex { re: 0.0, im: 0.0 }, |sum, v| Complex {
            re: sum.re + v.re,
            im: sum.im + v.im,
        })
    })?;
    Tensor::from_buffer(out, &reduction.shape)?.to_dtype(input.dtype())
}

/// `torch.mean`; `dtype` is that of the result.
pub fn mean(
    input: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(input.dtype());
    ensure!(
        dtype.is_float(),
        DType,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {dtype}"
    );
    let reduction = Reduction::new(input, dims, keepdim)?;
    let input = if dtype == DType::Float64 { input.to_dtype(dtype)? } else { input.clone() };
    let length = reduction.length as f64;
    sums(&input, &reduction, Term::Value, dtype, |v| v / length)
}

/// `torch.prod`; `dtype` is that of the result.
pub fn prod(
    input: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = sum_type(input, dtype);
    let dims = dim.map(|d| [d]);
    let reduction = Reduction::new(input, dims.as_ref().map(|d| d.as_slice()), keepdim)?;
    ensure!(!dtype.is_complex(), Unsupported, "prod of complex tensors is not supported");
    if dtype.is_float() {
        return rounded_rows::<f64>(input, &reduction, dtype, |row| row.iter().product());
    }
    let out = by_rows::<i64, i64>(input, &reduction, |row| {
        row.iter().fold(1i64, |product, v| product.wrapping_mul(*v))
    })?;
    Tensor::from_buffer(out, &reduction.shape)?.to_dtype(dtype)
}

multiversion! {
    /// Mean and sum of squared deviations of a row, in double precision and two passes.
    pub(crate) fn moments[T: Real](row: &[T]) -> (f64, f64) {
        row_moments(row)
    }
}

/// As `moments`, for kernels that are compiled for an instruction set themselves.
#[inline(always)]
pub(crate) fn row_moments<T: Real>(row: &[T]) -> (f64, f64) {
    let mean = lane_sum!(T, row, lane, v => lane + v) / row.len() as f64;
    let center = T::from_f64(mean);
    // The rounding of the centre is corrected below: sum (x-m)² = sum (x-c)² - n (m-c)².
    let shift = mean - center.to_f64();
    let total: f64 = lane_sum!(T, row, lane, v => {
        let d = v - center;
        d.fused(d, lane)
    });
    (mean, (total - row.len() as f64 * shift * shift).max(0.0 * total))
}

/// Means and variances (without correction) in double precision, before rounding.
pub(crate) fn mean_and_var(input: &Tensor, dims: &[i64]) -> Result<(Vec<f64>, Vec<f64>)> {
    let reduction = Reduction::new(input, Some(dims), false)?;
    let length = reduction.length as f64;
    let pair = |(mean, squares): (f64, f64)| Complex { re: mean, im: squares / length };
    let both = if input.dtype() == DType::Float64 {
        by_rows::<f64, _>(input, &reduction, |row| pair(moments(row)))?
    } else {
        by_rows::<f32, _>(input, &reduction, |row| pair(moments(row)))?
    };
    Ok(both.iter().map(|pair| (pair.re, pair.im)).unzip())
}

/// Variance with `correction` degrees of freedom taken off.
pub fn var(input: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
    spread(input, dims, correction, keepdim, |v| v)
}

/// `torch.std`; the count is less by `correction`.
pub fn std(input: &Tensor, dims: Option<&[i64]>, correction: f64, keepdim: bool) -> Result<Tensor> {
    spread(input, dims, correction, keepdim, f64::sqrt)
}

fn spread(
    input: &Tensor,
    dims: Option<&[i64]>,
    correction: f64,
    keepdim: bool,
    finish: fn(f64) -> f64,
) -> Result<Tensor> {
    ensure!(
        input.dtype().is_float(),
        DType,
        "std and var only support floating point and complex dtypes"
    );
    let reduction = Reduction::new(input, dims, keepdim)?;
    let degrees = (reduction.length as f64 - correction).max(0.0);
    match input.dtype() {
        DType::Float64 => rounded_rows::<f64>(input, &reduction, DType::Float64, |row| {
            finish(moments(row).1 / degrees)
        }),
        dtype => {
            rounded_rows::<f32>(input, &reduction, dtype, |row| finish(moments(row).1 / degrees))
        }
    }
}

/// `torch.linalg.vector_norm`.
pub fn vector_norm(
    input: &Tensor,
    order: f64,
    dims: Option<&[i64]>,
    keepdim: bool,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let dtype = dtype.unwrap_or(input.dtype());
    if dtype.is_complex() {
        let size =
            crate::native::ops::pointwise::unary(crate::native::ops::pointwise::Unary::Abs, input)?;
        return vector_norm(&size, order, dims, keepdim, None);
    }
    ensure!(
        promote::float_type(dtype) == dtype,
        DType,
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype}"
    );
    let reduction = Reduction::new(input, dims, keepdim)?;
    if order == 2.0 {
        return sums(input, &reduction, Term::Square, dtype, f64::sqrt);
    }
    if order == 1.0 {
        return sums(input, &reduction, Term::Absolute, dtype, |v| v);
    }
    rounded_rows::<f64>(input, &reduction, dtype, |row| {
        let sizes = row.iter().map(|v| v.abs());
        if order == f64::INFINITY {
            sizes.fold(0.0, |m: f64, v| if v > m || v.is_nan() { v } else { m })
        } else if order == f64::NEG_INFINITY {
            sizes.fold(f64::INFINITY, |m: f64, v| if v < m || v.is_nan() { v } else { m })
        } else if order == 0.0 {
            sizes.filter(|v| *v != 0.0).count() as f64
        } else {
            sizes.map(|v| v.powf(order)).sum::<f64>().powf(1.0 / order)
        }
    })
}
