//! The one door to the matrix-multiply kernels.
//!
//! Ours against the crate `gemm` in one run (`cargo run --release -p passnet-engine --example products_against_gemm`, two cores of
//! a Xeon with AVX-512, 2026-11-18; `gemm`'s time over ours, the right matrix by columns as a linear layer has its weights):
//!
//! | rows x columns x products | one thread | two threads |
//! |---|---|---|
//! | 1 x 768 x 768 | 1.22 | 3.31 |
//! | 8 x 768 x 768 | 3.73 | 9.33 |
//! | 64 x 3072 x 768 | 1.13 | 1.17 |
//! | 784 x 384 x 96 | 0.93 | 1.27 |
//! | 512 x 512 x 512 | 0.70 | 0.96 |
//! | 1024 x 1024 x 1024 | 0.39 | 0.46 |
//!
//! So ours stays for the few rows and small matrices of graph pieces on all cores. `gemm` is faster for large squares, and on one
//! thread where the right matrix lies by rows (0.3 to 0.9). These stay with ours because of their digits: `gemm` adds at least 512
//! products one after the other, and how many follows from the first cache of the processor; ours add at most 128 (`panel`) or one
//! in as many as a vector has lanes (`dots`), which follows from sizes and instruction set alone. Eager is what candidates are
//! compared with, at levels where the last digits count: longer sums would change verdicts, and make them depend on the machine.
//! `gemm` gets what ours do not read: a left matrix by columns, a right one by rows wider than `NARROW`, short sums by columns.

mod dots;
mod halves;
mod panel;
mod planes;

use crate::native::tensor::element::Real;
use ::gemm::Parallelism;
use dots::Dots;
pub(crate) use halves::{HalfProduct, Halves};
pub(crate) use panel::{COLUMNS, Factors, multiply_panel};
use passnet_cpu::parallel::{for_each_task, for_each_weighted_chunk};
pub(crate) use planes::Planes;
use smallvec::SmallVec;
use std::marker::PhantomData;

/// Products of an element's sum and its factors below which another thread costs more than it brings.
const WORTH_SHARING: usize = 1 << 17;
/// Rows shorter than this are not worth a dot product of their own: its last step costs as much as sixteen products.
const LONG_ROW: usize = 128;
/// Right matrices up to this width are read where they lie; of wider ones every row is on another page of memory.
const NARROW: usize = 1024;

/// A matrix somewhere in a slice.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub(crate) data: &'a [T],
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

impl<'a, T> Matrix<'a, T> {
    /// Row-major with rows `columns` long.
    pub(crate) fn rows(data: &'a [T], columns: usize) -> Self {
        Matrix { data, row_stride: columns, column_stride: 1 }
    }

    pub(crate) fn transposed(self) -> Self {
        Matrix { row_stride: self.column_stride, column_stride: self.row_stride, ..self }
    }
}

/// Elements a matrix spans, from its first to its last.
fn extent(rows: usize, columns: usize, row_stride: usize, column_stride: usize) -> usize {
    if rows == 0 || columns == 0 {
        0
    } else {
        (rows - 1) * row_stride + (columns - 1) * column_stride + 1
    }
}

/// Where the product goes: rows `row_stride` apart, in a slice that is borrowed as long as the target lives.
pub(crate) struct Target<'a, T> {
    pointer: *mut T,
    len: usize,
    row_stride: usize,
    lent: PhantomData<&'a mut [T]>,
}

impl<'a, T> Target<'a, T> {
    pub(crate) fn new(data: &'a mut [T], row_stride: usize) -> Self {
        Target { pointer: data.as_mut_ptr(), len: data.len(), row_stride, lent: PhantomData }
    }

    /// The part that starts at a row and a column.
    ///
    /// # Safety
    /// While the part lives, nobody accesses the elements that are written through it, neither through the whole nor through
    /// another part.
    unsafe fn part(&self, row: usize, column: usize) -> Target<'_, T> {
        let offset = row * self.row_stride + column;
        assert!(offset < self.len, "a part of the target out of bounds");
        // SAFETY: inside the target.
        let pointer = unsafe { self.pointer.add(offset) };
        Target { pointer, len: self.len - offset, row_stride: self.row_stride, lent: PhantomData }
    }
}

impl<T: Real> Target<'_, T> {
    /// Stores neighbouring elements of a row, or adds to them.
    #[inline(always)]
    fn put_row(&mut self, row: usize, column: usize, values: &[T], accumulate: bool) {
        let offset = row * self.row_stride + column;
        assert!(offset + values.len() <= self.len, "a row of the target out of bounds");
        // SAFETY: inside the target, which is borrowed exclusively; who made a part of it promised the same for these elements.
        let elements =
            unsafe { std::slice::from_raw_parts_mut(self.pointer.add(offset), values.len()) };
        if accumulate {
            for (element, value) in elements.iter_mut().zip(values) {
                *element = *element + *value;
            }
        } else {
            elements.copy_from_slice(values);
        }
    }

    /// Stores one element, or adds to it.
    #[inline(always)]
    fn put(&mut self, row: usize, column: usize, value: T, accumulate: bool) {
        let offset = row * self.row_stride + column;
        assert!(offset < self.len, "an element of the target out of bounds");
        // SAFETY: as in `put_row`.
        unsafe {
            let element = self.pointer.add(offset);
            element.write(if accumulate { element.read() + value } else { value });
        }
    }
}

