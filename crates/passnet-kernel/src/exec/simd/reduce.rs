//! Reductions and scans along one axis of a row-major block, and small matrix products.

use super::arith::*;
use super::map::Map2;
use crate::ir::ReduceOp;
use crate::lane::Lane;
use crate::types::Elem;
use passnet_cpu::{Isa, variants};

/// Destination, source, outer size, reduced size, inner size.
///
/// # Safety
/// The source holds `outer * size * inner` aligned lanes and the destination as many without `size`.
pub(crate) type ReduceKernel = unsafe fn(*mut u8, *const u8, usize, usize, usize);

/// As [`ReduceKernel`]; the destination is as large as the source; the flag runs from the end.
///
/// # Safety
/// As for [`ReduceKernel`].
pub(crate) type ScanKernel = unsafe fn(*mut u8, *const u8, usize, usize, usize, bool);

/// Independent partial results of a reduction along a row of this many lanes: those of the two widest registers, so that
/// one addition need not wait for the last, or of one if the row has no more.
pub(crate) fn partials(row: usize) -> usize {
    if row >= 32 { 32 } else { 16 }
}

/// # Safety
/// As for [`ReduceKernel`].
#[inline(always)]
unsafe fn reduce_body<F: Map2<A = T, B = T, R = T>, T: Copy>(
    d: *mut u8,
    s: *const u8,
    outer: usize,
    size: usize,
    inner: usize,
) {
    // SAFETY: see `ReduceKernel`.
    let (d, s) = unsafe {
        (
            std::slice::from_raw_parts_mut(d.cast::<T>(), outer * inner),
            std::slice::from_raw_parts(s.cast::<T>(), outer * size * inner),
        )
    };
    for o in 0..outer {
        let block = &s[o * size * inner..(o + 1) * size * inner];
        if inner == 1 {
            d[o] = reduce_row::<F, T>(block);
            continue;
        }
        let out = &mut d[o * inner..(o + 1) * inner];
        out.copy_from_slice(&block[..inner]);
        for k in 1..size {
            let row = &block[k * inner..(k + 1) * inner];
            for i in 0..inner {
                out[i] = F::f(out[i], row[i]);
            }
        }
    }
}

#[inline(always)]
fn reduce_row<F: Map2<A = T, B = T, R = T>, T: Copy>(row: &[T]) -> T {
    match partials(row.len()) {
        32 => reduce_in_partials::<F, T, 32>(row),
        _ if row.len() >= 16 => reduce_in_partials::<F, T, 16>(row),
        _ => row[1..].iter().fold(row[0], |acc, &x| F::f(acc, x)),
    }
}

#[inline(always)]
fn reduce_in_partials<F: Map2<A = T, B = T, R = T>, T: Copy, const PARTIALS: usize>(
    row: &[T],
) -> T {
    let mut partial = [row[0]; PARTIALS];
    partial.copy_from_slice(&row[..PARTIALS]);
    // Arrays of a known size stay in registers.
    let (chunks, _) = row[PARTIALS..].as_chunks::<PARTIALS>();
    for chunk in chunks {
        for i in 0..PARTIALS {
            partial[i] = F::f(partial[i], chunk[i]);
        }
    }
    let mut width = PARTIALS;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            partial[i] = F::f(partial[i], partial[i + width]);
        }
    }
    partial[0]
}

/// # Safety
/// As for [`ScanKernel`].
#[inline(always)]
unsafe fn scan_body<F: Map2<A = T, B = T, R = T>, T: Copy>(
    d: *mut u8,
    s: *const u8,
    outer: usize,
    size: usize,
    inner: usize,
    reverse: bool,
) {
    // SAFETY: see `ScanKernel`.
    let (d, s) = unsafe {
        let lanes = outer * size * inner;
        (
            std::slice::from_raw_parts_mut(d.cast::<T>(), lanes),
            std::slice::from_raw_parts(s.cast::<T>(), lanes),
        )
    };
    for o in 0..outer {
        for k in 0..size {
            let row = if reverse { size - 1 - k } else { k };
            let at = (o * size + row) * inner;
            if k == 0 {
                d[at..at + inner].copy_from_slice(&s[at..at + inner]);
                continue;
            }
            let before = if reverse { at + inner } else { at - inner };
            for i in 0..inner {
                d[at + i] = F::f(d[before + i], s[at + i]);
            }
        }
    }
}

