//! `cached-state`: host code that keeps state between calls: `global`, containers at the top level, function attributes, caches, mutable defaults

use super::{Context, Example, Report, Rule, Severity};
use super::{Unit, facts};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "cached-state",
    severity: Severity::Warn,
    what: "Host code that keeps state between calls: `global`, containers at the top level, function attributes, caches, mutable defaults",
    why: "State that outlives a call can hold results of earlier calls. Reusing a workspace is honest; returning something kept is not, and is refused",
    limits: "A cache of compiled configurations looks the same as a cache of results until something kept is returned",
    example: Example::Lines {
        top: "CACHE = {}",
        body: r#"if x.shape in CACHE:
    return CACHE[x.shape]
CACHE[x.shape] = out"#,
    },
    honest: Example::Lines { top: "SIZES = {64: 2, 128: 4}", body: "warps = SIZES.get(n, 4)" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        let kept = |expr: &ast::Expr| match expr {
            ast::Expr::Name(name) => facts::is_global_container(unit, name.id.as_str()),
            _ => false,
        };
        let mut writes = false;
        facts::walk(unit, &mut |item| {
            let message = match item {
                facts::Item::Stmt(ast::Stmt::Global(stmt)) => {
                    format!("changes the global `{}`", stmt.names[0])
                }
                facts::Item::Stmt(ast::Stmt::Assign(assign)) => {
                    match assign.targets.iter().find_map(|target| stored(unit, target, &kept)) {
                        Some(what) => what,
                        None => return,
                    }
                }
                facts::Item::Expr(ast::Expr::Call(call)) => match &*call.func {
                    ast::Expr::Attribute(method)
                        if kept(&method.value)
                            && matches!(
                                method.attr.as_str(),
                                "append" | "update" | "setdefault" | "add" | "insert"
                            ) =>
                    {
                        "puts something into a container that outlives the call".into()
                    }
                    _ => return,
                },
                _ => return,
            };
            writes = true;
            let range = match item {
                facts::Item::Stmt(stmt) => stmt.range(),
                facts::Item::Expr(expr) => expr.range(),
            };
            report.unit(unit, range, message);
        });
        decorators(unit, report);
        if writes {
            returned(unit, &kept, report);
        }
    }
}

/// What an assignment keeps beyond the call.
fn stored(
    unit: &Unit<'_>,
    target: &ast::Expr,
    kept: &dyn Fn(&ast::Expr) -> bool,
) -> Option<String> {
    match target {
        ast::Expr::Subscript(subscript) if kept(&subscript.value) => {
            Some("puts something into a container that outlives the call".into())
        }
        ast::Expr::Attribute(attribute) => match &*attribute.value {
            ast::Expr::Name(name)
                if matches!(
                    unit.names.global(name.id.as_str()),
                    Some((_, crate::load::Binding::Function(_)))
                ) =>
            {
                Some(format!("keeps a value as an attribute of `{}`", name.id))
            }
            _ => None,
        },
        _ => None,
    }
}

fn decorators(unit: &Unit<'_>, report: &mut Report<'_>) {
    let Some(function) = unit.function else { return };
    for decorator in &function.decorator_list {
        let callee = match &decorator.expression {
            ast::Expr::Call(call) => &*call.func,
            other => other,
        };
        if unit
            .names
            .path(callee)
            .is_some_and(|path| matches!(path.as_str(), "functools.lru_cache" | "functools.cache"))
        {
            report.unit(unit, decorator.range(), "caches the results of this function");
        }
    }
    for parameter in function.parameters.iter_non_variadic_params() {
        if let Some(default) = &parameter.default
            && matches!(**default, ast::Expr::Dict(_) | ast::Expr::List(_) | ast::Expr::Set(_))
        {
            report.unit(unit, default.range(), "a mutable default outlives the call");
        }
    }
}

/// Returning something out of a container that the function itself fills.
fn returned(unit: &Unit<'_>, kept: &dyn Fn(&ast::Expr) -> bool, report: &mut Report<'_>) {
    let read = |expr: &ast::Expr| match expr {
        ast::Expr::Subscript(subscript) => kept(&subscript.value),
        ast::Expr::Call(call) => match &*call.func {
            ast::Expr::Attribute(method) => method.attr.as_str() == "get" && kept(&method.value),
            _ => false,
        },
        _ => false,
    };
    facts::walk(unit, &mut |item| {
        if let facts::Item::Stmt(ast::Stmt::Return(ret)) = item
            && let Some(value) = &ret.value
        {
            let through_name = match &**value {
                ast::Expr::Name(name) => {
                    let values = unit.names.values(name.id.as_str());
                    !values.is_empty() && values.iter().all(|value| read(value))
                }
                _ => false,
            };
            if read(value) || through_name {
                let message = "returns a value kept from an earlier call";
                report.unit_as(unit, ret.range(), Severity::Refuse, message);
            }
        }
    });
}
