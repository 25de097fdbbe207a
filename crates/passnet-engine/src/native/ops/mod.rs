//! Operations by family.

pub mod creation;
pub mod pointwise;
