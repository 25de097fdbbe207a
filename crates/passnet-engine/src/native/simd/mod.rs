//! Vector kernels: the widest instruction set the machine has is chosen at run time, results are the same on all.
//!
//! Kernels are plain loops over slices that the compiler vectorises; `multiversion!` compiles each for AVX-512, for AVX2 and
//! for the baseline. Nothing here depends on the vector width: sums use a fixed number of lanes, and fused multiply-adds are
//! written out, so every machine gives the same bits.

pub(crate) mod convert;
mod double;
pub(crate) mod math;
pub(crate) mod parallel;
pub(crate) mod vector;

use std::sync::LazyLock;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

pub(crate) static LEVEL: LazyLock<Level> = LazyLock::new(|| {
    #[cfg(target_arch = "x86_64")]
    {
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("bmi2");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if avx2 && avx512 {
            return Level::Avx512;
        }
        if avx2 {
            return Level::Avx2;
        }
    }
    Level::Baseline
});

/// Defines a function compiled once per instruction set and chosen at run time.
///
/// `multiversion! { pub(crate) fn name[T: Bound](arg: Type, ...) -> Ret { body } }`
macro_rules! multiversion {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $([$($g:ident : $bound:path),*])? ($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[inline]
        $vis fn $name $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi2")]
                fn avx512 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                #[target_feature(enable = "avx2,fma,f16c,bmi2")]
                fn avx2 $(<$($g: $bound),*>)? ($($arg: $ty),*) $(-> $ret)? { body($($arg),*) }
                match *$crate::native::simd::LEVEL {
                    // SAFETY: the level was detected on this machine.
                    $crate::native::simd::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::native::simd::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::native::simd::Level::Baseline => {}
                }
            }
            body($($arg),*)
        }
    };
}
pub(crate) use multiversion;
