//! Element types and devices, as torch names them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A tensor's element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each is the type of the same name in torch")]
pub enum DType {
    Bool,
    UInt8,
    Int8,
    Int16,
    Int32,
    Int64,
    Float16,
    BFloat16,
    Float32,
    Float64,
    Complex64,
    Complex128,
}

/// Type promotion looks at the kind first and at the width second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "Python's names of kinds of numbers")]
pub enum Kind {
    Bool,
    Integer,
    Float,
    Complex,
}

impl DType {
    /// Narrow ones first within each kind.
    pub const ALL: [DType; 12] = [
        DType::Bool,
        DType::UInt8,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::Float16,
        DType::BFloat16,
        DType::Float32,
        DType::Float64,
        DType::Complex64,
        DType::Complex128,
    ];

    /// The name after `torch.`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::UInt8 => "uint8",
            DType::Int8 => "int8",
            DType::Int16 => "int16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::Float16 => "float16",
            DType::BFloat16 => "bfloat16",
            DType::Float32 => "float32",
            DType::Float64 => "float64",
            DType::Complex64 => "complex64",
            DType::Complex128 => "complex128",
        }
    }

    /// Accepts torch's names and its short aliases (`float`, `half`, `long`, ...), with or without `torch.`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        let dtype = match name {
            "float" => DType::Float32,
            "double" => DType::Float64,
            "half" => DType::Float16,
            "short" => DType::Int16,
            "int" => DType::Int32,
            "long" => DType::Int64,
            "cfloat" => DType::Complex64,
            "cdouble" => DType::Complex128,
            _ => return Self::ALL.into_iter().find(|d| d.name() == name),
        };
        Some(dtype)
    }

    /// What promotion between types looks at first.
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::UInt8 | DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => {
                Kind::Integer
            }
            DType::Float16 | DType::BFloat16 | DType::Float32 | DType::Float64 => Kind::Float,
            DType::Complex64 | DType::Complex128 => Kind::Complex,
        }
    }

    /// Bytes per element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::UInt8 | DType::Int8 => 1,
            DType::Int16 | DType::Float16 | DType::BFloat16 => 2,
            DType::Int32 | DType::Float32 => 4,
            DType::Int64 | DType::Float64 | DType::Complex64 => 8,
            DType::Complex128 => 16,
        }
    }

    /// Half precisions included.
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Whether an element is a pair of floats.
    pub const fn is_complex(self) -> bool {
        matches!(self.kind(), Kind::Complex)
    }

    /// Integers proper: `bool` is not one.
    pub const fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Integer)
    }

    /// The real type of a complex type's parts; any other type itself.
    pub const fn real(self) -> DType {
        match self {
            DType::Complex64 => DType::Float32,
            DType::Complex128 => DType::Float64,
            other => other,
        }
    }

    /// The complex type whose parts have this type.
    pub const fn complex(self) -> DType {
        match self {
            DType::Float64 | DType::Complex128 => DType::Complex128,
            _ => DType::Complex64,
        }
    }

    /// `torch.promote_types`: the smallest type that holds both.
    pub fn promote(self, other: DType) -> DType {
        use DType::{BFloat16, Float16, Float32, Int16, UInt8};
        if self == other {
            return self;
        }
        let (low, high) = if self.kind() <= other.kind() { (self, other) } else { (other, self) };
        if low.kind() < high.kind() {
            return match (low.kind(), high.kind()) {
                (Kind::Float, Kind::Complex) => high.promote(low.complex_of_float()),
                _ => high,
            };
        }
        match (self, other) {
            (Float16, BFloat16) | (BFloat16, Float16) => Float32,
            (UInt8, DType::Int8) | (DType::Int8, UInt8) => Int16,
            _ if self.size() >= other.size() => self,
            _ => other,
        }
    }

    const fn complex_of_float(self) -> DType {
        match self {
            DType::Float64 => DType::Complex128,
            _ => DType::Complex64,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "torch.{}", self.name())
    }
}

/// Where a tensor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Which kind of device.
    pub kind: DeviceKind,
    /// Which one of its kind; `None` for the one that is current.
    pub index: Option<u8>,
}

/// What torch puts in front of the colon in `cuda:0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// The host.
    Cpu,
    /// A GPU.
    Cuda,
    /// A tensor without elements: sizes and a type alone.
    Meta,
}

impl Device {
    /// The host, which has no number.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: None };

    /// Reads `cpu`, `cuda`, `cuda:0`.
    pub fn from_name(name: &str) -> Option<Self> {
        let (kind, index) = match name.split_once(':') {
            Some((kind, index)) => (kind, Some(index.parse().ok()?)),
            None => (name, None),
        };
        let kind = match kind {
            "cpu" => DeviceKind::Cpu,
            "cuda" => DeviceKind::Cuda,
            "meta" => DeviceKind::Meta,
            _ => return None,
        };
        Some(Device { kind, index })
    }

    /// As torch writes it.
    pub const fn kind_name(self) -> &'static str {
        match self.kind {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Cuda => "cuda",
            DeviceKind::Meta => "meta",
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind_name())?;
        match self.index {
            Some(index) => write!(f, ":{index}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promotion_is_symmetric_and_never_narrows() {
        for a in DType::ALL {
            for b in DType::ALL {
                let joined = a.promote(b);
                assert_eq!(joined, b.promote(a), "{a} {b}");
                assert!(joined.kind() >= a.kind().max(b.kind()));
                assert_eq!(joined.promote(a), joined, "{a} {b} -> {joined}");
            }
        }
    }

    #[test]
    fn names_round_trip() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(&dtype.to_string()), Some(dtype));
        }
        assert_eq!(DType::from_name("torch.long"), Some(DType::Int64));
        assert_eq!(DType::from_name("float8"), None);
    }
}
