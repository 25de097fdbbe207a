//! `decoy-kernel`: kernels that nothing launches

use super::{Context, Example, Report, Rule, Severity};
use super::{Role, facts};
use passnet_graph::syntax::{Ranged, ast};
use rustc_hash::FxHashSet;

pub(super) const RULE: Rule = Rule {
    id: "decoy-kernel",
    severity: Severity::Warn,
    what: "Kernels that nothing launches",
    why: "A kernel that is never launched makes a pass look like one that does the work",
    limits: "A kernel kept for another pass of the folder is reported too, if this pass can reach its file",
    instead: "launch the kernel, or remove it",
    example: Example::Lines {
        top: r#"@triton.jit
def decoy(x_ptr):
    tl.store(x_ptr, 0.0)"#,
        body: "",
    },
    honest: Example::Lines {
        top: r#"@triton.jit
def helper(v):
    return v * 2.0
@triton.jit
def other(x_ptr, out_ptr):
    tl.store(out_ptr, helper(tl.load(x_ptr)))"#,
        body: "other[(1,)](x, out)",
    },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    let mut mentioned: FxHashSet<&str> = FxHashSet::default();
    for unit in &context.units {
        let own = unit.function.filter(|_| unit.role == Role::Kernel).map(|f| f.name.as_str());
        facts::expressions(unit, |expr| {
            let name = match expr {
                ast::Expr::Name(name) => name.id.as_str(),
                ast::Expr::Attribute(attribute) => attribute.attr.as_str(),
                _ => return,
            };
            if own != Some(name) {
                mentioned.insert(name);
            }
        });
    }
    for unit in context.kernels().filter(|unit| unit.module == context.pass) {
        if let Some(function) = unit.function
            && !mentioned.contains(function.name.as_str())
        {
            report.unit(
                unit,
                function.name.range(),
                format!("kernel `{}` is never launched", function.name),
            );
        }
    }
}