variants! {
    fn reduce_of [F: Map2<A = T, B = T, R = T>, T: Copy] [F, T]
        (d: *mut u8, s: *const u8, outer: usize, size: usize, inner: usize) = reduce_body
}
variants! {
    fn scan_of [F: Map2<A = T, B = T, R = T>, T: Copy] [F, T]
        (d: *mut u8, s: *const u8, outer: usize, size: usize, inner: usize, reverse: bool) = scan_body
}

macro_rules! table {
    ($f:ident, $isa:expr, $op:expr, $lane:expr, $elem:expr) => {
        match ($op, $lane) {
            (ReduceOp::Max, Lane::I64) if $elem == Elem::U64 => $f::<MaxU64, i64>($isa),
            (ReduceOp::Min, Lane::I64) if $elem == Elem::U64 => $f::<MinU64, i64>($isa),
            (ReduceOp::Sum, Lane::F32) => $f::<AddF32, f32>($isa),
            (ReduceOp::Sum, Lane::F64) => $f::<AddF64, f64>($isa),
            (ReduceOp::Sum, Lane::I32) => $f::<AddI32, i32>($isa),
            (ReduceOp::Sum, Lane::I64) => $f::<AddI64, i64>($isa),
            (ReduceOp::Prod, Lane::F32) => $f::<MulF32, f32>($isa),
            (ReduceOp::Prod, Lane::F64) => $f::<MulF64, f64>($isa),
            (ReduceOp::Prod, Lane::I32) => $f::<MulI32, i32>($isa),
            (ReduceOp::Prod, Lane::I64) => $f::<MulI64, i64>($isa),
            (ReduceOp::Max, Lane::F32) => $f::<MaxF32, f32>($isa),
            (ReduceOp::Max, Lane::F64) => $f::<MaxF64, f64>($isa),
            (ReduceOp::Max, Lane::I32) => $f::<MaxI32, i32>($isa),
            (ReduceOp::Max, Lane::I64) => $f::<MaxI64, i64>($isa),
            (ReduceOp::Min, Lane::F32) => $f::<MinF32, f32>($isa),
            (ReduceOp::Min, Lane::F64) => $f::<MinF64, f64>($isa),
            (ReduceOp::Min, Lane::I32) => $f::<MinI32, i32>($isa),
            (ReduceOp::Min, Lane::I64) => $f::<MinI64, i64>($isa),
            (ReduceOp::Xor, Lane::I32) => $f::<XorI32, i32>($isa),
            (ReduceOp::Xor, Lane::I64) => $f::<XorI64, i64>($isa),
            (ReduceOp::And, Lane::I32) => $f::<AndI32, i32>($isa),
            (ReduceOp::And, Lane::I64) => $f::<AndI64, i64>($isa),
            (ReduceOp::Or, Lane::I32) => $f::<OrI32, i32>($isa),
            (ReduceOp::Or, Lane::I64) => $f::<OrI64, i64>($isa),
            (ReduceOp::Xor | ReduceOp::Sum, Lane::B8) => $f::<XorB8, u8>($isa),
            (ReduceOp::And | ReduceOp::Min | ReduceOp::Prod, Lane::B8) => $f::<AndB8, u8>($isa),
            (ReduceOp::Or | ReduceOp::Max, Lane::B8) => $f::<OrB8, u8>($isa),
            (ReduceOp::Xor | ReduceOp::And | ReduceOp::Or, Lane::F32 | Lane::F64) => return None,
        }
    };
}

pub(crate) fn reduce(isa: Isa, op: ReduceOp, lane: Lane, elem: Elem) -> Option<ReduceKernel> {
    Some(table!(reduce_of, isa, op, lane, elem))
}

