//! One module per command.

pub mod agent;
pub mod bench;
pub mod curve;
pub mod dataset;
pub mod doctor;
mod engine;
pub mod extract;
pub mod graph;
mod judging;
pub mod kernel;
pub mod pass;
pub mod report;
pub mod score;
pub mod solve;
