//! `clock`: streams, events, synchronisation, CUDA graphs and timers in host code

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "clock",
    severity: Severity::Refuse,
    what: "Streams, events, synchronisation, CUDA graphs and timers in host code",
    why: "Work on another stream, or a patched event, is work that the clock does not see",
    limits: "Reading the number of multiprocessors (`torch.cuda.get_device_properties`) is fine",
    instead: "leave timing to the benchmark",
    example: Example::Lines { top: "", body: "stream = torch.cuda.Stream()" },
    honest: Example::Lines {
        top: "",
        body: "sms = torch.cuda.get_device_properties(x.device).multi_processor_count",
    },
    check,
};

pub(super) fn is_clock(path: &str) -> bool {
    let allowed = matches!(
        path,
        "torch.cuda"
            | "torch.cuda.get_device_properties"
            | "torch.cuda.current_device"
            | "torch.cuda.get_device_capability"
            | "torch.cuda.is_available"
            | "torch.cuda.device"
    );
    let below = |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'));
    (below("torch.cuda")
        || below("torch.accelerator")
        || below("torch.xpu")
        || below("triton.testing"))
        && !allowed
}

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in context.executed() {
        facts::expressions(unit, |expr| {
            if let ast::Expr::Attribute(_) | ast::Expr::Name(_) = expr
                && let Some(path) = unit.names.any_path(expr, is_clock)
            {
                report.unit(
                    unit,
                    expr.range(),
                    format!("`{path}` reaches for the clock or the order of execution"),
                );
            }
        });
    }
}