pub(crate) fn scan(isa: Isa, op: ReduceOp, lane: Lane, elem: Elem) -> Option<ScanKernel> {
    Some(table!(scan_of, isa, op, lane, elem))
}

/// Columns of the product computed together.
const WIDE: usize = 32;
/// Rows computed together.
const TALL: usize = 4;

/// `c[m][n] += a[m][k] * b[k][n]`, all row-major.
///
/// # Safety
/// As for [`DotKernel`].
#[inline(always)]
unsafe fn dot_body<T: DotLane>(
    c: *mut u8,
    a: *const u8,
    b: *const u8,
    m: usize,
    n: usize,
    k: usize,
) {
    // SAFETY: the caller gives blocks of exactly these sizes.
    let (c, a, b) = unsafe {
        (
            std::slice::from_raw_parts_mut(c.cast::<T>(), m * n),
            std::slice::from_raw_parts(a.cast::<T>(), m * k),
            std::slice::from_raw_parts(b.cast::<T>(), k * n),
        )
    };
    let mut j = 0;
    while j < n {
        let wide = WIDE.min(n - j);
        let mut i = 0;
        while i < m {
            if wide == WIDE && i + TALL <= m {
                let mut acc = [[T::ZERO; WIDE]; TALL];
                for (r, row) in acc.iter_mut().enumerate() {
                    row.copy_from_slice(&c[(i + r) * n + j..(i + r) * n + j + WIDE]);
                }
                for l in 0..k {
                    let row = &b[l * n + j..l * n + j + WIDE];
                    for (r, acc) in acc.iter_mut().enumerate() {
                        let x = a[(i + r) * k + l];
                        for (sum, &y) in acc.iter_mut().zip(row) {
                            *sum = T::fma(x, y, *sum);
                        }
                    }
                }
                for (r, row) in acc.iter().enumerate() {
                    c[(i + r) * n + j..(i + r) * n + j + WIDE].copy_from_slice(row);
                }
                i += TALL;
            } else {
                let out = &mut c[i * n + j..i * n + j + wide];
                for l in 0..k {
                    let x = a[i * k + l];
                    for (sum, &y) in out.iter_mut().zip(&b[l * n + j..l * n + j + wide]) {
                        *sum = T::fma(x, y, *sum);
                    }
                }
                i += 1;
            }
        }
        j += wide;
    }
}

pub(super) trait DotLane: Copy {
    const ZERO: Self;
    fn fma(a: Self, b: Self, c: Self) -> Self;
}

macro_rules! dot_lane {
    ($($t:ty = |$a:ident, $b:ident, $c:ident| $e:expr;)+) => {$(
        impl DotLane for $t {
            const ZERO: $t = 0 as $t;
            #[inline(always)]
            fn fma($a: $t, $b: $t, $c: $t) -> $t { $e }
        }
    )+};
}
dot_lane! {
    f32 = |a, b, c| a.mul_add(b, c);
    f64 = |a, b, c| a.mul_add(b, c);
    i32 = |a, b, c| a.wrapping_mul(b).wrapping_add(c);
}

variants! {
    fn dot_of [T: DotLane] [T] (c: *mut u8, a: *const u8, b: *const u8, m: usize, n: usize, k: usize) = dot_body
}

/// Matrix product on lanes.
///
/// # Safety
/// Row-major, aligned blocks of `m * n`, `m * k` and `k * n` lanes; the first overlaps no other.
pub(crate) type DotKernel = unsafe fn(*mut u8, *const u8, *const u8, usize, usize, usize);

pub(crate) fn dot(isa: Isa, lane: Lane) -> Option<DotKernel> {
    Some(match lane {
        Lane::F32 => dot_of::<f32>(isa),
        Lane::F64 => dot_of::<f64>(isa),
        Lane::I32 => dot_of::<i32>(isa),
        Lane::I64 | Lane::B8 => return None,
    })
}
