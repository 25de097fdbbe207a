//! Which vector instructions this machine has, and functions compiled once for each set of them.
//!
//! Both macros exist because the crate `multiversion` gives no pointer to the variant of a given set: a prepared plan keeps such
//! pointers, and tests compare one variant with another. What a call through [`multiversion!`](crate::multiversion) costs
//! is one load and one branch: 0.7 ns, as `examples/pool_against_rayon.rs` measured.

use std::sync::OnceLock;

/// A set of vector instructions. Results do not depend on it: code that is compiled for several sets uses the same
/// operations in all of them, fused ones included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    /// What every processor of this architecture has.
    Base,
    /// AVX2 with fused multiply-add, half conversion and BMI2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// [`Isa::Avx2`] and the parts F, BW, DQ and VL of AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

static FOUND: OnceLock<Isa> = OnceLock::new();

impl Isa {
    /// The best set of this machine; it is asked once.
    #[inline]
    pub fn detect() -> Isa {
        *FOUND.get_or_init(Isa::find)
    }

    fn find() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            macro_rules! has {
                ($($feature:tt)*) => { $(std::is_x86_feature_detected!($feature))&&* };
            }
            let is_avx2 = has!("avx2" "fma" "f16c" "bmi2");
            if is_avx2 && has!("avx512f" "avx512bw" "avx512dq" "avx512vl") {
                return Isa::Avx512;
            }
            if is_avx2 {
                return Isa::Avx2;
            }
        }
        Isa::Base
    }
}

/// Compiles functions with the instructions of [`Isa::Avx2`]; they may be called where these were detected.
#[macro_export]
macro_rules! avx2 {
    ($($function:item)+) => {$(
        #[target_feature(enable = "avx2,fma,f16c,bmi2")]
        $function
    )+};
}

/// Compiles functions with the instructions of [`Isa::Avx512`]; they may be called where these were detected.
#[macro_export]
macro_rules! avx512 {
    ($($function:item)+) => {$(
        #[target_feature(enable = "avx2,fma,f16c,bmi2,avx512f,avx512bw,avx512dq,avx512vl")]
        $function
    )+};
}

/// Defines a function that is compiled for every [`Isa`] and runs the variant of this machine.
///
/// ```
/// passnet_cpu::multiversion! {
///     fn scale[T: Into<f32>](factor: T, values: &mut [f32]) {
///         let factor = factor.into();
///         values.iter_mut().for_each(|value| *value *= factor);
///     }
/// }
/// let mut values = [1.0, 2.0, 3.0];
/// scale(2u8, &mut values);
/// assert_eq!(values, [2.0, 4.0, 6.0]);
/// ```
#[macro_export]
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$($g:ident : $bound:path),*])? ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                $crate::avx512! {
                    fn avx512 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                }
                $crate::avx2! {
                    fn avx2 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                }
                match $crate::Isa::detect() {
                    // SAFETY: the set was detected on this machine.
                    $crate::Isa::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::Isa::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::Isa::Base => {}
                }
            }
            body($($arg),*)
        }
    };
}

/// Defines a function that returns a pointer to the variant of another one, `unsafe` and generic, for a given [`Isa`].
///
/// Type parameters are written twice, as they are declared and as they are used.
///
/// ```
/// use passnet_cpu::Isa;
///
/// /// # Safety
/// /// `n` numbers can be read.
/// #[inline(always)]
/// unsafe fn sum_body<const SIGN: bool>(numbers: *const f32, n: usize, out: &mut f32) {
///     // SAFETY: the caller's promise.
///     let sum: f32 = unsafe { std::slice::from_raw_parts(numbers, n) }.iter().sum();
///     *out = if SIGN { -sum } else { sum };
/// }
/// passnet_cpu::variants! {
///     fn sum [const SIGN: bool] [SIGN] (numbers: *const f32, n: usize, out: &mut f32) = sum_body
/// }
/// let (numbers, mut out) = ([1.0, 2.0], 0.0);
/// // SAFETY: there are two numbers.
/// unsafe { sum::<true>(Isa::detect())(numbers.as_ptr(), 2, &mut out) };
/// assert_eq!(out, -3.0);
/// ```
#[macro_export]
macro_rules! variants {
    (
        $(#[$doc:meta])*
        $vis:vis fn $chooser:ident [$($gen:tt)*] [$($use:tt)*] ($($arg:ident : $ty:ty),*) = $body:ident
    ) => {
        $(#[$doc])*
        $vis fn $chooser<$($gen)*>(isa: $crate::Isa) -> unsafe fn($($ty),*) {
            /// # Safety
            /// As for the body.
            unsafe fn base<$($gen)*>($($arg: $ty),*) {
                // SAFETY: the caller upholds the contract of the body.
                unsafe { $body::<$($use)*>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            $crate::avx2! {
                /// # Safety
                /// As for the body, on a processor with these instructions.
                unsafe fn avx2<$($gen)*>($($arg: $ty),*) {
                    // SAFETY: as above; the chooser returns this for no other processor.
                    unsafe { $body::<$($use)*>($($arg),*) }
                }
            }
            #[cfg(target_arch = "x86_64")]
            $crate::avx512! {
                /// # Safety
                /// As for the body, on a processor with these instructions.
                unsafe fn avx512<$($gen)*>($($arg: $ty),*) {
                    // SAFETY: as above.
                    unsafe { $body::<$($use)*>($($arg),*) }
                }
            }
            match isa {
                $crate::Isa::Base => base::<$($use)*>,
                #[cfg(target_arch = "x86_64")]
                $crate::Isa::Avx2 => avx2::<$($use)*>,
                #[cfg(target_arch = "x86_64")]
                $crate::Isa::Avx512 => avx512::<$($use)*>,
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    multiversion! {
        fn fused[T: Into<f64>](values: Vec<T>, factor: f64) -> f64 {
            values.into_iter().fold(0.0, |sum, value| value.into().mul_add(factor, sum))
        }
    }

    /// # Safety
    /// None.
    #[inline(always)]
    unsafe fn fused_body<const ODD: bool>(values: &[f64], factor: f64, out: &mut f64) {
        let start = usize::from(ODD);
        *out = values[start..].iter().step_by(2).fold(0.0, |sum, v| v.mul_add(factor, sum));
    }
    variants! {
        fn every_other [const ODD: bool] [ODD] (values: &[f64], factor: f64, out: &mut f64) = fused_body
    }

    #[test]
    fn every_variant_gives_the_same_bits() {
        let values: Vec<f64> = (0..99).map(|i| (f64::from(i) * 0.7).sin()).collect();
        let one_by_one = values.iter().fold(0.0, |sum, v| v.mul_add(0.3, sum));
        assert_eq!(fused(values.clone(), 0.3), one_by_one);
        let (mut here, mut base) = (0.0, 0.0);
        // SAFETY: the machine has what was detected, and every machine the base.
        unsafe {
            every_other::<true>(Isa::detect())(&values, 0.3, &mut here);
            every_other::<true>(Isa::Base)(&values, 0.3, &mut base);
        }
        assert_eq!(here, base);
        assert_ne!(base, one_by_one);
    }
}
