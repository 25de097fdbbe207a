//! `monkey-patch`: assignments to members of modules and of imported objects

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "monkey-patch",
    severity: Severity::Refuse,
    what: "Assignments to members of modules and of imported objects",
    why: "Replacing a timer, a comparison or a function of the framework changes the judge, not the pass",
    limits: "Attributes of a kernel or of an own object are fine",
    instead: "call what you need from the wrapper and change nothing",
    example: Example::Lines { top: "", body: "torch.relu = None" },
    honest: Example::Lines { top: "", body: "kernel.debug = False" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.executed() {
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(stmt) = item else { return };
            let targets: Vec<&ast::Expr> = match stmt {
                ast::Stmt::Assign(assign) => assign.targets.iter().collect(),
                ast::Stmt::AugAssign(assign) => vec![&*assign.target],
                ast::Stmt::AnnAssign(assign) => vec![&*assign.target],
                ast::Stmt::Delete(delete) => delete.targets.iter().collect(),
                _ => return,
            };
            for target in targets {
                let object = match target {
                    ast::Expr::Attribute(attribute) => &*attribute.value,
                    ast::Expr::Subscript(subscript) => &*subscript.value,
                    _ => continue,
                };
                if let Some(path) = unit.names.path(object) {
                    report.unit(
                        unit,
                        target.range(),
                        format!("changes `{path}`, which is not the pass's own"),
                    );
                }
            }
        });
    }
}
