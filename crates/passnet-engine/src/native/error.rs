//! What can go wrong in a tensor operation, worded as PyTorch words it.

use passnet_graph::view::ViewError;
use std::fmt;

/// What an operation gives.
pub type Result<T> = std::result::Result<T, TensorError>;

/// Why an operation has no result, in torch's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum TensorError {
    /// Shapes, strides or numbers of dimensions that do not fit.
    Shape(String),
    /// An index or dimension out of range.
    Index(String),
    /// An element type the operation does not take.
    DType(String),
    /// An argument outside its domain.
    Value(String),
    /// Integer division by zero and its kin.
    Arithmetic(String),
    /// More memory than the budget or the machine allows.
    Allocation { requested: usize, available: usize },
    /// A buffer was to be written while something else was using it.
    Busy,
    /// Legal in torch, missing here.
    Unsupported(String),
    /// The wrapper or a kernel of a pass cannot be made into a launch plan.
    Plan(String),
    /// A kernel of a pass failed while it ran.
    Kernel(String),
    /// The kernels of passes took longer than they may.
    Timeout(String),
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorError::Shape(m)
            | TensorError::Index(m)
            | TensorError::DType(m)
            | TensorError::Value(m)
            | TensorError::Arithmetic(m)
            | TensorError::Plan(m)
            | TensorError::Kernel(m)
            | TensorError::Timeout(m)
            | TensorError::Unsupported(m) => f.write_str(m),
            TensorError::Allocation { requested, available } => write!(
                f,
                "cannot allocate {requested} bytes, {available} bytes are left of the memory budget"
            ),
            TensorError::Busy => f.write_str("a tensor's memory is in use by another operation"),
        }
    }
}

impl std::error::Error for TensorError {}

impl From<ViewError> for TensorError {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Shape(message) => TensorError::Shape(message),
            ViewError::Index(message) => TensorError::Index(message),
            ViewError::Value(message) => TensorError::Value(message),
            ViewError::TooMany => TensorError::Value(error.to_string()),
        }
    }
}

/// Builds an error of one kind from a format string: `err!(Shape, "expected {n} dims")`.
macro_rules! err {
    ($kind:ident, $($arg:tt)*) => {
        $crate::native::error::TensorError::$kind(format!($($arg)*))
    };
}

/// Returns an error of one kind: `bail!(Shape, "expected {n} dims")`.
macro_rules! bail {
    ($kind:ident, $($arg:tt)*) => {
        return Err($crate::native::error::err!($kind, $($arg)*))
    };
}

/// Returns an error unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $kind:ident, $($arg:tt)*) => {
        // Not `if !`: a comparison of floats must hold, and with NaN neither it nor its negation does.
        if $condition {
        } else {
            return Err($crate::native::error::err!($kind, $($arg)*));
        }
    };
}

pub(crate) use {bail, ensure, err};
