//! Elements as they lie in memory, from numbers and to numbers.

use super::simd::load_row;
use crate::consts::Const;
use crate::types::Elem;
use passnet_cpu::Isa;
use passnet_cpu::halves::{f32_to_bf16, f32_to_f16};
use passnet_graph::DType;

/// A constant as it lies in memory.
pub fn element_bytes(value: &Const, dtype: DType) -> Vec<u8> {
    match Elem::from_dtype(dtype) {
        Some(elem) => element_of(value, elem),
        None => vec![0; dtype.size()],
    }
}

pub(super) fn element_of(value: &Const, elem: Elem) -> Vec<u8> {
    let float = value.as_float().unwrap_or(0.0);
    let int = value.as_int().unwrap_or(float as i64);
    match elem {
        Elem::F64 => float.to_le_bytes().to_vec(),
        Elem::F32 => (float as f32).to_le_bytes().to_vec(),
        Elem::F16 => f32_to_f16(float as f32).to_le_bytes().to_vec(),
        Elem::BF16 => f32_to_bf16(float as f32).to_le_bytes().to_vec(),
        Elem::I1 => vec![u8::from(float != 0.0 || int != 0)],
        _ => int.to_le_bytes()[..elem.size()].to_vec(),
    }
}

/// Packed floats as numbers; `None` for other types.
pub(crate) fn lanes_as_f64(bytes: &[u8], dtype: DType) -> Option<Vec<f64>> {
    let elem = Elem::from_dtype(dtype).filter(|e| e.is_float())?;
    let load = load_row(Isa::Base, elem);
    let number = |element: &[u8]| {
        let mut word = [0u64; 1];
        // SAFETY: one element of this type is read, and a word holds any lane.
        unsafe { load(word.as_mut_ptr().cast(), element.as_ptr(), 0, 1) };
        match elem {
            Elem::F64 => f64::from_bits(word[0]),
            _ => f64::from(f32::from_bits(word[0] as u32)),
        }
    };
    Some(bytes.chunks_exact(elem.size()).map(number).collect())
}
