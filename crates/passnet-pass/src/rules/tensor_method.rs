//! `tensor-method`: methods of tensors that compute, in host code

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::graph::CalleeKind;
use passnet_graph::ops::{self, Class};
use passnet_graph::syntax::{Ranged, ast};
use rustc_hash::FxHashSet;

pub(super) const RULE: Rule = Rule {
    id: "tensor-method",
    severity: Severity::Refuse,
    what: "Methods of tensors that compute, in host code",
    why: "`x.relu()` is the framework's operation in another spelling",
    limits: "Views, sizes and allocations (`x.view`, `x.numel()`, `x.new_empty`) are fine; conversions are only warned about, because many passes bring inputs to one dtype",
    example: Example::Lines { top: "", body: "y = x.relu()" },
    honest: Example::Lines { top: "", body: "y = x.view(-1).contiguous()" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        let tensors = facts::tensors(context, unit);
        facts::calls(unit, |call| {
            let ast::Expr::Attribute(method) = &*call.func else { return };
            let name = method.attr.as_str();
            if facts::is_metadata_method(name) || !is_tensor(&method.value, &tensors) {
                return;
            }
            let Some(spelling) = ops::spelling(CalleeKind::Method, name) else { return };
            if !spelling.mutates && matches!(spelling.op.class(), Class::View | Class::Movement) {
                report.unit_as(
                    unit,
                    call.range(),
                    Severity::Warn,
                    format!("`.{name}()` copies or converts outside a kernel"),
                );
            } else {
                report.unit(unit, call.range(), format!("`.{name}()` computes outside a kernel"));
            }
        });
    }
}

/// A tensor's name, or a method chain on one.
pub(super) fn is_tensor(expr: &ast::Expr, tensors: &FxHashSet<&str>) -> bool {
    match expr {
        ast::Expr::Name(name) => tensors.contains(name.id.as_str()),
        ast::Expr::Call(call) => match &*call.func {
            ast::Expr::Attribute(method) => {
                let returns_tensor = ops::spelling(CalleeKind::Method, method.attr.as_str())
                    .is_some_and(|spelling| spelling.op.class() != Class::Scalar);
                returns_tensor && is_tensor(&method.value, tensors)
            }
            _ => false,
        },
        ast::Expr::Subscript(subscript) => is_tensor(&subscript.value, tensors),
        _ => false,
    }
}
