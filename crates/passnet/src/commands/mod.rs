//! One module per command.

pub mod graph;
pub mod score;
