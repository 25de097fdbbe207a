//! Passes written without a language model: fusion analysis, Triton source generation, tuning.
//!
//! `graph_family` reads a task and finds what its graphs have in common; `analysis` decides which nodes go together and
//! what loops compute them, `products` which products kernels are tried for, `expression` is what they compute for one element; `emit` writes pass files. `tune` measures a
//! piece by itself (`piece_race`; `measuring` says for how long, and what is known), `select` keeps what pays, `together` lets kernels share a launch, `whole_graph` races the graphs with
//! all of it, `passthrough` serves the graphs that are left. [`solve`](mod@solve) does it all for one task; `scaffold` writes passes to begin with.
//!
//! ```
//! use passnet_bench::sample::Sample;
//! use passnet_engine::native::NativeEngine;
//! use passnet_solver::explain::Rates;
//! use passnet_solver::solve::{SolveOptions, solve};
//!
//! let task = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/tasks/swiglu");
//! let sample = Sample::read(task.as_ref()).unwrap();
//! let rates = Rates { bytes_per_second: 1e10, seconds_per_launch: 2e-6, multiprocessors: 132 };
//! let options = SolveOptions { tune: false, ..SolveOptions::default() };
//! let passes = tempfile::tempdir().unwrap();
//! let found = solve(&NativeEngine, &rates, &sample, passes.path(), &options).unwrap();
//! assert_eq!(found.passes[0].operations, ["chunk", "getitem", "getitem", "silu", "mul"]);
//! assert!(passes.path().join(format!("{}.py", found.passes[0].name)).exists());
//! ```
//!
//! What the solver writes is a pass like anybody's: it goes through the same rules, matching, checks and clock.

#![warn(missing_docs)]

pub mod analysis;
pub mod cubins;
pub mod emit;
pub mod explain;
mod expression;
pub mod graph_family;
mod graph_race;
mod measuring;
mod options;
mod passthrough;
mod piece_race;
mod portfolio;
mod products;
pub mod scaffold;
mod select;
pub mod solve;
mod solver;
pub mod target;
mod together;
mod tune;
mod whole_graph;
