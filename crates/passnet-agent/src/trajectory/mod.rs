//! Trajectories: every message, call, verdict, score, token and second of an attempt, one JSON object a line.
//!
//! The file only grows and is written line by line as things happen. A killed process leaves at most a torn last line,
//! which is cut off when the attempt goes on. `docs/agent.md` describes the format.

mod event;

pub use event::{BestEvent, End, Event, ModelInfo, ReplyEvent, ResultEvent, Source, Start};
pub use passnet_bench::event_log::read;

/// A trajectory being written.
pub type Log = passnet_bench::event_log::EventLog<Event>;

/// Changes whenever the meaning of a stored field does.
pub const FORMAT: u32 = 1;
