//! The functions of [`super::fast`] and the rounding of [`crate::halves`] for sixteen lanes of AVX-512.
//!
//! Each does, operation for operation, what its namesake does, so the bits are the same; only scaling by a power of two and
//! half conversion are single instructions here. The tests compare.

use super::fast::{
    ERF_EDGE, ERF_FAR, ERF_MOST, ERF_NEAR, EXP, EXP2_MOST, EXP2_VANISHES, TANH, TANH_EDGE,
    TANH_MOST,
};
use super::{EXP_MOST, EXP_VANISHES, LN2_HIGH, LN2_LOW, ROUNDER};
use crate::avx512;
use std::arch::x86_64::*;

avx512! {
    #[inline]
    fn set(x: f32) -> __m512 {
        _mm512_set1_ps(x)
    }

    /// The polynomial with these coefficients, that of the highest power first.
    #[inline]
    fn polynomial(x: __m512, p: &[f32]) -> __m512 {
        let mut y = set(p[0]);
        for &c in &p[1..] {
            y = _mm512_fmadd_ps(y, x, set(c));
        }
        y
    }

    #[inline]
    fn round_even(x: __m512) -> __m512 {
        _mm512_roundscale_ps::<0x08>(x)
    }

    #[inline]
    fn exp_of_remainder(r: __m512, n: __m512) -> __m512 {
        _mm512_scalef_ps(polynomial(r, &EXP), n)
    }

    #[inline]
    fn exp_in_range(x: __m512) -> __m512 {
        let n = _mm512_fmadd_ps(x, set(std::f32::consts::LOG2_E), set(ROUNDER));
        let n = _mm512_sub_ps(n, set(ROUNDER));
        let r = _mm512_fmadd_ps(n, set(-LN2_HIGH), x);
        let r = _mm512_fmadd_ps(n, set(-LN2_LOW), r);
        exp_of_remainder(r, n)
    }

    /// eˣ
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline]
    pub fn exp(x: __m512) -> __m512 {
        let stays = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, set(EXP_VANISHES));
        // The second operand is taken for NaN: x stays.
        let c = _mm512_min_ps(set(EXP_MOST), _mm512_maskz_mov_ps(stays, x));
        _mm512_maskz_mov_ps(stays, exp_in_range(c))
    }

    /// 2ˣ
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline]
    pub fn exp2(x: __m512) -> __m512 {
        let stays = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, set(EXP2_VANISHES));
        let c = _mm512_min_ps(set(EXP2_MOST), _mm512_maskz_mov_ps(stays, x));
        let n = round_even(c);
        let r = _mm512_mul_ps(_mm512_sub_ps(c, n), set(std::f32::consts::LN_2));
        _mm512_maskz_mov_ps(stays, exp_of_remainder(r, n))
    }

    /// 1 / (1 + e⁻ˣ)
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline]
    pub fn sigmoid(x: __m512) -> __m512 {
        let minus = _mm512_xor_ps(x, set(-0.0));
        _mm512_div_ps(set(1.0), _mm512_add_ps(set(1.0), exp(minus)))
    }

    #[inline]
    fn with_sign_of(y: __m512, x: __m512) -> __m512 {
        let sign = set(-0.0);
        _mm512_or_ps(_mm512_and_ps(sign, x), _mm512_andnot_ps(sign, y))
    }

    /// The hyperbolic tangent.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline]
    pub fn tanh(x: __m512) -> __m512 {
        let a = _mm512_abs_ps(x);
        let s = _mm512_mul_ps(x, x);
        let p = polynomial(s, &TANH);
        let small = _mm512_fmadd_ps(_mm512_mul_ps(p, s), x, x);
        let e = exp_in_range(_mm512_mul_ps(set(2.0), _mm512_min_ps(a, set(TANH_MOST))));
        let large = _mm512_sub_ps(set(1.0), _mm512_div_ps(set(2.0), _mm512_add_ps(e, set(1.0))));
        let is_large = _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, set(TANH_EDGE));
        _mm512_mask_blend_ps(is_large, small, with_sign_of(large, x))
    }

    /// The error function.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline]
    pub fn erf(x: __m512) -> __m512 {
        let t = _mm512_min_ps(set(ERF_MOST), _mm512_abs_ps(x));
        let s = _mm512_mul_ps(t, t);
        let [r1, r0, u1, u0, rest @ ..] = ERF_FAR;
        let u = _mm512_fmadd_ps(set(u1), t, set(u0));
        let mut r = _mm512_fmadd_ps(_mm512_fmadd_ps(set(r1), t, set(r0)), s, u);
        for c in rest {
            r = _mm512_fmadd_ps(r, t, set(c));
        }
        let r = _mm512_fmsub_ps(r, t, t);
        let large = with_sign_of(_mm512_sub_ps(set(1.0), exp_in_range(r)), x);
        let q = polynomial(s, &ERF_NEAR);
        let small = _mm512_fmadd_ps(q, x, x);
        let is_large = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(t, set(ERF_EDGE));
        _mm512_mask_blend_ps(is_large, small, large)
    }

    /// As [`f32_to_f16`](crate::halves::f32_to_f16): NaN becomes the one quiet NaN.
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline]
    pub fn to_f16(x: __m512) -> __m256i {
        let nan = _mm512_or_ps(_mm512_and_ps(x, set(-0.0)), set(f32::NAN));
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        _mm512_cvtps_ph::<_MM_FROUND_NO_EXC>(_mm512_mask_blend_ps(is_nan, x, nan))
    }

    /// As [`round_to_f16`](crate::halves::round_to_f16).
    ///
    /// # Safety
    /// The processor has AVX-512.
    #[inline]
    pub fn round_f16(x: __m512) -> __m512 {
        let rounded = _mm512_cvtph_ps(_mm512_cvtps_ph::<_MM_FROUND_NO_EXC>(x));
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        _mm512_mask_blend_ps(is_nan, rounded, x)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fast;
    use super::*;
    use crate::Isa;
    use crate::halves::{f32_to_f16, round_to_f16};

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
        type Lanes = unsafe fn(__m512) -> __m512;
        let pairs: [(&str, Lanes, Plain); 6] = [
            ("exp", exp, fast::exp),
            ("exp2", exp2, fast::exp2),
            ("sigmoid", sigmoid, fast::sigmoid),
            ("tanh", tanh, fast::tanh),
            ("erf", erf, fast::erf),
            ("round_f16", round_f16, round_to_f16),
        ];
        for lanes in samples().as_chunks::<16>().0 {
            let mut found = [0f32; 16];
            for (name, wide, plain) in pairs {
                // SAFETY: there are sixteen lanes; the machine has AVX-512.
                unsafe {
                    _mm512_storeu_ps(found.as_mut_ptr(), wide(_mm512_loadu_ps(lanes.as_ptr())))
                };
                for (&x, &y) in lanes.iter().zip(&found) {
                    assert!(same(y, plain(x)), "{name} of {x:e}: {y:e} for {:e}", plain(x));
                }
            }
            let mut halves = [0u16; 16];
            // SAFETY: as above.
            unsafe {
                let rounded = to_f16(_mm512_loadu_ps(lanes.as_ptr()));
                _mm256_storeu_si256(halves.as_mut_ptr().cast(), rounded);
            }
            assert_eq!(halves, lanes.map(f32_to_f16), "{lanes:?}");
        }
    }
}
