//! `class-hook`: classes that hook into PyTorch or Python: torch base classes, `__torch_function__`, `__del__` and similar methods

use super::facts;
use super::{Context, Example, Report, Rule, Severity};
use passnet_graph::syntax::{Ranged, ast};

pub(super) const RULE: Rule = Rule {
    id: "class-hook",
    severity: Severity::Refuse,
    what: "Classes that hook into PyTorch or Python: torch base classes, `__torch_function__`, `__del__` and similar methods",
    why: "A hook runs code where nobody calls it: inside a comparison, an operation, or at exit",
    limits: "Plain data classes and enums are fine",
    instead: "write a plain class, a dataclass or an enum with constants, or a function",
    example: Example::Lines {
        top: r#"class Sneaky(torch.Tensor):
    def __torch_function__(self, *args):
        return args"#,
        body: "",
    },
    honest: Example::Lines {
        top: r#"from dataclasses import dataclass
@dataclass
class Config:
    block: int = 1024"#,
        body: "",
    },
    check,
};

const HOOKS: &[&str] = &[
    "__torch_function__",
    "__torch_dispatch__",
    "__del__",
    "__getattribute__",
    "__getattr__",
    "__eq__",
    "__array__",
    "__dlpack__",
    "__reduce__",
    "__init_subclass__",
    "__set_name__",
    "__class_getitem__",
];

fn check(context: &Context<'_>, report: &mut Report<'_>) {
    for unit in &context.units {
        facts::walk(unit, &mut |item| {
            let facts::Item::Stmt(ast::Stmt::ClassDef(class)) = item else { return };
            if let Some(arguments) = &class.arguments {
                for base in &arguments.args {
                    if let Some(path) = unit.names.any_path(base, |path| path.starts_with("torch"))
                    {
                        report.unit(
                            unit,
                            base.range(),
                            format!("class `{}` is derived from `{path}`", class.name),
                        );
                    }
                }
            }
            for method in class.body.iter().filter_map(ast::Stmt::as_function_def_stmt) {
                if HOOKS.contains(&method.name.as_str()) {
                    report.unit(
                        unit,
                        method.name.range(),
                        format!("method `{}` runs without being called", method.name),
                    );
                }
            }
        });
    }
}
