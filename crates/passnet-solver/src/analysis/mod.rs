//! From a piece of a graph to a kernel: which nodes go together, what loops compute them.

pub(crate) mod body;
pub mod groups;
mod ids;
pub(crate) mod index;
mod lower;
pub mod parts;
pub(crate) mod piece;
mod size;
pub(crate) mod space;
pub(crate) mod tiles;

pub(crate) use body::Body;
pub(crate) use lower::{lower, lower_joined, lower_repeating};
pub(crate) use piece::Piece;
pub(crate) use size::{Size, dimension, product};

use std::fmt;

/// Why a piece of a graph is left alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal(pub String);

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Refusal(reason.into())
    }

    pub(crate) fn overflow() -> Self {
        Refusal::new("a size is too large to compute with")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses with a formatted reason.
macro_rules! refuse {
    ($($part:tt)*) => { return Err($crate::analysis::Refusal::new(format!($($part)*))) };
}
pub(crate) use refuse;
