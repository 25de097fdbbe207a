//! `forbidden-module`: imports of modules other than torch, triton and a few harmless ones

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use crate::load::ModuleId;
use passnet_graph::syntax::{Ranged, ast};
use rustc_hash::FxHashSet;

pub(super) const RULE: Rule = Rule {
    id: "forbidden-module",
    severity: Severity::Refuse,
    what: "Imports of modules other than torch, triton and a few harmless ones",
    why: "Files, processes, threads, sockets, timers, frames and foreign code are the ways to cheat a benchmark; a pass needs none of them",
    limits: "A harmless module that is missing from the list is refused too, where the file uses it",
    instead: "a pass may import `torch`, `triton`, `math`, `typing`, `functools`, `dataclasses`, `enum` and the like, and files of its own folder",
    example: Example::Lines { top: "import os", body: "os.getpid()" },
    honest: Example::Lines {
        top: r#"import functools
from typing import Optional
import inspect"#,
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
    let used = names(context);
    for unit in &context.units {
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(stmt) = item else { return };
            for Found { level, path, binds } in imports(stmt) {
                let first = path.split('.').next().unwrap_or(path);
                let local = level > 0
                    || first == "pass_dir"
                    || context.program.import(unit.module, level, path).is_some()
                    || context
                        .program
                        .folder_of(unit.module)
                        .path()
                        .file_name()
                        .is_some_and(|name| name == first);
                // Nothing is imported here: a name that no code asks for reaches nothing.
                let is_used =
                    binds.iter().any(|name| *name == "*" || used.contains(&(unit.module, *name)));
                if is_used && !local && !ALLOWED.contains(&first) {
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

/// A module that a statement imports, and the names that it gives to the file.
struct Found<'a> {
    level: u32,
    path: &'a str,
    binds: Vec<&'a str>,
}

fn imports(stmt: &ast::Stmt) -> Vec<Found<'_>> {
    match stmt {
        ast::Stmt::Import(import) => {
            let found = import.names.iter().map(|alias| {
                let path = alias.name.as_str();
                let root = path.split('.').next().unwrap_or(path);
                Found { level: 0, path, binds: vec![bound(alias, root)] }
            });
            found.collect()
        }
        ast::Stmt::ImportFrom(import) => {
            let path = import.module.as_ref().map_or("", |name| name.as_str());
            let binds = import.names.iter().map(|alias| bound(alias, alias.name.as_str()));
            vec![Found { level: import.level, path, binds: binds.collect() }]
        }
        _ => Vec::new(),
    }
}

fn bound<'a>(alias: &'a ast::Alias, unnamed: &'a str) -> &'a str {
    alias.asname.as_ref().map_or(unnamed, ast::Identifier::as_str)
}

/// All names that code of each file asks for.
fn names<'a>(context: &Context<'a>) -> FxHashSet<(ModuleId, &'a str)> {
    let mut found = FxHashSet::default();
    for unit in &context.units {
        facts::expressions(unit, |expr| {
            if let ast::Expr::Name(name) = expr {
                found.insert((unit.module, name.id.as_str()));
            }
        });
    }
    found
}
