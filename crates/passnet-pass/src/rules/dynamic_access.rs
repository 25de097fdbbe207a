//! `dynamic-access`: names computed at run time: `eval`, `exec`, `getattr` with a computed name, `globals()`, `__import__`, `__dict__`, frames, `__file__`

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "dynamic-access",
    severity: Severity::Refuse,
    what: "Names computed at run time: `eval`, `exec`, `getattr` with a computed name, `globals()`, `__import__`, `__dict__`, frames, `__file__`",
    why: "What cannot be read cannot be checked; the same means find the harness, its inputs and its expected outputs",
    limits: r#"`getattr(x, "shape")` with a written-out name is followed like `x.shape`"#,
    instead: "write the name out",
    example: Example::Lines { top: "", body: "f = getattr(torch, 're' + 'lu')" },
    honest: Example::Lines { top: "", body: "size = getattr(x, 'shape')" },
    check,
};

const FUNCTIONS: &[&str] = &[
    "eval",
    "exec",
    "compile",
    "__import__",
    "globals",
    "locals",
    "vars",
    "setattr",
    "delattr",
    "dir",
    "memoryview",
];
const ATTRIBUTES: &[&str] = &[
    "__dict__",
    "__globals__",
    "__builtins__",
    "__class__",
    "__subclasses__",
    "__bases__",
    "__mro__",
    "__code__",
    "__closure__",
    "__getattribute__",
    "__self__",
    "__func__",
    "__wrapped__",
    "__loader__",
    "__spec__",
    "f_back",
    "f_locals",
    "f_globals",
    "tb_frame",
    "gi_frame",
    "cr_frame",
    "__traceback__",
    "as_subclass",
    "__torch_dispatch__",
];

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.units.iter().filter(|unit| unit.role != super::Role::Kernel) {
        facts::expressions(unit, |expr| match expr {
            ast::Expr::Name(name) => {
                let id = name.id.as_str();
                let outside = unit.names.global(id).is_none() && !unit.names.is_local(id);
                if outside
                    && (FUNCTIONS.contains(&id)
                        || matches!(id, "__file__" | "__builtins__" | "__loader__" | "__spec__"))
                {
                    report.unit(
                        unit,
                        expr.range(),
                        format!("`{id}` reaches names that cannot be read from the text"),
                    );
                }
            }
            ast::Expr::Attribute(attribute) if ATTRIBUTES.contains(&attribute.attr.as_str()) => {
                report.unit(
                    unit,
                    expr.range(),
                    format!("`.{}` reaches into Python's internals", attribute.attr),
                );
            }
            ast::Expr::Call(call) => {
                if let ast::Expr::Name(name) = &*call.func
                    && name.id.as_str() == "getattr"
                    && !matches!(call.arguments.args.get(1), Some(ast::Expr::StringLiteral(_)))
                {
                    report.unit(unit, expr.range(), "`getattr` with a computed name");
                }
            }
            _ => {}
        });
    }
}
