//! Elementary functions and half-precision conversions written for AVX-512.
//!
//! Each does, operation for operation, what its namesake in [`super::math`] or [`super::half`] does, so the bits are
//! the same; only scaling by a power of two and half conversion are single instructions here. The tests compare.

use super::access::{LoadRow, StoreRow};
use super::map::Kernel;
use super::math::{EXP_VANISHES, EXP2_VANISHES, ROUNDER};
use std::arch::x86_64::*;

macro_rules! avx512 {
    ($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        $(#[$doc])*
        #[inline]
        #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")]
        fn $name($($arg: $ty),*) -> $ret $body
    };
}

avx512! {
    fn set(x: f32) -> __m512 {
        _mm512_set1_ps(x)
    }
}

avx512! {
    /// `p[0] * x^n + p[1] * x^(n-1) + …`
    fn poly(x: __m512, p: &[f32]) -> __m512 {
        let mut y = set(p[0]);
        for &c in &p[1..] {
            y = _mm512_fmadd_ps(y, x, set(c));
        }
        y
    }
}

avx512! {
    fn round_even(x: __m512) -> __m512 {
        _mm512_roundscale_ps::<0x08>(x)
    }
}

avx512! {
    fn exp_of_remainder(r: __m512, n: __m512) -> __m512 {
        let p = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5, 1.0, 1.0];
        _mm512_scalef_ps(poly(r, &p), n)
    }
}

avx512! {
    fn exp_in_range(x: __m512) -> __m512 {
        let n = _mm512_fmadd_ps(x, set(std::f32::consts::LOG2_E), set(ROUNDER));
        let n = _mm512_sub_ps(n, set(ROUNDER));
        let r = _mm512_fmadd_ps(n, set(-0.693_359_4), x);
        let r = _mm512_fmadd_ps(n, set(2.121_944_4e-4), r);
        exp_of_remainder(r, n)
    }
}

avx512! {
    fn exp(x: __m512) -> __m512 {
        let stays = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, set(EXP_VANISHES));
        // The second operand is taken for NaN: x stays.
        let c = _mm512_min_ps(set(89.0), _mm512_maskz_mov_ps(stays, x));
        _mm512_maskz_mov_ps(stays, exp_in_range(c))
    }
}

avx512! {
    fn exp2(x: __m512) -> __m512 {
        let stays = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, set(EXP2_VANISHES));
        let c = _mm512_min_ps(set(129.0), _mm512_maskz_mov_ps(stays, x));
        let n = round_even(c);
        let r = _mm512_mul_ps(_mm512_sub_ps(c, n), set(std::f32::consts::LN_2));
        _mm512_maskz_mov_ps(stays, exp_of_remainder(r, n))
    }
}

avx512! {
    fn sigmoid(x: __m512) -> __m512 {
        let minus = _mm512_xor_ps(x, set(-0.0));
        _mm512_div_ps(set(1.0), _mm512_add_ps(set(1.0), exp(minus)))
    }
}

avx512! {
    fn with_sign_of(y: __m512, x: __m512) -> __m512 {
        let sign = set(-0.0);
        _mm512_or_ps(_mm512_and_ps(sign, x), _mm512_andnot_ps(sign, y))
    }
}

avx512! {
    fn tanh(x: __m512) -> __m512 {
        let a = _mm512_abs_ps(x);
        let s = _mm512_mul_ps(x, x);
        let p = poly(s, &[-5.704_988_6e-3, 2.063_908_8e-2, -5.373_971_6e-2, 0.133_314_42, -0.333_332_8]);
        let small = _mm512_fmadd_ps(_mm512_mul_ps(p, s), x, x);
        let e = exp_in_range(_mm512_mul_ps(set(2.0), _mm512_min_ps(a, set(20.0))));
        let large = _mm512_sub_ps(set(1.0), _mm512_div_ps(set(2.0), _mm512_add_ps(e, set(1.0))));
        let is_large = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, set(0.625));
        _mm512_mask_blend_ps(is_large, small, with_sign_of(large, x))
    }
}

