//! `framework-call`: functions of torch, other than allocators, called or passed on in host code, under any alias

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::read::python;
use passnet_graph::syntax::{Ranged, TextRange, ast};

pub(super) const RULE: Rule = Rule {
    id: "framework-call",
    severity: Severity::Refuse,
    what: "Functions of torch, other than allocators, called or passed on in host code, under any alias",
    why: "The pass should replace the framework's operations, not call them",
    limits: "`pattern` and `replacement_args`, and helpers only they use, may call anything: they are traced, never run",
    instead: "do it in a `@triton.jit` kernel; torch only makes buffers here (`torch.empty` and the like)",
    example: Example::Lines { top: "t = torch", body: "y = t.relu(x)" },
    honest: Example::Lines {
        top: "",
        body: "flags = torch.zeros((4,), dtype=torch.int32, device=x.device)",
    },
    check,
};

/// Members of torch that compute nothing.
const HARMLESS: &[&str] = &[
    "torch",
    "torch.Tensor",
    "torch.dtype",
    "torch.device",
    "torch.Size",
    "torch.fx",
    "torch.fx.wrap",
    "torch.finfo",
    "torch.iinfo",
    "torch.cuda",
    "torch.SymInt",
    "torch.memory_format",
    "torch.version",
    "torch.__version__",
];

fn is_framework(path: &str) -> bool {
    let inside = path == "torch" || path.starts_with("torch.");
    inside
        && !HARMLESS.contains(&path)
        && !facts::ALLOCATORS.contains(&path)
        && python::torch_constant(path).is_none()
        && !path.starts_with("torch.cuda.")
        && !path.starts_with("torch.version.")
        && !path.starts_with("torch.finfo.")
        && !path.starts_with("torch.iinfo.")
}

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.executed() {
        // A dotted path is reported once, at its full length.
        let mut inner: Vec<TextRange> = Vec::new();
        facts::expressions(unit, |expr| {
            if inner.contains(&expr.range()) {
                if let ast::Expr::Attribute(attribute) = expr {
                    inner.push(attribute.value.range());
                }
                return;
            }
            let dotted =
                matches!(expr, ast::Expr::Attribute(_) | ast::Expr::Name(_) | ast::Expr::Call(_));
            let Some(path) = unit.names.any_path(expr, is_framework).filter(|_| dotted) else {
                return;
            };
            if let ast::Expr::Attribute(attribute) = expr {
                inner.push(attribute.value.range());
            }
            let module = python_module(&path);
            if module {
                return;
            }
            report.unit(unit, expr.range(), format!("`{path}` is an operation of the framework"));
        });
    }
}

/// A bare module, named but not used.
fn python_module(path: &str) -> bool {
    matches!(
        path,
        "torch.nn"
            | "torch.nn.functional"
            | "torch.ops"
            | "torch.autograd"
            | "torch.linalg"
            | "torch.special"
    )
}
