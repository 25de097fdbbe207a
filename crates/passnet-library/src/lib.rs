//! Passes at work: a library of passes with evidence, and the rewriting of a program's graphs by what it holds.
//!
//! A library is a folder with one entry for each set of passes: its files, where it comes from, and what PassBench said of
//! it on which device. [`shelf`] holds a library in memory, indexed by operations, and rewrites graphs; [`session`] is
//! that as questions and answers, for a process with PyTorch in it that never sees a pass.
//!
//! ```
//! use passnet_library::{Library, folder::Origin};
//! use std::path::Path;
//!
//! let passes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/passes/swiglu");
//! let place = tempfile::tempdir().unwrap();
//! let library = Library::at(place.path().join("library"));
//! library.add_passes(&passes, &[], &Origin::default()).unwrap();
//! assert_eq!(library.entries().unwrap().len(), 1);
//! ```
//!
//! Passes without evidence for a device are judged before their first use there, or not used.

#![warn(missing_docs)]

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
