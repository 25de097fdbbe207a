//! Runs spread over many machines.
//!
//! An engine that others wrote (Ray) knows the machines, starts workers there and carries bytes; a small *bridge* process
//! speaks with it. What is left for us is here: which unit goes to which worker, what a death means, which nodes are set
//! aside, what is done already. [`Scheduler`] decides and does nothing; [`drive`] does what it decides, over any bridge.
//! It is Rust and not Python because the driver alone writes results: who decides and who writes are one process, so that
//! nothing is done twice or forgotten between them.
//!
//! ```
//! use passnet_cluster::frame;
//! use serde_json::{Value, json};
//!
//! // What goes over a pipe: a message and the bytes that belong to it.
//! let mut pipe = Vec::new();
//! frame::write(&mut pipe, &json!({ "unit": 7 }), b"files").unwrap();
//! let (message, payload): (Value, Vec<u8>) = frame::read(&mut pipe.as_slice()).unwrap().unwrap();
//! assert_eq!((message["unit"].as_u64(), payload.as_slice()), (Some(7), b"files".as_slice()));
//! ```
//!
//! A unit is done once, by one writer; what is known of a run is in its journal, so that a driver that dies is followed by another.

#![warn(missing_docs)]

mod bridge;
pub mod bundle;
mod driver;
pub mod frame;
mod job;
mod journal;
mod message;
mod scheduler;
mod status;

pub use bridge::{Bridge, Incoming};
pub use driver::{Driven, End, drive};
pub use job::{Answer, Input, Job, News};
pub use journal::{Journal, JournalEvent};
pub use message::{FromBridge, Hello, Reply, ToBridge};
pub use scheduler::{Aside, Fault, Limits, Scheduler};
pub use status::{NodeState, NodeStatus, Status};
