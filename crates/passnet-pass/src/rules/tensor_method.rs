//! `tensor-method`: methods of tensors that compute, in host code

use super::{Context, Example, Report, Rule, Severity};
use super::{Unit, facts};
use passnet_graph::Arg;
use passnet_graph::graph::CalleeKind;
use passnet_graph::ops::{self, Alias, Class};
use passnet_graph::syntax::{Ranged, ast};
use rustc_hash::FxHashSet;

pub(super) const RULE: Rule = Rule {
    id: "tensor-method",
    severity: Severity::Refuse,
    what: "Methods of tensors that compute, in host code",
    why: "`x.relu()` is the framework's operation in another spelling",
    limits: "Views, sizes and allocations (`x.view`, `x.numel()`, `x.new_empty`) are fine, and so are `zero_()` and `fill_(number)` of a buffer that the wrapper has made, or of an argument that the pattern updates too; conversions are only warned about, because many passes bring inputs to one dtype",
    instead: "do it in a `@triton.jit` kernel",
    example: Example::Lines { top: "", body: "y = x.relu()" },
    honest: Example::Lines { top: "", body: "y = x.view(-1).contiguous()\nout.zero_()" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        let tensors = facts::tensors(context, unit);
        facts::calls(unit, |call| {
            let ast::Expr::Attribute(method) = &*call.func else { return };
            let name = method.attr.as_str();
            // Nothing but a tensor has these.
            let fills = matches!(name, "zero_" | "fill_");
            if facts::is_metadata_method(name) || !(fills || is_tensor(&method.value, &tensors)) {
                return;
            }
            if fills && may_be_filled(context, unit, &method.value, 0) {
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

/// A buffer that the function makes itself, or an argument that the pattern updates as well.
fn may_be_filled(
    context: &Context<'_>,
    unit: &Unit<'_>,
    receiver: &ast::Expr,
    hops: usize,
) -> bool {
    /// `a = b; b = a` has no end.
    const MAX_HOPS: usize = 16;
    let inner = |receiver: &ast::Expr| may_be_filled(context, unit, receiver, hops + 1);
    match receiver {
        _ if hops > MAX_HOPS => false,
        ast::Expr::Name(name) => {
            let values = unit.names.values(name.id.as_str());
            match values.is_empty() {
                true => is_updated_by_pattern(context, unit, name.id.as_str()),
                false => values.iter().all(|value| inner(value)),
            }
        }
        ast::Expr::Call(call) => {
            let makes = |path: &str| facts::ALLOCATORS.contains(&path) && path != "torch.as_tensor";
            if unit.names.path(&call.func).is_some_and(|path| makes(path.as_str())) {
                return true;
            }
            match &*call.func {
                ast::Expr::Attribute(method) => {
                    method.attr.as_str().starts_with("new_")
                        || is_view_method(method.attr.as_str()) && inner(&method.value)
                }
                _ => false,
            }
        }
        ast::Expr::Subscript(subscript) => inner(&subscript.value),
        _ => false,
    }
}

fn is_view_method(name: &str) -> bool {
    ops::spelling(CalleeKind::Method, name)
        .is_some_and(|spelling| !spelling.mutates && spelling.op.alias() == Alias::View)
}

/// Whether an argument of the wrapper stands for a value that the pattern updates in place.
fn is_updated_by_pattern(context: &Context<'_>, unit: &Unit<'_>, name: &str) -> bool {
    let (Some(pass), Some(function)) = (context.traced, unit.function) else { return false };
    if !context.wrapper().is_some_and(|wrapper| std::ptr::eq(wrapper, unit)) {
        return false;
    }
    let mut parameters = function.parameters.iter_non_variadic_params();
    let index = parameters.position(|parameter| parameter.parameter.name.as_str() == name);
    let argument = index.and_then(|index| pass.arguments.graph.outputs.get(index)?.as_node());
    // `replacement_args` has the pattern's arguments, in the pattern's order.
    let Some(argument) = argument.filter(|id| pass.arguments.graph.call(*id).is_none()) else {
        return false;
    };
    pass.pattern.graph.calls().any(|(_, call)| {
        call.bind().is_ok_and(|bound| bound.mutated().and_then(Arg::as_node) == Some(argument))
    })
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
