//! Largest and smallest elements, where they are, and truth over dimensions.

use super::plan::{Fold, Reduction, Rows, by_rows, fold, reduce_rows};
use super::selection;
use crate::native::error::{Result, ensure};
use crate::native::tensor::element::{Compute, Plain, Truth};
use crate::native::tensor::{Buffer, Tensor};
use passnet_cpu::multiversion;
use passnet_cpu::parallel::for_each_weighted_chunk;
use passnet_graph::DType;
use std::marker::PhantomData;

/// Which end of the order is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "torch's names")]
pub enum Extreme {
    Max,
    Min,
}

/// Numbers with an order in which NaN beats everything.
pub(crate) trait Ordered: Compute + PartialOrd {
    const LOWEST: Self;
    const HIGHEST: Self;
}

impl Ordered for f32 {
    const LOWEST: Self = f32::NEG_INFINITY;
    const HIGHEST: Self = f32::INFINITY;
}
impl Ordered for f64 {
    const LOWEST: Self = f64::NEG_INFINITY;
    const HIGHEST: Self = f64::INFINITY;
}
impl Ordered for i64 {
    const LOWEST: Self = i64::MIN;
    const HIGHEST: Self = i64::MAX;
}

#[inline(always)]
#[allow(clippy::eq_op)]
fn better<T: PartialOrd>(extreme: Extreme, new: T, old: T) -> T {
    let wins = match extreme {
        Extreme::Max => new > old,
        Extreme::Min => new < old,
    };
    // A NaN, once seen, stays.
    if wins || new != new { new } else { old }
}

#[inline(always)]
pub(crate) fn best_of_run<T: Ordered>(extreme: Extreme, start: T, run: &[T]) -> T {
    let (blocks, rest) = run.as_chunks::<16>();
    let mut lanes = [start; 16];
    for block in blocks {
        for i in 0..16 {
            lanes[i] = better(extreme, block[i], lanes[i]);
        }
    }
    let mut best = start;
    for value in lanes {
        best = better(extreme, value, best);
    }
    for value in rest {
        best = better(extreme, *value, best);
    }
    best
}

multiversion! {
    pub(crate) fn extreme_run[T: Ordered](extreme: Extreme, start: T, run: &[T]) -> T {
        // One loop per end of the order, so that the choice is not made for every element.
        match extreme {
            Extreme::Max => best_of_run(Extreme::Max, start, run),
            Extreme::Min => best_of_run(Extreme::Min, start, run),
        }
    }
}

multiversion! {
    fn extreme_columns[T: Ordered](extreme: Extreme, states: &mut [T], rows: &[T], stride: usize) {
        for row in rows.chunks(stride) {
            for (s, v) in states.iter_mut().zip(row) {
                *s = better(extreme, *v, *s);
            }
        }
    }
}

struct Best<T> {
    extreme: Extreme,
    item: PhantomData<T>,
}

impl<T: Ordered> Fold for Best<T> {
    type Item = T;
    type State = T;
    fn start(&self) -> T {
        match self.extreme {
            Extreme::Max => T::LOWEST,
            Extreme::Min => T::HIGHEST,
        }
    }
    fn run(&self, state: T, run: &[T]) -> T {
        extreme_run(self.extreme, state, run)
    }
    fn merge(&self, left: T, right: T) -> T {
        better(self.extreme, right, left)
    }
    fn columns(&self, states: &mut [T], rows: &[T], stride: usize) {
        extreme_columns(self.extreme, states, rows, stride);
    }
}

/// The type in which values of a dtype are compared.
macro_rules! with_ordered {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::Float64 => {
                type $t = f64;
                $body
            }
            dtype if dtype.is_float() => {
                type $t = f32;
                $body
            }
            _ => {
                type $t = i64;
                $body
            }
        }
    };
}

fn check(input: &Tensor, reduction: &Reduction, name: &str) -> Result<()> {
    ensure!(!input.dtype().is_complex(), DType, "{name} is not supported for complex tensors");
    ensure!(
        reduction.length > 0 || reduction.count() == 0,
        Index,
        "{name}(): Expected reduction dim to have non-zero size."
    );
    Ok(())
}

