//! `blocked-import`: imports of `torch.nn`, `torch.ops` and `torch.autograd`

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "blocked-import",
    severity: Severity::Note,
    what: "Imports of `torch.nn`, `torch.ops` and `torch.autograd`",
    why: "The reference skips a file that imports them, wherever they are used. Here only the use counts (see `framework-call`), so this is a note for those who also run the reference",
    limits: "None: it reports exactly what the reference refuses",
    instead: "call the operation in `pattern` by its full name, such as `torch.nn.functional.gelu`",
    example: Example::Lines { top: "import torch.nn.functional as F", body: "" },
    honest: Example::Lines { top: "import math", body: "" },
    check,
};

const BLOCKED: &[&str] = &["torch.nn", "torch.nn.functional", "torch.ops", "torch.autograd"];

fn is_blocked(path: &str) -> bool {
    BLOCKED.iter().any(|blocked| {
        path.strip_prefix(blocked).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in &context.units {
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(stmt) = item else { return };
            let paths: Vec<String> = match stmt {
                ast::Stmt::Import(import) => {
                    import.names.iter().map(|a| a.name.to_string()).collect()
                }
                ast::Stmt::ImportFrom(import) => {
                    let base = import.module.as_ref().map_or("", |name| name.as_str());
                    import.names.iter().map(|alias| format!("{base}.{}", alias.name)).collect()
                }
                _ => return,
            };
            if let Some(path) = paths.iter().find(|path| is_blocked(path)) {
                report.unit(
                    unit,
                    stmt.range(),
                    format!("the reference refuses files that import `{path}`"),
                );
            }
        });
    }
}
