//! Elementary functions without branches, so that they vectorise; errors are at most two units in the last place
//! (measured by the tests against `f64`).

#[inline(always)]
fn pow2i(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// `2^n` in two factors, so that results may be subnormal or overflow to infinity.
#[inline(always)]
fn scale(p: f32, n: f32) -> f32 {
    // Unlike a cast this needs no range checks.
    let n = (n + ROUNDER).to_bits() as i32 - 0x4b40_0000;
    let half = n >> 1;
    p * pow2i(half) * pow2i(n - half)
}

#[inline(always)]
fn exp_poly(r: f32) -> f32 {
    let mut p = 1.987_569_1e-4f32;
    p = p.mul_add(r, 1.398_199_9e-3);
    p = p.mul_add(r, 8.333_452e-3);
    p = p.mul_add(r, 4.166_579_6e-2);
    p = p.mul_add(r, 0.166_666_66);
    p = p.mul_add(r, 0.5);
    p = p.mul_add(r, 1.0);
    p.mul_add(r, 1.0)
}

/// Adding it rounds to an integer, which is then in the low mantissa bits.
pub(crate) const ROUNDER: f32 = 12_582_912.0;

/// For arguments whose results are neither subnormal nor infinite, and a little beyond.
#[inline(always)]
fn exp_in_range(x: f32) -> f32 {
    let n = x.mul_add(std::f32::consts::LOG2_E, ROUNDER) - ROUNDER;
    let r = n.mul_add(-0.693_359_4, x);
    let r = n.mul_add(2.121_944_4e-4, r);
    scale(exp_poly(r), n)
}

/// Below this a result is zero. One that underflows takes the processor a hundred times as long as any other, and the
/// lanes behind a row's end are all such in a softmax: they are left out.
pub(crate) const EXP_VANISHES: f32 = -104.0;
/// The same for powers of two.
pub(crate) const EXP2_VANISHES: f32 = -151.0;

#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let vanishes = x < EXP_VANISHES;
    let value = exp_in_range(if vanishes { 0.0 } else { x.clamp(EXP_VANISHES, 89.0) });
    if vanishes { 0.0 } else { value }
}

/// As the chain of operations computes it, rounding after each.
#[inline(always)]
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[inline(always)]
pub(super) fn exp2(x: f32) -> f32 {
    let vanishes = x < EXP2_VANISHES;
    let c = if vanishes { 0.0 } else { x.clamp(EXP2_VANISHES, 129.0) };
    let n = c.round_ties_even();
    let r = (c - n) * std::f32::consts::LN_2;
    let value = scale(exp_poly(r), n);
    if vanishes { 0.0 } else { value }
}

/// Mantissa in [sqrt(1/2), sqrt(2)) minus one, and the exponent.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    let tiny = x < f32::MIN_POSITIVE;
    let y = if tiny { x * 8_388_608.0 } else { x };
    let bits = y.to_bits() as i32;
    // Negative numbers and NaN pass through here too; their result is replaced at the end.
    let e = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let m = f32::from_bits(bits.wrapping_sub(e << 23) as u32);
    let e = e as f32 - if tiny { 23.0 } else { 0.0 };
    (m - 1.0, e)
}

#[inline(always)]
fn log_poly(f: f32) -> f32 {
    let mut p = 7.037_683_6e-2f32;
    p = p.mul_add(f, -0.115_146_1);
    p = p.mul_add(f, 0.116_769_98);
    p = p.mul_add(f, -0.124_201_41);
    p = p.mul_add(f, 0.142_493_23);
    p = p.mul_add(f, -0.166_680_57);
    p = p.mul_add(f, 0.200_007_15);
    p = p.mul_add(f, -0.249_999_94);
    p = p.mul_add(f, 0.333_333_3);
    p * f * f * f
}

#[inline(always)]
fn log_special(x: f32, y: f32) -> f32 {
    let y = if x == f32::INFINITY { x } else { y };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x < 0.0 || x.is_nan() { f32::NAN } else { y }
}

#[inline(always)]
pub(super) fn log(x: f32) -> f32 {
    let (f, e) = split(x);
    let mut y = log_poly(f);
    y = e.mul_add(-2.121_944_4e-4, y);
    y = (f * f).mul_add(-0.5, y);
    let y = e.mul_add(0.693_359_4, f + y);
    log_special(x, y)
}

#[inline(always)]
pub(super) fn log2(x: f32) -> f32 {
    let (f, e) = split(x);
    let y = (f * f).mul_add(-0.5, log_poly(f)) + f;
    // log2(e) in two parts keeps the product exact enough near one.
    let y = y.mul_add(std::f32::consts::LOG2_E, e);
    log_special(x, y)
}

#[inline(always)]
pub(super) fn log10(x: f32) -> f32 {
    let (f, e) = split(x);
    let y = (f * f).mul_add(-0.5, log_poly(f)) + f;
    let y = y.mul_add(std::f32::consts::LOG10_E, e * std::f32::consts::LOG10_2);
    log_special(x, y)
}

#[inline(always)]
pub(super) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let s = x * x;
    let mut p = -5.704_988_6e-3f32;
    p = p.mul_add(s, 2.063_908_8e-2);
    p = p.mul_add(s, -5.373_971_6e-2);
    p = p.mul_add(s, 0.133_314_42);
    p = p.mul_add(s, -0.333_332_8);
    let small = (p * s).mul_add(x, x);
    let e = exp_in_range(2.0 * a.min(20.0));
    let large = (1.0 - 2.0 / (e + 1.0)).copysign(x);
    // NaN is not large: it comes out of the polynomial.
    if a >= 0.625 { large } else { small }
}

