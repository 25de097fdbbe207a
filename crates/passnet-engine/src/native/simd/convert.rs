//! Conversions of whole runs between element types and the types in which kernels compute.
//!
//! Every element type converts to and from each computing type; conversions between two element types go through one of these,
//! so that there are tens of loops and not hundreds.

use super::{LEVEL, Level, multiversion};
use crate::native::tensor::element::{Compute, Element, Plain, with_element};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use passnet_graph::DType;
use std::any::TypeId;

/// Bytes as elements; they must start where such an element may start.
pub(crate) fn cast<T: Plain>(bytes: &[u8]) -> &[T] {
    // SAFETY: any bytes are a valid `Plain` value.
    let (before, elements, _) = unsafe { bytes.align_to::<T>() };
    assert!(before.is_empty(), "bytes are not aligned");
    elements
}

/// As `cast`, for writing.
pub(crate) fn cast_mut<T: Plain>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: as in `cast`, and any `Plain` value is valid bytes.
    let (before, elements, _) = unsafe { bytes.align_to_mut::<T>() };
    assert!(before.is_empty(), "bytes are not aligned");
    elements
}

/// The same slice at its known type, where the types agree.
pub(crate) fn same<A: 'static, B: 'static>(slice: &[A]) -> Option<&[B]> {
    // SAFETY: the cast happens only when the two types are one and the same.
    (TypeId::of::<A>() == TypeId::of::<B>())
        .then(|| unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), slice.len()) })
}

pub(crate) fn same_mut<A: 'static, B: 'static>(slice: &mut [A]) -> Option<&mut [B]> {
    // SAFETY: as in `same`.
    (TypeId::of::<A>() == TypeId::of::<B>())
        .then(|| unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), slice.len()) })
}

multiversion! {
    fn widen_bf16(source: &[bf16], out: &mut [f32]) {
        for (o, v) in out.iter_mut().zip(source) {
            *o = f32::from_bits(u32::from(v.to_bits()) << 16);
        }
    }
}

multiversion! {
    fn narrow_bf16(source: &[f32], out: &mut [bf16]) {
        for (o, v) in out.iter_mut().zip(source) {
            let bits = v.to_bits();
            let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
            let nan = (bits >> 16) | 0x40;
            let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
            *o = bf16::from_bits((if is_nan { nan } else { rounded }) as u16);
        }
    }
}

