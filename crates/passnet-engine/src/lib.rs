//! Running graphs. `native` is a CPU tensor library with PyTorch's semantics, in process, with no Python; `torch` is
//! PyTorch itself, in a trusted process of its own.

pub mod dump;
pub mod engine;
pub mod native;
pub mod sandbox;
pub mod torch;

pub use engine::{
    Called, Costs, Engine, EngineError, ErrorKind, GraphCompiler, Player, Precision, Prepared,
    RunOptions, Staged, Tier, Value,
};
