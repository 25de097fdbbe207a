//! Rewriting: a match becomes a patch, a patch becomes a new graph, and the new graph is verified.
//!
//! A [`Patch`] is a value: what it taps, what it takes out, what it puts in, under whose name. It is applied
//! to a copy, so a patch that fails leaves nothing half done. [`run`] applies passes in order, matching again
//! after every patch instead of trusting matches found before.

mod apply;
mod patch;
mod restore;
mod run;
mod verify;

pub use apply::apply;
pub use patch::Patch;
pub use restore::restore;
pub use run::{Applied, Report, RunOptions, Stop, run};
pub use verify::verify;

use std::fmt;

/// Why a patch could not be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewriteError {
    /// The pass whose patch it was.
    pub pass: String,
    /// Why the graph cannot be rewritten.
    pub message: String,
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pass `{}`: {}", self.pass, self.message)
    }
}

impl std::error::Error for RewriteError {}
