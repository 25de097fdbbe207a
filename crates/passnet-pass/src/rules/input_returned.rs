//! `input-returned`: a wrapper that returns one of its arguments

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "input-returned",
    severity: Severity::Warn,
    what: "A wrapper that returns one of its arguments",
    why: "An input handed back as the output is right only for operations that change nothing",
    limits: "Passes that remove an operation without effect do this honestly",
    instead: "have a kernel write the result into a buffer and return that",
    example: Example::Lines {
        top: "",
        body: r#"if n == 0:
    return x"#,
    },
    honest: Example::Lines { top: "", body: "y = x" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    let Some(unit) = context.wrapper() else { return };
    let Some(function) = unit.function else { return };
    let parameters: Vec<&str> = function.parameters.iter().map(|p| p.name().as_str()).collect();
    facts::walk(unit, &mut |item| {
        let facts::Item::Stmt(ast::Stmt::Return(ret)) = item else { return };
        let values: Vec<&ast::Expr> = match ret.value.as_deref() {
            Some(ast::Expr::Tuple(tuple)) => tuple.elts.iter().collect(),
            Some(single) => vec![single],
            None => Vec::new(),
        };
        for value in values {
            if let ast::Expr::Name(name) = value
                && parameters.contains(&name.id.as_str())
                && unit.names.values(name.id.as_str()).is_empty()
            {
                report.unit(unit, value.range(), format!("returns its argument `{}`", name.id));
            }
        }
    });
}