#[inline(always)]
pub(super) fn erf(x: f32) -> f32 {
    // Beyond, the result is one; NaN stays.
    let t = if x.abs() > 4.0 { 4.0 } else { x.abs() };
    let s = t * t;
    let mut r = (-1.728_534_7e-5f32).mul_add(t, 3.831_971_3e-4);
    let u = (-3.883_964_4e-3f32).mul_add(t, 2.425_462_2e-2);
    r = r.mul_add(s, u);
    r = r.mul_add(t, -0.106_777_88);
    r = r.mul_add(t, -0.634_846_7);
    r = r.mul_add(t, -0.128_717_51);
    r = r.mul_add(t, -t);
    let large = (1.0 - exp_in_range(r)).copysign(x);
    let mut q = -5.967_617e-4f32;
    q = q.mul_add(s, 4.991_194e-3);
    q = q.mul_add(s, -2.676_813_5e-2);
    q = q.mul_add(s, 0.112_819_925);
    q = q.mul_add(s, -0.376_125_34);
    q = q.mul_add(s, 0.128_379_17);
    let small = q.mul_add(x, x);
    // NaN is not large: it comes out of the polynomial.
    if t > 0.927_734_4 { large } else { small }
}

/// Quadrant and remainder of `x` modulo half pi, reduced in `f64`.
#[inline(always)]
fn reduce_angle(x: f32) -> (i32, f32) {
    let x = f64::from(x);
    let n = (x * std::f64::consts::FRAC_2_PI).round_ties_even();
    let r = n.mul_add(-std::f64::consts::FRAC_PI_2, x);
    let r = n.mul_add(-6.123_233_995_736_766e-17, r);
    // The quadrant is exact while n fits in 52 bits, which holds for |x| < 1e15.
    let quadrant = (n + 6_755_399_441_055_744.0).to_bits() as i32;
    (quadrant, r as f32)
}

#[inline(always)]
fn sin_poly(r: f32) -> f32 {
    let s = r * r;
    let mut p = -1.951_529_6e-4f32;
    p = p.mul_add(s, 8.332_161e-3);
    p = p.mul_add(s, -0.166_666_55);
    (p * s).mul_add(r, r)
}

#[inline(always)]
fn cos_poly(r: f32) -> f32 {
    let s = r * r;
    let mut p = 2.443_315_7e-5f32;
    p = p.mul_add(s, -1.388_731_6e-3);
    p = p.mul_add(s, 4.166_664_6e-2);
    (p * s).mul_add(s, s.mul_add(-0.5, 1.0))
}

#[inline(always)]
fn sin_quadrant(q: i32, r: f32) -> f32 {
    let y = if q & 1 == 0 { sin_poly(r) } else { cos_poly(r) };
    if q & 2 == 0 { y } else { -y }
}

#[inline(always)]
pub(super) fn sin(x: f32) -> f32 {
    let (q, r) = reduce_angle(x);
    sin_quadrant(q, r)
}

#[inline(always)]
pub(super) fn cos(x: f32) -> f32 {
    let (q, r) = reduce_angle(x);
    sin_quadrant(q.wrapping_add(1), r)
}

/// Error function in double precision: series below 2.5, continued fraction above.
pub(super) fn erf64(x: f64) -> f64 {
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
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        1.0 - erfc64(a)
    };
    y.copysign(x)
}

pub(super) fn erfc64(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x < 2.5 {
        return 1.0 - erf64(x);
    }
    if x > 27.0 {
        return 0.0;
    }
    // Lentz's continued fraction from the far end.
    let mut f = 0.0;
    for k in (1..=60).rev() {
        f = f64::from(k) / 2.0 / (x + f);
    }
    (-x * x).exp() / ((x + f) * std::f64::consts::PI.sqrt())
}

/// Logarithm of the absolute gamma function, by Stirling's series after shifting the argument up.
pub(super) fn lgamma64(x: f64) -> f64 {
    if !x.is_finite() {
        return if x.is_nan() { x } else { f64::INFINITY };
    }
    if x <= 0.0 {
        if x == x.floor() {
            return f64::INFINITY;
        }
        let s = (std::f64::consts::PI * x).sin().abs();
        return (std::f64::consts::PI / s).ln() - lgamma64(1.0 - x);
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
    (z - 0.5) * z.ln() - z + 0.5 * (2.0 * std::f64::consts::PI).ln() + series / z - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error in units in the last place over a range, against a double-precision reference.
    fn worst(f: fn(f32) -> f32, reference: fn(f64) -> f64, low: f32, high: f32) -> f64 {
        let mut worst = 0f64;
        let steps = 200_000;
        for i in 0..=steps {
            let x = low + (high - low) * (i as f32 / steps as f32);
            let (got, want) = (f64::from(f(x)), reference(f64::from(x)));
            let ulp = f64::from(f32::EPSILON) * want.abs().max(f64::from(f32::MIN_POSITIVE)) / 2.0;
            worst = worst.max((got - want).abs() / ulp.max(1e-45));
        }
        worst
    }

    #[test]
    fn functions_are_accurate() {
        assert!(worst(exp, f64::exp, -87.0, 88.0) < 4.0);
        assert!(worst(exp2, f64::exp2, -125.0, 127.0) < 4.0);
        assert!(worst(log, f64::ln, 1e-3, 1e4) < 4.0);
        assert!(worst(log2, f64::log2, 1.5, 1e4) < 4.0);
        assert!(worst(tanh, f64::tanh, -9.0, 9.0) < 4.0);
        assert!(worst(erf, erf64, -4.0, 4.0) < 4.0);
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
        assert!((erf64(1.0) - 0.842_700_792_949_714_9).abs() < 1e-15);
        assert!((erfc64(3.0) - 2.209_049_699_858_544e-5).abs() < 1e-19);
        assert!((lgamma64(0.5) - 0.572_364_942_924_700_1).abs() < 1e-13);
    }
}
