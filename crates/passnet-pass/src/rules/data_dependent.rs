//! `data-dependent`: host code that looks at the content of tensors: `.item()`, `.tolist()`, `.cpu()`, `.numpy()`, `bool(...)`

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "data-dependent",
    severity: Severity::Refuse,
    what: "Host code that looks at the content of tensors: `.item()`, `.tolist()`, `.cpu()`, `.numpy()`, `bool(...)`",
    why: "A fast path chosen by looking at the data is right on this data only; and looking costs a synchronisation. Kernels may look, wrappers may not",
    limits: "A conversion of a size, `int(x.numel())`, is fine",
    instead: "decide by shape and dtype, or look at the data in a kernel",
    example: Example::Lines { top: "", body: "flag = x.max().item()" },
    honest: Example::Lines { top: "", body: "size = int(x.numel())" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.host() {
        facts::calls(unit, |call| {
            if let ast::Expr::Attribute(method) = &*call.func
                && matches!(
                    method.attr.as_str(),
                    "item"
                        | "tolist"
                        | "cpu"
                        | "numpy"
                        | "__bool__"
                        | "__float__"
                        | "__int__"
                        | "any"
                        | "all"
                        | "equal"
                        | "allclose"
                        | "nonzero"
                )
                && unit.names.path(&method.value).is_none()
            {
                report.unit(
                    unit,
                    call.range(),
                    format!("`.{}()` looks at the content of a tensor", method.attr),
                );
            }
        });
    }
}
