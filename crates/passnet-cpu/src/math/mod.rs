//! Elementary functions without branches and calls, so that loops over them become vectors, with the same bits on every machine.
//!
//! There are two families in `f32`. [`precise`] stays within one or two units in the last place and is what the operations of
//! a graph compute with: a graph chains hundreds of them, and PyTorch's results are what they are compared with. [`fast`]
//! takes fewer operations, no division in a logarithm among them; kernels of passes compute with it, and [`avx512`] and the
//! machine code of `passnet-kernel` repeat it operation for operation, with the same coefficients. The reduction of an
//! argument is one for both. [`double`] has the functions of `f64`.

#[cfg(target_arch = "x86_64")]
pub mod avx512;
pub mod double;
pub mod fast;
pub mod precise;

use crate::vector::Vectors;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// The float types in which code computes.
pub trait Float:
    Vectors
    + Copy
    + Default
    + std::fmt::Debug
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// ∞
    const INFINITY: Self;
    /// The nearest value of this type.
    fn constant(value: f64) -> Self;
    /// `self * factor + addend`, rounded once.
    fn fused(self, factor: Self, addend: Self) -> Self;
    /// √x
    fn sqrt(self) -> Self;
    /// eˣ
    fn exp(self) -> Self;
    /// eˣ - 1, exact near zero.
    fn expm1(self) -> Self;
    /// The natural logarithm.
    fn ln(self) -> Self;
    /// ln(1 + x), exact near zero.
    fn ln_1p(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh(self) -> Self;
    /// The error function.
    fn erf(self) -> Self;
    /// The sine.
    fn sin(self) -> Self;
    /// The cosine.
    fn cos(self) -> Self;
    /// The power with a real exponent.
    fn pow(self, exponent: Self) -> Self;
    /// The magnitude.
    fn abs(self) -> Self;
    /// The next integer below.
    fn floor(self) -> Self;
    /// The next integer above.
    fn ceil(self) -> Self;
    /// The next integer towards zero.
    fn trunc(self) -> Self;
    /// The nearest integer, ties to even.
    fn round_even(self) -> Self;
    /// This magnitude with another number's sign.
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
    /// Whether this is no number.
    #[inline(always)]
    #[allow(clippy::eq_op)]
    fn is_nan(self) -> bool {
        self != self
    }
    /// 1 / (1 + e⁻ˣ)
    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp())
    }
}

macro_rules! float {
    ($type:ident, $functions:ident { $($own:ident)* }, $($name:ident = $inherent:ident($($arg:ident)*);)*) => {
        impl Float for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const INFINITY: Self = $type::INFINITY;
            #[inline(always)]
            fn constant(value: f64) -> Self {
                value as $type
            }
            $(#[inline(always)]
            fn $own(self) -> Self {
                $functions::$own(self)
            })*
            $(#[inline(always)]
            fn $name(self $(, $arg: Self)*) -> Self {
                $type::$inherent(self $(, $arg)*)
            })*
        }
    };
    ($type:ident, $functions:ident) => {
        float! { $type, $functions { exp expm1 ln ln_1p tanh erf sin cos },
            fused = mul_add(factor addend);
            sqrt = sqrt();
            pow = powf(exponent);
            abs = abs();
            floor = floor();
            ceil = ceil();
            trunc = trunc();
            round_even = round_ties_even();
            copysign = copysign(sign);
        }
    };
}
float!(f32, precise);
float!(f64, double);

/// The polynomial with these coefficients, that of the highest power first.
#[inline(always)]
fn polynomial<T: Float, const N: usize>(x: T, coefficients: &[T; N]) -> T {
    let mut value = coefficients[0];
    let mut i = 1;
    while i < N {
        value = value.fused(x, coefficients[i]);
        i += 1;
    }
    value
}

