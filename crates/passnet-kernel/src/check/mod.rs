//! Checks of kernels and plans: proved from linear forms where possible, observed while running otherwise.

mod analysis;
mod control_flow;
mod findings;
mod independence;
mod layouts;
mod linear;
mod rules;
mod screen;

pub use findings::{Finding, Severity, check, check_in_order};

use crate::exec::Written;
use crate::ir::Function;
use crate::plan::{ArgValue, Launch, LaunchPlan};

/// The buffers that the launch stores into. A store that cannot be traced may go into any of its arguments.
pub(crate) fn stores(launch: &Launch, function: &Function) -> Vec<(usize, Written)> {
    touched(launch, function, |touch| touch.store)
}

/// The buffers that the launch may read, atomics included. A load that cannot be traced may read any of its arguments.
pub(crate) fn loads(launch: &Launch, function: &Function) -> Vec<usize> {
    let loads = touched(launch, function, |touch| !touch.store || touch.atomic);
    loads.into_iter().map(|(buffer, _)| buffer).collect()
}

/// The buffers that some accesses of the launch go to: certainly, or perhaps where they cannot be traced.
fn touched(
    launch: &Launch,
    function: &Function,
    counts: impl Fn(&analysis::Touch) -> bool,
) -> Vec<(usize, Written)> {
    let buffer_of = |name: &str| {
        launch.args.iter().find(|arg| arg.name == name).and_then(|arg| match &arg.value {
            ArgValue::Buffer(view) => Some(view.buffer),
            _ => None,
        })
    };
    let mut found = Vec::new();
    for touch in analysis::analyze(function, launch).touches.iter().filter(|touch| counts(touch)) {
        match touch.param.and_then(|param| buffer_of(&function.params[param].name)) {
            Some(buffer) => found.push((buffer, Written::Certainly)),
            None => found.extend(
                function
                    .params
                    .iter()
                    .filter_map(|param| buffer_of(&param.name))
                    .map(|buffer| (buffer, Written::Perhaps)),
            ),
        }
    }
    found
}

/// If no program of the launch touches a byte that another program writes: the axes of the grid in the order that goes
/// through memory in the smallest steps, the fastest axis first.
pub(crate) fn independent_order(launch: &Launch, function: &Function) -> Option<[usize; 3]> {
    let analysis = analysis::analyze(function, launch);
    independence::independent(function, launch, &analysis)
        .then(|| independence::order_of_axes(launch, &analysis))
}

/// Whether every access of the launch is proved to stay inside its buffer, for all data.
pub fn proved_in_bounds(plan: &LaunchPlan, launch: &Launch, function: &Function) -> bool {
    let analysis = analysis::analyze(function, launch);
    rules::proved_in_bounds(plan, launch, function, &analysis)
}
