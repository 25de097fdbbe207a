//! Elementary functions that vectorise: no branches, no calls, fused multiply-adds written out.
//!
//! The float32 versions stay within two units in the last place of the exact result. Of the float64 ones, the common are in
//! `double.rs`; the others are the standard library's.

// Coefficients are given in full, to be rounded once by the compiler.
#![allow(clippy::excessive_precision)]

use super::double;
use super::vector::Vectors;
use crate::native::tensor::element::Compute;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// The types in which kernels compute.
pub(crate) trait Real:
    Compute
    + Vectors
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    const INFINITY: Self;
    fn constant(value: f64) -> Self;
    fn fused(self, factor: Self, addend: Self) -> Self;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    fn expm1(self) -> Self;
    fn ln(self) -> Self;
    fn ln_1p(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn pow(self, exponent: Self) -> Self;
    fn abs(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    fn round_even(self) -> Self;
    fn copysign(self, sign: Self) -> Self;

    /// The smaller, or NaN where either is.
    #[inline(always)]
    fn least(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }
    /// The larger, or NaN where either is.
    #[inline(always)]
    fn most(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }
}

const LN2_HIGH: f32 = 0.693_359_375;
const LN2_LOW: f32 = -2.121_944_400_546_906e-4;

/// 2^n for n in [-126, 127].
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// exp(r) - 1 for |r| <= ln(2)/2, by the Taylor series (its error is below a tenth of a unit there).
#[inline(always)]
fn expm1_reduced(r: f32) -> f32 {
    let p = (1.0f32 / 5040.0).mul_add(r, 1.0 / 720.0);
    let p = p.mul_add(r, 1.0 / 120.0);
    let p = p.mul_add(r, 1.0 / 24.0);
    let p = p.mul_add(r, 1.0 / 6.0);
    let p = p.mul_add(r, 0.5);
    p.mul_add(r * r, r)
}

/// The exponent n and the remainder r of x = n ln(2) + r.
///
/// Adding a large constant rounds to an integer that can then be read from the low bits: no conversion, no libm call.
#[inline(always)]
fn reduce(x: f32) -> (i32, f32) {
    const MAGIC: f32 = 12_582_912.0;
    let shifted = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = n.mul_add(-LN2_HIGH, x);
    let exponent = (shifted.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    (exponent, n.mul_add(-LN2_LOW, r))
}

#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Outside, the result is zero or infinite; NaN passes both comparisons and reaches the polynomial. A result that
    // underflows takes the processor a hundred times as long, and masked scores are all such: they are left out.
    let vanishes = x < -104.0;
    let clamped = if x > 89.0 { 89.0 } else { x };
    let clamped = if vanishes { 0.0 } else { clamped };
    let (n, r) = reduce(clamped);
    let half = n >> 1;
    // Two factors, so that results near the ends of the range neither overflow nor vanish too early.
    let value = (1.0 + expm1_reduced(r)) * power_of_two(half) * power_of_two(n.wrapping_sub(half));
    if vanishes { 0.0 } else { value }
}

#[inline(always)]
fn expm1(x: f32) -> f32 {
    let clamped = if x > 88.0 { 88.0 } else { x };
    let clamped = if clamped < -30.0 { -30.0 } else { clamped };
    let (n, r) = reduce(clamped);
    let scale = power_of_two(n);
    let value = expm1_reduced(r).mul_add(scale, scale - 1.0);
    let value = if x > 88.0 { exp(x) } else { value };
    if x == 0.0 { x } else { value }
}

#[inline(always)]
fn ln(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 8_388_608.0 } else { x };
    let bits = scaled.to_bits() as i32;
    // The mantissa in [sqrt(1/2), sqrt(2)).
    let offset = bits.wrapping_sub(0x3f35_04f3);
    let e = offset >> 23;
    let mantissa = f32::from_bits((bits.wrapping_sub(e << 23)) as u32);
    let e = e as f32 - if tiny { 23.0 } else { 0.0 };
    let f = mantissa - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = 0.5 * f * f;
    let p = (2.0f32 / 11.0).mul_add(z, 2.0 / 9.0);
    let p = p.mul_add(z, 2.0 / 7.0);
    let p = p.mul_add(z, 2.0 / 5.0);
    let p = p.mul_add(z, 2.0 / 3.0) * z;
    let low = s.mul_add(half_square + p, e * LN2_LOW);
    let value = e.mul_add(LN2_HIGH, f - (half_square - low));
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    // Negative numbers and NaN.
    if x >= 0.0 { value } else { f32::NAN }
}

#[inline(always)]
fn ln_1p(x: f32) -> f32 {
    let u = 1.0 + x;
    // What the rounding of 1 + x lost, brought back to first order.
    let lost = (x - (u - 1.0)) / u;
    let value = ln(u) + if u == f32::INFINITY || u <= 0.0 { 0.0 } else { lost };
    if x.abs() < 1e-8 { x } else { value }
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let bounded = if magnitude > 10.0 { 10.0 } else { magnitude };
    let e = expm1(2.0 * bounded);
    let value = (e / (e + 2.0)).copysign(x);
    if x == 0.0 { x } else { value }
}

