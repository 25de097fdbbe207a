//! What can be said of a launch for all data: which buffers it touches, whether it stays inside them, and whether its
//! programs can run side by side. Nothing runs here.

mod bounds;
mod control_flow;
mod independence;
mod linear;
mod touches;

pub use bounds::proved_in_bounds;
pub(crate) use linear::SymKind;
pub(crate) use touches::{Analysis, Touch, analyze};

use crate::ir::Function;
use crate::plan::Launch;

/// Whether a plan writes into a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Written {
    /// No step reaches it with a store.
    Never,
    /// A store goes through a pointer that could not be traced to one buffer.
    Perhaps,
    /// A store goes there, whatever the data.
    Certainly,
}

impl Written {
    /// Whether a store may go there.
    pub fn is_possible(self) -> bool {
        self != Written::Never
    }

    /// Whether a store is known to go there.
    pub fn is_certain(self) -> bool {
        self == Written::Certainly
    }
}

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
    counts: impl Fn(&Touch) -> bool,
) -> Vec<(usize, Written)> {
    let buffer_of = |name: &str| launch.view(name).map(|view| view.buffer);
    let mut found = Vec::new();
    for touch in analyze(function, launch).touches.iter().filter(|touch| counts(touch)) {
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
    let analysis = analyze(function, launch);
    independence::independent(function, launch, &analysis)
        .then(|| independence::order_of_axes(launch, &analysis))
}
