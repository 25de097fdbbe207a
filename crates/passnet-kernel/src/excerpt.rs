//! The part of a pass that a kernel needs, as Python that is safe to import.
//!
//! Triton's own compiler reads kernels from files that Python has imported. Of a pass it gets the `@triton.jit`
//! functions that a kernel reaches and nothing that runs when they are imported: decorators, annotations and defaults
//! are replaced, constants are written as the values we computed, imports come from a short list. The functions keep
//! their lines, so that places in Triton's messages are places in the pass.

mod literal;
mod names;

use crate::frontend::{self, Constant, is_constexpr};
use crate::modules::{Binding, FunctionRef, ModuleSet};
use literal::literal;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::ast::Expr;
use passnet_graph::syntax::{Ranged, TextRange};
use std::collections::BTreeMap;

/// Names that a pass is not expected to use.
const TRITON: &str = "_passnet_triton";
const LANGUAGE: &str = "_passnet_tl";

/// Functions and constants one kernel may reach.
const MAX_NAMES: usize = 4096;
/// `A = B; B = C; …` beyond this has no end.
const MAX_ALIASES: usize = 16;

/// Files to import for one kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The files that the kernel needs, reduced to what it needs.
    pub files: Vec<ExcerptFile>,
    /// Which of the files defines the kernel.
    pub main: usize,
}

/// A file of an excerpt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExcerptFile {
    /// The name to import it by.
    pub module: String,
    /// The file of the pass that it was cut from.
    pub path: String,
    /// What is left of its text.
    pub text: String,
}

/// Cuts a kernel and all it reaches out of a pass; `given` are functions that it gets as arguments.
pub fn excerpt(
    modules: &ModuleSet,
    module: usize,
    kernel: &str,
    given: &[(usize, String)],
) -> Result<Excerpt, Diagnostic> {
    let find = |module: usize, name: &str| {
        modules.function(module, name).ok_or_else(|| {
            let file = modules.source(module.min(modules.len() - 1)).path();
            Diagnostic::file(file, format!("no function `{name}` in this file"))
        })
    };
    let function = find(module, kernel)?;
    let mut waiting = vec![function];
    for (module, name) in given {
        waiting.push(find(*module, name)?);
    }
    let mut cutter = Cutter { modules, files: BTreeMap::new(), waiting, count: 0 };
    while let Some(function) = cutter.waiting.pop() {
        cutter.function(function)?;
    }
    let files: Vec<ExcerptFile> =
        cutter.files.iter().map(|(index, file)| file.write(modules, *index)).collect();
    let main = cutter.files.keys().position(|index| *index == function.module).unwrap_or(0);
    Ok(Excerpt { files, main })
}

fn module_name(index: usize) -> String {
    format!("passnet_kernel_{index}")
}

struct Cutter<'a> {
    modules: &'a ModuleSet,
    /// By index of the pass's file.
    files: BTreeMap<usize, File>,
    waiting: Vec<FunctionRef<'a>>,
    count: usize,
}

/// What goes into one file.
#[derive(Default)]
struct File {
    /// Statements before the functions, by the name they bind.
    header: BTreeMap<String, String>,
    /// First line (from 0) and text of each function.
    functions: BTreeMap<usize, String>,
}

impl<'a> Cutter<'a> {
    fn function(&mut self, function: FunctionRef<'a>) -> Result<(), Diagnostic> {
        let FunctionRef { module, def } = function;
        if !function.is_kernel() || def.is_async {
            return Err(self.error(
                module,
                &def.name,
                format!("a kernel reaches `{}`, which is not a `@triton.jit` function", def.name),
            ));
        }
        let line = self.modules.line(module, &def.name) as usize - 1;
        if self.files.entry(module).or_default().functions.contains_key(&line) {
            return Ok(());
        }
        let text = self.text(function)?;
        self.files.entry(module).or_default().functions.insert(line, text);
        let used = names::used(def);
        for name in &used.names {
            self.name(module, name, 0)?;
        }
        for (owner, attribute) in &used.attributes {
            if let Some(Binding::Module(index)) = self.modules.lookup(module, owner) {
                self.name(index, attribute, 0)?;
            }
        }
        Ok(())
    }

