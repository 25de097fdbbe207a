//! Conversions between `f32` and the half-precision types.
//!
//! The functions of one number use integer arithmetic that compilers vectorise; the functions of slices convert as the
//! processor does. Both round to nearest, ties to even; they differ in which NaN a NaN of `float16` becomes.

use crate::{Isa, multiversion};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// The nearest `float16` value, ties to even, as `f32`.
#[inline(always)]
pub fn round_to_f16(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Normal halves: drop 13 bits of the mantissa with rounding.
    let rounded = (magnitude + 0x0fff + ((magnitude >> 13) & 1)) & !0x1fff;
    // Below 2^-14 halves are subnormal: their quantum is 2^-24, that of floats between 0.5 and 1.
    let small = (f32::from_bits(magnitude) + 0.5) - 0.5;
    let value = if magnitude < 0x3880_0000 { small.to_bits() } else { rounded };
    let value = if rounded >= 0x4780_0000 { 0x7f80_0000 } else { value };
    let value = if magnitude > 0x7f80_0000 { magnitude } else { value };
    f32::from_bits(value | (bits & 0x8000_0000))
}

/// The nearest `bfloat16` value, ties to even, as `f32`.
#[inline(always)]
pub fn round_to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) & 0xffff_0000;
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 { bits | 0x0040_0000 } else { rounded })
}

/// The value of the bits of a `float16`.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let magnitude = u32::from(h & 0x7fff);
    // Shift into place and scale the exponent by multiplication: exact for subnormals too.
    let normal = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let special = f32::from_bits((magnitude << 13) | 0x7f80_0000);
    let value = if magnitude >= 0x7c00 { special } else { normal };
    f32::from_bits(value.to_bits() | sign)
}

/// The bits of the nearest `float16`, NaN as the one quiet NaN of its sign.
#[inline(always)]
pub fn f32_to_f16(x: f32) -> u16 {
    let r = round_to_f16(x);
    let bits = r.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let sign = (bits >> 16) & 0x8000;
    // Scaling by 2^-112 turns a half's exponent into a float's bit pattern.
    let scaled = (f32::from_bits(magnitude) * f32::from_bits(0x0780_0000)).to_bits() >> 13;
    let value = if magnitude >= 0x7f80_0000 {
        if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 }
    } else {
        scaled
    };
    (value | sign) as u16
}

/// The value of the bits of a `bfloat16`.
#[inline(always)]
pub fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}

/// The bits of the nearest `bfloat16`; a NaN stays itself, quiet.
#[inline(always)]
pub fn f32_to_bf16(x: f32) -> u16 {
    (round_to_bf16(x).to_bits() >> 16) as u16
}

multiversion! {
    /// The values of a run of `bfloat16`; both slices have the same length.
    pub fn widen_bf16(source: &[bf16], out: &mut [f32]) {
        for (o, v) in out.iter_mut().zip(source) {
            *o = bf16_to_f32(v.to_bits());
        }
    }
}

multiversion! {
    /// The nearest `bfloat16` of each of a run; both slices have the same length.
    pub fn narrow_bf16(source: &[f32], out: &mut [bf16]) {
        for (o, v) in out.iter_mut().zip(source) {
            *o = bf16::from_bits(f32_to_bf16(*v));
        }
    }
}

/// Eight elements at a time, inline: rows are often short, and the crate `half` makes a call for every eight, which costs
/// more than they do.
#[cfg(target_arch = "x86_64")]
mod registers {
    use half::f16;
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen_f16(source: &[f16], out: &mut [f32]) {
        let (sources, rest) = source.as_chunks::<8>();
        let (outs, rest_out) = out.as_chunks_mut::<8>();
        for (source, out) in sources.iter().zip(outs) {
            // SAFETY: both hold eight elements.
            unsafe {
                _mm256_storeu_ps(
                    out.as_mut_ptr(),
                    _mm256_cvtph_ps(_mm_loadu_si128(source.as_ptr().cast())),
                );
            }
        }
        for (o, v) in rest_out.iter_mut().zip(rest) {
            *o = v.to_f32();
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow_f16(source: &[f32], out: &mut [f16]) {
        let (sources, rest) = source.as_chunks::<8>();
        let (outs, rest_out) = out.as_chunks_mut::<8>();
        for (source, out) in sources.iter().zip(outs) {
            // SAFETY: both hold eight elements.
            unsafe {
                let halves =
                    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(source.as_ptr()));
                _mm_storeu_si128(out.as_mut_ptr().cast(), halves);
            }
        }
        for (o, v) in rest_out.iter_mut().zip(rest) {
            *o = f16::from_f32(*v);
        }
    }
}

/// The values of a run of `float16`; both slices have the same length.
pub fn widen_f16(source: &[f16], out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if Isa::detect() != Isa::Base {
        // SAFETY: every other set has these instructions.
        return unsafe { registers::widen_f16(source, out) };
    }
    source.convert_to_f32_slice(out);
}

/// The nearest `float16` of each of a run; both slices have the same length.
pub fn narrow_f16(source: &[f32], out: &mut [f16]) {
    #[cfg(target_arch = "x86_64")]
    if Isa::detect() != Isa::Base {
        // SAFETY: as in `widen_f16`.
        return unsafe { registers::narrow_f16(source, out) };
    }
    out.convert_from_f32_slice(source);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_round_trip() {
        for h in 0..=u16::MAX {
            let x = f16_to_f32(h);
            if x.is_nan() {
                assert!(f16_to_f32(f32_to_f16(x)).is_nan());
            } else {
                assert_eq!(f32_to_f16(x), h, "{h:04x} {x}");
                assert_eq!(round_to_f16(x).to_bits(), x.to_bits());
            }
            let y = bf16_to_f32(h);
            if !y.is_nan() {
                assert_eq!(f32_to_bf16(y), h);
            }
        }
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        // Midpoints between neighbouring halves, and one bit to each side of them.
        for h in 0..0x7bffu16 {
            let (low, high) = (f16_to_f32(h), f16_to_f32(h + 1));
            let mid = (f64::from(low) + f64::from(high)) / 2.0;
            let even = if h & 1 == 0 { low } else { high };
            assert_eq!(round_to_f16(mid as f32), even, "{h:04x}");
            let above = f32::from_bits((mid as f32).to_bits() + 1);
            assert_eq!(round_to_f16(above), high, "{h:04x}");
            let below = f32::from_bits((mid as f32).to_bits() - 1);
            assert_eq!(round_to_f16(below), low, "{h:04x}");
        }
        assert_eq!(round_to_f16(65519.996), 65504.0);
        assert_eq!(round_to_f16(65520.0), f32::INFINITY);
    }

    #[test]
    fn whole_runs_convert_as_single_elements_do() {
        let step = if cfg!(miri) { 701 } else { 1 };
        let halves: Vec<f16> = (0..=u16::MAX).step_by(step).map(f16::from_bits).collect();
        let mut wide = vec![0.0f32; halves.len()];
        widen_f16(&halves, &mut wide);
        for (half, wide) in halves.iter().zip(&wide) {
            assert_eq!(wide.to_bits(), half.to_f32().to_bits(), "{half:?}");
        }
        // Between two halves, and beyond the last.
        let between: Vec<f32> = wide.iter().map(|v| v * 1.0003).collect();
        let mut narrowed = vec![f16::ZERO; between.len()];
        narrow_f16(&between, &mut narrowed);
        for (value, narrowed) in between.iter().zip(&narrowed) {
            assert_eq!(narrowed.to_bits(), f16::from_f32(*value).to_bits(), "{value}");
        }
    }
}
