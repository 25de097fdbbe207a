//! Comparing two elements, once per element type.

use super::Rules;
use crate::number::python_float;
use crate::tolerance::Tolerance;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Elements are tested in blocks of this many.
pub(super) const BLOCK: usize = 64;

/// What the scan needs to know about an element type.
pub(super) trait Element: Copy + Sync {
    /// Equal without looking further; cheap enough to run over every element. May answer no for equal values
    /// (signed zeros), never yes for unequal ones or for NaN.
    fn plainly_equal(self, other: Self) -> bool;
    /// `==`: NaN equals nothing.
    fn equal(self, other: Self) -> bool;
    /// Equal, or both NaN.
    fn same(self, other: Self) -> bool;
    fn is_nan(self) -> bool;
    /// `|self - actual| <= atol + rtol·|actual|` with a finite left side.
    fn close(self, actual: Self, tolerance: Tolerance, rules: Rules) -> bool;
    /// The absolute error of `actual`, NaN if either is NaN.
    fn error(self, actual: Self) -> f64;
    fn magnitude(self) -> f64;
    fn text(self) -> String;

    fn equal_by(self, actual: Self, rules: Rules) -> bool {
        match rules {
            Rules::Strict => self.same(actual),
            Rules::Reference => self.equal(actual),
        }
    }

    // Over blocks: `&` and `|` instead of `&&` and `||`, so that the loops have no branches and vectorise.

    fn all_plainly_equal(expected: &[Self], actual: &[Self]) -> bool {
        expected.iter().zip(actual).fold(true, |all, (e, a)| all & e.plainly_equal(*a))
    }

    fn all_same(expected: &[Self], actual: &[Self], rules: Rules) -> bool {
        expected.iter().zip(actual).fold(true, |all, (e, a)| all & e.equal_by(*a, rules))
    }

    fn all_close(expected: &[Self], actual: &[Self], tolerance: Tolerance, rules: Rules) -> bool {
        each_close(expected, actual, tolerance, rules)
    }

    /// Writes the elements of at most a block as float64; `false` where they are no floats.
    fn widen(_block: &[Self], _wide: &mut [f64; BLOCK]) -> bool {
        false
    }
}

fn each_close<T: Element>(
    expected: &[T],
    actual: &[T],
    tolerance: Tolerance,
    rules: Rules,
) -> bool {
    let close = |e: T, a: T| e.equal_by(a, rules) | e.close(a, tolerance, rules);
    expected.iter().zip(actual).fold(true, |all, (e, a)| all & close(*e, *a))
}

fn close_f64(expected: f64, actual: f64, tolerance: Tolerance) -> bool {
    let error = (expected - actual).abs();
    error.is_finite() & (error <= tolerance.atol + (tolerance.rtol * actual).abs())
}

/// torch multiplies float32 tensors by scalars rounded to float32.
fn close_f32(expected: f32, actual: f32, tolerance: Tolerance) -> bool {
    let error = (expected - actual).abs();
    let allowed = tolerance.atol as f32 + (tolerance.rtol as f32 * actual).abs();
    error.is_finite() & (error <= allowed)
}

/// What every float type says of two of its elements.
macro_rules! float_equality {
    ($type:ty) => {
        fn equal(self, other: Self) -> bool {
            self == other
        }
        fn same(self, other: Self) -> bool {
            (self == other) | (self.is_nan() & other.is_nan())
        }
        fn is_nan(self) -> bool {
            <$type>::is_nan(self)
        }
    };
}

