//! Functions of doubles, without branches and calls, so that loops over them become vectors. They serve the float64
//! yardstick, which is computed for every graph.

use std::f64::consts::{LN_2, LOG2_E};

/// What is missing of ln(2) in `LN_2`.
const LN_2_REST: f64 = 2.319_046_813_846_3e-17;

/// 2^n for n in [-1022, 1023].
#[inline(always)]
fn power_of_two(n: i64) -> f64 {
    f64::from_bits((n.wrapping_add(1023) << 52) as u64)
}

/// c₀ + c₁ x + c₂ x² + …
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: &[f64; N]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum.mul_add(x, *coefficient))
}

/// exp(r) - 1 for |r| <= ln(2)/2, by the Taylor series (its error is below a tenth of a unit there).
#[inline(always)]
fn expm1_reduced(r: f64) -> f64 {
    const SERIES: [f64; 13] = {
        let mut series = [0.5; 13];
        let mut n = 1;
        while n < series.len() {
            series[n] = series[n - 1] / (n + 2) as f64;
            n += 1;
        }
        series
    };
    polynomial(r, &SERIES).mul_add(r * r, r)
}

/// The exponent n and the remainder r of x = n ln(2) + r.
#[inline(always)]
fn reduce(x: f64) -> (i64, f64) {
    // Adding it rounds to an integer that can then be read from the low bits.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let shifted = x.mul_add(LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = n.mul_add(-LN_2, x);
    let exponent = (shifted.to_bits() as i64).wrapping_sub(MAGIC.to_bits() as i64);
    (exponent, n.mul_add(-LN_2_REST, r))
}

#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    // Outside, the result is zero or infinite; NaN passes both comparisons and reaches the polynomial.
    let vanishes = x < -746.0;
    let clamped = if x > 710.0 { 710.0 } else { x };
    let clamped = if vanishes { 0.0 } else { clamped };
    let (n, r) = reduce(clamped);
    let half = n >> 1;
    // Two factors, so that results near the ends of the range neither overflow nor vanish too early.
    let value = (1.0 + expm1_reduced(r)) * power_of_two(half) * power_of_two(n.wrapping_sub(half));
    if vanishes { 0.0 } else { value }
}

#[inline(always)]
pub(crate) fn expm1(x: f64) -> f64 {
    let clamped = if x > 709.0 { 709.0 } else { x };
    let clamped = if clamped < -50.0 { -50.0 } else { clamped };
    let (n, r) = reduce(clamped);
    let scale = power_of_two(n);
    let value = expm1_reduced(r).mul_add(scale, scale - 1.0);
    let value = if x > 709.0 { exp(x) } else { value };
    if x == 0.0 { x } else { value }
}

#[inline(always)]
pub(crate) fn tanh(x: f64) -> f64 {
    let t = x.abs();
    // Beyond, the result is one; NaN passes the comparison.
    let twice = if t > 20.0 { 40.0 } else { t + t };
    let grown = expm1(twice);
    (grown / (grown + 2.0)).copysign(x)
}

/// erf(x) / x in powers of x², for |x| <= 1.
const ERF_NEAR: [f64; 12] = [
    0.965_468_738_669_867_3,
    -0.140_536_089_022_717_1,
    0.019_852_496_688_984_218,
    -0.002_285_485_561_144_085_5,
    0.000_217_517_156_035_634_88,
    -1.753_716_944_128_02e-05,
    1.223_382_763_809_357_2e-06,
    -7.511_569_251_086_09e-08,
    4.115_751_500_265_885e-09,
    -2.035_231_956_483_527e-10,
    9.211_250_187_428_23e-12,
    -3.806_591_224_122_14e-13,
];
/// exp(x²) erfc(x) for x in [1, 6], in powers of what (x - 2) / (x + 2) is when stretched to [-1, 1].
const ERFC_FAR: [f64; 18] = [
    0.221_429_540_229_931_8,
    -0.161_893_568_041_024_98,
    0.038_560_570_425_182_406,
    -0.005_588_816_281_839_573,
    0.000_197_139_177_728_348_7,
    8.079_220_426_243_645e-05,
    -7.340_517_941_415_228e-06,
    -1.979_561_815_853_977_5e-06,
    1.634_993_861_464_746_8e-07,
    7.005_318_546_704_507e-08,
    -5.886_316_438_866_986e-10,
    -2.624_002_410_316_086_6e-09,
    -2.686_673_727_909_544_7e-10,
    7.360_635_504_868_664e-11,
    2.211_654_530_754_847_2e-11,
    1.391_934_782_638_739_8e-13,
    -9.321_424_201_169_892e-13,
    -1.449_564_311_341_957_8e-13,
];

