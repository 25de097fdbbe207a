//! Elements moved between views and packed bytes.

use super::elements::{element_bytes, element_of};
use super::memory::Memory;
use super::views::{collapse, for_rows};
use crate::consts::Const;
use crate::plan::View;
use crate::types::Elem;
use passnet_cpu::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use passnet_graph::DType;

/// Elements of a view that lie at even distances.
pub(super) struct Run {
    /// Byte address of the first, inside the view's buffer.
    pub(super) start: i64,
    pub(super) elements: usize,
    /// Bytes from one to the next.
    pub(super) step: i64,
    /// Bytes of one.
    pub(super) size: usize,
}

impl Run {
    pub(super) fn is_packed(&self) -> bool {
        self.step == self.size as i64 || self.elements <= 1
    }

    /// Bytes from the beginning of the first to the end of the last.
    pub(super) fn reach(&self) -> i64 {
        (self.elements as i64 - 1) * self.step + self.size as i64
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = i64> {
        let (start, step) = (self.start, self.step);
        (0..self.elements as i64).map(move |element| start + element * step)
    }
}

/// The elements of a view, in row-major order.
pub(super) fn for_runs(view: &View, mut visit: impl FnMut(&Run)) {
    let elements = usize::try_from(view.numel()).unwrap_or(0);
    let size = view.dtype.size();
    let shape: Vec<u32> =
        view.shape.iter().map(|&d| u32::try_from(d).unwrap_or(u32::MAX)).collect();
    for_rows(&collapse(&shape, &view.stride), 0, elements, |_, elements, offset, stride| {
        let start = (view.offset + offset) * size as i64;
        visit(&Run { start, elements, step: stride * size as i64, size });
    });
}

/// The elements of a view, packed. Those outside the bytes are left out.
pub fn gather(view: &View, bytes: &[u8]) -> Vec<u8> {
    let sizes = view.shape.iter().map(|size| usize::try_from(*size).unwrap_or(0));
    let whole = sizes.fold(view.dtype.size(), usize::saturating_mul);
    let mut packed = Vec::with_capacity(whole.min(bytes.len()));
    let mut take = |start: i64, length: usize| {
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        if let Some(part) = start.checked_add(length).and_then(|end| bytes.get(start..end)) {
            packed.extend_from_slice(part);
        }
    };
    for_runs(view, |run| match run.is_packed() {
        true => take(run.start, run.elements * run.size),
        false => run.addresses().for_each(|address| take(address, run.size)),
    });
    packed
}

/// Puts packed elements where a view says.
fn scatter(memory: &Memory<'_>, view: &View, packed: &[u8]) {
    let mut rest = packed;
    for_runs(view, |run| {
        let Some((part, after)) = rest.split_at_checked(run.elements * run.size) else { return };
        rest = after;
        let resolved = memory.resolve(Memory::address(view.buffer, run.start), 0, run.reach());
        let Some((_, start)) = resolved else { return };
        if run.is_packed() {
            // SAFETY: the whole run was resolved inside its buffer.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), start, part.len()) };
            return;
        }
        for (number, element) in part.chunks_exact(run.size).enumerate() {
            // SAFETY: as above.
            unsafe {
                let to = start.offset(number as isize * run.step as isize);
                std::ptr::copy_nonoverlapping(element.as_ptr(), to, run.size);
            }
        }
    });
}

pub(super) fn copy(memory: &Memory<'_>, from: &View, to: &View) {
    let bytes = memory.len(from.buffer);
    let Some((_, start)) = memory.resolve(Memory::address(from.buffer, 0), 0, bytes as i64) else {
        return;
    };
    // SAFETY: these are the bytes of the buffer; nothing writes them until they are gathered.
    let packed = gather(from, unsafe { std::slice::from_raw_parts(start, bytes) });
    match from.dtype == to.dtype {
        true => scatter(memory, to, &packed),
        false => scatter(memory, to, &converted(&packed, from.dtype, to.dtype)),
    }
}

/// Packed elements as another type, rounded as PyTorch rounds them.
fn converted(packed: &[u8], from: DType, to: DType) -> Vec<u8> {
    let (Some(from), Some(to)) = (Elem::from_dtype(from), Elem::from_dtype(to)) else {
        return Vec::new();
    };
    let float = |b: [u8; 4]| f32::from_le_bytes(b);
    let half = |b: [u8; 2]| f16_to_f32(u16::from_le_bytes(b));
    let brain = |b: [u8; 2]| bf16_to_f32(u16::from_le_bytes(b));
    match (from, to) {
        (Elem::F32, Elem::F16) => each(packed, |b| f32_to_f16(float(b)).to_le_bytes()),
        (Elem::F32, Elem::BF16) => each(packed, |b| f32_to_bf16(float(b)).to_le_bytes()),
        (Elem::F16, Elem::F32) => each(packed, |b| half(b).to_le_bytes()),
        (Elem::BF16, Elem::F32) => each(packed, |b| brain(b).to_le_bytes()),
        (Elem::F32, Elem::F64) => each(packed, |b| f64::from(float(b)).to_le_bytes()),
        (Elem::F64, Elem::F32) => each(packed, |b| (f64::from_le_bytes(b) as f32).to_le_bytes()),
        (Elem::I64, Elem::I32) => each(packed, |b| (i64::from_le_bytes(b) as i32).to_le_bytes()),
        (Elem::I32, Elem::I64) => each(packed, |b| i64::from(i32::from_le_bytes(b)).to_le_bytes()),
        _ => {
            let elements = packed.chunks_exact(from.size());
            elements.flat_map(|element| element_of(&number(element, from), to)).collect()
        }
    }
}

fn each<const N: usize, const M: usize>(
    packed: &[u8],
    convert: impl Fn([u8; N]) -> [u8; M],
) -> Vec<u8> {
    let (elements, _) = packed.as_chunks::<N>();
    elements.iter().flat_map(|element| convert(*element)).collect()
}

fn number(bytes: &[u8], elem: Elem) -> Const {
    let mut word = [0u8; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    match elem {
        Elem::F64 => Const::Float(f64::from_bits(bits)),
        Elem::F32 => Const::Float(f64::from(f32::from_bits(bits as u32))),
        Elem::F16 => Const::Float(f64::from(f16_to_f32(bits as u16))),
        Elem::BF16 => Const::Float(f64::from(bf16_to_f32(bits as u16))),
        Elem::I8 => Const::Int(i64::from(bits as i8)),
        Elem::I16 => Const::Int(i64::from(bits as i16)),
        Elem::I32 => Const::Int(i64::from(bits as i32)),
        _ => Const::Int(bits as i64),
    }
}

pub(super) fn fill_view(memory: &Memory<'_>, view: &View, value: &Const) {
    let element = element_bytes(value, view.dtype);
    for_runs(view, |run| {
        let resolved = memory.resolve(Memory::address(view.buffer, run.start), 0, run.reach());
        let Some((_, start)) = resolved else { return };
        for number in 0..run.elements {
            // SAFETY: the whole run was resolved inside its buffer.
            unsafe {
                let to = start.offset(number as isize * run.step as isize);
                std::ptr::copy_nonoverlapping(element.as_ptr(), to, run.size);
            }
        }
    });
}
