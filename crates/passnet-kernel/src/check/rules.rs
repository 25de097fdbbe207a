//! The static rules.

use super::findings::{Finding, Severity};
use crate::analysis::{Analysis, SymKind};
use crate::ir::{AtomicOp, Function, Op};
use crate::modules::ModuleSet;
use crate::plan::{Init, Launch, LaunchPlan};
use crate::types::Elem;

/// Shared memory a block may use on a current data-centre GPU.
const SHARED_BYTES: usize = 227 << 10;

/// Accesses that certainly leave their buffer: unmasked, reached by every program, linear in everything.
pub(super) fn bounds(
    plan: &LaunchPlan,
    launch: &Launch,
    f: &Function,
    analysis: &Analysis,
    out: &mut Vec<Finding>,
) {
    for touch in &analysis.touches {
        let (Some(param), Some(bytes)) = (touch.param, &touch.bytes) else { continue };
        let name = &f.params[param].name;
        let Some(view) = launch.view(name) else { continue };
        let Some(buffer) = plan.buffers.get(view.buffer) else { continue };
        // Extremes are reached only when the symbols move independently.
        let free =
            bytes.terms.keys().all(|s| analysis.symbols[s.0 as usize].kind == SymKind::Program);
        if touch.has_mask || !touch.unconditional || !touch.conditions.is_empty() || !free {
            continue;
        }
        let (low, high) = bytes.range(&analysis.symbols, &touch.shape);
        let size = touch.elem.size() as i128;
        let len = i128::from(buffer.bytes());
        if low >= 0 && high + size <= len {
            continue;
        }
        let element = if low < 0 { low.div_euclid(size) } else { high / size };
        out.push(Finding {
            rule: if touch.shape.is_empty() { "out-of-bounds" } else { "missing-mask" },
            severity: Severity::Error,
            file: f.file(touch.loc).to_string(),
            line: touch.loc.line,
            message: format!(
                "kernel `{}` {} element {element} of `{name}`, which has {}: {}",
                launch.kernel,
                if touch.store { "writes" } else { "reads" },
                buffer.elements,
                if touch.shape.is_empty() {
                    "the index reaches past the buffer"
                } else {
                    "the access has no mask"
                },
            ),
            proved: true,
        });
    }
}

pub(super) fn overflow(launch: &Launch, f: &Function, analysis: &Analysis, out: &mut Vec<Finding>) {
    for o in &analysis.overflows {
        // Hashes wrap on purpose: only arithmetic of signed index types is suspect.
        if o.elem != Elem::I32 {
            continue;
        }
        out.push(Finding {
            rule: "index-overflow",
            severity: Severity::Warning,
            file: f.file(o.loc).to_string(),
            line: o.loc.line,
            message: format!(
                "kernel `{}`: 32-bit index arithmetic reaches {}",
                launch.kernel,
                if o.high > i128::from(i32::MAX) { o.high } else { o.low }
            ),
            proved: true,
        });
    }
}

pub(super) fn atomics(launch: &Launch, f: &Function, out: &mut Vec<Finding>) {
    f.for_each_inst(&mut |inst| {
        let Op::Atomic { op, .. } = &inst.op else { return };
        let elem = f.ty(inst.args[1]).elem();
        let ordered = match op {
            AtomicOp::Add => elem.is_float(),
            AtomicOp::Xchg => true,
            _ => false,
        };
        if ordered && launch.programs() > 1 {
            out.push(Finding {
                rule: "atomic-order",
                severity: Severity::Warning,
                file: f.file(inst.loc).to_string(),
                line: inst.loc.line,
                message: format!("kernel `{}`: the result of `atomic_{op}` on {elem} depends on the order of programs", launch.kernel),
                proved: true,
            });
        }
    });
}

pub(super) fn limits(launch: &Launch, f: &Function, out: &mut Vec<Finding>) {
    let mut report = |message: String| {
        out.push(Finding {
            rule: "gpu-limits",
            severity: Severity::Error,
            file: launch.file.clone(),
            line: launch.line,
            message,
            proved: true,
        });
    };
    if !launch.num_warps.is_power_of_two() || launch.num_warps > 32 {
        report(format!("`num_warps={}`: a GPU allows powers of two up to 32", launch.num_warps));
    }
    let mut shared = 0usize;
    f.for_each_inst(&mut |inst| {
        if matches!(inst.op, Op::Dot) {
            let bytes: usize =
                inst.args[..2].iter().map(|v| f.ty(*v).numel() * f.ty(*v).elem().size()).sum();
            shared = shared.max(bytes * launch.num_stages.max(1) as usize);
        }
    });
    if shared > SHARED_BYTES {
        report(format!(
            "the operands of `tl.dot` need about {shared} bytes of shared memory with {} stages; a GPU has {SHARED_BYTES}",
            launch.num_stages
        ));
    }
}

pub(super) fn aliasing(plan: &LaunchPlan, modules: &ModuleSet, out: &mut Vec<Finding>) {
    for (index, view) in plan.returns.iter().enumerate() {
        let Some(buffer) = plan.buffers.get(view.buffer) else { continue };
        if let Init::Input(_) = buffer.init {
            out.push(Finding {
                rule: "output-aliases-input",
                severity: Severity::Warning,
                file: modules.source(0).path().to_string(),
                line: plan.launches().last().map_or(0, |l| l.line),
                message: format!("output {index} is the memory of the argument `{}`", buffer.name),
                proved: true,
            });
        }
    }
}
