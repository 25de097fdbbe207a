//! How a tensor is walked for a reduction over some of its dimensions.

use crate::native::error::{Result, ensure};
use crate::native::tensor::convert::loader;
use crate::native::tensor::element::{Compute, Plain};
use crate::native::tensor::layout::Dims;
use crate::native::tensor::{Buffer, Tensor, Values};
use passnet_cpu::parallel::{GRAIN, for_each_weighted_chunk};
use passnet_graph::DType;

/// Elements of a single long reduction handled at a time; fixed, so that results do not depend on the number of threads.
pub(crate) const SEGMENT: usize = 64 * 1024;

/// The dimensions reduced over, and the shape of the result.
#[derive(Debug, Clone)]
pub(crate) struct Reduction {
    pub(crate) dims: Dims,
    pub(crate) shape: Dims,
    /// Elements per result.
    pub(crate) length: usize,
}

impl Reduction {
    /// No dimensions named means all of them.
    pub(crate) fn new(input: &Tensor, dims: Option<&[i64]>, keepdim: bool) -> Result<Self> {
        let ndim = input.ndim();
        let mut reduced = Dims::new();
        match dims {
            Some(named) if !named.is_empty() => {
                for &dim in named {
                    let d = input.dim(dim)?;
                    ensure!(
                        !reduced.contains(&d),
                        Value,
                        "dim {d} appears multiple times in the list of dims"
                    );
                    if d < ndim {
                        reduced.push(d);
                    }
                }
                reduced.sort_unstable();
            }
            _ => reduced.extend(0..ndim),
        }
        let mut shape = Dims::new();
        for (d, &size) in input.shape().iter().enumerate() {
            match (reduced.contains(&d), keepdim) {
                (false, _) => shape.push(size),
                (true, true) => shape.push(1),
                (true, false) => {}
            }
        }
        let length = reduced.iter().map(|&d| input.shape()[d]).product();
        Ok(Reduction { dims: reduced, shape, length })
    }

    pub(crate) fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The input as `[outer, length, inner]` where the reduced dimensions lie together in a row-major tensor.
    fn split(&self, input: &Tensor) -> Option<(usize, usize)> {
        let (first, last) = (*self.dims.first()?, *self.dims.last()?);
        let together = last - first + 1 == self.dims.len();
        let shape = input.shape();
        (together && input.is_contiguous())
            .then(|| (shape[..first].iter().product(), shape[last + 1..].iter().product()))
    }

    /// The input with reduced dimensions last, as a view.
    pub(crate) fn reduced_last(&self, input: &Tensor) -> Tensor {
        let kept = (0..input.ndim()).filter(|d| !self.dims.contains(d));
        let order: Dims = kept.chain(self.dims.iter().copied()).collect();
        input.permute_dims(&order)
    }
}

/// The elements of each result side by side.
pub(crate) struct Rows<'a, C> {
    values: Values<'a, C>,
    length: usize,
}

impl<'a, C: Plain> Rows<'a, C> {
    pub(crate) fn new(values: Values<'a, C>, length: usize) -> Self {
        Rows { values, length }
    }

    pub(crate) fn row(&self, index: usize) -> &[C] {
        &self.values[index * self.length..(index + 1) * self.length]
    }
}

/// Computes each result from its row of elements.
pub(crate) fn by_rows<C: Compute, R: Plain>(
    input: &Tensor,
    reduction: &Reduction,
    reduce: impl Fn(&[C]) -> R + Sync + Send,
) -> Result<Buffer<R>> {
    let view = reduction.reduced_last(input);
    let length = reduction.length;
    if !is_half(&view) || !view.is_contiguous() || length > SEGMENT {
        return reduce_rows(&Rows::new(view.values::<C>()?, length), reduction, reduce);
    }
    // Half-precision rows are widened one at a time.
    let (source, load) = (view.read::<u8>()?, loader::<C>(view.dtype()));
    let mut out = Buffer::new(reduction.count())?;
    let chunk = (GRAIN / length.max(1)).max(1);
    for_each_weighted_chunk(&mut out, chunk, length, |index, piece| {
        let mut row = vec![C::default(); length];
        for (i, o) in piece.iter_mut().enumerate() {
            let from = view.storage_offset() + (index * chunk + i) * length;
            load(&source, from, 1, &mut row);
            *o = reduce(&row);
        }
    });
    Ok(out)
}

fn is_half(tensor: &Tensor) -> bool {
    matches!(tensor.dtype(), DType::Float16 | DType::BFloat16)
}

