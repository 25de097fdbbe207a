//! Runs kernels and plans on the CPU.
//!
//! [`PreparedPlan`] is a launch plan whose kernels are lowered for this machine; it can run any number of times
//! on buffers the caller lends. Results do not depend on the number of threads.

mod checked_run;
mod elements;
mod fault;
mod group;
mod launch;
mod lower;
mod machine;
mod memory;
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
mod native;
mod options;
mod order;
mod plan_run;
mod registers;
mod simd;
mod tape;
mod track;
mod transfer;
mod views;

pub use crate::analysis::Written;
pub use elements::element_bytes;
pub use fault::{Conflict, Fault, FaultKind};
pub use memory::{LentBuffer, Memory};
pub use options::RunOptions;
pub use plan_run::{PreparedPlan, RunError};
pub use transfer::gather;

pub(crate) use elements::lanes_as_f64;
