//! `star-import`: `from module import *`

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "star-import",
    severity: Severity::Refuse,
    what: "`from module import *`",
    why: "It binds names that cannot be told from the text",
    limits: "None: write the names out",
    instead: "import the names you use, one by one",
    example: Example::Lines { top: "from triton import *", body: "" },
    honest: Example::Lines { top: "from triton import cdiv", body: "" },
    check,
};

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in &context.units {
        facts::walk(unit, &mut |item| {
            if let facts::Item::Stmt(ast::Stmt::ImportFrom(import)) = item
                && import.names.iter().any(|alias| alias.name.as_str() == "*")
            {
                let module = import.module.as_ref().map_or("", |name| name.as_str());
                report.at(
                    unit.module,
                    import.range(),
                    Severity::Refuse,
                    format!("imports everything from `{module}`"),
                );
            }
        });
    }
}
