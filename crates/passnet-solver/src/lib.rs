//! Passes written without a language model: fusion analysis, Triton source generation, tuning.
//!
//! `form` reads a task and finds what its graphs have in common; `analysis` decides which nodes go together and what
//! loops compute them; `emit` writes pass files; `tune` measures them; `solve` does it all for one task.

pub mod analysis;
pub mod emit;
pub mod explain;
pub mod form;
pub mod solve;
mod trial;
mod tune;
