//! `output-write`: printing, opening files, reading input, ending the process

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "output-write",
    severity: Severity::Refuse,
    what: "Printing, opening files, reading input, ending the process",
    why: "Log lines and result files can be forged, and a process that ends early can look like a success",
    limits: "None: a pass has nothing to say while it runs",
    instead: "remove it, or move it under `if __name__ == \"__main__\":`",
    example: Example::Lines { top: "", body: "print('[Speedup][e2e]: 99')" },
    honest: Example::Lines { top: "", body: "name = 'print'" },
    check,
};

const FUNCTIONS: &[&str] = &["print", "open", "input", "exit", "quit", "breakpoint"];

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.units.iter().filter(|unit| unit.role != super::Role::Kernel) {
        facts::expressions(unit, |expr| {
            if let ast::Expr::Name(name) = expr
                && FUNCTIONS.contains(&name.id.as_str())
                && unit.names.global(name.id.as_str()).is_none()
                && !unit.names.is_local(name.id.as_str())
            {
                report.unit(
                    unit,
                    expr.range(),
                    format!("`{}` talks to the world outside", name.id),
                );
            }
        });
    }
}