// SAFETY: a target is an exclusive borrow of elements that may be sent.
unsafe impl<T: Send> Send for Target<'_, T> {}
// SAFETY: a shared target gives nothing but parts, and who makes those promises that they keep apart.
unsafe impl<T: Send> Sync for Target<'_, T> {}

/// Sizes of a product: (m × k) · (k × n).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

/// `target = a·b`, or `target += a·b` where `accumulate`; each element's sum over k runs in an order that only the sizes decide.
pub(crate) fn multiply<T: Real>(
    sizes: Sizes,
    target: Target<'_, T>,
    accumulate: bool,
    a: Matrix<'_, T>,
    b: Matrix<'_, T>,
    parallel: bool,
) {
    let Sizes { m, n, k } = sizes;
    assert!(
        a.data.len() >= extent(m, k, a.row_stride, a.column_stride),
        "left matrix out of bounds"
    );
    assert!(
        b.data.len() >= extent(k, n, b.row_stride, b.column_stride),
        "right matrix out of bounds"
    );
    assert!(target.len >= extent(m, n, target.row_stride, 1), "target out of bounds");
    assert!(m <= 1 || target.row_stride >= n, "rows of the target overlap");
    if m == 0 || n == 0 {
        return;
    }
    let product = Product { a, b, accumulate };
    // Threads share out rows or columns, whichever are more; how many pieces there are follows from the sizes alone.
    let pieces = m.saturating_mul(n).saturating_mul(k) / WORTH_SHARING;
    if !parallel || pieces < 2 {
        return product.run(sizes, target);
    }
    let by_rows = m > n;
    let length = if by_rows { m } else { n };
    let piece = length.div_ceil(pieces.min(MOST_PIECES)).next_multiple_of(PIECE_STEP);
    for_each_task(length.div_ceil(piece), |task, _| {
        let first = task * piece;
        let count = piece.min(length - first);
        let (row, column) = if by_rows { (first, 0) } else { (0, first) };
        // SAFETY: every task writes rows or columns of its own, and rows do not overlap.
        let part = unsafe { target.part(row, column) };
        if by_rows {
            let a = Matrix { data: &a.data[first * a.row_stride..], ..a };
            Product { a, ..product }.run(Sizes { m: count, ..sizes }, part);
        } else {
            let b = Matrix { data: &b.data[first * b.column_stride..], ..b };
            Product { b, ..product }.run(Sizes { n: count, ..sizes }, part);
        }
    });
}

/// Pieces of one product, at most: more would copy the shared matrix too often.
const MOST_PIECES: usize = 8;
/// Rows or columns of a piece are a multiple of this, so that kernels work on whole vectors.
const PIECE_STEP: usize = 16;

#[derive(Clone, Copy)]
struct Product<'a, T> {
    a: Matrix<'a, T>,
    b: Matrix<'a, T>,
    accumulate: bool,
}

