//! The run store: a folder that remembers what an evaluation did.
//!
//! `events.jsonl` only ever grows, one JSON object a line; `objects/` holds texts under the digest of their content. A
//! killed run loses at most the line it was writing: opening the folder again cuts a torn last line off, and graphs
//! whose key is there already are not evaluated again. One process at a time may write. Lines are sealed: what is changed
//! afterwards is noticed.

mod event;
pub mod merge;
mod store;

pub use event::{Event, GraphEvent, GraphId, Machine, Start};
pub use store::{RunStore, is_run, read, read_object, read_sealed};

/// Changes whenever the meaning of a stored field does.
pub const FORMAT: u32 = 1;
