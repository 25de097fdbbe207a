//! Passes at work: a library of passes with evidence, and the rewriting of a program's graphs by what it holds.
//!
//! A library is a folder with one entry for each set of passes: its files, where it comes from, and what PassBench said of
//! it on which device. [`shelf`] holds a library in memory, indexed by operations, and rewrites graphs; [`session`] is
//! that as questions and answers, for a process with PyTorch in it that never sees a pass.

pub mod entry;
pub mod folder;
pub mod judge;
mod page;
pub mod session;
pub mod shelf;
pub mod sources;

pub use entry::{Entry, Evidence, Standing};
pub use folder::{Added, Believed, Library};
pub use session::Session;
pub use shelf::{Shelf, Trust};