/// ln(2) in two parts: the first has few bits, so that its product with a small integer is exact.
pub const LN2_HIGH: f32 = 0.693_359_4;
/// The second part.
pub const LN2_LOW: f32 = -2.121_944_4e-4;
/// Adding it rounds to an integer, which can then be read from the low bits: no conversion, no call.
pub const ROUNDER: f32 = 12_582_912.0;
/// Below this an exponential is zero. A result that underflows takes the processor a hundred times as long as any other, and
/// masked scores and the lanes behind a row's end are all such in a softmax: they are left out.
pub const EXP_VANISHES: f32 = -104.0;
/// Above this an exponential is infinite.
pub const EXP_MOST: f32 = 89.0;
/// What subnormal numbers are multiplied with before they are split, and its logarithm to base two.
pub const SUBNORMAL_SCALE: (f32, f32) = (8_388_608.0, 23.0);
/// The bits of √½, where the mantissas of `split` begin.
pub const ROOT_HALF: i32 = 0x3f35_04f3;

/// The exponent n and the remainder r of x = n ln(2) + r.
#[inline(always)]
fn reduce(x: f32) -> (i32, f32) {
    let shifted = x.mul_add(std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = n.mul_add(-LN2_HIGH, x);
    (integer(shifted), n.mul_add(-LN2_LOW, r))
}

/// The integer in the low bits of a number to which [`ROUNDER`] was added.
#[inline(always)]
fn integer(shifted: f32) -> i32 {
    (shifted.to_bits() as i32).wrapping_sub(ROUNDER.to_bits() as i32)
}

/// 2ⁿ for n in [-126, 127].
#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) << 23) as u32)
}

/// p 2ⁿ in two factors, so that results near the ends of the range neither overflow nor vanish too early.
#[inline(always)]
fn scale(p: f32, n: i32) -> f32 {
    let half = n >> 1;
    p * power_of_two(half) * power_of_two(n.wrapping_sub(half))
}

/// A function that is zero below `low` and infinite above `high`, by one that holds between; NaN passes both comparisons.
#[inline(always)]
fn bounded(x: f32, low: f32, high: f32, between: impl Fn(f32) -> f32) -> f32 {
    let vanishes = x < low;
    let clamped = if x > high { high } else { x };
    let value = between(if vanishes { 0.0 } else { clamped });
    if vanishes { 0.0 } else { value }
}

/// The mantissa in [√½, √2) minus one, and the exponent. Negative numbers and NaN pass through; [`log_special`] replaces them.
#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    let is_subnormal = x < f32::MIN_POSITIVE;
    let scaled = if is_subnormal { x * SUBNORMAL_SCALE.0 } else { x };
    let bits = scaled.to_bits() as i32;
    let e = bits.wrapping_sub(ROOT_HALF) >> 23;
    let mantissa = f32::from_bits(bits.wrapping_sub(e << 23) as u32);
    let e = e as f32 - if is_subnormal { SUBNORMAL_SCALE.1 } else { 0.0 };
    (mantissa - 1.0, e)
}

/// A logarithm's value where its argument is positive and finite, and what it is elsewhere.
#[inline(always)]
fn log_special(x: f32, value: f32) -> f32 {
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    // Negative numbers and NaN.
    if x >= 0.0 { value } else { f32::NAN }
}

#[cfg(test)]
mod tests {
    /// Largest error in units in the last place over a sweep of the range, against a function of doubles.
    pub(super) fn worst(
        function: fn(f32) -> f32,
        exact: fn(f64) -> f64,
        (low, high): (f32, f32),
    ) -> f64 {
        let steps = if cfg!(miri) { 50 } else { 200_000 };
        let errors = (0..=steps).map(|i| {
            let x = low + (high - low) * (i as f32 / steps as f32);
            let want = exact(f64::from(x));
            let unit = f64::from((want as f32).abs().next_up() - (want as f32).abs());
            let unit = unit.max(f64::from(f32::MIN_POSITIVE) * 1e-7);
            (f64::from(function(x)) - want).abs() / unit
        });
        errors.fold(0.0, f64::max)
    }
}