/// Eight elements at a time, inline: rows are often short, and a call for every eight costs more than they do.
#[cfg(target_arch = "x86_64")]
mod registers {
    use half::f16;
    use std::arch::x86_64::{
        _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_cvtph_ps,
        _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_storeu_ps,
    };

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen_f16(source: &[f16], out: &mut [f32]) {
        let (sources, rest) = source.as_chunks::<8>();
        let (outs, rest_out) = out.as_chunks_mut::<8>();
        for (source, out) in sources.iter().zip(outs) {
            // SAFETY: both hold eight elements.
            unsafe {
                _mm256_storeu_ps(
                    out.as_mut_ptr(),
                    _mm256_cvtph_ps(_mm_loadu_si128(source.as_ptr().cast())),
                );
            }
        }
        for (o, v) in rest_out.iter_mut().zip(rest) {
            *o = v.to_f32();
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow_f16(source: &[f32], out: &mut [f16]) {
        let (sources, rest) = source.as_chunks::<8>();
        let (outs, rest_out) = out.as_chunks_mut::<8>();
        for (source, out) in sources.iter().zip(outs) {
            // SAFETY: both hold eight elements.
            unsafe {
                let halves =
                    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(source.as_ptr()));
                _mm_storeu_si128(out.as_mut_ptr().cast(), halves);
            }
        }
        for (o, v) in rest_out.iter_mut().zip(rest) {
            *o = f16::from_f32(*v);
        }
    }
}

fn widen_f16(source: &[f16], out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if *LEVEL != Level::Baseline {
        // SAFETY: every level but the baseline was detected to have these instructions.
        return unsafe { registers::widen_f16(source, out) };
    }
    source.convert_to_f32_slice(out);
}

fn narrow_f16(source: &[f32], out: &mut [f16]) {
    #[cfg(target_arch = "x86_64")]
    if *LEVEL != Level::Baseline {
        // SAFETY: as in `widen_f16`.
        return unsafe { registers::narrow_f16(source, out) };
    }
    out.convert_from_f32_slice(source);
}

/// Brings a run of elements into a computing type; both slices have the same length.
pub(crate) fn widen<S: Element, C: Compute>(source: &[S], out: &mut [C]) {
    if let Some(source) = same::<S, C>(source) {
        out.copy_from_slice(source);
    } else if let (Some(source), Some(out)) = (same::<S, bf16>(source), same_mut::<C, f32>(out)) {
        widen_bf16(source, out);
    } else if let (Some(source), Some(out)) = (same::<S, f16>(source), same_mut::<C, f32>(out)) {
        widen_f16(source, out);
    } else {
        for (o, v) in out.iter_mut().zip(source) {
            *o = C::load(*v);
        }
    }
}

/// Rounds a run of results to an element type; both slices have the same length.
pub(crate) fn narrow<C: Compute, O: Element>(source: &[C], out: &mut [O]) {
    if let Some(source) = same::<C, O>(source) {
        out.copy_from_slice(source);
    } else if let (Some(source), Some(out)) = (same::<C, f32>(source), same_mut::<O, bf16>(out)) {
        narrow_bf16(source, out);
    } else if let (Some(source), Some(out)) = (same::<C, f32>(source), same_mut::<O, f16>(out)) {
        narrow_f16(source, out);
    } else {
        for (o, v) in out.iter_mut().zip(source) {
            *o = v.store();
        }
    }
}

/// Loads `out.len()` elements that start at an element offset of some bytes and lie `stride` apart.
pub(crate) type Load<C> = fn(&[u8], usize, usize, &mut [C]);

/// The loader for elements of a dtype.
pub(crate) fn loader<C: Compute>(dtype: DType) -> Load<C> {
    with_element!(dtype, S => load::<S, C>)
}

fn load<S: Element, C: Compute>(bytes: &[u8], offset: usize, stride: usize, out: &mut [C]) {
    let source = &cast::<S>(bytes)[offset..];
    match stride {
        1 => widen(&source[..out.len()], out),
        0 => {
            let mut one = [C::default()];
            widen(&source[..1], &mut one);
            out.fill(one[0]);
        }
        _ => {
            // Strided elements are packed first: conversions are only fast on runs.
            let mut packed = [S::default(); 64];
            for (i, chunk) in out.chunks_mut(64).enumerate() {
                let run = &source[i * 64 * stride..];
                for (p, v) in packed[..chunk.len()].iter_mut().zip(run.iter().step_by(stride)) {
                    *p = *v;
                }
                widen(&packed[..chunk.len()], chunk);
            }
        }
    }
}

/// Stores results as elements into bytes that hold exactly as many.
pub(crate) type Store<C> = fn(&[C], &mut [u8]);

/// The writer for elements of a dtype.
pub(crate) fn storer<C: Compute>(dtype: DType) -> Store<C> {
    with_element!(dtype, O => store::<C, O>)
}

fn store<C: Compute, O: Element>(values: &[C], bytes: &mut [u8]) {
    narrow(values, cast_mut::<O>(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_runs_convert_as_single_elements_do() {
        let step = if cfg!(miri) { 701 } else { 1 };
        let halves: Vec<f16> = (0..=u16::MAX).step_by(step).map(f16::from_bits).collect();
        let mut wide = vec![0.0f32; halves.len()];
        widen(&halves, &mut wide);
        for (half, wide) in halves.iter().zip(&wide) {
            assert_eq!(wide.to_bits(), half.to_f32().to_bits(), "{half:?}");
        }
        // Between two halves, and beyond the last.
        let between: Vec<f32> = wide.iter().map(|v| v * 1.0003).collect();
        let mut narrowed = vec![f16::ZERO; between.len()];
        narrow(&between, &mut narrowed);
        for (value, narrowed) in between.iter().zip(&narrowed) {
            assert_eq!(narrowed.to_bits(), f16::from_f32(*value).to_bits(), "{value}");
        }
    }
}
