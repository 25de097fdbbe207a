//! The loops behind every elementwise kernel.

use passnet_cpu::variants;

/// An elementwise kernel: destination, up to three operands, number of lanes.
///
/// # Safety
/// Each pointer is aligned for its lane type and valid for `n` lanes (for one, where the kernel was chosen
/// with a scalar operand), and the destination overlaps no operand.
pub(crate) type Kernel = unsafe fn(*mut u8, *const u8, *const u8, *const u8, usize);

pub(super) trait Map1 {
    type A: Copy;
    type R: Copy;
    fn f(a: Self::A) -> Self::R;
}

pub(super) trait Map2 {
    type A: Copy;
    type B: Copy;
    type R: Copy;
    fn f(a: Self::A, b: Self::B) -> Self::R;
}

pub(super) trait Map3 {
    type A: Copy;
    type B: Copy;
    type R: Copy;
    fn f(a: Self::A, b: Self::B, c: Self::B) -> Self::R;
}

/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn body1<F: Map1>(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
    // SAFETY: see `Kernel`.
    let (d, a) = unsafe {
        (
            std::slice::from_raw_parts_mut(d.cast::<F::R>(), n),
            std::slice::from_raw_parts(a.cast::<F::A>(), n),
        )
    };
    for i in 0..n {
        d[i] = F::f(a[i]);
    }
}

/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn body2<F: Map2, const AS: bool, const BS: bool>(
    d: *mut u8,
    a: *const u8,
    b: *const u8,
    _: *const u8,
    n: usize,
) {
    // SAFETY: see `Kernel`; a scalar operand has one lane.
    let (d, a, b) = unsafe {
        (
            std::slice::from_raw_parts_mut(d.cast::<F::R>(), n),
            std::slice::from_raw_parts(a.cast::<F::A>(), if AS { 1 } else { n }),
            std::slice::from_raw_parts(b.cast::<F::B>(), if BS { 1 } else { n }),
        )
    };
    for i in 0..n {
        d[i] = F::f(a[if AS { 0 } else { i }], b[if BS { 0 } else { i }]);
    }
}

/// # Safety
/// As for [`Kernel`].
#[inline(always)]
unsafe fn body3<F: Map3, const BS: bool, const CS: bool>(
    d: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    n: usize,
) {
    // SAFETY: see `Kernel`; a scalar operand has one lane.
    let (d, a, b, c) = unsafe {
        (
            std::slice::from_raw_parts_mut(d.cast::<F::R>(), n),
            std::slice::from_raw_parts(a.cast::<F::A>(), n),
            std::slice::from_raw_parts(b.cast::<F::B>(), if BS { 1 } else { n }),
            std::slice::from_raw_parts(c.cast::<F::B>(), if CS { 1 } else { n }),
        )
    };
    for i in 0..n {
        d[i] = F::f(a[i], b[if BS { 0 } else { i }], c[if CS { 0 } else { i }]);
    }
}

variants! {
    pub(super) fn map1 [F: Map1] [F] (d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) = body1
}
variants! {
    pub(super) fn map2 [F: Map2, const AS: bool, const BS: bool] [F, AS, BS]
        (d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) = body2
}
variants! {
    pub(super) fn map3 [F: Map3, const BS: bool, const CS: bool] [F, BS, CS]
        (d: *mut u8, a: *const u8, b: *const u8, c: *const u8, n: usize) = body3
}

/// Declares one-operand functions.
macro_rules! maps1 {
    ($($name:ident: $a:ty => $r:ty = |$x:ident| $e:expr;)+) => {$(
        pub(super) struct $name;
        impl $crate::exec::simd::map::Map1 for $name {
            type A = $a;
            type R = $r;
            #[inline(always)]
            fn f($x: $a) -> $r { $e }
        }
    )+};
}

/// Declares two-operand functions.
macro_rules! maps2 {
    ($($name:ident: $a:ty, $b:ty => $r:ty = |$x:ident, $y:ident| $e:expr;)+) => {$(
        pub(super) struct $name;
        impl $crate::exec::simd::map::Map2 for $name {
            type A = $a;
            type B = $b;
            type R = $r;
            #[inline(always)]
            fn f($x: $a, $y: $b) -> $r { $e }
        }
    )+};
}
pub(super) use {maps1, maps2};
