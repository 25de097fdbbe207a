//! Checks of kernels and plans: proved from linear forms where possible, observed while running otherwise.

mod findings;
mod layouts;
mod rules;
mod screen;
mod watched;

pub use crate::analysis::proved_in_bounds;
pub use findings::{Finding, Severity};

use crate::analysis::analyze;
use crate::exec::PreparedPlan;
use crate::modules::ModuleSet;
use crate::plan::{BufferSpec, HostArg, Init, LaunchPlan};

/// Checks a plan: first what can be proved, then a run with bookkeeping on the buffers the caller fills.
/// `buffers` are those of the plan, inputs filled; their contents afterwards are of no use.
pub fn check(
    modules: &ModuleSet,
    wrapper: &str,
    args: &[HostArg],
    prepared: &PreparedPlan,
    buffers: Vec<&mut [u8]>,
) -> Vec<Finding> {
    check_in_order(modules, wrapper, args, prepared, buffers, None)
}

/// Like [`check`], with programs in the order of a secret as in [`RunOptions`](crate::exec::RunOptions); without one they run
/// in the order of their numbers, so that a report says the same every time.
pub fn check_in_order(
    modules: &ModuleSet,
    wrapper: &str,
    args: &[HostArg],
    prepared: &PreparedPlan,
    mut buffers: Vec<&mut [u8]>,
    order: Option<u64>,
) -> Vec<Finding> {
    let plan_data = prepared.plan();
    let mut findings = Vec::new();
    let functions: Vec<_> = prepared.functions().collect();
    let mut analyses = Vec::with_capacity(functions.len());
    for (launch, function) in plan_data.launches().zip(&functions) {
        let analysis = analyze(function, launch);
        rules::bounds(plan_data, launch, function, &analysis, &mut findings);
        rules::overflow(launch, function, &analysis, &mut findings);
        rules::atomics(launch, function, &mut findings);
        rules::limits(launch, function, &mut findings);
        analyses.push(analysis);
    }
    rules::aliasing(plan_data, modules, &mut findings);
    let packed = layouts::packed_inputs(plan_data, args, &buffers);
    // Kept only where they are needed again: the run may write them.
    let originals = if packed.is_empty() { Vec::new() } else { inputs(plan_data, &buffers) };
    let came_to_its_end = screen::observes_nothing(prepared, &functions, &analyses, &mut buffers)
        || {
            let lent = buffers.iter_mut().map(|b| &mut **b).collect();
            watched::run(prepared, (lent, order), &functions, &mut findings)
        };
    if came_to_its_end && !packed.is_empty() {
        let first = (plan_data, buffers.as_slice());
        findings.extend(layouts::strides(modules, wrapper, args, first, &packed, &originals));
    }
    findings.sort_by(|a, b| {
        (b.severity, &a.file, a.line, a.rule).cmp(&(a.severity, &b.file, b.line, b.rule))
    });
    findings.dedup_by(|a, b| a.rule == b.rule && a.file == b.file && a.line == b.line);
    findings
}

/// The bytes of each input, by its number.
fn inputs(plan: &LaunchPlan, buffers: &[&mut [u8]]) -> Vec<(usize, Vec<u8>)> {
    let input = |(spec, bytes): (&BufferSpec, &&mut [u8])| match spec.init {
        Init::Input(index) => Some((index, bytes.to_vec())),
        _ => None,
    };
    plan.buffers.iter().zip(buffers).filter_map(input).collect()
}
