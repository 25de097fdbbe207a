//! `shadowed-module`: files named like a known module, and names such as `torch` bound to something else

use super::{Context, Example, Report, Rule, Severity};
use super::{Role, facts};
use crate::load::is_well_known;
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "shadowed-module",
    severity: Severity::Refuse,
    what: "Files named like a known module, and names such as `torch` bound to something else",
    why: "A reader, and a check, takes `torch` for torch",
    limits: "None known",
    instead: "use another name",
    example: Example::Lines {
        top: r#"def torch_like():
    return 1
tl = torch_like"#,
        body: "",
    },
    honest: Example::Lines { top: "import torch as th", body: "" },
    check,
};

const RESERVED: &[&str] = &["torch", "triton", "tl", "F", "math", "operator"];

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for &module in &context.modules {
        let folder = context.program.folder_of(module);
        let name = &context.program.module(module).name;
        if is_well_known(name) {
            report.at(
                module,
                Default::default(),
                Severity::Refuse,
                format!("a file named `{name}.py` shadows a module"),
            );
        }
        for known in ["torch", "triton", "math", "operator"] {
            if folder.holds(&format!("{known}.py")) && module == context.pass {
                let message =
                    format!("the folder holds a file `{known}.py`, which shadows a module");
                report.at(module, Default::default(), Severity::Refuse, message);
            }
        }
    }
    for unit in context.units.iter().filter(|unit| unit.role != Role::Kernel) {
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(stmt) = item else { return };
            let (name, range, value) = match stmt {
                ast::Stmt::Assign(assign) => match assign.targets.as_slice() {
                    [ast::Expr::Name(name)] => {
                        (name.id.as_str(), name.range(), Some(&*assign.value))
                    }
                    _ => return,
                },
                ast::Stmt::FunctionDef(function) => {
                    (function.name.as_str(), function.name.range(), None)
                }
                ast::Stmt::ClassDef(class) => (class.name.as_str(), class.name.range(), None),
                _ => return,
            };
            // `F = torch.nn.functional` and `F = 64` mislead nobody; `tl = something_of_ours` does.
            let honest = value.is_some_and(|value| unit.names.path(value).is_some())
                || (name == "F" && unit.names.is_local(name));
            if RESERVED.contains(&name) && !honest {
                report.unit(
                    unit,
                    range,
                    format!("`{name}` is bound to something else than the module of that name"),
                );
            }
        });
    }
}
