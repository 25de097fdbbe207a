//! `inline-code`: inline assembly, external libraries and code compiled from strings

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::Ranged;

pub(super) const RULE: Rule = Rule {
    id: "inline-code",
    severity: Severity::Warn,
    what: "Inline assembly, external libraries and code compiled from strings",
    why: "Foreign code does whatever it likes and cannot be read here",
    limits: "Inline assembly is sometimes the only way to a fast instruction",
    instead: "write the kernel in Triton",
    example: Example::Lines { top: "", body: "lib = triton.compile('code')" },
    honest: Example::Lines { top: "", body: "blocks = triton.cdiv(n, 1024)" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in &context.units {
        facts::calls(unit, |call| {
            let path = unit.names.path(&call.func).unwrap_or_default();
            let refused = path == "triton.compile"
                || path.starts_with("torch.utils.cpp_extension")
                || path.starts_with("torch.utils.dlpack");
            if refused {
                report.unit_as(
                    unit,
                    call.range(),
                    Severity::Refuse,
                    format!("`{path}` runs code that is not in the text"),
                );
            } else if path.ends_with(".inline_asm_elementwise")
                || path.ends_with(".extern_elementwise")
            {
                report.unit(unit, call.range(), format!("`{path}` cannot be checked"));
            }
        });
    }
}
