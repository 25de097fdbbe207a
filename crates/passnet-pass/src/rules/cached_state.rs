//! `cached-state`: host code that keeps state between calls: `global`, containers and objects at the top level, function attributes, caches, mutable defaults

use super::tensor_method::is_tensor;
use super::{Context, Example, Report, Rule, Severity};
use super::{Unit, facts};
use crate::load::{Binding, ModuleId};
use passnet_graph::syntax::ast::{self, visitor::Visitor};
use passnet_graph::syntax::{Ranged, TextRange};
use rustc_hash::FxHashSet;

pub(super) const RULE: Rule = Rule {
    id: "cached-state",
    severity: Severity::Warn,
    what: "Host code that keeps state between calls: `global`, containers and objects at the top level, function attributes, caches, mutable defaults",
    why: "State that outlives a call can hold results of earlier calls. Every call starts from the file as it is written, so nothing is gained by keeping a workspace or a number; keeping an argument or a result, returning something kept and recognising a kept tensor are refused",
    limits: "A cache of compiled configurations looks the same as a cache of results until something kept is returned",
    instead: "compute it in every call, and make buffers in the wrapper",
    example: Example::Lines {
        top: "LAST_X = None\nLAST_OUT = None",
        body: r#"global LAST_X, LAST_OUT
if x is LAST_X:
    return LAST_OUT
LAST_X, LAST_OUT = x, out"#,
    },
    honest: Example::Lines { top: "SIZES = {64: 2, 128: 4}", body: "warps = SIZES.get(n, 4)" },
    check,
};

/// A name at the top level of a file.
type StateName = (ModuleId, String);

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    let mut written: FxHashSet<StateName> = FxHashSet::default();
    for unit in context.host() {
        let kept = Kept::new(unit);
        kept.writes(|name, _, _| {
            written.insert(name);
        });
    }
    for unit in context.host() {
        let kept = Kept::new(unit);
        let results = results(context, unit);
        kept.writes(|(_, name), range, value| {
            let (severity, message) = match value {
                Some(value) if holds_tensor(value, &results) => (
                    Severity::Refuse,
                    format!("`{name}` keeps an argument or a result beyond the call"),
                ),
                _ => (Severity::Warn, format!("`{name}` outlives the call and is changed here")),
            };
            report.unit_as(unit, range, severity, message);
        });
        decorators(unit, report);
        used(unit, &kept, &written, report);
    }
}

/// What of a function's names lives at the top level of a file.
struct Kept<'u, 'a> {
    unit: &'u Unit<'a>,
    /// Names of `global` statements.
    declared: FxHashSet<&'a str>,
}

impl<'u, 'a> Kept<'u, 'a> {
    fn new(unit: &'u Unit<'a>) -> Self {
        let mut declared = FxHashSet::default();
        facts::walk(unit, &mut |item| {
            if let facts::Item::Stmt(ast::Stmt::Global(stmt)) = item {
                declared.extend(stmt.names.iter().map(|name| name.as_str()));
            }
        });
        Kept { unit, declared }
    }

    fn name(&self, name: &str) -> Option<StateName> {
        if self.declared.contains(name) {
            return Some((self.unit.module, name.to_string()));
        }
        match self.unit.names.global(name)? {
            (_, Binding::Outside(_) | Binding::Module(_)) => None,
            (home, _) => Some((home, name.to_string())),
        }
    }

    /// The name at the top level that an element, an attribute or a method call leads back to.
    fn root(&self, expr: &ast::Expr) -> Option<StateName> {
        match expr {
            ast::Expr::Name(name) => self.name(name.id.as_str()),
            ast::Expr::Attribute(attribute) => self.root(&attribute.value),
            ast::Expr::Subscript(subscript) => self.root(&subscript.value),
            ast::Expr::Call(call) => match &*call.func {
                ast::Expr::Attribute(method) => self.root(&method.value),
                _ => None,
            },
            ast::Expr::Named(named) => self.root(&named.value),
            _ => None,
        }
    }

