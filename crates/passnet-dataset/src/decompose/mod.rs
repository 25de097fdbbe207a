//! Cutting whole models into pieces: where to cut.
//!
//! The methods work on the numbered ops of a graph and answer with half-open ranges of them; [`run`] applies one to
//! all whole models of a store and has the ranges taken out (`cutting`). Three ways to choose: every op alone (`sole_op`), op
//! sequences that the corpus repeats ([`typical`]), ops that a compiler fuses into one kernel ([`plateau`]).

pub(crate) mod cutting;
pub mod kernels;
pub mod plateau;
pub mod run;
mod sole_op;
pub mod typical;
