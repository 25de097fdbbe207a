//! Conversions of whole runs between element types.

use super::multiversion;
use crate::native::tensor::element::Element;
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use passnet_graph::DType;

/// The same slice at its known type, where the types agree.
fn same<A: 'static, B: 'static>(slice: &[A]) -> Option<&[B]> {
    // SAFETY: the cast happens only when the two types are one and the same.
    (std::any::TypeId::of::<A>() == std::any::TypeId::of::<B>())
        .then(|| unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), slice.len()) })
}

pub(crate) fn same_mut<A: 'static, B: 'static>(slice: &mut [A]) -> Option<&mut [B]> {
    // SAFETY: as in `same`.
    (std::any::TypeId::of::<A>() == std::any::TypeId::of::<B>())
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

fn through_parts<S: Element, C: Element>(source: &[S], out: &mut [C]) {
    for (o, v) in out.iter_mut().zip(source) {
        *o = C::from_parts(v.to_f64(), v.imaginary());
    }
}

multiversion! {
    fn through_i64[S: Element, C: Element](source: &[S], out: &mut [C]) {
        for (o, v) in out.iter_mut().zip(source) {
            *o = C::from_i64(v.to_i64());
        }
    }
}

multiversion! {
    fn through_f32[S: Element, C: Element](source: &[S], out: &mut [C]) {
        for (o, v) in out.iter_mut().zip(source) {
            *o = C::from_f32(v.to_f32());
        }
    }
}

multiversion! {
    fn through_f64[S: Element, C: Element](source: &[S], out: &mut [C]) {
        for (o, v) in out.iter_mut().zip(source) {
            *o = C::from_f64(v.to_f64());
        }
    }
}

/// Converts a run; both slices have the same length.
pub(crate) fn convert_run<S: Element, C: Element>(source: &[S], out: &mut [C]) {
    if let Some(source) = same::<S, C>(source) {
        out.copy_from_slice(source);
    } else if let (Some(source), Some(out)) = (same::<S, bf16>(source), same_mut::<C, f32>(out)) {
        widen_bf16(source, out);
    } else if let (Some(source), Some(out)) = (same::<S, f32>(source), same_mut::<C, bf16>(out)) {
        narrow_bf16(source, out);
    } else if let (Some(source), Some(out)) = (same::<S, f16>(source), same_mut::<C, f32>(out)) {
        source.convert_to_f32_slice(out);
    } else if let (Some(source), Some(out)) = (same::<S, f32>(source), same_mut::<C, f16>(out)) {
        out.convert_from_f32_slice(source);
    } else if S::DTYPE.is_complex() && C::DTYPE.is_complex() {
        through_parts(source, out);
    } else if !S::DTYPE.is_float() && !S::DTYPE.is_complex() {
        through_i64(source, out);
    } else if matches!(S::DTYPE, DType::Float64 | DType::Complex64 | DType::Complex128)
        || C::DTYPE == DType::Float64
    {
        through_f64(source, out);
    } else {
        through_f32(source, out);
    }
}
