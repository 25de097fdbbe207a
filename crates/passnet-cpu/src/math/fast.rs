//! Functions of few operations: errors are at most two units in the last place (the tests measure them against `f64`).
//!
//! Coefficients are public, that of the highest power first: machine code computes with the same.

use super::{
    EXP_MOST, EXP_VANISHES, LN2_HIGH, LN2_LOW, ROUNDER, bounded, double, integer, log_special,
    polynomial, reduce, scale, split,
};
use std::f32::consts::{LN_2, LOG2_E, LOG10_2, LOG10_E};

/// eʳ for |r| <= ln(2)/2.
pub const EXP: [f32; 8] =
    [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_66, 0.5, 1.0, 1.0];
/// Below this a power of two is zero.
pub const EXP2_VANISHES: f32 = -151.0;
/// Above this a power of two is infinite.
pub const EXP2_MOST: f32 = 129.0;
/// (ln(1 + f) - f + f²/2) / f³ for 1 + f in [√½, √2).
pub const LOG: [f32; 9] = [
    7.037_683_6e-2,
    -0.115_146_1,
    0.116_769_98,
    -0.124_201_41,
    0.142_493_23,
    -0.166_680_57,
    0.200_007_15,
    -0.249_999_94,
    0.333_333_3,
];
/// (tanh(x)/x - 1) / x² in powers of x², below [`TANH_EDGE`].
pub const TANH: [f32; 5] =
    [-5.704_988_6e-3, 2.063_908_8e-2, -5.373_971_6e-2, 0.133_314_42, -0.333_332_8];
/// Where the exponential takes over.
pub const TANH_EDGE: f32 = 0.625;
/// Beyond this a hyperbolic tangent is one.
pub const TANH_MOST: f32 = 20.0;
/// erf(x)/x - 1 in powers of x², up to [`ERF_EDGE`].
pub const ERF_NEAR: [f32; 6] =
    [-5.967_617e-4, 4.991_194e-3, -2.676_813_5e-2, 0.112_819_925, -0.376_125_34, 0.128_379_17];
/// ln(erfc(t))/t + 1 beyond it, for t up to [`ERF_MOST`]. The first two and the next two are added as a pair each, the
/// first pair times t².
pub const ERF_FAR: [f32; 7] = [
    -1.728_534_7e-5,
    3.831_971_3e-4,
    -3.883_964_4e-3,
    2.425_462_2e-2,
    -0.106_777_88,
    -0.634_846_7,
    -0.128_717_51,
];
/// Where the complement takes over.
pub const ERF_EDGE: f32 = 0.927_734_4;
/// Beyond this the error function is one.
pub const ERF_MOST: f32 = 4.0;

/// For arguments whose results are neither subnormal nor infinite, and a little beyond.
#[inline(always)]
fn exp_in_range(x: f32) -> f32 {
    let (n, r) = reduce(x);
    scale(polynomial(r, &EXP), n)
}

/// eˣ
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    bounded(x, EXP_VANISHES, EXP_MOST, exp_in_range)
}

/// 1 / (1 + e⁻ˣ), as the chain of operations computes it, rounding after each.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// 2ˣ
#[inline(always)]
pub fn exp2(x: f32) -> f32 {
    bounded(x, EXP2_VANISHES, EXP2_MOST, |x| {
        let n = x.round_ties_even();
        scale(polynomial((x - n) * LN_2, &EXP), integer(n + ROUNDER))
    })
}

#[inline(always)]
fn log_rest(f: f32) -> f32 {
    polynomial(f, &LOG) * f * f * f
}

/// The natural logarithm.
#[inline(always)]
pub fn log(x: f32) -> f32 {
    let (f, e) = split(x);
    let y = e.mul_add(LN2_LOW, log_rest(f));
    let y = (f * f).mul_add(-0.5, y);
    log_special(x, e.mul_add(LN2_HIGH, f + y))
}

/// ln(1 + f) for a mantissa.
#[inline(always)]
fn log_mantissa(f: f32) -> f32 {
    (f * f).mul_add(-0.5, log_rest(f)) + f
}

/// The logarithm to base two.
#[inline(always)]
pub fn log2(x: f32) -> f32 {
    let (f, e) = split(x);
    log_special(x, log_mantissa(f).mul_add(LOG2_E, e))
}

