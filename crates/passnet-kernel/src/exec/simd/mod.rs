//! Chunk kernels: one operation over up to a few thousand lanes, compiled for several instruction sets.
//!
//! Every kernel exists for plain code, AVX2 and AVX-512; [`Isa::detect`] picks once per process. All variants
//! give the same bits, because the same fused operations are used everywhere.

mod access;
mod arith;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod half;
mod map;
mod math;
mod reduce;
mod select;
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
mod transpose;

pub(crate) use access::{LoadRow, StoreRow, load_row, store_row};
pub(crate) use half::{
    bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, round_to_bf16, round_to_f16,
};
pub(crate) use map::Kernel;
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
pub(crate) use math::{EXP_VANISHES, EXP2_VANISHES, ROUNDER};
pub(crate) use reduce::{DotKernel, ReduceKernel, ScanKernel, dot, partials, reduce, scan};
pub(crate) use select::{
    Mode, binary, bitcast, cast, compare, fma, narrow, select, sigmoid, unary,
};
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
pub(crate) use transpose::{Columns, load_columns, store_columns};

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    Base,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Isa {
    /// The best instruction set of this machine.
    pub(crate) fn detect() -> Isa {
        static FOUND: OnceLock<Isa> = OnceLock::new();
        *FOUND.get_or_init(|| {
            #[cfg(target_arch = "x86_64")]
            {
                let avx2 = std::is_x86_feature_detected!("avx2")
                    && std::is_x86_feature_detected!("fma")
                    && std::is_x86_feature_detected!("f16c");
                let avx512 = avx2
                    && std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vl")
                    && std::is_x86_feature_detected!("avx512dq");
                if avx512 {
                    return Isa::Avx512;
                }
                if avx2 {
                    return Isa::Avx2;
                }
            }
            Isa::Base
        })
    }
}

/// Declares a function in three variants and a chooser that returns a pointer to one of them.
macro_rules! multiversion {
    (
        $(#[$doc:meta])*
        $vis:vis fn $chooser:ident [$($gen:tt)*] [$($use:tt)*] ($($arg:ident : $ty:ty),*) = $body:ident
    ) => {
        $(#[$doc])*
        $vis fn $chooser<$($gen)*>(isa: $crate::exec::simd::Isa) -> unsafe fn($($ty),*) {
            /// # Safety
            /// As for the body.
            unsafe fn base<$($gen)*>($($arg: $ty),*) {
                // SAFETY: the caller upholds the contract of the body.
                unsafe { $body::<$($use)*>($($arg),*) }
            }
            /// # Safety
            /// As for the body, on a processor with these features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            unsafe fn avx2<$($gen)*>($($arg: $ty),*) {
                // SAFETY: as above; the chooser returns this only where the features exist.
                unsafe { $body::<$($use)*>($($arg),*) }
            }
            /// # Safety
            /// As for the body, on a processor with these features.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c,avx512f,avx512bw,avx512vl,avx512dq")]
            unsafe fn avx512<$($gen)*>($($arg: $ty),*) {
                // SAFETY: as above.
                unsafe { $body::<$($use)*>($($arg),*) }
            }
            match isa {
                $crate::exec::simd::Isa::Base => base::<$($use)*>,
                #[cfg(target_arch = "x86_64")]
                $crate::exec::simd::Isa::Avx2 => avx2::<$($use)*>,
                #[cfg(target_arch = "x86_64")]
                $crate::exec::simd::Isa::Avx512 => avx512::<$($use)*>,
            }
        }
    };
}
pub(crate) use multiversion;
