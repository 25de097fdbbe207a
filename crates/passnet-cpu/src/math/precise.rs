//! Functions that stay within two units in the last place of the exact result, most of them within one.

use super::{
    EXP_MOST, EXP_VANISHES, LN2_HIGH, LN2_LOW, bounded, double, log_special, polynomial,
    power_of_two, reduce, scale, split,
};

/// eʳ - 1 for |r| <= ln(2)/2, by the Taylor series (its error is below a tenth of a unit there).
#[inline(always)]
fn expm1_reduced(r: f32) -> f32 {
    const SERIES: [f32; 6] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5];
    polynomial(r, &SERIES).mul_add(r * r, r)
}

/// eˣ
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    bounded(x, EXP_VANISHES, EXP_MOST, |x| {
        let (n, r) = reduce(x);
        scale(1.0 + expm1_reduced(r), n)
    })
}

/// eˣ - 1, exact near zero.
#[inline(always)]
pub fn expm1(x: f32) -> f32 {
    let clamped = if x > 88.0 { 88.0 } else { x };
    let clamped = if clamped < -30.0 { -30.0 } else { clamped };
    let (n, r) = reduce(clamped);
    let scale = power_of_two(n);
    let value = expm1_reduced(r).mul_add(scale, scale - 1.0);
    let value = if x > 88.0 { exp(x) } else { value };
    if x == 0.0 { x } else { value }
}

/// The natural logarithm.
#[inline(always)]
pub fn ln(x: f32) -> f32 {
    const SERIES: [f32; 5] = [2.0 / 11.0, 2.0 / 9.0, 2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0];
    let (f, e) = split(x);
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = 0.5 * f * f;
    let p = polynomial(z, &SERIES) * z;
    let low = s.mul_add(half_square + p, e * LN2_LOW);
    log_special(x, e.mul_add(LN2_HIGH, f - (half_square - low)))
}

/// ln(1 + x), exact near zero.
#[inline(always)]
pub fn ln_1p(x: f32) -> f32 {
    let u = 1.0 + x;
    // What the rounding of 1 + x lost, brought back to first order.
    let lost = (x - (u - 1.0)) / u;
    let value = ln(u) + if u == f32::INFINITY || u <= 0.0 { 0.0 } else { lost };
    if x.abs() < 1e-8 { x } else { value }
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let magnitude = x.abs();
    let bounded = if magnitude > 10.0 { 10.0 } else { magnitude };
    let e = expm1(2.0 * bounded);
    let value = (e / (e + 2.0)).copysign(x);
    if x == 0.0 { x } else { value }
}

/// erf(x)/x - 1 in powers of x² for |x| < 0.95 (least-squares fit, weighted to equal error).
const ERF_NEAR: [f32; 7] = [
    8.215_42e-5,
    -0.000_810_596_4,
    0.005_197_797,
    -0.026_858_104,
    0.112_836_726,
    -0.376_126_32,
    0.128_379_17,
];

/// ln(erfc(t)) for t in [0.92, 4.05], fitted the same way.
const ERFC_LOG: [f32; 8] = [
    -2.116_201_4e-5,
    0.000_435_220_05,
    -0.004_174_648_3,
    0.025_128_638,
    -0.108_293_965,
    -0.633_334_64,
    -1.129_520_8,
    0.000_175_876_14,
];

/// The error function.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let t = x.abs();
    let small = polynomial(x * x, &ERF_NEAR).mul_add(x, x);
    let bounded = if t > 4.05 { 4.05 } else { t };
    let large = (1.0 - exp(polynomial(bounded, &ERFC_LOG))).copysign(x);
    if t < 0.93 { small } else { large }
}

/// Beyond this the reduction runs out of bits; so few inputs go there that a call is fine.
const SIN_LIMIT: f32 = 1e6;

/// The sine.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    if x.abs() < SIN_LIMIT { sin_shifted(x, 0) } else { f64::from(x).sin() as f32 }
}

/// The cosine.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    if x.abs() < SIN_LIMIT { sin_shifted(x, 1) } else { f64::from(x).cos() as f32 }
}

/// Sine (`shift` 0) or cosine (`shift` 1), reduced and evaluated in double precision.
#[inline(always)]
fn sin_shifted(x: f32, shift: i64) -> f32 {
    const SINE: [f64; 4] = [1.0 / 362_880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0];
    const COSINE: [f64; 6] =
        [-1.0 / 3_628_800.0, 1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0];
    let x = f64::from(x);
    let shifted = x.mul_add(std::f64::consts::FRAC_2_PI, double::ROUNDER);
    let quadrant = (shifted.to_bits() as i64).wrapping_add(shift);
    let n = shifted - double::ROUNDER;
    let r = n.mul_add(-std::f64::consts::FRAC_PI_2, x);
    let r = n.mul_add(-double::FRAC_PI_2_REST, r);
    let z = r * r;
    let sine = (polynomial(z, &SINE) * z).mul_add(r, r);
    let value = if quadrant & 1 == 0 { sine } else { polynomial(z, &COSINE) };
    let value = if quadrant & 2 == 0 { value } else { -value };
    value as f32
}

#[cfg(test)]
mod tests {
    use super::super::tests::worst;
    use super::*;

    #[test]
    fn float_functions_are_accurate() {
        assert!(worst(exp, f64::exp, (-87.0, 88.5)) < 1.0);
        assert!(worst(exp, f64::exp, (-103.0, -87.0)) < 1.01);
        assert!(worst(expm1, f64::exp_m1, (-5.0, 5.0)) < 1.6);
        assert!(worst(ln, f64::ln, (1e-6, 10.0)) < 1.0);
        assert!(worst(ln, f64::ln, (10.0, 1e30)) < 1.0);
        assert!(worst(ln_1p, f64::ln_1p, (-0.9, 3.0)) < 2.0);
        assert!(worst(tanh, f64::tanh, (-12.0, 12.0)) < 2.5);
        assert!(worst(erf, double::erf, (-5.0, 5.0)) < 1.5);
        assert!(worst(sin, f64::sin, (-1e4, 1e4)) < 0.6);
        assert!(worst(cos, f64::cos, (-10.0, 10.0)) < 0.6);
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
        assert!(sin(f32::INFINITY).is_nan());
    }
}
