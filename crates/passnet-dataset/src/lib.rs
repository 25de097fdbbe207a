//! The corpus: graphs read from folders and archives, kept in one store file, cut, varied, grouped and exported.
//!
//! Owned here: the [`store`], where graphs come from ([`source`], [`import`], [`checkout`], [`hub`]), pieces ([`decompose`]) and their variants
//! ([`vary`]), tasks and their split ([`sample`]), and the forms in which others read it ([`export`]). [`pipeline`] does all of it.
//!
//! ```
//! use passnet_dataset::store::Store;
//! use std::num::NonZeroUsize;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("corpus.pnds");
//! let store = Store::open_for_writing(&path, NonZeroUsize::MIN).unwrap();
//! assert_eq!(store.path(), path);
//! drop(store);
//! // It is there, and holds nothing yet.
//! assert!(Store::open(&path).is_ok());
//! ```
//!
//! A store is whole at every moment: what is stopped goes on, and two builds of the same graphs are equal by content, whatever the number of
//! threads and kills. No structure of an evaluation task stands in a training task.

#![warn(missing_docs)]

pub mod benchmark;
pub mod checkout;
pub mod content;
pub mod decompose;
pub mod dedup;
pub mod describe;
pub mod estimate;
pub mod export;
pub mod find;
pub mod hub;
pub mod import;
mod json;
pub mod layout;
mod legal;
pub mod lists;
pub mod measure;
pub mod parquet;
pub mod pictures;
pub mod pipeline;
pub mod sample;
pub mod source;
pub mod stats;
pub mod store;
pub mod sweep;
pub mod vary;
pub mod verify;
