//! Why a graph did not run.

use crate::native::TensorError;
use std::fmt;

/// What kind of thing went wrong, for counting and for verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// Legal in torch, missing in this engine.
    Unsupported,
    /// The call does not fit the operation's signature.
    Arguments,
    /// Sizes that do not fit.
    Shape,
    /// A place outside a tensor.
    Index,
    /// A value of the wrong type.
    Type,
    /// An argument outside its domain.
    Value,
    /// A division by zero, or a number that is too large.
    Arithmetic,
    /// More memory than there is, or than may be used.
    Memory,
    /// An assertion of the graph itself does not hold.
    Assertion,
    /// The wrapper or a kernel of a pass cannot be made into a launch plan for these arguments.
    Plan,
    /// A kernel of a pass failed while it ran.
    Kernel,
    /// The kernels of passes took longer than they may.
    Timeout,
    /// The machine or what is installed on it: a process that was killed, a library that is missing, a sandbox that
    /// does not start, a full disk. Neither the graph nor a pass is at fault, and another try may succeed.
    Machine,
    /// A mistake of the engine.
    Internal,
}

impl ErrorKind {
    /// The word that reports and runs store.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Arguments => "arguments",
            ErrorKind::Shape => "shape",
            ErrorKind::Index => "index",
            ErrorKind::Type => "type",
            ErrorKind::Value => "value",
            ErrorKind::Arithmetic => "arithmetic",
            ErrorKind::Memory => "memory",
            ErrorKind::Assertion => "assertion",
            ErrorKind::Plan => "plan",
            ErrorKind::Kernel => "kernel",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Machine => "machine",
            ErrorKind::Internal => "internal",
        }
    }
}

/// Why a graph did not run, and at which node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// The node's name; empty where the graph as a whole is meant.
    pub node: String,
    /// What the node calls, as a person would write it.
    pub operation: String,
    /// Line of `model.py`; 0 where there is none.
    pub line: u32,
    /// What went wrong, in the words of who noticed.
    pub message: String,
}

impl EngineError {
    /// An error about the graph as a whole.
    pub fn graph(kind: ErrorKind, message: impl Into<String>) -> Self {
        EngineError {
            kind,
            node: String::new(),
            operation: String::new(),
            line: 0,
            message: message.into(),
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.node.is_empty() {
            write!(f, "`{}` ({}): ", self.node, self.operation)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for EngineError {}

impl From<&TensorError> for ErrorKind {
    fn from(error: &TensorError) -> Self {
        match error {
            TensorError::Shape(_) => ErrorKind::Shape,
            TensorError::Index(_) => ErrorKind::Index,
            TensorError::DType(_) => ErrorKind::Type,
            TensorError::Value(_) => ErrorKind::Value,
            TensorError::Arithmetic(_) => ErrorKind::Arithmetic,
            TensorError::Allocation { .. } => ErrorKind::Memory,
            TensorError::Unsupported(_) => ErrorKind::Unsupported,
            TensorError::Plan(_) => ErrorKind::Plan,
            TensorError::Kernel(_) => ErrorKind::Kernel,
            TensorError::Timeout(_) => ErrorKind::Timeout,
            TensorError::Busy => ErrorKind::Internal,
        }
    }
}
