//! Rows of factors times neighbouring columns: products in which the right matrix is read where it lies.
//!
//! Row `i` of the right matrix starts wherever `offsets[i]` says, which makes convolutions a case of it: there the rows
//! are what each tap of the kernel sees.

use crate::native::tensor::element::Real;
use passnet_cpu::vector::{MOST_LANES, Vector, VectorKernel};

/// Rows of a block of sums, at most.
pub(super) const ROWS: usize = 8;
/// Columns of a panel, at most.
pub(crate) const COLUMNS: usize = 3 * MOST_LANES;
/// Products that are summed before they join the total: keeps rounding errors of long sums small.
const PARTIAL: usize = 128;

/// Factors of the left: one row of `offsets.len()` for each row of the result, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Factors<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) stride: usize,
    pub(crate) rows: usize,
}

/// Gives `sink(row, column, sums)` the sums of products of a row of factors with `columns` elements from each offset on.
///
/// At most `COLUMNS` columns.
pub(crate) fn multiply_panel<T: Real>(
    factors: Factors<'_, T>,
    source: &[T],
    offsets: &[usize],
    columns: usize,
    mut sink: impl FnMut(usize, usize, &[T]),
) {
    let k = offsets.len();
    let width = columns.next_multiple_of(T::LANES);
    let farthest = offsets.iter().copied().max().unwrap_or(0);
    assert!(width <= COLUMNS && farthest + columns <= source.len(), "a panel out of bounds");
    assert!(factors.rows == 0 || (factors.rows - 1) * factors.stride + k <= factors.data.len());
    if farthest + width <= source.len() {
        return T::run_vectors(Panel { factors, source, offsets, width, sink: &mut sink });
    }
    // The last vector would read beyond the end: what the panel sees is copied.
    let mut seen = vec![T::ZERO; k * width];
    for (target, offset) in seen.chunks_exact_mut(width).zip(offsets) {
        target[..columns].copy_from_slice(&source[*offset..offset + columns]);
    }
    let offsets: Vec<usize> = (0..k).map(|i| i * width).collect();
    T::run_vectors(Panel { factors, source: &seen, offsets: &offsets, width, sink: &mut sink });
}

/// `multiply_panel` has checked the bounds of all of it.
struct Panel<'a, T, S> {
    factors: Factors<'a, T>,
    source: &'a [T],
    offsets: &'a [usize],
    /// Columns, in whole vectors.
    width: usize,
    sink: &'a mut S,
}

impl<T: Real, S: FnMut(usize, usize, &[T])> VectorKernel<T> for Panel<'_, T, S> {
    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let vectors = self.width / V::LANES;
        let (most_rows, most_vectors) = V::BLOCK;
        let mut row = 0;
        while row < self.factors.rows {
            let left = (self.factors.rows - row).min(most_rows);
            let rows = 1 << left.min(ROWS).ilog2();
            for first in (0..vectors).step_by(most_vectors) {
                self.rows::<V>(row, rows, first, most_vectors.min(vectors - first));
            }
            row += rows;
        }
    }
}

impl<T: Real, S: FnMut(usize, usize, &[T])> Panel<'_, T, S> {
    #[inline(always)]
    fn rows<V: Vector<T>>(&mut self, row: usize, rows: usize, first: usize, width: usize) {
        match (rows, width) {
            (8, 3) => self.block::<V, 8, 3>(row, first),
            (8, 2) => self.block::<V, 8, 2>(row, first),
            (8, _) => self.block::<V, 8, 1>(row, first),
            (4, 3) => self.block::<V, 4, 3>(row, first),
            (4, 2) => self.block::<V, 4, 2>(row, first),
            (4, _) => self.block::<V, 4, 1>(row, first),
            (2, 3) => self.block::<V, 2, 3>(row, first),
            (2, 2) => self.block::<V, 2, 2>(row, first),
            (2, _) => self.block::<V, 2, 1>(row, first),
            (_, 3) => self.block::<V, 1, 3>(row, first),
            (_, 2) => self.block::<V, 1, 2>(row, first),
            (_, _) => self.block::<V, 1, 1>(row, first),
        }
    }

    /// `R` rows, `W` vectors of columns.
    #[inline(always)]
    fn block<V: Vector<T>, const R: usize, const W: usize>(&mut self, row: usize, first: usize) {
        let k = self.offsets.len();
        let Factors { data, stride, .. } = self.factors;
        let factors = &data[row * stride..(row + R - 1) * stride + k];
        let one = V::splat(T::ONE);
        let mut totals = [[V::splat(T::ZERO); W]; R];
        for start in (0..k).step_by(PARTIAL) {
            let offsets = &self.offsets[start..k.min(start + PARTIAL)];
            let mut sums = [[V::splat(T::ZERO); W]; R];
            for (i, offset) in offsets.iter().enumerate() {
                let mut seen = [one; W];
                for (w, seen) in seen.iter_mut().enumerate() {
                    let at = offset + (first + w) * V::LANES;
                    // SAFETY: `width` columns from every offset on lie inside the source.
                    *seen = unsafe { V::load(self.source.as_ptr().add(at)) };
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: `factors` holds R rows of k elements, and `start + i` is below k.
                    let factor =
                        V::splat(unsafe { *factors.get_unchecked(r * stride + start + i) });
                    for (sum, seen) in sums.iter_mut().zip(seen) {
                        *sum = factor.fused(seen, *sum);
                    }
                }
            }
            for (totals, sums) in totals.iter_mut().zip(sums) {
                for (total, sum) in totals.iter_mut().zip(sums) {
                    *total = sum.fused(one, *total);
                }
            }
        }
        let mut line = [T::ZERO; COLUMNS];
        for (r, totals) in totals.into_iter().enumerate() {
            for (w, total) in totals.into_iter().enumerate() {
                // SAFETY: W vectors fit into COLUMNS elements.
                unsafe { total.store(line.as_mut_ptr().add(w * V::LANES)) }
            }
            (self.sink)(row + r, first * V::LANES, &line[..W * V::LANES]);
        }
    }
}
