//! `no-kernel`: a wrapper that launches no kernel, for a pattern that computes something

use super::{Context, Example, Report, Rule, Severity};
use super::{Role, Unit, facts};
use crate::load::Binding;
use passnet_graph::Arg;
use passnet_graph::graph::CalleeKind;
use passnet_graph::ops::{self, Alias, Bound, Class, Op};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "no-kernel",
    severity: Severity::Refuse,
    what: "A wrapper that launches no kernel, for a pattern that computes something",
    why: "Without a kernel the wrapper either computes nothing or has the framework compute",
    limits: "A pattern of nothing but views and operations without effect (dropout that is off, `x * 1.0`, `x.repeat(1, 1)`) needs no kernel, as long as the wrapper only hands back its arguments and views of them",
    instead: "launch a `@triton.jit` kernel that does the work, as `kernel[grid](...)`",
    example: Example::File(
        r#"import torch

def wrapper(x):
    return x

def pattern(x):
    return torch.relu(x)

def replacement_args(x):
    return (x,)

def replacement_func():
    return wrapper
"#,
    ),
    honest: Example::File(
        r#"import torch

def wrapper(x):
    return x.transpose(1, 2)

def pattern(x):
    still = torch.nn.functional.dropout(x, 0.1, False, False)
    return still.transpose(1, 2)

def replacement_args(x):
    return (x,)

def replacement_func():
    return wrapper
"#,
    ),
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    let Some(wrapper) = context.wrapper() else { return };
    let mut launches = false;
    let host: Vec<&Unit<'_>> =
        context.units.iter().filter(|unit| unit.role == Role::Host).collect();
    for unit in &host {
        facts::calls(unit, |call| launches |= facts::launched(call).is_some());
    }
    if launches || (pattern_only_looks(context) && host.iter().all(|unit| only_looks(unit))) {
        return;
    }
    let range = wrapper.function.map(|function| function.name.range()).unwrap_or_default();
    report.unit(wrapper, range, "no kernel is launched");
}

/// Whether eager, too, may hand back an argument or a view of it for every operation of the pattern.
fn pattern_only_looks(context: &Context<'_>) -> bool {
    let Some(pass) = context.traced else { return false };
    pass.pattern.graph.calls().all(|(_, call)| {
        call.bind().is_ok_and(|bound| {
            let looks = match bound.class() {
                Class::Random => !bound.is_random(),
                _ => bound.alias() != Alias::Fresh || is_neutral(&bound),
            };
            looks && bound.mutated().is_none()
        })
    })
}

/// Whether an operation gives the values that it takes, whatever they are. Whether memory may be shared there is for the
/// judge to see.
fn is_neutral(bound: &Bound<'_>) -> bool {
    let is = |name: &str, value: f64| match bound.arg(name) {
        Arg::Int(given) => *given as f64 == value,
        Arg::Float(given) => *given == value,
        _ => false,
    };
    let repeats = |name: &str| bound.rest(name).iter().all(|times| *times == Arg::Int(1));
    match bound.op {
        Op::Mul => is("other", 1.0) || is("input", 1.0),
        Op::Div => is("other", 1.0) && bound.arg("rounding_mode").is_none(),
        // Not `x + 0`: that makes a zero of a negative zero.
        Op::Sub => is("other", 0.0),
        Op::Repeat => repeats("repeats"),
        Op::Tile => repeats("dims"),
        Op::RepeatInterleave => is("repeats", 1.0),
        _ => false,
    }
}

/// Whether all that a function calls are views of tensors and functions of the folder: no allocation, no arithmetic, no
/// copy.
fn only_looks(unit: &Unit<'_>) -> bool {
    let mut looks = true;
    facts::expressions(unit, |expr| {
        looks &= match expr {
            ast::Expr::Call(call) => is_view(call) || is_own(unit, call),
            ast::Expr::UnaryOp(unary) => unary.operand.is_number_literal_expr(),
            // `dispatch` tells routes by their names.
            ast::Expr::Compare(compare) => {
                compare.comparators.iter().all(ast::Expr::is_string_literal_expr)
            }
            ast::Expr::Name(_)
            | ast::Expr::Attribute(_)
            | ast::Expr::Subscript(_)
            | ast::Expr::Slice(_)
            | ast::Expr::Tuple(_)
            | ast::Expr::List(_)
            | ast::Expr::Starred(_)
            | ast::Expr::NumberLiteral(_)
            | ast::Expr::StringLiteral(_)
            | ast::Expr::BooleanLiteral(_)
            | ast::Expr::NoneLiteral(_)
            | ast::Expr::EllipsisLiteral(_) => true,
            _ => false,
        };
    });
    looks
}

/// A method that never copies: `x.view(…)`, but not `x.reshape(…)`.
fn is_view(call: &ast::ExprCall) -> bool {
    let ast::Expr::Attribute(method) = &*call.func else { return false };
    ops::spelling(CalleeKind::Method, method.attr.as_str()).is_some_and(|spelling| {
        !spelling.mutates
            && spelling.op.class() == Class::View
            && spelling.op.alias() == Alias::View
    })
}

/// A function of the folder, which is looked at too, or the exception of a route that nobody asks for.
fn is_own(unit: &Unit<'_>, call: &ast::ExprCall) -> bool {
    let ast::Expr::Name(name) = &*call.func else { return false };
    match unit.names.global(name.id.as_str()) {
        Some((_, Binding::Function(_))) => true,
        Some(_) => false,
        None => name.id.as_str() == "ValueError" && !unit.names.is_local("ValueError"),
    }
}
