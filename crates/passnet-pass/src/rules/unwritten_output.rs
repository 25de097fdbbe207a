//! `unwritten-output`: a returned buffer that no kernel and no helper ever gets

use super::{Context, Example, Report, Rule, Severity};
use super::{Unit, facts};
use passnet_graph::syntax::{Ranged, TextRange, ast};
use rustc_hash::FxHashSet;

pub(super) const RULE: Rule = Rule {
    id: "unwritten-output",
    severity: Severity::Refuse,
    what: "A returned buffer that no kernel and no helper ever gets",
    why: "Uninitialised memory may hold the expected result; zeros may be close to it",
    limits: "A buffer handed on through another name or a container is assumed to be written; one that is returned because an argument has no elements need not be",
    instead: "give the buffer to a kernel that writes all of it before you return it",
    example: Example::Lines {
        top: "",
        body: r#"spare = torch.empty_like(x)
if n == 1:
    return spare"#,
    },
    honest: Example::Lines {
        top: "",
        body: r#"if n == 0:
    return torch.empty_like(x)"#,
    },
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
        let for_nothing = returns_for_nothing(unit);
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(ast::Stmt::Return(ret)) = item else { return };
            if for_nothing.contains(&ret.range()) {
                return;
            }
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

/// The `return` statements that are reached only if an argument has no elements.
fn returns_for_nothing(unit: &Unit<'_>) -> Vec<TextRange> {
    let mut found = Vec::new();
    facts::walk(unit, &mut |item| {
        if let facts::Item::Stmt(ast::Stmt::If(block)) = item
            && is_empty_test(unit, &block.test)
        {
            let direct = block.body.iter().filter_map(ast::Stmt::as_return_stmt);
            found.extend(direct.map(Ranged::range));
        }
    });
    found
}

/// `x.numel() == 0` in its usual spellings.
fn is_empty_test(unit: &Unit<'_>, test: &ast::Expr) -> bool {
    let zero = |expr: &ast::Expr| matches!(expr, ast::Expr::NumberLiteral(literal) if literal.value.as_int().is_some_and(|i| i.as_u64() == Some(0)));
    match test {
        ast::Expr::BoolOp(boolean) => boolean.values.iter().all(|value| is_empty_test(unit, value)),
        ast::Expr::UnaryOp(unary) => {
            unary.op == ast::UnaryOp::Not && is_size_of_argument(unit, &unary.operand, 0)
        }
        ast::Expr::Compare(compare) => {
            let ([op], [right]) = (&*compare.ops, &*compare.comparators) else { return false };
            let left = &*compare.left;
            let is_size = |expr: &ast::Expr| is_size_of_argument(unit, expr, 0);
            match op {
                ast::CmpOp::Eq => (is_size(left) && zero(right)) || (zero(left) && is_size(right)),
                ast::CmpOp::LtE => is_size(left) && zero(right),
                ast::CmpOp::In => zero(left) && is_shape(unit, right),
                _ => false,
            }
        }
        _ => false,
    }
}

/// `x.numel()`, `x.shape[0]`, products of them, and names that are nothing else.
fn is_size_of_argument(unit: &Unit<'_>, expr: &ast::Expr, hops: usize) -> bool {
    match expr {
        ast::Expr::Call(call) => match &*call.func {
            ast::Expr::Attribute(method) => {
                matches!(method.attr.as_str(), "numel" | "nelement" | "size")
                    && is_argument(unit, &method.value)
            }
            ast::Expr::Name(name) => {
                name.id.as_str() == "len"
                    && call.arguments.args.first().is_some_and(|arg| is_argument(unit, arg))
            }
            _ => false,
        },
        ast::Expr::Subscript(subscript) => is_shape(unit, &subscript.value),
        ast::Expr::BinOp(binary) => {
            binary.op == ast::Operator::Mult
                && is_size_of_argument(unit, &binary.left, hops)
                && is_size_of_argument(unit, &binary.right, hops)
        }
        ast::Expr::Name(name) => {
            let id = name.id.as_str();
            let values = unit.names.values(id);
            hops < 4
                && !values.is_empty()
                && !is_updated(unit, id)
                && values.iter().all(|value| {
                    is_shape(unit, value) || is_size_of_argument(unit, value, hops + 1)
                })
        }
        _ => false,
    }
}

/// `x.shape` or `x.size()` of an argument.
fn is_shape(unit: &Unit<'_>, expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Attribute(attribute) => {
            attribute.attr.as_str() == "shape" && is_argument(unit, &attribute.value)
        }
        ast::Expr::Call(call) => {
            matches!(&*call.func, ast::Expr::Attribute(method)
                if method.attr.as_str() == "size" && is_argument(unit, &method.value))
        }
        _ => false,
    }
}

fn is_argument(unit: &Unit<'_>, expr: &ast::Expr) -> bool {
    let ast::Expr::Name(name) = expr else { return false };
    unit.function.is_some_and(|function| {
        function.parameters.iter().any(|parameter| parameter.name().as_str() == name.id.as_str())
    })
}

/// Whether `name += …` stands anywhere in the function.
fn is_updated(unit: &Unit<'_>, name: &str) -> bool {
    let mut updated = false;
    facts::walk(unit, &mut |item| {
        if let facts::Item::Stmt(ast::Stmt::AugAssign(assign)) = item {
            updated |=
                matches!(&*assign.target, ast::Expr::Name(target) if target.id.as_str() == name);
        }
    });
    updated
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
