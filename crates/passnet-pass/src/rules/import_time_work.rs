//! `import-time-work`: tensors, kernel launches and calls of host functions at the top level of a file

use super::{Context, Example, Report, Rule, Severity};
use super::{Role, facts};
use crate::load::Binding;
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "import-time-work",
    severity: Severity::Refuse,
    what: "Tensors, kernel launches and calls of host functions at the top level of a file",
    why: "Work done when a file is loaded is outside every measurement, and its results can be handed out later",
    limits: "Constants, configurations and decorators are fine",
    instead: "do it inside the wrapper",
    example: Example::Lines { top: "BUFFER = torch.zeros(1024)", body: "" },
    honest: Example::Lines {
        top: "CONFIGS = [triton.Config({'BLOCK': 1024}, num_warps=4)]",
        body: "",
    },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.units.iter().filter(|unit| unit.role == Role::TopLevel) {
        facts::calls(unit, |call| {
            let path = unit.names.path(&call.func).unwrap_or_default();
            let allowed = matches!(
                path.as_str(),
                "torch.fx.wrap" | "torch.device" | "torch.finfo" | "torch.iinfo"
            );
            if path.starts_with("torch.") && !allowed {
                report.unit(
                    unit,
                    call.range(),
                    format!("`{path}` is called while the file is loaded"),
                );
            } else if facts::launched(call).is_some() {
                report.unit(unit, call.range(), "a kernel is launched while the file is loaded");
            } else if let ast::Expr::Name(name) = &*call.func
                && let Some((_, Binding::Function(_))) = unit.names.global(name.id.as_str())
            {
                report.unit(
                    unit,
                    call.range(),
                    format!("`{}` is called while the file is loaded", name.id),
                );
            }
        });
    }
}
