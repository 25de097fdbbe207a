//! What the checker reports, and the run that produces it.

use super::analysis::analyze;
use super::{layouts, rules, screen};
use crate::exec::{Fault, FaultKind, PreparedPlan};
use crate::modules::ModuleSet;
use crate::plan::{HostArg, Init, LaunchPlan, Step};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Note,
    Warning,
    Error,
}

/// One thing found wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: &'static str,
    pub severity: Severity,
    pub file: String,
    pub line: u32,
    pub message: String,
    /// Proved for every input of this signature; otherwise observed in a run.
    pub proved: bool,
}

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
    for (launch, function) in launches(plan_data).zip(&functions) {
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
            dynamic(prepared, (lent, order), &functions, &mut findings)
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
    let input = |(spec, bytes): (&crate::plan::BufferSpec, &&mut [u8])| match spec.init {
        Init::Input(index) => Some((index, bytes.to_vec())),
        _ => None,
    };
    plan.buffers.iter().zip(buffers).filter_map(input).collect()
}

pub(super) fn launches(plan: &LaunchPlan) -> impl Iterator<Item = &crate::plan::Launch> {
    plan.steps.iter().filter_map(|s| match s {
        Step::Launch(l) => Some(l),
        _ => None,
    })
}

/// A run with bookkeeping; says whether it came to its end.
fn dynamic(
    prepared: &PreparedPlan,
    (buffers, order): (Vec<&mut [u8]>, Option<u64>),
    functions: &[&crate::ir::Function],
    findings: &mut Vec<Finding>,
) -> bool {
    let plan = prepared.plan();
    let (checked, failure) = prepared.run_checked(buffers, order);
    // Position of a step among the launches.
    let launch_index =
        |step: usize| plan.steps[..step].iter().filter(|s| matches!(s, Step::Launch(_))).count();
    let mut report = |fault: &Fault, kernel: &str, file: String| {
        let rule = match &fault.kind {
            FaultKind::OutOfBounds { .. } | FaultKind::GatherIndex { .. } => "out-of-bounds",
            FaultKind::Uninitialized { .. } => "uninitialized-read",
            FaultKind::Race { .. } => "race",
            FaultKind::IndexOverflow { .. } => "index-overflow",
            FaultKind::Assert(_) => "device-assert",
            FaultKind::EndlessLoop => "endless-loop",
            FaultKind::Deadline => "deadline",
        };
        // A proof already says it, under this or a more precise name.
        let known = findings.iter().any(|f: &Finding| {
            f.line == fault.loc.line
                && f.file == file
                && (f.rule == rule || (rule == "out-of-bounds" && f.rule == "missing-mask"))
        });
        if known {
            return;
        }
        let [x, y, z] = fault.program;
        let named = match &fault.kind {
            FaultKind::OutOfBounds { buffer, .. }
            | FaultKind::Uninitialized { buffer, .. }
            | FaultKind::Race { buffer, .. } => {
                plan.buffers.get(*buffer).map(|b| format!(" of `{}`", b.name)).unwrap_or_default()
            }
            _ => String::new(),
        };
        findings.push(Finding {
            rule,
            severity: Severity::Error,
            file,
            line: fault.loc.line,
            message: format!("kernel `{kernel}`, program ({x}, {y}, {z}): {}{named}", fault.kind),
            proved: false,
        });
    };
    for (step, o) in &checked.observations {
        let Some(Step::Launch(launch)) = plan.steps.get(*step) else { continue };
        let file = functions.get(launch_index(*step)).map_or("", |f| f.file(o.loc)).to_string();
        let fault = Fault { kind: o.kind.clone(), loc: o.loc, program: o.program };
        report(&fault, &launch.kernel, file);
    }
    if let Some(error) = &failure {
        report(&error.fault, &error.kernel, error.file.clone());
        return false;
    }
    for (index, (hole, view)) in checked.holes.iter().zip(&plan.returns).enumerate() {
        if let Some(element) = hole {
            let last = launches(plan).last();
            findings.push(Finding {
                rule: "output-not-written",
                severity: Severity::Error,
                file: last.map_or_else(String::new, |l| l.file.clone()),
                line: last.map_or(0, |l| l.line),
                message: format!(
                    "element {element} of output {index} (shape {:?}) is never written",
                    view.shape
                ),
                proved: false,
            });
        }
    }
    true
}
