//! A run with bookkeeping, and what it saw.

use super::findings::{Finding, Severity};
use crate::exec::{Fault, FaultKind, PreparedPlan};
use crate::ir::Function;
use crate::plan::Step;

/// Runs the plan; says whether it came to its end.
pub(super) fn run(
    prepared: &PreparedPlan,
    (buffers, order): (Vec<&mut [u8]>, Option<u64>),
    functions: &[&Function],
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
            let last = plan.launches().last();
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
