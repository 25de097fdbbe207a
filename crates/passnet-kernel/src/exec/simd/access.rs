//! Rows of memory to lanes and back, with conversion between the stored type and the lane type.

use crate::types::Elem;
use passnet_cpu::halves::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use passnet_cpu::{Isa, variants};

/// Reads `n` elements that lie `stride` bytes apart.
///
/// # Safety
/// Every element read lies inside one live buffer; the destination holds `n` lanes.
pub(crate) type LoadRow = unsafe fn(*mut u8, *const u8, isize, usize);

/// Writes `n` lanes to elements that lie `stride` bytes apart.
///
/// # Safety
/// As for [`LoadRow`], the other way round.
pub(crate) type StoreRow = unsafe fn(*mut u8, *const u8, isize, usize);

trait Stored {
    type M: Copy;
    type L: Copy;
    fn get(m: Self::M) -> Self::L;
    fn put(l: Self::L) -> Self::M;
}

macro_rules! stored {
    ($($name:ident: $m:ty, $l:ty = |$x:ident| $get:expr, |$y:ident| $put:expr;)+) => {$(
        struct $name;
        impl Stored for $name {
            type M = $m;
            type L = $l;
            #[inline(always)]
            fn get($x: $m) -> $l { $get }
            #[inline(always)]
            fn put($y: $l) -> $m { $put }
        }
    )+};
}
stored! {
    // Any non-zero byte is true.
    MemI1: u8, u8 = |x| u8::from(x != 0), |y| y;
    MemI8: i8, i32 = |x| i32::from(x), |y| y as i8;
    MemI16: i16, i32 = |x| i32::from(x), |y| y as i16;
    MemI32: i32, i32 = |x| x, |y| y;
    MemU8: u8, i32 = |x| i32::from(x), |y| y as u8;
    MemU16: u16, i32 = |x| i32::from(x), |y| y as u16;
    MemU32: u32, i64 = |x| i64::from(x), |y| y as u32;
    MemI64: i64, i64 = |x| x, |y| y;
    MemF16: u16, f32 = |x| f16_to_f32(x), |y| f32_to_f16(y);
    MemBF16: u16, f32 = |x| bf16_to_f32(x), |y| f32_to_bf16(y);
    MemF32: f32, f32 = |x| x, |y| y;
    MemF64: f64, f64 = |x| x, |y| y;
}

/// # Safety
/// As for [`LoadRow`].
#[inline(always)]
unsafe fn load_body<S: Stored>(d: *mut u8, s: *const u8, stride: isize, n: usize) {
    // SAFETY: see `LoadRow`; memory may be unaligned for its type, lanes are not.
    unsafe {
        let d = std::slice::from_raw_parts_mut(d.cast::<S::L>(), n);
        if stride == size_of::<S::M>() as isize {
            let s = s.cast::<S::M>();
            for (i, slot) in d.iter_mut().enumerate() {
                *slot = S::get(s.add(i).read_unaligned());
            }
        } else if stride == 0 {
            d.fill(S::get(s.cast::<S::M>().read_unaligned()));
        } else {
            for (i, slot) in d.iter_mut().enumerate() {
                *slot = S::get(s.offset(i as isize * stride).cast::<S::M>().read_unaligned());
            }
        }
    }
}

/// # Safety
/// As for [`StoreRow`].
#[inline(always)]
unsafe fn store_body<S: Stored>(d: *mut u8, s: *const u8, stride: isize, n: usize) {
    // SAFETY: see `StoreRow`.
    unsafe {
        let s = std::slice::from_raw_parts(s.cast::<S::L>(), n);
        if stride == size_of::<S::M>() as isize {
            let d = d.cast::<S::M>();
            for (i, &lane) in s.iter().enumerate() {
                d.add(i).write_unaligned(S::put(lane));
            }
        } else {
            for (i, &lane) in s.iter().enumerate() {
                d.offset(i as isize * stride).cast::<S::M>().write_unaligned(S::put(lane));
            }
        }
    }
}

variants! {
    fn load [S: Stored] [S] (d: *mut u8, s: *const u8, stride: isize, n: usize) = load_body
}
variants! {
    fn store [S: Stored] [S] (d: *mut u8, s: *const u8, stride: isize, n: usize) = store_body
}

macro_rules! by_elem {
    ($elem:expr, $f:ident, $isa:expr) => {
        match $elem {
            Elem::I1 => $f::<MemI1>($isa),
            Elem::I8 => $f::<MemI8>($isa),
            Elem::I16 => $f::<MemI16>($isa),
            Elem::I32 => $f::<MemI32>($isa),
            Elem::U8 | Elem::F8E5 | Elem::F8E4NV => $f::<MemU8>($isa),
            Elem::U16 => $f::<MemU16>($isa),
            Elem::U32 => $f::<MemU32>($isa),
            Elem::I64 | Elem::U64 => $f::<MemI64>($isa),
            Elem::F16 => $f::<MemF16>($isa),
            Elem::BF16 => $f::<MemBF16>($isa),
            Elem::F32 => $f::<MemF32>($isa),
            Elem::F64 => $f::<MemF64>($isa),
        }
    };
}

pub(crate) fn load_row(isa: Isa, elem: Elem) -> LoadRow {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 && elem == Elem::F16 {
        return super::avx512::load_f16();
    }
    by_elem!(elem, load, isa)
}

pub(crate) fn store_row(isa: Isa, elem: Elem) -> StoreRow {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Avx512 && elem == Elem::F16 {
        return super::avx512::store_f16();
    }
    by_elem!(elem, store, isa)
}
