//! Runs kernels and plans on the CPU.
//!
//! [`PreparedPlan`] is a launch plan whose kernels are lowered for this machine; it can run any number of times
//! on buffers the caller lends. Results do not depend on the number of threads.

mod block_run;
mod fault;
mod group_access;
mod group_run;
mod launch;
mod lower;
mod memory;
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
mod native;
mod order;
mod plan_run;
mod prefetch;
mod run;
mod simd;
mod strided;
mod tape;
mod track;
mod transfer;
mod views;

pub use crate::analysis::Written;
pub use fault::{Conflict, Fault, FaultKind};
pub use memory::{LentBuffer, Memory};
pub use plan_run::{PreparedPlan, RunError, RunOptions, element_bytes};
pub use transfer::gather;

pub(crate) use plan_run::lanes_as_f64;