/// erf(x)/x - 1 as a polynomial in x^2 for |x| < 0.95, lowest power first (least-squares fit, weighted to equal error).
const ERF_SMALL: [f32; 7] = [
    0.128_379_166_126_251_22,
    -0.376_126_319_169_998_17,
    0.112_836_726_009_845_73,
    -0.026_858_104_392_886_162,
    0.005_197_796_970_605_85,
    -0.000_810_596_393_421_292_3,
    8.215_419_802_581_891e-5,
];

/// ln(erfc(t)) for t in [0.92, 4.05], lowest power first, fitted the same way.
const ERFC_LOG: [f32; 8] = [
    0.000_175_876_135_472_208_26,
    -1.129_520_773_887_634_3,
    -0.633_334_636_688_232_4,
    -0.108_293_965_458_869_93,
    0.025_128_638_371_825_218,
    -0.004_174_648_318_439_722,
    0.000_435_220_048_530_027_27,
    -2.116_201_358_148_828e-5,
];

#[inline(always)]
fn horner<const N: usize>(coefficients: &[f32; N], x: f32) -> f32 {
    let mut value = coefficients[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        value = value.mul_add(x, coefficients[i]);
    }
    value
}

#[inline(always)]
fn erf(x: f32) -> f32 {
    let t = x.abs();
    let square = x * x;
    let small = horner(&ERF_SMALL, square).mul_add(x, x);
    let bounded = if t > 4.05 { 4.05 } else { t };
    let large = (1.0 - exp(horner(&ERFC_LOG, bounded))).copysign(x);
    if t < 0.93 { small } else { large }
}

/// Sine (`shift` 0) or cosine (`shift` 1), reduced and evaluated in double precision.
#[inline(always)]
fn sin_shifted(x: f32, shift: i64) -> f32 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let x = f64::from(x);
    let shifted = x.mul_add(std::f64::consts::FRAC_2_PI, MAGIC);
    let quadrant = (shifted.to_bits() as i64).wrapping_add(shift);
    let n = shifted - MAGIC;
    let r = n.mul_add(-std::f64::consts::FRAC_PI_2, x);
    let r = n.mul_add(-6.123_233_995_736_766e-17, r);
    let z = r * r;
    let s = (1.0 / 362_880.0f64).mul_add(z, -1.0 / 5040.0);
    let s = s.mul_add(z, 1.0 / 120.0);
    let s = s.mul_add(z, -1.0 / 6.0);
    let sine = (s * z).mul_add(r, r);
    let c = (-1.0 / 3_628_800.0f64).mul_add(z, 1.0 / 40_320.0);
    let c = c.mul_add(z, -1.0 / 720.0);
    let c = c.mul_add(z, 1.0 / 24.0);
    let c = c.mul_add(z, -0.5);
    let cosine = c.mul_add(z, 1.0);
    let value = if quadrant & 1 == 0 { sine } else { cosine };
    let value = if quadrant & 2 == 0 { value } else { -value };
    value as f32
}

/// Beyond this the reduction above runs out of bits; so few inputs go there that a call is fine.
const SIN_LIMIT: f32 = 1e6;

