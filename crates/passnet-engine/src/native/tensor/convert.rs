//! Conversions of whole runs between element types and the types in which kernels compute.
//!
//! Every element type converts to and from each computing type; conversions between two element types go through one of these,
//! so that there are tens of loops and not hundreds.

use super::element::{Compute, Element, Plain, with_element};
use half::{bf16, f16};
use passnet_cpu::halves::{narrow_bf16, narrow_f16, widen_bf16, widen_f16};
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
