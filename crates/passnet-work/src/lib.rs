//! Long work: one parallel loop whose results come in order, and how work says how far it is.
//!
//! Owned here: [`parallel::ordered`], the only loop of the workspace that spreads unrelated items over threads, and
//! [`progress::Progress`], which libraries call and only the command line draws. What a single operation does on several cores is
//! `passnet-cpu`'s.
//!
//! ```
//! use passnet_work::parallel::{ordered, default_workers};
//!
//! let mut squares = Vec::new();
//! let done = ordered(1..=4, default_workers(), |n: u32| n * n, |square| {
//!     squares.push(square.expect("squares do not panic"));
//!     Ok::<(), std::convert::Infallible>(())
//! });
//! assert!(done.is_ok());
//! assert_eq!(squares, [1, 4, 9, 16]);
//! ```
//!
//! The result does not depend on the number of workers, memory is bounded by the items in flight, and a panic in one item takes no
//! other item down.

#![warn(missing_docs)]

pub mod parallel;
pub mod progress;