    /// Makes `name` mean in the excerpt of a file what it means in the file.
    fn name(&mut self, module: usize, name: &str, depth: usize) -> Result<(), Diagnostic> {
        if self.files.get(&module).is_some_and(|file| file.header.contains_key(name)) {
            return Ok(());
        }
        self.count += 1;
        if self.count > MAX_NAMES || depth > MAX_ALIASES {
            let file = self.modules.source(module).path();
            return Err(Diagnostic::file(file, "a kernel reaches too many names"));
        }
        let Some(binding) = self.modules.lookup(module, name) else {
            // A builtin of Python, or a name that Triton will complain about.
            return Ok(());
        };
        let statement = match binding {
            Binding::Function(function) => {
                self.waiting.push(function);
                let original = function.def.name.as_str();
                if function.module != module {
                    let from = module_name(function.module);
                    format!("from {from} import {original} as {name}")
                } else if original == name {
                    return Ok(());
                } else {
                    return Err(Diagnostic::file(
                        self.modules.source(module).path(),
                        format!(
                            "`{name}` is another name for `{original}`, which kernels cannot use"
                        ),
                    ));
                }
            }
            Binding::Module(index) => {
                self.files.entry(index).or_default();
                format!("import {} as {name}", module_name(index))
            }
            Binding::External(path) => self.import(module, name, &path)?,
            Binding::Assigned(owner, value) => self.constant(module, name, owner, value)?,
        };
        self.files.entry(module).or_default().header.insert(name.to_string(), statement);
        Ok(())
    }

    fn import(&self, module: usize, name: &str, path: &str) -> Result<String, Diagnostic> {
        let allowed = matches!(path, "triton" | "triton.cdiv" | "triton.next_power_of_2" | "math")
            || path == "triton.language"
            || path.starts_with("triton.language.");
        let plain = path.split('.').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        if !allowed || !plain {
            let file = self.modules.source(module).path();
            return Err(Diagnostic::file(file, format!("a kernel cannot use `{path}`"))
                .with_hint("kernels may use `triton`, `triton.language` and `math`"));
        }
        Ok(match path.rsplit_once('.') {
            Some((parent, last)) => format!("from {parent} import {last} as {name}"),
            None => format!("import {path} as {name}"),
        })
    }

    fn constant(
        &mut self,
        module: usize,
        name: &str,
        owner: usize,
        value: &'a Expr,
    ) -> Result<String, Diagnostic> {
        match frontend::constant(self.modules, owner, value)? {
            Constant::Value(known) if self.is_compile_time(owner, value, 0) => {
                Ok(format!("{name} = {LANGUAGE}.constexpr({})", literal(&known, LANGUAGE)))
            }
            // Triton refuses such a constant in a kernel, unless it is a type; its message says what to do.
            Constant::Value(known) => Ok(format!("{name} = {}", literal(&known, LANGUAGE))),
            Constant::Path(path) => self.import(module, name, &path),
        }
    }

