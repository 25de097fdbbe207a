//! The corpus: graphs read from folders and archives, kept in one store file, cut, varied, grouped and exported.

pub mod content;
pub mod decompose;
pub mod import;
mod json;
pub mod parallel;
pub mod progress;
pub mod sample;
pub mod source;
pub mod store;
pub mod vary;
