//! Functions of doubles. They serve the float64 yardstick, which is computed for every graph; what it rarely needs is the
//! standard library's, or is computed one by one.

use super::polynomial;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LOG2_E, PI};

/// What is missing of ln(2) in `LN_2`.
const LN_2_REST: f64 = 2.319_046_813_846_3e-17;

/// What is missing of π/2 in `FRAC_PI_2`.
pub(super) const FRAC_PI_2_REST: f64 = 6.123_233_995_736_766e-17;
/// Adding it rounds to an integer that can then be read from the low bits.
pub(super) const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// 2^n for n in [-1022, 1023].
#[inline(always)]
fn power_of_two(n: i64) -> f64 {
    f64::from_bits((n.wrapping_add(1023) << 52) as u64)
}

/// exp(r) - 1 for |r| <= ln(2)/2, by the Taylor series (its error is below a tenth of a unit there).
#[inline(always)]
fn expm1_reduced(r: f64) -> f64 {
    const SERIES: [f64; 13] = {
        let mut series = [0.5; 13];
        let mut n = 1;
        while n < series.len() {
            series[12 - n] = series[13 - n] / (n + 2) as f64;
            n += 1;
        }
        series
    };
    polynomial(r, &SERIES).mul_add(r * r, r)
}

/// The exponent n and the remainder r of x = n ln(2) + r.
#[inline(always)]
fn reduce(x: f64) -> (i64, f64) {
    let shifted = x.mul_add(LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN_2, x);
    let exponent = (shifted.to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64);
    (exponent, n.mul_add(-LN_2_REST, r))
}

/// eˣ
#[inline(always)]
pub fn exp(x: f64) -> f64 {
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

/// eˣ - 1, exact near zero.
#[inline(always)]
pub fn expm1(x: f64) -> f64 {
    let clamped = if x > 709.0 { 709.0 } else { x };
    let clamped = if clamped < -50.0 { -50.0 } else { clamped };
    let (n, r) = reduce(clamped);
    let scale = power_of_two(n);
    let value = expm1_reduced(r).mul_add(scale, scale - 1.0);
    let value = if x > 709.0 { exp(x) } else { value };
    if x == 0.0 { x } else { value }
}

/// The hyperbolic tangent.
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    let t = x.abs();
    // Beyond, the result is one; NaN passes the comparison.
    let twice = if t > 20.0 { 40.0 } else { t + t };
    let grown = expm1(twice);
    (grown / (grown + 2.0)).copysign(x)
}

/// erf(x) / x in powers of x², for |x| <= 1.
const ERF_NEAR: [f64; 12] = [
    -3.806_591_224_122_14e-13,
    9.211_250_187_428_23e-12,
    -2.035_231_956_483_527e-10,
    4.115_751_500_265_885e-09,
    -7.511_569_251_086_09e-08,
    1.223_382_763_809_357_2e-06,
    -1.753_716_944_128_02e-05,
    0.000_217_517_156_035_634_88,
    -0.002_285_485_561_144_085_5,
    0.019_852_496_688_984_218,
    -0.140_536_089_022_717_1,
    0.965_468_738_669_867_3,
];
/// exp(x²) erfc(x) for x in [1, 6], in powers of what (x - 2) / (x + 2) is when stretched to [-1, 1].
const ERFC_FAR: [f64; 18] = [
    -1.449_564_311_341_957_8e-13,
    -9.321_424_201_169_892e-13,
    1.391_934_782_638_739_8e-13,
    2.211_654_530_754_847_2e-11,
    7.360_635_504_868_664e-11,
    -2.686_673_727_909_544_7e-10,
    -2.624_002_410_316_086_6e-09,
    -5.886_316_438_866_986e-10,
    7.005_318_546_704_507e-08,
    1.634_993_861_464_746_8e-07,
    -1.979_561_815_853_977_5e-06,
    -7.340_517_941_415_228e-06,
    8.079_220_426_243_645e-05,
    0.000_197_139_177_728_348_7,
    -0.005_588_816_281_839_573,
    0.038_560_570_425_182_406,
    -0.161_893_568_041_024_98,
    0.221_429_540_229_931_8,
];

/// The error function to about one unit in the last place.
#[inline(always)]
pub fn erf(x: f64) -> f64 {
    let t = x.abs();
    let near = if t < 1.0 { t * t } else { 1.0 };
    let near = x * polynomial(near + near - 1.0, &ERF_NEAR);
    let far = if t > 6.0 { 6.0 } else { t };
    let place = ((far - 2.0) / (far + 2.0) - 0.083_333_333_333_333_33) / 0.416_666_666_666_666_7;
    let far = (1.0 - exp(-far * far) * polynomial(place, &ERFC_FAR)).copysign(x);
    if t < 1.0 { near } else { far }
}

macro_rules! standard {
    ($($name:ident, $what:literal;)*) => {$(
        #[doc = $what]
        #[inline(always)]
        pub fn $name(x: f64) -> f64 {
            x.$name()
        }
    )*};
}
standard! {
    ln, "The natural logarithm, the standard library's.";
    ln_1p, "ln(1 + x), the standard library's.";
    sin, "The sine, the standard library's.";
    cos, "The cosine, the standard library's.";
}

