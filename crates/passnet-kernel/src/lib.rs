//! Triton kernels and host wrappers without a GPU and without Python: read, type, check, plan, run.

mod analysis;
pub mod check;
mod consts;
pub mod excerpt;
pub mod exec;
pub mod fixture;
pub mod frontend;
pub mod ir;
mod lane;
mod modules;
pub mod plan;
pub mod reference;
pub mod types;

pub use consts::Const;
pub use modules::ModuleSet;