/// The error function to about one unit in the last place.
#[inline(always)]
pub(crate) fn erf(x: f64) -> f64 {
    let t = x.abs();
    let near = if t < 1.0 { t * t } else { 1.0 };
    let near = x * polynomial(near + near - 1.0, &ERF_NEAR);
    let far = if t > 6.0 { 6.0 } else { t };
    let place = ((far - 2.0) / (far + 2.0) - 0.083_333_333_333_333_33) / 0.416_666_666_666_666_7;
    let far = (1.0 - exp(-far * far) * polynomial(place, &ERFC_FAR)).copysign(x);
    if t < 1.0 { near } else { far }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error in units in the last place over a sweep of the range.
    fn worst(function: fn(f64) -> f64, exact: fn(f64) -> f64, low: f64, high: f64) -> f64 {
        let steps = if cfg!(miri) { 50 } else { 200_000 };
        let errors = (0..=steps).map(|i| {
            let x = low + (high - low) * f64::from(i) / f64::from(steps);
            let want = exact(x);
            (function(x) - want).abs() / (want.abs().next_up() - want.abs())
        });
        errors.fold(0.0, f64::max)
    }

    #[test]
    fn functions_are_accurate() {
        assert!(worst(exp, f64::exp, -708.0, 709.0) < 1.6);
        assert!(worst(exp, f64::exp, -745.0, -708.0) < 1.6);
        assert!(worst(expm1, f64::exp_m1, -5.0, 5.0) < 2.5);
        assert!(worst(tanh, f64::tanh, -22.0, 22.0) < 5.0);
    }

    #[test]
    fn special_values() {
        for function in [exp, expm1, tanh, erf] {
            assert!(function(f64::NAN).is_nan());
        }
        assert_eq!((exp(f64::INFINITY), exp(f64::NEG_INFINITY)), (f64::INFINITY, 0.0));
        assert_eq!((exp(709.7), exp(0.0)), (709.7f64.exp(), 1.0));
        assert_eq!((expm1(f64::INFINITY), expm1(f64::NEG_INFINITY)), (f64::INFINITY, -1.0));
        for function in [tanh, erf] {
            assert_eq!((function(f64::INFINITY), function(f64::NEG_INFINITY)), (1.0, -1.0));
        }
        for function in [expm1, tanh, erf] {
            assert_eq!(function(-0.0).to_bits(), (-0.0f64).to_bits());
        }
    }

    /// Values to seventeen digits, on both sides of every joint.
    #[test]
    fn the_error_function_is_accurate() {
        let known = [
            (0.001, 0.001_128_378_790_969_236_5),
            (0.25, 0.276_326_390_168_236_96),
            (0.5, 0.520_499_877_813_046_5),
            (0.999, 0.842_285_270_206_496_9),
            (1.001, 0.843_115_485_478_076_4),
            (1.5, 0.966_105_146_475_310_8),
            (2.0, 0.995_322_265_018_952_7),
            (2.5, 0.999_593_047_982_555),
            (3.0, 0.999_977_909_503_001_4),
            (4.0, 0.999_999_984_582_742_1),
            (5.9, 0.999_999_999_999_999_9),
        ];
        for (x, value) in known {
            assert!((erf(x) - value).abs() < 2.5e-16, "{x}: {} instead of {value}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
    }
}