macro_rules! wide_float {
    ($type:ty, $reference:ident, $block:ident) => {
        impl Element for $type {
            fn plainly_equal(self, other: Self) -> bool {
                self == other
            }
            float_equality!($type);
            fn close(self, actual: Self, tolerance: Tolerance, rules: Rules) -> bool {
                match rules {
                    Rules::Strict => close_f64(f64::from(self), f64::from(actual), tolerance),
                    Rules::Reference => $reference(self, actual, tolerance),
                }
            }
            fn error(self, actual: Self) -> f64 {
                (f64::from(self) - f64::from(actual)).abs()
            }
            fn magnitude(self) -> f64 {
                f64::from(self).abs()
            }
            fn text(self) -> String {
                // The shortest decimal of the type itself: 0.1, not 0.10000000149011612.
                if self.is_finite() { format!("{self:?}") } else { python_float(f64::from(self)) }
            }
            fn all_close(e: &[Self], a: &[Self], tolerance: Tolerance, rules: Rules) -> bool {
                $block(e, a, tolerance, rules)
            }
            fn widen(block: &[Self], wide: &mut [f64; BLOCK]) -> bool {
                wide.iter_mut().zip(block).for_each(|(wide, x)| *wide = f64::from(*x));
                true
            }
        }
    };
}
wide_float!(f64, close_f64, each_close);
wide_float!(f32, close_f32, each_close_f32);

/// Most blocks are equal or well within their tolerance, and float32 arithmetic is enough to see it; the margin covers its
/// rounding. Only the others are compared exactly.
fn each_close_f32(e: &[f32], a: &[f32], tolerance: Tolerance, rules: Rules) -> bool {
    const MARGIN: f64 = 1.0 - 1e-4;
    let (rtol, atol) = ((tolerance.rtol * MARGIN) as f32, (tolerance.atol * MARGIN) as f32);
    let is_strict = rules == Rules::Strict;
    let clearly_close = e.iter().zip(a).fold(true, |all, (e, a)| {
        let error = (e - a).abs();
        let close = (error <= atol + rtol * a.abs()) & (error < f32::INFINITY);
        all & (close | (e == a) | (is_strict & e.is_nan() & a.is_nan()))
    });
    clearly_close || each_close(e, a, tolerance, rules)
}

macro_rules! half_float {
    ($type:ty, $infinity:literal) => {
        impl Element for $type {
            fn plainly_equal(self, other: Self) -> bool {
                // On bits, because converting every element to compare it is ten times slower.
                (self.to_bits() == other.to_bits()) & (self.to_bits() & 0x7fff <= $infinity)
            }
            float_equality!($type);
            fn close(self, actual: Self, tolerance: Tolerance, rules: Rules) -> bool {
                match rules {
                    Rules::Strict => close_f64(self.to_f64(), actual.to_f64(), tolerance),
                    Rules::Reference => {
                        let (e, a) = ([self.to_f32()], [actual.to_f32()]);
                        close_when_rounded(&e, &a, tolerance, |x| round_to(x, <$type>::ZERO))
                    }
                }
            }
            fn error(self, actual: Self) -> f64 {
                (self.to_f64() - actual.to_f64()).abs()
            }
            fn magnitude(self) -> f64 {
                self.to_f64().abs()
            }
            fn text(self) -> String {
                self.to_f32().text()
            }
            fn all_close(e: &[Self], a: &[Self], tolerance: Tolerance, rules: Rules) -> bool {
                if e.len() > BLOCK || a.len() != e.len() {
                    return each_close(e, a, tolerance, rules);
                }
                // Converting a block at once uses the machine's own instructions; float32 holds halves exactly.
                let (mut wide_e, mut wide_a) = ([0f32; BLOCK], [0f32; BLOCK]);
                let (wide_e, wide_a) = (&mut wide_e[..e.len()], &mut wide_a[..a.len()]);
                e.convert_to_f32_slice(wide_e);
                a.convert_to_f32_slice(wide_a);
                match rules {
                    Rules::Strict => f32::all_close(wide_e, wide_a, tolerance, rules),
                    Rules::Reference => close_when_rounded(wide_e, wide_a, tolerance, |x| {
                        round_to(x, <$type>::ZERO);
                    }),
                }
            }
            fn widen(block: &[Self], wide: &mut [f64; BLOCK]) -> bool {
                let mut narrow = [0f32; BLOCK];
                block.convert_to_f32_slice(&mut narrow[..block.len()]);
                f32::widen(&narrow, wide)
            }
        }
    };
}

