//! PassAgent: language models that write passes.
//!
//! An [`agent`] loop drives a [`model`] through an [`episode`] of a [`task`]: the model edits files in memory
//! ([`workspace`]), asks the one shared [`evaluator`] about them, and everything is recorded as a [`trajectory`]. Whether a
//! pass is right or fast is decided by `passnet-bench` alone.

pub mod agent;
pub mod budget;
pub mod chat;
mod clean;
pub mod episode;
pub mod evaluator;
pub mod export;
pub mod feedback;
pub mod metrics;
pub mod model;
pub mod prompt;
pub mod run;
pub mod secrets;
pub mod server;
pub mod task;
pub mod tools;
pub mod trajectory;
pub mod workspace;