/// `torch.amax`, `torch.amin`, and `max()`/`min()` over everything.
pub fn extreme(
    input: &Tensor,
    which: Extreme,
    dims: Option<&[i64]>,
    keepdim: bool,
) -> Result<Tensor> {
    let reduction = Reduction::new(input, dims, keepdim)?;
    check(input, &reduction, "amax/amin")?;
    with_ordered!(input.dtype(), T => {
        let out = fold(input, &reduction, &Best::<T> { extreme: which, item: PhantomData }, |v| v)?;
        Tensor::from_buffer(out, &reduction.shape)?.to_dtype(input.dtype())
    })
}

/// Position of the first extreme (the first NaN, where there is one).
fn position<T: Ordered>(extreme: Extreme, row: &[T]) -> usize {
    let start = if extreme == Extreme::Max { T::LOWEST } else { T::HIGHEST };
    let best = extreme_run(extreme, start, row);
    #[allow(clippy::eq_op)]
    let is_nan = best != best;
    #[allow(clippy::eq_op)]
    row.iter().position(|v| if is_nan { v != v } else { *v == best }).unwrap_or(0)
}

/// `torch.max(input, dim)`: values and their positions.
pub fn extreme_with_index(
    input: &Tensor,
    which: Extreme,
    dim: i64,
    keepdim: bool,
) -> Result<(Tensor, Tensor)> {
    let reduction = Reduction::new(input, Some(&[dim]), keepdim)?;
    check(input, &reduction, "max/min")?;
    if input.ndim() == 0 {
        return Ok((input.copy()?, Tensor::zeros(&[], DType::Int64)?));
    }
    let indices = with_ordered!(input.dtype(), T => {
        by_rows::<T, i64>(input, &reduction, |row| position(which, row) as i64)?
    });
    let values = extreme(input, which, Some(&[dim]), keepdim)?;
    Ok((values, Tensor::from_buffer(indices, &reduction.shape)?))
}

/// `torch.argmax`, `torch.argmin`.
pub fn arg_extreme(
    input: &Tensor,
    which: Extreme,
    dim: Option<i64>,
    keepdim: bool,
) -> Result<Tensor> {
    let dims = dim.map(|d| [d]);
    let reduction = Reduction::new(input, dims.as_ref().map(|d| d.as_slice()), keepdim)?;
    ensure!(
        reduction.length > 0,
        Index,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
    );
    check(input, &reduction, "argmax/argmin")?;
    let out = with_ordered!(input.dtype(), T => {
        by_rows::<T, i64>(input, &reduction, |row| position(which, row) as i64)?
    });
    Tensor::from_buffer(out, &reduction.shape)
}

fn truth_type(input: &Tensor) -> DType {
    if input.dtype() == DType::UInt8 { DType::UInt8 } else { DType::Bool }
}

/// Reduces rows of truth values.
fn by_truth<R: Plain>(
    input: &Tensor,
    reduction: &Reduction,
    reduce: impl Fn(&[Truth]) -> R + Sync + Send,
) -> Result<Buffer<R>> {
    let view = reduction.reduced_last(&input.to_dtype(DType::Bool)?);
    reduce_rows(&Rows::new(view.words::<Truth>()?, reduction.length), reduction, reduce)
}

fn truths(
    input: &Tensor,
    dims: Option<&[i64]>,
    keepdim: bool,
    reduce: impl Fn(&[Truth]) -> bool + Sync + Send,
) -> Result<Tensor> {
    let reduction = Reduction::new(input, dims, keepdim)?;
    let out = by_truth(input, &reduction, |row| Truth(u8::from(reduce(row))))?;
    Tensor::from_buffer(out, &reduction.shape)?.to_dtype(truth_type(input))
}

/// `torch.all`.
pub fn all(input: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    truths(input, dims, keepdim, |row| row.iter().all(|v| v.0 != 0))
}

