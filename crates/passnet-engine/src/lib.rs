//! Running graphs. `native` is a CPU tensor library with PyTorch's semantics, in process, with no Python; `torch` is
//! PyTorch itself, in a trusted process of its own.

pub mod choice;
pub mod dump;
pub mod engine;
pub mod identity;
pub mod native;
pub mod sandbox;
pub mod torch;
mod tuning;

pub use choice::{EngineChoice, EngineName};
pub use engine::{
    Called, Compared, Content, Costs, Doubtful, Engine, EngineError, ErrorKind, Faults,
    GraphCompiler, InductorMode, Precision, Prepared, RunOptions, Side, Staged, Tier, Tolerances,
    Turn, Value,
};
pub use identity::Identity;
pub use tuning::{TimedConfig, TunedKernel};
