//! Running graphs. `native` is a CPU tensor library with PyTorch's semantics, in process, with no Python.

pub mod dump;
pub mod engine;
pub mod native;
pub mod sandbox;
pub mod torch;

pub use engine::{Engine, EngineError, ErrorKind, Precision, Prepared, RunOptions, Value};
