//! `forbidden-module`: imports of modules other than torch, triton and a few harmless ones

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "forbidden-module",
    severity: Severity::Refuse,
    what: "Imports of modules other than torch, triton and a few harmless ones",
    why: "Files, processes, threads, sockets, timers, frames and foreign code are the ways to cheat a benchmark; a pass needs none of them",
    limits: "A harmless module that is missing from the list is refused too",
    instead: "a pass may import `torch`, `triton`, `math`, `typing`, `functools`, `dataclasses`, `enum` and the like, and files of its own folder",
    example: Example::Lines { top: "import os", body: "" },
    honest: Example::Lines {
        top: r#"import functools
from typing import Optional"#,
        body: "",
    },
    check,
};

const ALLOWED: &[&str] = &[
    "torch",
    "triton",
    "math",
    "cmath",
    "operator",
    "typing",
    "typing_extensions",
    "functools",
    "itertools",
    "collections",
    "dataclasses",
    "enum",
    "numbers",
    "__future__",
    "abc",
    "contextlib",
    "string",
    "textwrap",
    "warnings",
    "logging",
];

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in &context.units {
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(stmt) = item else { return };
            let found: Vec<(u32, &str)> = match stmt {
                ast::Stmt::Import(import) => {
                    import.names.iter().map(|a| (0, a.name.as_str())).collect()
                }
                ast::Stmt::ImportFrom(import) => {
                    vec![(import.level, import.module.as_ref().map_or("", |name| name.as_str()))]
                }
                _ => return,
            };
            for (level, path) in found {
                let first = path.split('.').next().unwrap_or(path);
                let local = level > 0
                    || first == "pass_dir"
                    || context.program.import(unit.module, level, path).is_some()
                    || context
                        .program
                        .folder_of(unit.module)
                        .file_name()
                        .is_some_and(|name| name == first);
                if !local && !ALLOWED.contains(&first) {
                    report.at(
                        unit.module,
                        stmt.range(),
                        Severity::Refuse,
                        format!("imports `{path}`"),
                    );
                }
            }
        });
    }
}
