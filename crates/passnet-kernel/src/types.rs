//! Triton's types: element types, pointers to them, and blocks of either.

use passnet_graph::DType;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;

/// An element type. Pointers to `I1` address one byte per element, as torch's `bool` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[expect(missing_docs, reason = "Triton's letters and bits: `I1` is a truth, `BF16` is bfloat16")]
pub enum Elem {
    I1,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
    /// Two bits of mantissa, as IEEE would have it. Eight bits exist in the front end only: the tile IR has bytes.
    F8E5,
    /// Three bits of mantissa, no infinities.
    F8E4NV,
}

impl Elem {
    /// The types that the tile IR has.
    pub const ALL: [Elem; 13] = [
        Elem::I1,
        Elem::I8,
        Elem::I16,
        Elem::I32,
        Elem::I64,
        Elem::U8,
        Elem::U16,
        Elem::U32,
        Elem::U64,
        Elem::F16,
        Elem::BF16,
        Elem::F32,
        Elem::F64,
    ];

    /// The short name used in the tile IR and in Triton's own messages.
    pub const fn name(self) -> &'static str {
        match self {
            Elem::I1 => "i1",
            Elem::I8 => "i8",
            Elem::I16 => "i16",
            Elem::I32 => "i32",
            Elem::I64 => "i64",
            Elem::U8 => "u8",
            Elem::U16 => "u16",
            Elem::U32 => "u32",
            Elem::U64 => "u64",
            Elem::F16 => "fp16",
            Elem::BF16 => "bf16",
            Elem::F32 => "fp32",
            Elem::F64 => "fp64",
            Elem::F8E5 => "fp8e5",
            Elem::F8E4NV => "fp8e4nv",
        }
    }

    /// By the name that the tile IR prints.
    pub fn from_name(name: &str) -> Option<Elem> {
        Self::ALL.into_iter().find(|e| e.name() == name)
    }

    /// The name after `tl.`.
    pub const fn language_name(self) -> &'static str {
        match self {
            Elem::I1 => "int1",
            Elem::I8 => "int8",
            Elem::I16 => "int16",
            Elem::I32 => "int32",
            Elem::I64 => "int64",
            Elem::U8 => "uint8",
            Elem::U16 => "uint16",
            Elem::U32 => "uint32",
            Elem::U64 => "uint64",
            Elem::F16 => "float16",
            Elem::BF16 => "bfloat16",
            Elem::F32 => "float32",
            Elem::F64 => "float64",
            Elem::F8E5 => "float8e5",
            Elem::F8E4NV => "float8e4nv",
        }
    }

    pub(crate) fn from_language_name(name: &str) -> Option<Elem> {
        let narrow = [Elem::F8E5, Elem::F8E4NV];
        Self::ALL.into_iter().chain(narrow).find(|e| e.language_name() == name)
    }

    /// `None` for types that no kernel computes with.
    pub const fn from_dtype(dtype: DType) -> Option<Elem> {
        Some(match dtype {
            DType::Bool => Elem::I1,
            DType::UInt8 => Elem::U8,
            DType::Int8 => Elem::I8,
            DType::Int16 => Elem::I16,
            DType::Int32 => Elem::I32,
            DType::Int64 => Elem::I64,
            DType::Float16 => Elem::F16,
            DType::BFloat16 => Elem::BF16,
            DType::Float32 => Elem::F32,
            DType::Float64 => Elem::F64,
            DType::Complex64 | DType::Complex128 => return None,
        })
    }

    /// Width of the value in bits; `i1` is one.
    pub const fn bits(self) -> u32 {
        match self {
            Elem::I1 => 1,
            Elem::I8 | Elem::U8 | Elem::F8E5 | Elem::F8E4NV => 8,
            Elem::I16 | Elem::U16 | Elem::F16 | Elem::BF16 => 16,
            Elem::I32 | Elem::U32 | Elem::F32 => 32,
            Elem::I64 | Elem::U64 | Elem::F64 => 64,
        }
    }

    /// Bytes per element in memory.
    pub const fn size(self) -> usize {
        match self {
            Elem::I1 => 1,
            other => other.bits() as usize / 8,
        }
    }

    /// Those of eight bits included.
    pub const fn is_float(self) -> bool {
        matches!(self, Elem::F16 | Elem::BF16 | Elem::F32 | Elem::F64) || self.is_float8()
    }

    pub(crate) const fn is_float8(self) -> bool {
        matches!(self, Elem::F8E5 | Elem::F8E4NV)
    }

    /// Whether it has 16 bits, of either kind.
    pub const fn is_half(self) -> bool {
        matches!(self, Elem::F16 | Elem::BF16)
    }

    /// Integers, `i1` included.
    pub const fn is_int(self) -> bool {
        !self.is_float()
    }

    /// Triton counts `i1` as unsigned.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Elem::I1 | Elem::U8 | Elem::U16 | Elem::U32 | Elem::U64)
    }

    /// Smallest and largest value of an integer type.
    pub const fn int_range(self) -> (i128, i128) {
        let bits = self.bits();
        if self.is_unsigned() {
            (0, (1 << bits) - 1)
        } else {
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
        }
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Block dimensions; empty for a scalar.
pub type Shape = SmallVec<[u32; 4]>;

/// What one lane holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// A number.
    Num(Elem),
    /// A pointer to such elements.
    Ptr(Elem),
}

/// The type of a value: a scalar or a block of lanes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Type {
    /// What each lane holds.
    pub lane: Lane,
    /// Sizes of the block; empty for a scalar.
    pub shape: Shape,
}

impl Type {
    /// One number.
    pub fn scalar(elem: Elem) -> Type {
        Type { lane: Lane::Num(elem), shape: Shape::new() }
    }

    /// A block of numbers.
    pub fn block(elem: Elem, shape: &[u32]) -> Type {
        Type { lane: Lane::Num(elem), shape: shape.into() }
    }

    /// One pointer.
    pub fn pointer(elem: Elem) -> Type {
        Type { lane: Lane::Ptr(elem), shape: Shape::new() }
    }

    /// Whether its lanes are pointers.
    pub fn is_ptr(&self) -> bool {
        matches!(self.lane, Lane::Ptr(_))
    }

    pub(crate) fn is_scalar(&self) -> bool {
        self.shape.is_empty()
    }

    /// The element type, or the type pointed at.
    pub fn elem(&self) -> Elem {
        match self.lane {
            Lane::Num(e) | Lane::Ptr(e) => e,
        }
    }

    /// The element type of a number; `None` for pointers.
    pub fn num(&self) -> Option<Elem> {
        match self.lane {
            Lane::Num(e) => Some(e),
            Lane::Ptr(_) => None,
        }
    }

    #[must_use]
    pub(crate) fn with_elem(&self, elem: Elem) -> Type {
        Type { lane: Lane::Num(elem), shape: self.shape.clone() }
    }

    #[must_use]
    pub(crate) fn with_shape(&self, shape: &[u32]) -> Type {
        Type { lane: self.lane, shape: shape.into() }
    }

    /// Number of lanes; a scalar has one.
    pub fn numel(&self) -> usize {
        self.shape.iter().map(|&d| d as usize).product()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_ptr() {
            f.write_str("*")?;
        }
        f.write_str(self.elem().name())?;
        if !self.shape.is_empty() {
            let dims: Vec<String> = self.shape.iter().map(u32::to_string).collect();
            write!(f, "<{}>", dims.join("x"))?;
        }
        Ok(())
    }
}
