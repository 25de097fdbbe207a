//! One module per command.

pub mod graph;