/// `torch.any`.
pub fn any(input: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Tensor> {
    truths(input, dims, keepdim, |row| row.iter().any(|v| v.0 != 0))
}

/// `torch.count_nonzero`.
pub fn count_nonzero(input: &Tensor, dims: Option<&[i64]>) -> Result<Tensor> {
    let reduction = Reduction::new(input, dims, false)?;
    let out = by_truth(input, &reduction, |row| row.iter().filter(|v| v.0 != 0).count() as i64)?;
    Tensor::from_buffer(out, &reduction.shape)
}

/// Orders values so that NaN is the largest of all.
fn compare<T: Ordered>(a: &T, b: &T) -> std::cmp::Ordering {
    #[allow(clippy::eq_op)]
    let (a_nan, b_nan) = (a != a, b != b);
    a.partial_cmp(b).unwrap_or_else(|| a_nan.cmp(&b_nan))
}

/// `torch.sort` (always stable): sorted values and where they came from.
pub fn sort(input: &Tensor, dim: i64, descending: bool) -> Result<(Tensor, Tensor)> {
    let length = if input.ndim() == 0 { 1 } else { input.size(dim)? };
    ordered(input, dim, length, &Order::Stable { descending })
}

/// `torch.topk`; of equal elements it picks those that PyTorch picks.
pub fn topk(
    input: &Tensor,
    k: usize,
    dim: i64,
    largest: bool,
    in_order: bool,
) -> Result<(Tensor, Tensor)> {
    let length = if input.ndim() == 0 { 1 } else { input.size(dim)? };
    ensure!(k <= length, Index, "selected index k out of range");
    ordered(input, dim, k, &Order::Best { largest, in_order })
}

/// How the elements of a row are ordered.
enum Order {
    /// All of them, equal ones as they stood.
    Stable { descending: bool },
    /// The first ones, as the C++ standard library selects them.
    Best { largest: bool, in_order: bool },
}

/// The first `keep` positions of a row in an order.
fn positions_in_order<T: Ordered>(row: &[T], keep: usize, order: &Order) -> Vec<usize> {
    match order {
        Order::Stable { descending } => {
            let mut places: Vec<usize> = (0..row.len()).collect();
            places.sort_by(|a, b| match descending {
                true => compare(&row[*b], &row[*a]),
                false => compare(&row[*a], &row[*b]),
            });
            places
        }
        Order::Best { largest, in_order } => {
            let mut items: Vec<(T, usize)> = row.iter().copied().zip(0..).collect();
            let before = |a: &(T, usize), b: &(T, usize)| match largest {
                true => compare(&a.0, &b.0).is_gt(),
                false => compare(&a.0, &b.0).is_lt(),
            };
            if keep.saturating_mul(64) <= row.len() {
                selection::partial_sort(&mut items, keep, &before);
            } else if keep > 0 {
                selection::nth_element(&mut items, keep - 1, &before);
                if *in_order {
                    selection::sort(&mut items[..keep - 1], &before);
                }
            }
            items[..keep].iter().map(|item| item.1).collect()
        }
    }
}

/// The first `keep` positions of each row in sorted order, and the values there.
fn ordered(input: &Tensor, dim: i64, keep: usize, order: &Order) -> Result<(Tensor, Tensor)> {
    ensure!(!input.dtype().is_complex(), DType, "sort is not supported for complex tensors");
    if input.ndim() == 0 {
        return Ok((input.copy()?, Tensor::zeros(&[], DType::Int64)?));
    }
    let reduction = Reduction::new(input, Some(&[dim]), false)?;
    let d = input.dim(dim)?;
    let mut shape = reduction.shape.clone();
    shape.push(keep);
    let mut positions = Buffer::<i64>::new(reduction.count() * keep)?;
    if keep > 0 && reduction.count() > 0 {
        with_ordered!(input.dtype(), T => {
            let view = reduction.reduced_last(input);
            let rows = Rows::<T>::new(view.values()?, reduction.length);
            for_each_weighted_chunk(&mut positions, keep, 16 * reduction.length / keep, |index, piece| {
                let places = positions_in_order(rows.row(index), keep, order);
                for (p, place) in piece.iter_mut().zip(places) {
                    *p = place as i64;
                }
            });
        });
    }
    let last_first = Tensor::from_buffer(positions, &shape)?;
    let indices = last_first.movedim(&[-1], &[d as i64])?.contiguous()?;
    let values = super::super::indexing::gather(input, d as i64, &indices)?;
    Ok((values, indices))
}
