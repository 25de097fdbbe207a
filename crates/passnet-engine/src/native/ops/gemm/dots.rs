//! Products in which both matrices lie along the inner dimension: every element is the dot product of two rows.
//!
//! The general kernels first copy both matrices into an order of their own, which costs more than the product itself
//! where one of them has few rows. Here nothing is copied.

use super::{Sizes, Target};
use crate::native::tensor::element::Real;
use passnet_cpu::vector::{Vector, VectorKernel};

/// Rows of the right matrix taken together.
pub(super) const COLUMNS: usize = 4;
/// Rows of the left matrix taken together, at most.
pub(super) const ROWS: usize = 6;

/// `target (+)= a · bᵀ`, where row `i` of `a` starts at `i × a_stride` and row `j` of `b` at `j × b_stride`.
pub(super) struct Dots<'a, T> {
    pub(super) sizes: Sizes,
    pub(super) target: Target<'a, T>,
    pub(super) accumulate: bool,
    pub(super) a: &'a [T],
    pub(super) a_stride: usize,
    pub(super) b: &'a [T],
    pub(super) b_stride: usize,
}

impl<T: Real> VectorKernel<T> for Dots<'_, T> {
    #[inline(always)]
    fn run<V: Vector<T>>(mut self) {
        let Sizes { m, n, .. } = self.sizes;
        // Blocks of as equal a height as can be: 6 + 5 rows, not 6 + 4 + 1.
        let height = m.div_ceil(m.div_ceil(ROWS));
        let wide = n - n % COLUMNS;
        for column in (0..wide).step_by(COLUMNS) {
            for row in (0..m).step_by(height) {
                self.rows::<V, COLUMNS>(row, height.min(m - row), column);
            }
        }
        for column in wide..n {
            for row in (0..m).step_by(height) {
                self.rows::<V, 1>(row, height.min(m - row), column);
            }
        }
    }
}

impl<T: Real> Dots<'_, T> {
    #[inline(always)]
    fn rows<V: Vector<T>, const C: usize>(&mut self, row: usize, count: usize, column: usize) {
        match count {
            1 => self.block::<V, 1, C>(row, column),
            2 => self.block::<V, 2, C>(row, column),
            3 => self.block::<V, 3, C>(row, column),
            4 => self.block::<V, 4, C>(row, column),
            5 => self.block::<V, 5, C>(row, column),
            _ => self.block::<V, 6, C>(row, column),
        }
    }

    #[inline(always)]
    fn block<V: Vector<T>, const R: usize, const C: usize>(&mut self, row: usize, column: usize) {
        let k = self.sizes.k;
        let a: [&[T]; R] = std::array::from_fn(|r| &self.a[(row + r) * self.a_stride..][..k]);
        let b: [&[T]; C] = std::array::from_fn(|c| &self.b[(column + c) * self.b_stride..][..k]);
        let mut sums = [[V::splat(T::ZERO); C]; R];
        let whole = k - k % V::LANES;
        for at in (0..whole).step_by(V::LANES) {
            let mut right = [V::splat(T::ZERO); C];
            for (right, b) in right.iter_mut().zip(b) {
                // SAFETY: a whole vector from `at` on lies inside every row of length `k`.
                *right = unsafe { V::load(b.as_ptr().add(at)) };
            }
            for r in 0..R {
                // SAFETY: as above.
                let left = unsafe { V::load(a[r].as_ptr().add(at)) };
                for c in 0..C {
                    sums[r][c] = left.fused(right[c], sums[r][c]);
                }
            }
        }
        for r in 0..R {
            for c in 0..C {
                let mut total = sums[r][c].total();
                for at in whole..k {
                    total = a[r][at].fused(b[c][at], total);
                }
                self.target.put(row + r, column + c, total, self.accumulate);
            }
        }
    }
}
