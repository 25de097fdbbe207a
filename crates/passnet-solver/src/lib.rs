//! Passes written without a language model: fusion analysis, Triton source generation, tuning.
//!
//! `form` reads a task and finds what its graphs have in common; `analysis` decides which nodes go together and what
//! loops compute them; `emit` writes pass files; `tune` measures pieces, `select` keeps what pays, `together` lets
//! kernels share a launch, `whole` looks at the graphs again with all of it, `neutral` serves what is left; `solve` does it all for one task; `scaffold`
//! writes passes to begin with.

pub mod analysis;
pub mod emit;
pub mod explain;
pub mod form;
mod neutral;
pub mod scaffold;
mod select;
pub mod solve;
mod together;
mod trial;
mod tune;
mod whole;