pub(crate) fn reduce_rows<C: Plain, R: Plain>(
    rows: &Rows<'_, C>,
    reduction: &Reduction,
    reduce: impl Fn(&[C]) -> R + Sync + Send,
) -> Result<Buffer<R>> {
    let mut out = Buffer::new(reduction.count())?;
    let chunk = (GRAIN / reduction.length.max(1)).max(1);
    for_each_weighted_chunk(&mut out, chunk, reduction.length, |index, piece| {
        for (i, o) in piece.iter_mut().enumerate() {
            *o = reduce(rows.row(index * chunk + i));
        }
    });
    Ok(out)
}

/// A reduction that can be done in pieces: partial results of segments are merged in order.
pub(crate) trait Fold: Sync + Send {
    type Item: Compute;
    type State: Plain;
    fn start(&self) -> Self::State;
    fn run(&self, state: Self::State, run: &[Self::Item]) -> Self::State;
    fn merge(&self, left: Self::State, right: Self::State) -> Self::State;
    /// Folds row `r` of a matrix into the states of its columns, four rows or more at a time where that helps.
    fn columns(&self, states: &mut [Self::State], rows: &[Self::Item], stride: usize);
}

/// Columns handled together: their states stay in the first-level cache.
const COLUMNS: usize = 512;

/// Rows that `Fold::columns` is given at a time, at least, where there are more.
pub(super) const COLUMN_ROWS: usize = 16;

/// Folds the elements of each result and `finish`es what comes out.
pub(crate) fn fold<F: Fold, R: Plain>(
    input: &Tensor,
    reduction: &Reduction,
    fold: &F,
    finish: impl Fn(F::State) -> R + Sync + Send,
) -> Result<Buffer<R>> {
    if let Some((_, inner)) = reduction.split(input)
        && inner >= 8
        && reduction.length > 0
    {
        return fold_columns(input, reduction, inner, fold, finish);
    }
    if reduction.count() == 1 && reduction.length > SEGMENT {
        let view = reduction.reduced_last(input);
        let values = view.values::<F::Item>()?;
        let mut partial = Buffer::<F::State>::new(reduction.length.div_ceil(SEGMENT))?;
        for_each_weighted_chunk(&mut partial, 1, SEGMENT, |index, piece| {
            let end = ((index + 1) * SEGMENT).min(values.len());
            piece[0] = fold.run(fold.start(), &values[index * SEGMENT..end]);
        });
        let mut out = Buffer::new(1)?;
        let total = partial.iter().fold(fold.start(), |left, right| fold.merge(left, *right));
        out[0] = finish(total);
        return Ok(out);
    }
    by_rows(input, reduction, |row| finish(fold.run(fold.start(), row)))
}

/// Folds along the middle of `[outer, length, inner]`.
fn fold_columns<F: Fold, R: Plain>(
    input: &Tensor,
    reduction: &Reduction,
    inner: usize,
    fold: &F,
    finish: impl Fn(F::State) -> R + Sync + Send,
) -> Result<Buffer<R>> {
    let half = is_half(input);
    let values = if half { None } else { Some(input.values::<F::Item>()?) };
    let (source, load) = (input.read::<u8>()?, loader::<F::Item>(input.dtype()));
    let plane = reduction.length * inner;
    let mut out = Buffer::new(reduction.count())?;
    // A chunk never crosses from one outer index to the next.
    let width = COLUMNS.min(inner);
    for_each_tile(&mut out, inner, width, reduction.length, |outer, tile, results| {
        let mut states = [fold.start(); COLUMNS];
        let states = &mut states[..results.len()];
        let (from, until) = (outer * plane + tile * width, (outer + 1) * plane);
        if let Some(values) = &values {
            fold.columns(states, &values[from..until], inner);
        } else {
            let mut rows = vec![F::Item::default(); COLUMN_ROWS * results.len()];
            for first in (0..reduction.length).step_by(COLUMN_ROWS) {
                let count = COLUMN_ROWS.min(reduction.length - first);
                let rows = &mut rows[..count * results.len()];
                for (r, row) in rows.chunks_mut(results.len()).enumerate() {
                    let at = input.storage_offset() + from + (first + r) * inner;
                    load(&source, at, 1, row);
                }
                fold.columns(states, rows, results.len());
            }
        }
        for (result, state) in results.iter_mut().zip(states) {
            *result = finish(*state);
        }
    });
    Ok(out)
}

/// Calls `work(row, tile, results)` for every tile of every row of a matrix.
fn for_each_tile<T: Plain>(
    out: &mut [T],
    row_length: usize,
    width: usize,
    weight: usize,
    work: impl Fn(usize, usize, &mut [T]) + Sync + Send,
) {
    let per_row = row_length.div_ceil(width);
    for_each_weighted_chunk(out, row_length, weight, |row, states| {
        if per_row > 1 {
            for_each_weighted_chunk(states, width, weight, |tile, piece| work(row, tile, piece));
        } else {
            work(row, 0, states);
        }
    });
}