impl<T: Real> Product<'_, T> {
    /// One product on this thread; its matrices were checked to lie inside their slices.
    fn run(self, sizes: Sizes, mut target: Target<'_, T>) {
        let Product { a, b, accumulate } = self;
        let Sizes { m, n, k } = sizes;
        if a.column_stride == 1 && b.row_stride == 1 && (k >= LONG_ROW || m == 1 || n == 1) {
            let (a_stride, b_stride) = (a.row_stride, b.column_stride);
            let (a, b) = (a.data, b.data);
            return T::run_vectors(Dots { sizes, target, accumulate, a, a_stride, b, b_stride });
        }
        if a.column_stride == 1 && b.column_stride == 1 && n <= NARROW && k > 0 {
            let factors = Factors { data: a.data, stride: a.row_stride, rows: m };
            let offsets: SmallVec<[usize; 128]> = (0..k).map(|i| i * b.row_stride).collect();
            for first in (0..n).step_by(COLUMNS) {
                let columns = COLUMNS.min(n - first);
                multiply_panel(
                    factors,
                    &b.data[first..],
                    &offsets,
                    columns,
                    |row, column, sums| {
                        let count = sums.len().min(columns - column);
                        target.put_row(row, first + column, &sums[..count], accumulate);
                    },
                );
            }
            return;
        }
        // SAFETY: all three matrices lie inside their slices, which `multiply` has checked; the target's elements are
        // borrowed exclusively, so they overlap neither operand.
        unsafe {
            ::gemm::gemm(
                m,
                n,
                k,
                target.pointer,
                1,
                target.row_stride as isize,
                accumulate,
                a.data.as_ptr(),
                a.column_stride as isize,
                a.row_stride as isize,
                b.data.as_ptr(),
                b.column_stride as isize,
                b.row_stride as isize,
                T::ONE,
                T::ONE,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

/// Many products of the same sizes into consecutive row-major matrices of `out`.
pub(crate) fn multiply_batch<'a, T: Real>(
    sizes: Sizes,
    out: &mut [T],
    accumulate: bool,
    operands: impl Fn(usize) -> (Matrix<'a, T>, Matrix<'a, T>) + Sync + Send,
) {
    let plane = sizes.m * sizes.n;
    if plane == 0 {
        return;
    }
    let batch = out.len() / plane;
    // Large products share out their own work; small ones are handed out whole.
    if batch < 4 || sizes.m.saturating_mul(sizes.n).saturating_mul(sizes.k) >= 1 << 24 {
        for (i, out) in out.chunks_mut(plane).enumerate() {
            let (a, b) = operands(i);
            multiply(sizes, Target::new(out, sizes.n), accumulate, a, b, true);
        }
    } else {
        let group = ((1 << 16) / plane.saturating_mul(sizes.k).max(1)).max(1);
        for_each_weighted_chunk(out, group * plane, sizes.k / 4 + 1, |index, piece| {
            for (i, out) in piece.chunks_mut(plane).enumerate() {
                let (a, b) = operands(index * group + i);
                multiply(sizes, Target::new(out, sizes.n), accumulate, a, b, false);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Elements that are sums of few bits, so that every order of summing is exact.
    fn matrix(count: usize, seed: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 7 + seed * 3) % 11) as f32 - 5.0).collect()
    }

    fn check(sizes: Sizes, a_transposed: bool, b_transposed: bool, accumulate: bool) {
        let Sizes { m, n, k } = sizes;
        let (a, b) = (matrix(m * k, 1), matrix(k * n, 2));
        let left =
            if a_transposed { Matrix::rows(&a, m).transposed() } else { Matrix::rows(&a, k) };
        let right =
            if b_transposed { Matrix::rows(&b, k).transposed() } else { Matrix::rows(&b, n) };
        let mut out = matrix(m * n, 3);
        let expected: Vec<f32> = (0..m * n)
            .map(|at| {
                let (row, column) = (at / n, at % n);
                let products = (0..k).map(|i| {
                    a[row * left.row_stride + i * left.column_stride]
                        * b[i * right.row_stride + column * right.column_stride]
                });
                products.sum::<f32>() + if accumulate { out[at] } else { 0.0 }
            })
            .collect();
        multiply(sizes, Target::new(&mut out, n), accumulate, left, right, true);
        assert_eq!(out, expected, "{sizes:?} {a_transposed} {b_transposed} {accumulate}");
    }

    #[test]
    fn products_of_all_layouts_are_right() {
        let sizes: &[[usize; 3]] = if cfg!(miri) {
            &[[3, 5, 130], [1, 7, 9], [9, 17, 4]]
        } else {
            &[
                [1, 1, 1],
                [11, 70, 300],
                [7, 1, 33],
                [1, 50, 129],
                [13, 100, 5],
                [65, 49, 128],
                [130, 67, 140],
                [8, 1030, 16],
            ]
        };
        for &[m, n, k] in sizes {
            for accumulate in [false, true] {
                // The kernels behind other layouts are not ours.
                check(Sizes { m, n, k }, false, false, accumulate);
                check(Sizes { m, n, k: k.max(LONG_ROW) }, false, true, accumulate);
                if !cfg!(miri) {
                    check(Sizes { m, n, k }, true, false, accumulate);
                    check(Sizes { m, n, k }, false, true, accumulate);
                }
            }
        }
    }

    /// Tasks write rows apart: a target in which they meet is refused.
    #[test]
    #[should_panic(expected = "rows of the target overlap")]
    fn rows_that_overlap_are_refused() {
        let (mut out, ones) = ([0.0f32; 8], [1.0f32; 8]);
        let sizes = Sizes { m: 2, n: 4, k: 2 };
        let (a, b) = (Matrix::rows(&ones, 2), Matrix::rows(&ones, 4));
        multiply(sizes, Target::new(&mut out, 3), false, a, b, true);
    }

    #[test]
    fn an_empty_sum_is_zero() {
        let mut out = [7.0f32; 6];
        let empty = Matrix { data: &[], row_stride: 0, column_stride: 1 };
        let target = Target::new(&mut out, 3);
        if !cfg!(miri) {
            multiply(Sizes { m: 2, n: 3, k: 0 }, target, false, empty, empty, true);
            assert_eq!(out, [0.0; 6]);
        }
    }
}
