//! The corpus: graphs read from folders and archives, kept in one store file, cut, varied, grouped and exported.

pub mod benchmark;
pub mod checkout;
pub mod content;
pub mod decompose;
pub mod dedup;
pub mod describe;
pub mod export;
pub mod find;
pub mod hub;
pub mod import;
mod json;
pub mod layout;
pub mod legal;
pub mod lists;
pub mod parquet;
pub mod pictures;
pub mod pipeline;
pub mod sample;
pub mod source;
pub mod stage;
pub mod stats;
pub mod store;
pub mod vary;
pub mod verify;
