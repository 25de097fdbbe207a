//! Python numbers.

use super::element::Element;
use passnet_graph::DType;

/// A number of Python.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "Python's types")]
pub enum Scalar {
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(f64, f64),
}

impl Scalar {
    /// The type torch gives to a tensor made of this number alone, in full precision.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::Int64,
            Scalar::Float(_) => DType::Float64,
            Scalar::Complex(..) => DType::Complex128,
        }
    }

    /// Complex numbers lose their imaginary part.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(value) => f64::from(u8::from(value)),
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) | Scalar::Complex(value, _) => value,
        }
    }

    pub(crate) fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(value) => i64::from(value),
            Scalar::Int(value) => value,
            Scalar::Float(value) | Scalar::Complex(value, _) => value.to_i64(),
        }
    }

    /// Whether it is false as a truth.
    pub fn is_zero(self) -> bool {
        match self {
            Scalar::Bool(value) => !value,
            Scalar::Int(value) => value == 0,
            Scalar::Float(value) => value == 0.0,
            Scalar::Complex(re, im) => re == 0.0 && im == 0.0,
        }
    }

    pub(crate) fn to_element<T: Element>(self) -> T {
        match self {
            Scalar::Bool(value) => T::from_i64(i64::from(value)),
            Scalar::Int(value) => T::from_i64(value),
            Scalar::Float(value) => T::from_f64(value),
            Scalar::Complex(re, im) => T::from_parts(re, im),
        }
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Self {
        Scalar::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Self {
        Scalar::Int(value)
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Self {
        Scalar::Float(value)
    }
}