    /// Whether the value is a `tl.constexpr`, which alone Triton lets kernels read.
    fn is_compile_time(&self, module: usize, value: &Expr, depth: usize) -> bool {
        match value {
            Expr::Call(call) => is_constexpr(&call.func),
            Expr::BinOp(op) => {
                self.is_compile_time(module, &op.left, depth)
                    || self.is_compile_time(module, &op.right, depth)
            }
            Expr::UnaryOp(op) => self.is_compile_time(module, &op.operand, depth),
            Expr::Name(name) if depth < MAX_ALIASES => {
                match self.modules.lookup(module, name.id.as_str()) {
                    Some(Binding::Assigned(owner, value)) => {
                        self.is_compile_time(owner, value, depth + 1)
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// The function from `def` on, with everything replaced that Python would run.
    fn text(&self, function: FunctionRef<'a>) -> Result<String, Diagnostic> {
        let FunctionRef { module, def } = function;
        let source = self.modules.source(module).text();
        let mut edits: Vec<(TextRange, String)> = Vec::new();
        for parameter in def.parameters.iter_non_variadic_params() {
            let declared = &parameter.parameter;
            if let Some(annotation) = &declared.annotation {
                let gap = TextRange::new(declared.name.range().end(), annotation.range().start());
                if is_constexpr(annotation) {
                    edits.push((annotation.range(), format!("{LANGUAGE}.constexpr")));
                } else if source[gap].contains('(') {
                    edits.push((annotation.range(), "None".into()));
                } else {
                    edits.push((gap.cover(annotation.range()), String::new()));
                }
            }
            if let Some(default) = &parameter.default {
                let value = match frontend::constant(self.modules, module, default)? {
                    Constant::Value(value) => value,
                    Constant::Path(path) => {
                        return Err(self.error(
                            module,
                            &**default,
                            format!("the default is `{path}`, not a constant"),
                        ));
                    }
                };
                edits.push((default.range(), literal(&value, LANGUAGE)));
            }
        }
        let variadic = [&def.parameters.vararg, &def.parameters.kwarg];
        for annotation in variadic.into_iter().flatten().filter_map(|p| p.annotation.as_ref()) {
            edits.push((annotation.range(), "None".into()));
        }
        if let Some(returns) = &def.returns {
            edits.push((returns.range(), "None".into()));
        }
        let name = def.name.range().start().to_usize();
        let before = def.decorator_list.last().map_or(def.range().start(), |d| d.range().end());
        let start = source[before.to_usize()..name].rfind("def").map(|at| before.to_usize() + at);
        let Some(start) = start else {
            return Err(self.error(module, &def.name, "this is not a plain function"));
        };
        let mut text = String::new();
        let mut at = start;
        for (range, replacement) in edits {
            text.push_str(source.get(at..range.start().to_usize()).unwrap_or_default());
            text.push_str(&replacement);
            at = range.end().to_usize();
        }
        text.push_str(source.get(at..def.range().end().to_usize()).unwrap_or_default());
        let line_start = source[..start].rfind('\n').map_or(0, |at| at + 1);
        Ok(dedent(&text, start - line_start))
    }

    fn error(&self, module: usize, at: &impl Ranged, message: impl Into<String>) -> Diagnostic {
        self.modules.source(module).at(at.range(), message)
    }
}

/// Takes `depth` blanks from the front of every line after the first.
fn dedent(text: &str, depth: usize) -> String {
    let cut = |line: &str| {
        let blanks = line.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count();
        line[blanks.min(depth)..].to_string()
    };
    let lines = text.lines().enumerate();
    lines
        .map(|(index, line)| if index == 0 { line.to_string() } else { cut(line) })
        .collect::<Vec<_>>()
        .join("\n")
}

impl File {
    fn write(&self, modules: &ModuleSet, index: usize) -> ExcerptFile {
        let mut header = vec![
            format!("import triton as {TRITON}"),
            format!("import triton.language as {LANGUAGE}"),
        ];
        // Constants last: a module of the pass may be imported for them.
        header.extend(self.header.values().filter(|s| !s.contains(" = ")).cloned());
        header.extend(self.header.values().filter(|s| s.contains(" = ")).cloned());
        let mut lines = vec![header.join("; ")];
        for (line, text) in &self.functions {
            // The decorator goes on the line before, where one stood in the pass.
            let blank = line.saturating_sub(1).saturating_sub(lines.len());
            lines.extend(std::iter::repeat_n(String::new(), blank));
            lines.push(format!("@{TRITON}.jit"));
            lines.extend(text.lines().map(str::to_string));
        }
        lines.push(String::new());
        ExcerptFile {
            module: module_name(index),
            path: modules.source(index).path().to_string(),
            text: lines.join("\n"),
        }
    }
}

#[cfg(test)]
mod tests;