avx512! {
    fn erf(x: __m512) -> __m512 {
        let t = _mm512_min_ps(set(4.0), _mm512_abs_ps(x));
        let s = _mm512_mul_ps(t, t);
        let r = _mm512_fmadd_ps(set(-1.728_534_7e-5), t, set(3.831_971_3e-4));
        let u = _mm512_fmadd_ps(set(-3.883_964_4e-3), t, set(2.425_462_2e-2));
        let mut r = _mm512_fmadd_ps(r, s, u);
        for c in [-0.106_777_88, -0.634_846_7, -0.128_717_51] {
            r = _mm512_fmadd_ps(r, t, set(c));
        }
        let r = _mm512_fmsub_ps(r, t, t);
        let large = with_sign_of(_mm512_sub_ps(set(1.0), exp_in_range(r)), x);
        let q = poly(s, &[-5.967_617e-4, 4.991_194e-3, -2.676_813_5e-2, 0.112_819_925, -0.376_125_34, 0.128_379_17]);
        let small = _mm512_fmadd_ps(q, x, x);
        let is_large = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(t, set(0.927_734_4));
        _mm512_mask_blend_ps(is_large, small, large)
    }
}

avx512! {
    /// NaN becomes the one quiet NaN, as [`super::half::f32_to_f16`] has it.
    fn to_f16(x: __m512) -> __m256i {
        let nan = _mm512_or_ps(_mm512_and_ps(x, set(-0.0)), set(f32::NAN));
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        _mm512_cvtps_ph::<_MM_FROUND_NO_EXC>(_mm512_mask_blend_ps(is_nan, x, nan))
    }
}

avx512! {
    fn round_f16(x: __m512) -> __m512 {
        let rounded = _mm512_cvtph_ps(_mm512_cvtps_ph::<_MM_FROUND_NO_EXC>(x));
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        _mm512_mask_blend_ps(is_nan, rounded, x)
    }
}

avx512! {
    fn tail(n: usize) -> __mmask16 {
        ((1u32 << n) - 1) as __mmask16
    }
}

/// A one-operand kernel from a function of sixteen lanes.
macro_rules! kernel {
    ($name:ident, $f:ident) => {
        #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")]
        unsafe fn $name(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
            let (d, a) = (d.cast::<f32>(), a.cast::<f32>());
            let mut i = 0;
            // SAFETY: both hold `n` lanes (see `Kernel`); masked lanes are not touched.
            unsafe {
                while i + 16 <= n {
                    _mm512_storeu_ps(d.add(i), $f(_mm512_loadu_ps(a.add(i))));
                    i += 16;
                }
                if i < n {
                    let mask = tail(n - i);
                    let x = _mm512_maskz_loadu_ps(mask, a.add(i));
                    _mm512_mask_storeu_ps(d.add(i), mask, $f(x));
                }
            }
        }
    };
}
kernel!(exp_kernel, exp);
kernel!(exp2_kernel, exp2);
kernel!(sigmoid_kernel, sigmoid);
kernel!(tanh_kernel, tanh);
kernel!(erf_kernel, erf);
kernel!(round_f16_kernel, round_f16);

/// # Safety
/// As for [`LoadRow`](super::LoadRow), on a processor with AVX-512.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn load_f16_row(d: *mut u8, s: *const u8, stride: isize, n: usize) {
    let generic = super::access::load_row(super::Isa::Avx2, crate::types::Elem::F16);
    if stride != 2 {
        // SAFETY: the caller's promise (see `LoadRow`); AVX-512 implies AVX2.
        unsafe { generic(d, s, stride, n) };
        return;
    }
    let whole = n / 16 * 16;
    // SAFETY: see `LoadRow`; what the mask leaves out is neither read nor written.
    unsafe {
        for i in (0..whole).step_by(16) {
            let half = _mm256_loadu_si256(s.add(2 * i).cast());
            _mm512_storeu_ps(d.cast::<f32>().add(i), _mm512_cvtph_ps(half));
        }
        let rest = first_lanes(n - whole);
        let half = _mm256_maskz_loadu_epi16(rest, s.add(2 * whole).cast());
        _mm512_mask_storeu_ps(d.cast::<f32>().add(whole), rest, _mm512_cvtph_ps(half));
    }
}

