//! Why a view cannot be, worded as PyTorch words it.

use std::fmt;

/// A view that torch would refuse, and one that is too much to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ViewError {
    /// Sizes, strides or numbers of dimensions that do not fit.
    Shape(String),
    /// An index or a dimension out of range.
    Index(String),
    /// An argument outside its domain.
    Value(String),
    /// More views than the caller wants to hold.
    TooMany,
}

impl fmt::Display for ViewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ViewError::Shape(message) | ViewError::Index(message) | ViewError::Value(message) => {
                f.write_str(message)
            }
            ViewError::TooMany => f.write_str("too many pieces"),
        }
    }
}

impl std::error::Error for ViewError {}

/// Returns an error of one kind: `refuse!(Shape, "expected {n} dimensions")`.
macro_rules! refuse {
    ($kind:ident, $($arg:tt)*) => {
        return Err($crate::view::ViewError::$kind(format!($($arg)*)))
    };
}

pub(super) use refuse;
