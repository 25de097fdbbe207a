//! `unwritten-output`: a returned buffer that no kernel and no helper ever gets

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};
use rustc_hash::FxHashSet;

pub(super) const RULE: Rule = Rule {
    id: "unwritten-output",
    severity: Severity::Refuse,
    what: "A returned buffer that no kernel and no helper ever gets",
    why: "Uninitialised memory may hold the expected result; zeros may be close to it",
    limits: "A buffer handed on through another name or a container is assumed to be written",
    example: Example::Lines {
        top: "",
        body: r#"spare = torch.empty_like(x)
if n == 0:
    return spare"#,
    },
    honest: Example::Lines { top: "", body: "out2 = out.view(-1)" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        let allocated = |name: &str| {
            let values = unit.names.values(name);
            !values.is_empty()
                && values.iter().all(|value| match value {
                    ast::Expr::Call(call) => unit
                        .names
                        .path(&call.func)
                        .is_some_and(|path| facts::ALLOCATORS.contains(&path.as_str())),
                    _ => false,
                })
        };
        // Every mention of the name other than its allocation, its return and its attributes hands it on.
        let mut handed: FxHashSet<&str> = FxHashSet::default();
        facts::expressions(unit, |expr| match expr {
            ast::Expr::Call(call) => {
                let values = call
                    .arguments
                    .args
                    .iter()
                    .chain(call.arguments.keywords.iter().map(|k| &k.value));
                let is_allocator = unit
                    .names
                    .path(&call.func)
                    .is_some_and(|p| facts::ALLOCATORS.contains(&p.as_str()));
                if !is_allocator {
                    values.for_each(|value| names_in(value, &mut handed));
                }
                // A view of it may be what is written.
                if let ast::Expr::Attribute(method) = &*call.func {
                    names_in(&method.value, &mut handed);
                }
            }
            ast::Expr::List(list) => list.elts.iter().for_each(|item| names_in(item, &mut handed)),
            ast::Expr::Dict(dict) => {
                dict.items.iter().for_each(|item| names_in(&item.value, &mut handed))
            }
            _ => {}
        });
        facts::walk(unit, &mut |item| {
            if let facts::Item::Stmt(ast::Stmt::Assign(assign)) = item {
                names_in(&assign.value, &mut handed);
            }
        });
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(ast::Stmt::Return(ret)) = item else { return };
            let values: Vec<&ast::Expr> = match ret.value.as_deref() {
                Some(ast::Expr::Tuple(tuple)) => tuple.elts.iter().collect(),
                Some(single) => vec![single],
                None => Vec::new(),
            };
            for value in values {
                let direct = matches!(value, ast::Expr::Call(call)
                    if unit.names.path(&call.func).is_some_and(|path| facts::ALLOCATORS.contains(&path.as_str())));
                let unwritten = matches!(value, ast::Expr::Name(name)
                    if allocated(name.id.as_str()) && !handed.contains(name.id.as_str()));
                if direct || unwritten {
                    report.unit(unit, value.range(), "returns a buffer that nothing writes");
                }
            }
        });
    }
}

fn names_in<'a>(expr: &'a ast::Expr, names: &mut FxHashSet<&'a str>) {
    match expr {
        ast::Expr::Name(name) => {
            names.insert(name.id.as_str());
        }
        ast::Expr::Tuple(tuple) => tuple.elts.iter().for_each(|item| names_in(item, names)),
        ast::Expr::Starred(starred) => names_in(&starred.value, names),
        ast::Expr::Subscript(subscript) => names_in(&subscript.value, names),
        _ => {}
    }
}
