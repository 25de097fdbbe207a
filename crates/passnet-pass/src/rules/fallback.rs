//! `fallback`: `try` in host code whose handler goes on instead of raising

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "fallback",
    severity: Severity::Refuse,
    what: "`try` in host code whose handler goes on instead of raising",
    why: "A pass that falls back when its kernel fails is measured on the fallback, or hides that it does not work",
    limits: "Handlers that only raise are fine; `try` around imports at the top of a file is fine",
    instead: "let the failure through, or test the condition before the launch",
    example: Example::Lines {
        top: "",
        body: r#"try:
    kernel[(1,)](x, out, n, BLOCK=1024)
except Exception:
    out = x"#,
    },
    honest: Example::Lines {
        top: r#"try:
    import triton.language.extra as extra
except ImportError:
    extra = None"#,
        body: "",
    },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(ast::Stmt::Try(block)) = item else { return };
            for handler in &block.handlers {
                let ast::ExceptHandler::ExceptHandler(handler) = handler;
                if !matches!(handler.body.as_slice(), [.., ast::Stmt::Raise(_)]) {
                    report.unit(
                        unit,
                        handler.range(),
                        "goes on after a failure instead of raising",
                    );
                }
            }
        });
    }
}
