//! How values are held while a kernel runs.
//!
//! Blocks are stored in a few lane types: halves compute in `f32` and are rounded after each operation, narrow
//! integers in `i32`, wide and unsigned 32-bit ones and pointers in `i64`, booleans in one byte.
//! A scalar lives in one 64-bit register: integers of every type as `i64`, so that its low bytes are also the
//! value in any narrower lane type (all supported machines are little-endian).

use crate::types::{Elem, Type};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    F32,
    F64,
    I32,
    I64,
    B8,
}

impl Lane {
    pub(crate) fn of_elem(elem: Elem) -> Lane {
        match elem {
            Elem::I1 => Lane::B8,
            Elem::I8 | Elem::I16 | Elem::I32 | Elem::U8 | Elem::U16 => Lane::I32,
            // Bytes wherever something runs.
            Elem::F8E5 | Elem::F8E4NV => Lane::I32,
            Elem::U32 | Elem::I64 | Elem::U64 => Lane::I64,
            Elem::F16 | Elem::BF16 | Elem::F32 => Lane::F32,
            Elem::F64 => Lane::F64,
        }
    }

    /// Lane type of a block of this type.
    pub(crate) fn of(ty: &Type) -> Lane {
        match ty.num() {
            Some(elem) => Lane::of_elem(elem),
            None => Lane::I64,
        }
    }

    /// Lane type of a scalar register of this type.
    pub(crate) fn of_scalar(ty: &Type) -> Lane {
        match Lane::of(ty) {
            Lane::I32 | Lane::I64 => Lane::I64,
            other => other,
        }
    }

    pub(crate) const fn size(self) -> usize {
        match self {
            Lane::F32 | Lane::I32 => 4,
            Lane::F64 | Lane::I64 => 8,
            Lane::B8 => 1,
        }
    }
}