/// Rounds a block to a half type.
fn round_to<T: Copy>(block: &mut [f32], zero: T)
where
    [T]: HalfFloatSliceExt,
{
    let mut rounded = [zero; BLOCK];
    let rounded = &mut rounded[..block.len()];
    rounded.convert_from_f32_slice(block);
    rounded.convert_to_f32_slice(block);
}

/// As torch compares halves: each operation in float32, its result rounded to the tensor's type. Its CPU kernels also round
/// the scalar of a sum, but not that of a product.
fn close_when_rounded(
    e: &[f32],
    a: &[f32],
    tolerance: Tolerance,
    round: impl Fn(&mut [f32]),
) -> bool {
    let mut room = [[0f32; BLOCK]; 2];
    let [errors, allowed] = room.each_mut().map(|block| &mut block[..e.len()]);
    let mut atol = [tolerance.atol as f32];
    round(&mut atol);
    for ((error, allowed), (e, a)) in errors.iter_mut().zip(allowed.iter_mut()).zip(e.iter().zip(a))
    {
        *error = e - a;
        *allowed = tolerance.rtol as f32 * a;
    }
    round(errors);
    round(allowed);
    allowed.iter_mut().for_each(|allowed| *allowed = atol[0] + allowed.abs());
    round(allowed);
    let elements = e.iter().zip(a).zip(errors.iter().zip(allowed.iter()));
    elements.fold(true, |all, ((e, a), (error, allowed))| {
        all & ((e == a) | (error.is_finite() & (error.abs() <= *allowed)))
    })
}
half_float!(f16, 0x7c00);
half_float!(bf16, 0x7f80);

macro_rules! exact {
    ($($type:ty),*) => {$(
        impl Element for $type {
            fn plainly_equal(self, other: Self) -> bool {
                self == other
            }
            fn equal(self, other: Self) -> bool {
                self == other
            }
            fn same(self, other: Self) -> bool {
                self == other
            }
            fn is_nan(self) -> bool {
                false
            }
            fn close(self, actual: Self, tolerance: Tolerance, _: Rules) -> bool {
                close_f32(i128::from(self) as f32, i128::from(actual) as f32, tolerance)
            }
            fn error(self, actual: Self) -> f64 {
                (i128::from(self) - i128::from(actual)).abs() as f64
            }
            fn magnitude(self) -> f64 {
                i128::from(self).abs() as f64
            }
            fn text(self) -> String {
                self.to_string()
            }
        }
    )*};
}
exact!(bool, u8, i8, i16, i32, i64);

macro_rules! complex {
    ($part:ty) => {
        impl Element for [$part; 2] {
            fn plainly_equal(self, other: Self) -> bool {
                self == other
            }
            fn equal(self, other: Self) -> bool {
                self == other
            }
            fn same(self, other: Self) -> bool {
                self[0].same(other[0]) && self[1].same(other[1])
            }
            fn is_nan(self) -> bool {
                self[0].is_nan() || self[1].is_nan()
            }
            fn close(self, actual: Self, tolerance: Tolerance, _: Rules) -> bool {
                let error = self.error(actual);
                error.is_finite() && error <= tolerance.atol + tolerance.rtol * actual.magnitude()
            }
            fn error(self, actual: Self) -> f64 {
                self[0].error(actual[0]).hypot(self[1].error(actual[1]))
            }
            fn magnitude(self) -> f64 {
                f64::from(self[0]).hypot(f64::from(self[1]))
            }
            fn text(self) -> String {
                format!("({}, {})", self[0].text(), self[1].text())
            }
        }
    };
}
complex!(f32);
complex!(f64);
