//! One module per command.

pub mod graph;
pub mod pass;
pub mod score;
