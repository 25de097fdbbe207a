//! Checks of kernels and plans, static and dynamic.

use crate::ir::Function;
use crate::plan::{Launch, LaunchPlan};

/// Whether no program of the launch touches a byte that another program writes.
pub(crate) fn programs_are_independent(_plan: &LaunchPlan, launch: &Launch, _function: &Function) -> bool {
    launch.programs() <= 1
}
