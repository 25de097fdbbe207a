//! `lazy-result`: generators, coroutines and callbacks in host code

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "lazy-result",
    severity: Severity::Refuse,
    what: "Generators, coroutines and callbacks in host code",
    why: "A result that is computed when somebody looks at it is computed outside the clock",
    limits: "None known",
    instead: "compute everything before the wrapper returns",
    example: Example::Lines { top: "", body: "gen = (yield x)" },
    honest: Example::Lines { top: "", body: "blocks = [b for b in (64, 128)]" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        if let Some(function) = unit.function.filter(|function| function.is_async) {
            report.unit(unit, function.name.range(), "an asynchronous wrapper computes later");
        }
        facts::expressions(unit, |expr| {
            if matches!(expr, ast::Expr::Yield(_) | ast::Expr::YieldFrom(_) | ast::Expr::Await(_)) {
                report.unit(unit, expr.range(), "computes when somebody looks at the result");
            }
        });
    }
}