/// The inverse of the error function.
pub fn erfinv(x: f64) -> f64 {
    let size = x.abs();
    if size >= 1.0 || size.is_nan() {
        return if size == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    // A first guess good to three digits (Winitzki), then Newton steps; the tail is measured from one so that it keeps
    // its digits.
    let log = (-size * size).ln_1p();
    let middle = 2.0 / (PI * 0.147) + log / 2.0;
    let mut root = ((middle * middle - log / 0.147).sqrt() - middle).sqrt();
    for _ in 0..3 {
        let excess = if root > 1.0 { (1.0 - size) - erfc(root) } else { erf(root) - size };
        root -= excess * (root * root).exp() / FRAC_2_SQRT_PI;
    }
    root.copysign(x)
}

/// The complement of the error function, to full relative precision above 2.5.
pub fn erfc(x: f64) -> f64 {
    if x > 2.5 { erfc_tail(x) } else { 1.0 - erf(x) }
}

/// erfc by its continued fraction, for x above 2.5.
fn erfc_tail(x: f64) -> f64 {
    let mut fraction = x;
    for k in (1..120).rev() {
        fraction = x + 0.5 * f64::from(k) / fraction;
    }
    (-x * x).exp() / (fraction * PI.sqrt())
}

/// The error function as kernels of passes compute it, one number at a time: its series below 2.5, the complement above.
pub fn erf_by_series(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let a = x.abs();
    let y = if a < 2.5 {
        let mut term = a;
        let mut sum = a;
        let mut n = 0.0;
        while term.abs() > 1e-18 * sum.abs() && n < 120.0 {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * FRAC_2_SQRT_PI
    } else {
        1.0 - erfc_by_fraction(a)
    };
    y.copysign(x)
}

/// Its complement, by a continued fraction above 2.5.
pub fn erfc_by_fraction(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < 2.5 {
        return 1.0 - erf_by_series(x);
    }
    if x > 27.0 {
        return 0.0;
    }
    // Lentz's continued fraction from the far end.
    let mut f = 0.0;
    for k in (1..=60).rev() {
        f = f64::from(k) / 2.0 / (x + f);
    }
    (-x * x).exp() / ((x + f) * PI.sqrt())
}

/// Logarithm of the absolute gamma function, by Stirling's series after shifting the argument up.
pub fn lgamma(x: f64) -> f64 {
    if !x.is_finite() {
        return if x.is_nan() { x } else { f64::INFINITY };
    }
    if x <= 0.0 {
        if x == x.floor() {
            return f64::INFINITY;
        }
        let s = (PI * x).sin().abs();
        return (PI / s).ln() - lgamma(1.0 - x);
    }
    let (mut z, mut shift) = (x, 0.0);
    while z < 12.0 {
        shift += z.ln();
        z += 1.0;
    }
    let w = 1.0 / (z * z);
    let series =
        ((((-691.0 / 360_360.0 * w + 1.0 / 1188.0) * w - 1.0 / 1680.0) * w + 1.0 / 1260.0) * w
            - 1.0 / 360.0)
            * w
            + 1.0 / 12.0;
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * PI).ln() + series / z - shift
}

/// The derivative of [`lgamma`], by its asymptotic series after shifting the argument up.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return -f64::INFINITY.copysign(x);
    }
    if x < 0.0 {
        // There is a pole at every integer, with another sign on each side.
        let turn = x % 1.0;
        return if turn == 0.0 { f64::NAN } else { digamma(1.0 - x) - PI / (PI * turn).tan() };
    }
    if x == f64::INFINITY {
        return x;
    }
    let (mut z, mut shift) = (x, 0.0);
    while z < 12.0 {
        shift += 1.0 / z;
        z += 1.0;
    }
    let w = 1.0 / (z * z);
    let series = ((((1.0 / 132.0 * w - 1.0 / 240.0) * w + 1.0 / 252.0) * w - 1.0 / 120.0) * w
        + 1.0 / 12.0)
        * w;
    z.ln() - 0.5 / z - series - shift
}

/// The modified Bessel function of the first kind and order zero: its power series, whose terms are all positive.
pub fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    if x.abs() > 714.0 {
        return f64::INFINITY;
    }
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    while term > sum * 1e-17 {
        k += 1.0;
        term *= quarter / (k * k);
        sum += term;
    }
    if x.is_nan() { x } else { sum }
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

    #[test]
    fn double_error_function() {
        // erf(0.5), erf(3) and erfc(4) to seventeen digits.
        assert!((erf(0.5) - 0.520_499_877_813_046_5).abs() < 2e-16);
        assert!((erf(3.0) - 0.999_977_909_503_001_4).abs() < 2e-16);
        assert!((erfc(4.0) / 1.541_725_790_028_002e-8 - 1.0).abs() < 1e-14);
    }

    #[test]
    fn functions_around_gamma_and_bessel_are_accurate() {
        // To sixteen digits, from tables.
        let near = |got: f64, want: f64| {
            assert!((got - want).abs() < 4e-15 * want.abs().max(1.0), "{got} instead of {want}");
        };
        near(digamma(1.0), -0.577_215_664_901_532_9);
        near(digamma(0.5), -1.963_510_026_021_423_5);
        near(digamma(-0.5), 0.036_489_973_978_576_52);
        near(digamma(30.0), 3.384_438_132_685_525);
        near(bessel_i0(1.0), 1.266_065_877_752_008_4);
        near(bessel_i0(-12.0), 18_948.925_349_296_31);
        assert_eq!((bessel_i0(0.0), bessel_i0(1e4)), (1.0, f64::INFINITY));
        assert!(bessel_i0(f64::NAN).is_nan() && digamma(f64::NAN).is_nan());
        assert!(digamma(-3.0).is_nan() && digamma(0.0) == f64::NEG_INFINITY);
    }

    #[test]
    fn functions_of_kernels_are_accurate() {
        assert!((erf_by_series(1.0) - 0.842_700_792_949_714_9).abs() < 1e-15);
        assert!((erfc_by_fraction(3.0) - 2.209_049_699_858_544e-5).abs() < 1e-19);
        assert!((lgamma(0.5) - 0.572_364_942_924_700_1).abs() < 1e-13);
    }
}
