//! The leaderboard: a place where results are seen, compared and believed.
//!
//! A run travels as a [`bundle`]: one signed file. A [`store`] admits bundles into one SQLite file, [`pages`] are written
//! from it, by the [`server`] on request or by the [`site`] all at once. Nothing here judges or scores: verdicts,
//! speed-ups and scores come from `passnet-bench`, and are found again there when a bundle is verified or rejudged.
//!
//! ```
//! use passnet_web::bundle::{Bundle, Limits};
//!
//! // Whatever arrives is read within limits; what is no bundle is an error.
//! assert!(Bundle::parse(b"no bundle".to_vec(), &Limits::default()).is_err());
//! ```

#![warn(missing_docs)]

pub mod bundle;
pub mod client;
mod error;
pub mod inspect;
pub mod pages;
pub mod rejudge;
pub mod server;
pub mod site;
pub mod store;
pub mod tasks;
pub mod watch;

pub use error::{Error, ErrorKind};
