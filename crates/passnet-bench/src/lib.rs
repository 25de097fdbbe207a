//! PassBench: verification, timing statistics, verdicts and scores of rewritten graphs.
//!
//! Nothing here knows which engine ran: outputs come in as plain slices, timings as plain lists, and a run of the
//! reference implementation as the text of its log.

pub mod log;
pub mod number;
pub mod score;
pub mod stats;
pub mod tolerance;
pub mod verdict;
pub mod verify;