    /// Every place that changes something at the top level, with the value put there.
    fn writes(&self, mut visit: impl FnMut(StateName, TextRange, Option<&'a ast::Expr>)) {
        facts::walk(self.unit, &mut |item| match item {
            facts::Item::Stmt(stmt @ ast::Stmt::Assign(assign)) => {
                for target in &assign.targets {
                    self.target(target, |name| visit(name, stmt.range(), Some(&*assign.value)));
                }
            }
            facts::Item::Stmt(stmt @ ast::Stmt::AnnAssign(assign)) => {
                let value = assign.value.as_deref();
                self.target(&assign.target, |name| visit(name, stmt.range(), value));
            }
            facts::Item::Stmt(stmt @ ast::Stmt::AugAssign(assign)) => {
                self.target(&assign.target, |name| visit(name, stmt.range(), Some(&*assign.value)));
            }
            facts::Item::Expr(expr @ ast::Expr::Named(named)) => {
                self.target(&named.target, |name| visit(name, expr.range(), Some(&*named.value)));
            }
            facts::Item::Expr(expr @ ast::Expr::Call(call)) => {
                if let ast::Expr::Attribute(method) = &*call.func
                    && CHANGES.contains(&method.attr.as_str())
                    && let Some(name) = self.root(&method.value)
                    && !self.is_function(&method.value)
                {
                    visit(name, expr.range(), call.arguments.args.last());
                }
            }
            _ => {}
        });
    }

    fn target(&self, target: &'a ast::Expr, mut visit: impl FnMut(StateName)) {
        let found = match target {
            ast::Expr::Name(name) if self.declared.contains(name.id.as_str()) => {
                self.name(name.id.as_str())
            }
            ast::Expr::Subscript(subscript) => self.root(&subscript.value),
            ast::Expr::Attribute(attribute) => self.root(&attribute.value),
            ast::Expr::Tuple(tuple) => {
                let found = tuple.elts.iter().filter_map(|target| {
                    let mut found = None;
                    self.target_name(target, &mut found);
                    found
                });
                return found.for_each(visit);
            }
            _ => None,
        };
        found.into_iter().for_each(&mut visit);
    }

    fn target_name(&self, target: &'a ast::Expr, found: &mut Option<StateName>) {
        if !target.is_tuple_expr() {
            self.target(target, |name| *found = Some(name));
        }
    }

    fn is_function(&self, expr: &ast::Expr) -> bool {
        matches!(expr, ast::Expr::Name(name)
            if matches!(self.unit.names.global(name.id.as_str()), Some((_, Binding::Function(_)))))
    }
}

/// Methods that change a container.
const CHANGES: &[&str] = &[
    "append",
    "update",
    "setdefault",
    "add",
    "insert",
    "extend",
    "pop",
    "clear",
    "popitem",
    "remove",
    "discard",
    "appendleft",
];

/// Tensors that belong to one call: arguments and results, as far as the text shows them.
fn results<'a>(context: &Context<'a>, unit: &Unit<'a>) -> FxHashSet<&'a str> {
    let is_wrapper = context.wrapper().is_some_and(|wrapper| std::ptr::eq(wrapper, unit));
    let tensors = facts::tensors(context, unit);
    let mut names: FxHashSet<&str> = FxHashSet::default();
    if let Some(function) = unit.function {
        let parameters = function.parameters.iter().map(|parameter| parameter.name().as_str());
        names.extend(parameters.filter(|name| tensors.contains(name)));
    }
    facts::walk(unit, &mut |item| {
        if let facts::Item::Stmt(ast::Stmt::Return(ret)) = item {
            let values = match ret.value.as_deref() {
                Some(ast::Expr::Tuple(tuple)) => &*tuple.elts,
                Some(single) => std::slice::from_ref(single),
                None => &[],
            };
            let returned =
                values.iter().filter_map(|value| Some(value.as_name_expr()?.id.as_str()));
            names.extend(returned.filter(|name| is_wrapper || tensors.contains(name)));
        }
    });
    names
}

/// Whether a value holds an argument or a result: as it is, in a container, or behind a method such as `view`.
fn holds_tensor(value: &ast::Expr, results: &FxHashSet<&str>) -> bool {
    let inner = |value: &ast::Expr| holds_tensor(value, results);
    match value {
        ast::Expr::Tuple(tuple) => tuple.elts.iter().any(inner),
        ast::Expr::List(list) => list.elts.iter().any(inner),
        ast::Expr::Dict(dict) => dict.items.iter().any(|item| inner(&item.value)),
        ast::Expr::If(choice) => inner(&choice.body) || inner(&choice.orelse),
        // A function that is kept keeps what it sees.
        ast::Expr::Lambda(lambda) => {
            let mut seen = Seen { results, found: false };
            seen.visit_expr(&lambda.body);
            seen.found
        }
        other => is_tensor(other, results),
    }
}

/// Whether any of some names stands in an expression.
struct Seen<'s, 'r> {
    results: &'s FxHashSet<&'r str>,
    found: bool,
}

impl<'a> Visitor<'a> for Seen<'_, '_> {
    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        if let ast::Expr::Name(name) = expr {
            self.found |= self.results.contains(name.id.as_str());
        }
        ast::visitor::walk_expr(self, expr);
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

/// Returning what host code keeps, and asking whether a value is the one that was kept.
fn used(
    unit: &Unit<'_>,
    kept: &Kept<'_, '_>,
    written: &FxHashSet<StateName>,
    report: &mut Report<'_>,
) {
    let state = |expr: &ast::Expr| {
        kept.root(expr).filter(|name| written.contains(name)).map(|(_, name)| name)
    };
    let through_name = |expr: &ast::Expr| match expr {
        ast::Expr::Name(name) if !kept.declared.contains(name.id.as_str()) => {
            unit.names.values(name.id.as_str()).iter().find_map(|value| state(value))
        }
        _ => None,
    };
    facts::walk(unit, &mut |item| match item {
        facts::Item::Stmt(ast::Stmt::Return(ret)) => {
            let values = match ret.value.as_deref() {
                Some(ast::Expr::Tuple(tuple)) => tuple.elts.iter().collect(),
                Some(ast::Expr::If(choice)) => vec![&*choice.body, &*choice.orelse],
                Some(single) => vec![single],
                None => Vec::new(),
            };
            let found = values.into_iter().find_map(|value| state(value).or(through_name(value)));
            if let Some(name) = found {
                let message = format!("returns what `{name}` keeps from an earlier call");
                report.unit_as(unit, ret.range(), Severity::Refuse, message);
            }
        }
        facts::Item::Expr(expr @ ast::Expr::Compare(compare)) => {
            let identity =
                compare.ops.iter().any(|op| matches!(op, ast::CmpOp::Is | ast::CmpOp::IsNot));
            let sides = || std::iter::once(&*compare.left).chain(&compare.comparators);
            let plain =
                sides().any(|side| side.is_none_literal_expr() || side.is_boolean_literal_expr());
            if let Some(name) = sides().find_map(state).filter(|_| identity && !plain) {
                let message =
                    format!("recognises a value that `{name}` keeps from an earlier call");
                report.unit_as(unit, expr.range(), Severity::Refuse, message);
            }
        }
        _ => {}
    });
}