/// The logarithm to base ten.
#[inline(always)]
pub fn log10(x: f32) -> f32 {
    let (f, e) = split(x);
    log_special(x, log_mantissa(f).mul_add(LOG10_E, e * LOG10_2))
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let small = (polynomial(s, &TANH) * s).mul_add(x, x);
    let e = exp_in_range(2.0 * a.min(TANH_MOST));
    let large = (1.0 - 2.0 / (e + 1.0)).copysign(x);
    // NaN is not large: it comes out of the polynomial.
    if a >= TANH_EDGE { large } else { small }
}

/// The error function.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    // Beyond, the result is one; NaN stays.
    let t = if x.abs() > ERF_MOST { ERF_MOST } else { x.abs() };
    let s = t * t;
    let [r1, r0, u1, u0, rest @ ..] = ERF_FAR;
    let r = r1.mul_add(t, r0).mul_add(s, u1.mul_add(t, u0));
    let r = rest.iter().fold(r, |r, c| r.mul_add(t, *c)).mul_add(t, -t);
    let large = (1.0 - exp_in_range(r)).copysign(x);
    let small = polynomial(s, &ERF_NEAR).mul_add(x, x);
    // NaN is not large: it comes out of the polynomial.
    if t > ERF_EDGE { large } else { small }
}

/// Quadrant and remainder of `x` modulo half pi, reduced in `f64`.
#[inline(always)]
fn reduce_angle(x: f32) -> (i32, f32) {
    let x = f64::from(x);
    let n = (x * std::f64::consts::FRAC_2_PI).round_ties_even();
    let r = n.mul_add(-std::f64::consts::FRAC_PI_2, x);
    let r = n.mul_add(-double::FRAC_PI_2_REST, r);
    // The quadrant is exact while n fits in 52 bits, which holds for |x| < 1e15.
    let quadrant = (n + double::ROUNDER).to_bits() as i32;
    (quadrant, r as f32)
}

#[inline(always)]
fn sin_reduced(r: f32) -> f32 {
    let s = r * r;
    (polynomial(s, &[-1.951_529_6e-4, 8.332_161e-3, -0.166_666_55]) * s).mul_add(r, r)
}

#[inline(always)]
fn cos_reduced(r: f32) -> f32 {
    let s = r * r;
    let p = polynomial(s, &[2.443_315_7e-5, -1.388_731_6e-3, 4.166_664_6e-2]);
    (p * s).mul_add(s, s.mul_add(-0.5, 1.0))
}

#[inline(always)]
fn sin_quadrant(q: i32, r: f32) -> f32 {
    let y = if q & 1 == 0 { sin_reduced(r) } else { cos_reduced(r) };
    if q & 2 == 0 { y } else { -y }
}

/// The sine.
#[inline(always)]
pub fn sin(x: f32) -> f32 {
    let (q, r) = reduce_angle(x);
    sin_quadrant(q, r)
}

/// The cosine.
#[inline(always)]
pub fn cos(x: f32) -> f32 {
    let (q, r) = reduce_angle(x);
    sin_quadrant(q.wrapping_add(1), r)
}

#[cfg(test)]
mod tests {
    use super::super::tests::worst;
    use super::*;

    #[test]
    fn functions_are_accurate() {
        assert!(worst(exp, f64::exp, (-87.0, 88.0)) < 4.0);
        assert!(worst(exp2, f64::exp2, (-125.0, 127.0)) < 4.0);
        assert!(worst(log, f64::ln, (1e-3, 1e4)) < 4.0);
        assert!(worst(log2, f64::log2, (1.5, 1e4)) < 4.0);
        assert!(worst(tanh, f64::tanh, (-9.0, 9.0)) < 4.0);
        assert!(worst(erf, double::erf, (-4.0, 4.0)) < 4.0);
        // Near their zeros sine and cosine are compared by absolute error.
        for i in 0..100_000 {
            let x = (i as f32 - 50_000.0) * 0.37;
            assert!((f64::from(sin(x)) - f64::from(x).sin()).abs() < 1.3e-7, "sin {x}");
            assert!((f64::from(cos(x)) - f64::from(x).cos()).abs() < 1.3e-7, "cos {x}");
        }
    }

    #[test]
    fn edges_are_right() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(100.0), f32::INFINITY);
        assert_eq!(log(0.0), f32::NEG_INFINITY);
        assert!(log(-1.0).is_nan());
        assert_eq!(log(1.0), 0.0);
        assert_eq!(log(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp2(3.0), 8.0);
        assert_eq!(log2(8.0), 3.0);
        assert_eq!(tanh(50.0), 1.0);
        assert_eq!(erf(-9.0), -1.0);
    }
}
