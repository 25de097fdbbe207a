//! The corpus: graphs read from folders and archives, kept in one store file, cut, varied, grouped and exported.

pub mod decompose;
mod json;
pub mod parallel;
pub mod progress;
pub mod sample;