/// # Safety
/// As for [`StoreRow`](super::StoreRow), on a processor with AVX-512.
#[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")]
unsafe fn store_f16_row(d: *mut u8, s: *const u8, stride: isize, n: usize) {
    let generic = super::access::store_row(super::Isa::Avx2, crate::types::Elem::F16);
    if stride != 2 {
        // SAFETY: the caller's promise (see `StoreRow`); AVX-512 implies AVX2.
        unsafe { generic(d, s, stride, n) };
        return;
    }
    let whole = n / 16 * 16;
    // SAFETY: see `StoreRow`; what the mask leaves out is neither read nor written.
    unsafe {
        for i in (0..whole).step_by(16) {
            let half = to_f16(_mm512_loadu_ps(s.cast::<f32>().add(i)));
            _mm256_storeu_si256(d.add(2 * i).cast(), half);
        }
        let rest = first_lanes(n - whole);
        let half = to_f16(_mm512_maskz_loadu_ps(rest, s.cast::<f32>().add(whole)));
        _mm256_mask_storeu_epi16(d.add(2 * whole).cast(), rest, half);
    }
}

/// The mask of the first few of sixteen lanes.
fn first_lanes(count: usize) -> u16 {
    (1 << count) - 1
}

/// Functions that exist in this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Exp,
    Exp2,
    Sigmoid,
    Tanh,
    Erf,
    RoundF16,
}

/// The kernel of a function; only for machines with AVX-512.
pub(super) fn kernel(function: Function) -> Kernel {
    match function {
        Function::Exp => exp_kernel,
        Function::Exp2 => exp2_kernel,
        Function::Sigmoid => sigmoid_kernel,
        Function::Tanh => tanh_kernel,
        Function::Erf => erf_kernel,
        Function::RoundF16 => round_f16_kernel,
    }
}

pub(super) fn load_f16() -> LoadRow {
    load_f16_row
}

pub(super) fn store_f16() -> StoreRow {
    store_f16_row
}

#[cfg(test)]
mod tests {
    use super::super::{Isa, half, math};
    use super::*;

    /// Bit patterns of all kinds: every exponent and sign, several mantissas.
    fn samples() -> Vec<f32> {
        let mut state = 7u64;
        let mut all: Vec<f32> = (0..200_000)
            .map(|i| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i);
                f32::from_bits((state >> 32) as u32)
            })
            .collect();
        all.extend((0..40_001).map(|i| (i as f32 - 20_000.0) * 0.005_3));
        all.extend([
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            88.722_84,
            -103.97,
            -87.4,
        ]);
        all
    }

    fn same(a: f32, b: f32) -> bool {
        a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
    }

    #[test]
    fn every_function_gives_the_bits_of_its_plain_form() {
        if Isa::detect() != Isa::Avx512 {
            return;
        }
        type Plain = fn(f32) -> f32;
        let plain: [(Function, Plain); 6] = [
            (Function::Exp, math::exp),
            (Function::Exp2, math::exp2),
            (Function::Sigmoid, math::sigmoid),
            (Function::Tanh, math::tanh),
            (Function::Erf, math::erf),
            (Function::RoundF16, half::round_to_f16),
        ];
        let x = samples();
        for (function, f) in plain {
            let mut y = vec![0f32; x.len()];
            let at = x.as_ptr().cast();
            // SAFETY: both hold as many lanes; the machine has AVX-512.
            unsafe { kernel(function)(y.as_mut_ptr().cast(), at, at, at, x.len()) };
            for (&x, &y) in x.iter().zip(&y) {
                assert!(same(y, f(x)), "{function:?} of {x:e}: {y:e} for {:e}", f(x));
            }
        }
    }

    #[test]
    fn halves_convert_to_the_bits_of_the_plain_form() {
        if Isa::detect() != Isa::Avx512 {
            return;
        }
        let halves: Vec<u16> = (0..=u16::MAX).collect();
        let mut wide = vec![0f32; halves.len()];
        // SAFETY: as many lanes as elements; the machine has AVX-512.
        unsafe { load_f16()(wide.as_mut_ptr().cast(), halves.as_ptr().cast(), 2, halves.len()) };
        for (&h, &x) in halves.iter().zip(&wide) {
            assert!(same(x, half::f16_to_f32(h)), "{h:04x}");
        }
        let x = samples();
        let mut narrow = vec![0u16; x.len()];
        // SAFETY: as above.
        unsafe { store_f16()(narrow.as_mut_ptr().cast(), x.as_ptr().cast(), 2, x.len()) };
        for (&x, &h) in x.iter().zip(&narrow) {
            assert_eq!(h, half::f32_to_f16(x), "{x:e}");
        }
    }
}