impl Real for f32 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const INFINITY: Self = f32::INFINITY;
    #[inline(always)]
    fn constant(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn fused(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn exp(self) -> Self {
        exp(self)
    }
    #[inline(always)]
    fn expm1(self) -> Self {
        expm1(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        ln(self)
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        ln_1p(self)
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        tanh(self)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        erf(self)
    }
    #[inline(always)]
    fn sin(self) -> Self {
        if self.abs() < SIN_LIMIT { sin_shifted(self, 0) } else { f64::from(self).sin() as f32 }
    }
    #[inline(always)]
    fn cos(self) -> Self {
        if self.abs() < SIN_LIMIT { sin_shifted(self, 1) } else { f64::from(self).cos() as f32 }
    }
    #[inline(always)]
    fn pow(self, exponent: Self) -> Self {
        self.powf(exponent)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn floor(self) -> Self {
        self.floor()
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        self.ceil()
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        self.trunc()
    }
    #[inline(always)]
    fn round_even(self) -> Self {
        self.round_ties_even()
    }
    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        self.copysign(sign)
    }
}

impl Real for f64 {
    const ZERO: Self = 0.0;
    const ONE: Self = 1.0;
    const INFINITY: Self = f64::INFINITY;
    #[inline(always)]
    fn constant(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn fused(self, factor: Self, addend: Self) -> Self {
        self.mul_add(factor, addend)
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        self.sqrt()
    }
    #[inline(always)]
    fn exp(self) -> Self {
        double::exp(self)
    }
    #[inline(always)]
    fn expm1(self) -> Self {
        double::expm1(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        self.ln()
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        self.ln_1p()
    }
    #[inline(always)]
    fn tanh(self) -> Self {
        double::tanh(self)
    }
    #[inline(always)]
    fn erf(self) -> Self {
        double::erf(self)
    }
    #[inline(always)]
    fn sin(self) -> Self {
        self.sin()
    }
    #[inline(always)]
    fn cos(self) -> Self {
        self.cos()
    }
    #[inline(always)]
    fn pow(self, exponent: Self) -> Self {
        self.powf(exponent)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.abs()
    }
    #[inline(always)]
    fn floor(self) -> Self {
        self.floor()
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        self.ceil()
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        self.trunc()
    }
    #[inline(always)]
    fn round_even(self) -> Self {
        self.round_ties_even()
    }
    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        self.copysign(sign)
    }
}

/// The inverse of the error function.
pub(crate) fn erfinv_f64(x: f64) -> f64 {
    let size = x.abs();
    if size >= 1.0 || size.is_nan() {
        return if size == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    // A first guess good to three digits (Winitzki), then Newton steps; the tail is measured from one so that it keeps
    // its digits.
    let log = (-size * size).ln_1p();
    let middle = 2.0 / (std::f64::consts::PI * 0.147) + log / 2.0;
    let mut root = ((middle * middle - log / 0.147).sqrt() - middle).sqrt();
    for _ in 0..3 {
        let excess =
            if root > 1.0 { (1.0 - size) - erfc_f64(root) } else { double::erf(root) - size };
        root -= excess * (root * root).exp() / std::f64::consts::FRAC_2_SQRT_PI;
    }
    root.copysign(x)
}

/// The complement of the error function, to full relative precision above 2.5.
pub(crate) fn erfc_f64(x: f64) -> f64 {
    if x > 2.5 { erfc_tail(x) } else { 1.0 - double::erf(x) }
}

/// erfc by its continued fraction, for x above 2.5.
fn erfc_tail(x: f64) -> f64 {
    let mut fraction = x;
    for k in (1..120).rev() {
        fraction = x + 0.5 * f64::from(k) / fraction;
    }
    (-x * x).exp() / (fraction * std::f64::consts::PI.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error in units in the last place over a sweep of the range, against the standard library in double.
    fn worst(function: fn(f32) -> f32, exact: fn(f64) -> f64, low: f32, high: f32) -> f64 {
        let mut worst: f64 = 0.0;
        let steps = if cfg!(miri) { 50 } else { 200_000 };
        for i in 0..=steps {
            let x = low + (high - low) * (i as f32 / steps as f32);
            let want = exact(f64::from(x));
            let unit = f64::from((want as f32).abs().next_up() - (want as f32).abs());
            let unit = unit.max(f64::from(f32::MIN_POSITIVE) * 1e-7);
            worst = worst.max((f64::from(function(x)) - want).abs() / unit);
        }
        worst
    }

    #[test]
    fn float_functions_are_accurate() {
        assert!(worst(exp, f64::exp, -87.0, 88.5) < 1.0);
        assert!(worst(exp, f64::exp, -103.0, -87.0) < 1.01);
        assert!(worst(expm1, f64::exp_m1, -5.0, 5.0) < 1.6);
        assert!(worst(ln, f64::ln, 1e-6, 10.0) < 1.0);
        assert!(worst(ln, f64::ln, 10.0, 1e30) < 1.0);
        assert!(worst(ln_1p, f64::ln_1p, -0.9, 3.0) < 2.0);
        assert!(worst(tanh, f64::tanh, -12.0, 12.0) < 2.5);
        assert!(worst(erf, double::erf, -5.0, 5.0) < 1.5);
        assert!(worst(Real::sin, f64::sin, -1e4, 1e4) < 0.6);
        assert!(worst(Real::cos, f64::cos, -10.0, 10.0) < 0.6);
    }

    #[test]
    fn special_values() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(ln(0.0), f32::NEG_INFINITY);
        assert_eq!(ln(f32::INFINITY), f32::INFINITY);
        assert!(ln(-1.0).is_nan());
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert!(tanh(f32::NAN).is_nan());
        assert_eq!(tanh(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(erf(f32::NEG_INFINITY), -1.0);
        assert!(erf(f32::NAN).is_nan());
        assert_eq!(ln_1p(-1.0), f32::NEG_INFINITY);
        assert!(Real::sin(f32::INFINITY).is_nan());
    }

    #[test]
    fn double_error_function() {
        // erf(0.5), erf(3) and erfc(4) to seventeen digits.
        assert!((double::erf(0.5) - 0.520_499_877_813_046_5).abs() < 2e-16);
        assert!((double::erf(3.0) - 0.999_977_909_503_001_4).abs() < 2e-16);
        assert!((erfc_f64(4.0) / 1.541_725_790_028_002e-8 - 1.0).abs() < 1e-14);
    }
}
