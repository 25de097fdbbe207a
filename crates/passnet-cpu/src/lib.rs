//! What numeric code on the CPU is made of, at the bottom of the workspace: the native engine and the kernels of passes are
//! built on it.
//!
//! - [`isa`]: which vector instructions there are, and functions compiled for each set of them;
//! - [`thread_pool`] and [`parallel`]: one pool of threads for the whole process, loops over the chunks of an output;
//! - [`vector`]: vectors held in registers;
//! - [`math`]: exponentials, logarithms, error functions and others, with their coefficients;
//! - [`halves`]: conversions to and from half precision;
//! - [`scratch`]: working memory that a thread keeps.
//!
//! ```
//! use passnet_cpu::math::Float;
//! use passnet_cpu::{multiversion, parallel};
//!
//! multiversion! {
//!     /// Compiled for every set of instructions, run with the best of this machine.
//!     fn sigmoids(values: &mut [f32]) {
//!         for value in values {
//!             *value = value.sigmoid();
//!         }
//!     }
//! }
//! let mut values = vec![0.0f32; 100_000];
//! parallel::for_each_chunk(&mut values, 4096, |_, chunk| sigmoids(chunk));
//! assert!(values.iter().all(|value| *value == 0.5));
//! ```
//!
//! # Invariants
//!
//! - **Results are the same bits on every machine**, whatever its instructions: fused multiply-adds are written out, sums have
//!   a fixed number of lanes, and all variants of a function are one source.
//! - **Results do not depend on the number of threads**: work is cut by the data's size alone.
//! - **A pool never makes its caller wait for a sleeping thread**: the caller takes tasks itself, all of them if need be.
//! - Nothing here knows tensors, graphs or kernels; nothing allocates but [`scratch`].

#![warn(missing_docs)]

pub mod halves;
pub mod isa;
pub mod math;
pub mod parallel;
pub mod scratch;
pub mod thread_pool;
pub mod vector;

pub use isa::Isa;
pub use math::Float;
pub use scratch::Scratch;
pub use thread_pool::{run_tasks, threads, without_helpers};
