//! The one door to the matrix-multiply kernels.

use crate::native::simd::math::Real;
use crate::native::simd::parallel::for_each_weighted_chunk;
use ::gemm::Parallelism;

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

/// Where the product goes: columns `column_stride` apart, rows `row_stride` apart.
pub(crate) struct Target<T> {
    pointer: *mut T,
    len: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<T> Target<T> {
    pub(crate) fn new(data: &mut [T], row_stride: usize, column_stride: usize) -> Self {
        Target { pointer: data.as_mut_ptr(), len: data.len(), row_stride, column_stride }
    }

    /// A target inside a buffer that several threads fill at once.
    ///
    /// # Safety
    /// The `len` elements at `pointer` are valid for the target's life, and no other access overlaps the elements that
    /// the product's rows and columns touch.
    pub(crate) unsafe fn shared(
        pointer: *mut T,
        len: usize,
        row_stride: usize,
        column_stride: usize,
    ) -> Self {
        Target { pointer, len, row_stride, column_stride }
    }
}

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
    target: Target<T>,
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
    assert!(
        target.len >= extent(m, n, target.row_stride, target.column_stride),
        "target out of bounds"
    );
    if m == 0 || n == 0 {
        return;
    }
    let worth = m.saturating_mul(n).saturating_mul(k) >= 1 << 18;
    let parallelism = if parallel && worth { Parallelism::Rayon(0) } else { Parallelism::None };
    // SAFETY: all three matrices lie inside their slices (checked above); the target is exclusive (`new` takes `&mut`,
    // `shared` demands it), so it overlaps neither operand.
    unsafe {
        ::gemm::gemm(
            m,
            n,
            k,
            target.pointer,
            target.column_stride as isize,
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
            parallelism,
        );
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
            multiply(sizes, Target::new(out, sizes.n, 1), accumulate, a, b, true);
        }
    } else {
        let group = ((1 << 16) / plane.saturating_mul(sizes.k).max(1)).max(1);
        for_each_weighted_chunk(out, group * plane, sizes.k / 4 + 1, |index, piece| {
            for (i, out) in piece.chunks_mut(plane).enumerate() {
                let (a, b) = operands(index * group + i);
                multiply(sizes, Target::new(out, sizes.n, 1), accumulate, a, b, false);
            }
        });
    }
}
