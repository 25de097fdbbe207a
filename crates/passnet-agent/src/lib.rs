//! PassAgent: language models that write passes.
//!
//! An [`agent`] loop drives a [`model`] through an [`episode`] of a [`task`]: the model edits files in memory
//! ([`workspace`]), asks the one shared [`evaluator`] about them, and everything is recorded as a [`trajectory`]. Whether a
//! pass is right or fast is decided by `passnet-bench` alone.
//!
//! ```
//! use passnet_agent::model::text_calls;
//!
//! // Models without tools of their own write calls as JSON in fences.
//! let reply = "I evaluate it.\n```json\n{\"tool\": \"evaluate\", \"arguments\": {}}\n```\n";
//! let calls = text_calls::find(reply, |name| name == "evaluate");
//! assert_eq!(calls[0].name, "evaluate");
//! ```
//!
//! What a model says is hostile until it is read: replies are bounded, secrets are taken out before anything is stored, and an attempt that was
//! killed goes on where it stopped.

#![warn(missing_docs)]

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
