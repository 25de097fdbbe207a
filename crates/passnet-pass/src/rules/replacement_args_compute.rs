//! `replacement-args-compute`: operations in `replacement_args` that compute

use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::ops::{Class, Op};

pub(super) const RULE: Rule = Rule {
    id: "replacement-args-compute",
    severity: Severity::Refuse,
    what: "Operations in `replacement_args` that compute",
    why: "They become ordinary nodes of the graph: the framework does the work, outside the wrapper",
    limits: "Views and sizes are only noted",
    instead: "compute it in the wrapper or in a kernel",
    example: Example::File(
        r#"import torch
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr))

def wrapper(x):
    kernel[(1,)](x)
    return x

def pattern(x):
    return torch.relu(x).sin()

def replacement_args(x):
    return (torch.relu(x).sin(),)

def replacement_func():
    return wrapper
"#,
    ),
    honest: Example::Lines { top: "", body: "" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    let Some(pass) = context.traced else { return };
    let graph = &pass.arguments.graph;
    for (id, call) in graph.calls() {
        let origin = pass.arguments.origins[id.index()];
        let name = call.target.path();
        let harmless = call.op().is_some_and(|op| {
            matches!(op.class(), Class::View | Class::Scalar) || op == Op::GetItem
        });
        if harmless {
            report.at(
                origin.module,
                origin.range,
                Severity::Note,
                format!("`{name}` stays an operation of the graph"),
            );
        } else {
            report.at(
                origin.module,
                origin.range,
                Severity::Refuse,
                format!("`{name}` is computed by the framework"),
            );
        }
    }
}
