//! Chunk kernels and half-precision rows written for AVX-512; the functions of lanes are those of [`passnet_cpu::math::avx512`].

use super::access::{LoadRow, StoreRow};
use super::map::Kernel;
use passnet_cpu::math::avx512::{erf, exp, exp2, round_f16, sigmoid, tanh, to_f16};
use passnet_cpu::{Isa, avx512};
use std::arch::x86_64::*;

/// A one-operand kernel from a function of sixteen lanes.
macro_rules! kernel {
    ($name:ident, $f:ident) => {
        avx512! {
            unsafe fn $name(d: *mut u8, a: *const u8, _: *const u8, _: *const u8, n: usize) {
                let (d, a) = (d.cast::<f32>(), a.cast::<f32>());
                let mut i = 0;
                // SAFETY: both hold `n` lanes (see `Kernel`); masked lanes are not touched.
                unsafe {
                    while i + 16 <= n {
                        _mm512_storeu_ps(d.add(i), $f(_mm512_loadu_ps(a.add(i))));
                        i += 16;
                    }
                    if i < n {
                        let mask = first_lanes(n - i);
                        let x = _mm512_maskz_loadu_ps(mask, a.add(i));
                        _mm512_mask_storeu_ps(d.add(i), mask, $f(x));
                    }
                }
            }
        }
    };
}
kernel!(exp_kernel, exp);
kernel!(exp2_kernel, exp2);
kernel!(sigmoid_kernel, sigmoid);
kernel!(tanh_kernel, tanh);
kernel!(erf_kernel, erf);
kernel!(round_f16_kernel, round_f16);

avx512! {
    /// # Safety
    /// As for [`LoadRow`](super::LoadRow), on a processor with AVX-512.
    unsafe fn load_f16_row(d: *mut u8, s: *const u8, stride: isize, n: usize) {
        let generic = super::access::load_row(Isa::Avx2, crate::types::Elem::F16);
        if stride != 2 {
            // SAFETY: the caller's promise (see `LoadRow`); AVX-512 implies AVX2.
            unsafe { generic(d, s, stride, n) };
            return;
        }
        let whole = n / 16 * 16;
        // SAFETY: see `LoadRow`; what the mask leaves out is neither read nor written.
        unsafe {
            for i in (0..whole).step_by(16) {
                let half = _mm256_loadu_si256(s.add(2 * i).cast());
                _mm512_storeu_ps(d.cast::<f32>().add(i), _mm512_cvtph_ps(half));
            }
            let rest = first_lanes(n - whole);
            let half = _mm256_maskz_loadu_epi16(rest, s.add(2 * whole).cast());
            _mm512_mask_storeu_ps(d.cast::<f32>().add(whole), rest, _mm512_cvtph_ps(half));
        }
    }

    /// # Safety
    /// As for [`StoreRow`](super::StoreRow), on a processor with AVX-512.
    unsafe fn store_f16_row(d: *mut u8, s: *const u8, stride: isize, n: usize) {
        let generic = super::access::store_row(Isa::Avx2, crate::types::Elem::F16);
        if stride != 2 {
            // SAFETY: the caller's promise (see `StoreRow`); AVX-512 implies AVX2.
            unsafe { generic(d, s, stride, n) };
            return;
        }
        let whole = n / 16 * 16;
        // SAFETY: see `StoreRow`; what the mask leaves out is neither read nor written.
        unsafe {
            for i in (0..whole).step_by(16) {
                let half = to_f16(_mm512_loadu_ps(s.cast::<f32>().add(i)));
                _mm256_storeu_si256(d.add(2 * i).cast(), half);
            }
            let rest = first_lanes(n - whole);
            let half = to_f16(_mm512_maskz_loadu_ps(rest, s.cast::<f32>().add(whole)));
            _mm256_mask_storeu_epi16(d.add(2 * whole).cast(), rest, half);
        }
    }
}

/// The mask of the first few of sixteen lanes.
fn first_lanes(count: usize) -> u16 {
    (1 << count) - 1
}

/// Functions that exist in this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Exp,
    Exp2,
    Sigmoid,
    Tanh,
    Erf,
    RoundF16,
}

/// The kernel of a function; only for machines with AVX-512.
pub(super) fn kernel(function: Function) -> Kernel {
    match function {
        Function::Exp => exp_kernel,
        Function::Exp2 => exp2_kernel,
        Function::Sigmoid => sigmoid_kernel,
        Function::Tanh => tanh_kernel,
        Function::Erf => erf_kernel,
        Function::RoundF16 => round_f16_kernel,
    }
}

pub(super) fn load_f16() -> LoadRow {
    load_f16_row
}

pub(super) fn store_f16() -> StoreRow {
    store_f16_row
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_cpu::halves::{f16_to_f32, f32_to_f16};
    use passnet_cpu::math::fast;

    #[test]
    fn kernels_compute_every_lane_and_no_other() {
        if Isa::detect() != Isa::Avx512 {
            return;
        }
        type Plain = fn(f32) -> f32;
        let plain: [(Function, Plain); 6] = [
            (Function::Exp, fast::exp),
            (Function::Exp2, fast::exp2),
            (Function::Sigmoid, fast::sigmoid),
            (Function::Tanh, fast::tanh),
            (Function::Erf, fast::erf),
            (Function::RoundF16, passnet_cpu::halves::round_to_f16),
        ];
        let x: Vec<f32> = (0..50).map(|i| (i as f32 - 25.0) * 0.53).collect();
        for (function, f) in plain {
            for n in [0, 1, 15, 16, 17, 47] {
                let mut y = vec![7f32; x.len()];
                let at = x.as_ptr().cast();
                // SAFETY: both hold more lanes; the machine has AVX-512.
                unsafe { kernel(function)(y.as_mut_ptr().cast(), at, at, at, n) };
                let want = x.iter().enumerate().map(|(i, x)| if i < n { f(*x) } else { 7.0 });
                assert!(y.iter().copied().eq(want), "{function:?} of {n}");
            }
        }
    }

    #[test]
    fn halves_convert_to_the_bits_of_the_plain_form() {
        if Isa::detect() != Isa::Avx512 {
            return;
        }
        let halves: Vec<u16> = (0..=u16::MAX).collect();
        let mut wide = vec![0f32; halves.len()];
        // SAFETY: as many lanes as elements; the machine has AVX-512.
        unsafe { load_f16()(wide.as_mut_ptr().cast(), halves.as_ptr().cast(), 2, halves.len()) };
        for (&h, &x) in halves.iter().zip(&wide) {
            assert!(x == f16_to_f32(h) || x.is_nan() && f16_to_f32(h).is_nan(), "{h:04x}");
        }
        let mut narrow = vec![0u16; wide.len()];
        // SAFETY: as above.
        unsafe { store_f16()(narrow.as_mut_ptr().cast(), wide.as_ptr().cast(), 2, wide.len()) };
        for (&x, &h) in wide.iter().zip(&narrow) {
            assert_eq!(h, f32_to_f16(x), "{x:e}");
        }
    }
}
