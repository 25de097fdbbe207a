//! Why a rule gave no type.

use crate::view::ViewError;
use std::sync::Arc;

/// Why a rule gave no type.
#[derive(Debug, Clone)]
pub enum Problem {
    /// Torch would refuse the call.
    Invalid(Box<str>),
    /// The type depends on what is not known here.
    Unknown(Arc<str>),
}

/// What a rule infers.
pub(super) type Inferred<T> = Result<T, Problem>;

impl Problem {
    /// Torch would raise this.
    pub fn invalid(message: impl Into<String>) -> Self {
        Problem::Invalid(message.into().into_boxed_str())
    }

    /// Nothing is wrong, and nothing can be said.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Problem::Unknown(reason.into().into())
    }
}

impl From<ViewError> for Problem {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::TooMany => Problem::unknown(error.to_string()),
            refused => Problem::invalid(refused.to_string()),
        }
    }
}
