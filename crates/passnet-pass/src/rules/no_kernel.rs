//! `no-kernel`: a wrapper that launches no kernel

use super::{Context, Example, Report, Rule, Severity};
use super::{Role, facts};
use passnet_graph::syntax::Ranged;

pub(super) const RULE: Rule = Rule {
    id: "no-kernel",
    severity: Severity::Refuse,
    what: "A wrapper that launches no kernel",
    why: "Without a kernel the wrapper either computes nothing or has the framework compute",
    limits: "A pass that only removes an operation without effect launches nothing; it gains little and is refused with the others",
    example: Example::File(
        r#"import torch

def wrapper(x):
    return torch.empty_like(x)

def pattern(x):
    return torch.relu(x)

def replacement_args(x):
    return (x,)

def replacement_func():
    return wrapper
"#,
    ),
    honest: Example::Lines { top: "", body: "" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    let Some(wrapper) = context.wrapper() else { return };
    let mut launches = false;
    for unit in context.units.iter().filter(|unit| unit.role == Role::Host) {
        facts::calls(unit, |call| launches |= facts::launched(call).is_some());
    }
    if !launches {
        let range = wrapper.function.map(|function| function.name.range()).unwrap_or_default();
        report.unit(wrapper, range, "no kernel is launched");
    }
}
