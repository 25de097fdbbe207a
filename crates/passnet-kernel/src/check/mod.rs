//! Checks of kernels and plans: proved from linear forms where possible, observed while running otherwise.

mod analysis;
mod findings;
mod independence;
mod linear;
mod rules;

pub use findings::{Finding, Severity, check};

use crate::ir::Function;
use crate::plan::{Launch, LaunchPlan};

/// Whether no program of the launch touches a byte that another program writes.
pub(crate) fn programs_are_independent(launch: &Launch, function: &Function) -> bool {
    let analysis = analysis::analyze(function, launch);
    independence::independent(function, launch, &analysis)
}

/// Whether every access of the launch is proved to stay inside its buffer, for all data.
pub fn proved_in_bounds(plan: &LaunchPlan, launch: &Launch, function: &Function) -> bool {
    let analysis = analysis::analyze(function, launch);
    rules::proved_in_bounds(plan, launch, function, &analysis)
}
