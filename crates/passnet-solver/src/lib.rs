//! Passes written without a language model: fusion analysis, Triton source generation, tuning.
//!
//! `graph_family` reads a task and finds what its graphs have in common; `analysis` decides which nodes go together and
//! what loops compute them, `expression` is what they compute for one element; `emit` writes pass files. `tune` measures a piece by itself (`piece_race`), `select` keeps
//! what pays, `together` lets kernels share a launch, `whole_graph` races the graphs with all of it, `passthrough` serves
//! the graphs that are left. `solve` does it all for one task; `scaffold` writes passes to begin with.

pub mod analysis;
pub mod cubins;
pub mod emit;
pub mod explain;
pub mod expression;
pub mod graph_family;
mod graph_race;
mod options;
mod passthrough;
mod piece_race;
mod portfolio;
pub mod scaffold;
mod select;
pub mod solve;
mod solver;
pub mod target;
mod together;
mod tune;
mod whole_graph;
