//! The Python files of one pass: parsed once, their top-level names resolved without running anything.

use passnet_graph::Diagnostic;
use passnet_graph::syntax::ast::{Expr, ModModule, Stmt, StmtClassDef, StmtFunctionDef};
use passnet_graph::syntax::{Ranged, Source, parse_imported};
use rustc_hash::FxHashMap;

/// What a top-level name stands for.
#[derive(Debug, Clone)]
pub(crate) enum Binding<'a> {
    Function(FunctionRef<'a>),
    /// The right-hand side of the last assignment to the name.
    Assigned(usize, &'a Expr),
    /// Something from outside the pass, by its dotted path.
    External(String),
    /// Another file of the pass.
    Module(usize),
}

/// A function of a module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FunctionRef<'a> {
    pub(crate) module: usize,
    pub(crate) def: &'a StmtFunctionDef,
}

impl<'a> FunctionRef<'a> {
    /// Whether a decorator of that (last) name stands on the function.
    pub(crate) fn decorator(&self, name: &str) -> Option<&'a Expr> {
        self.def.decorator_list.iter().map(|d| &d.expression).find(|e| {
            let callee = match e {
                Expr::Call(call) => &call.func,
                other => *other,
            };
            match callee {
                Expr::Attribute(a) => a.attr.as_str() == name,
                Expr::Name(n) => n.id.as_str() == name,
                _ => false,
            }
        })
    }

    pub(crate) fn is_kernel(&self) -> bool {
        self.decorator("jit").is_some()
    }
}

/// A class of a module.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassRef<'a> {
    pub(crate) module: usize,
    pub(crate) def: &'a StmtClassDef,
}

/// What a name leads to, through all imports.
enum Found<'a> {
    Binding(Binding<'a>),
    Class(ClassRef<'a>),
}

#[derive(Debug, Clone)]
enum Entry {
    /// Path of statement indices: the top level, or one level inside `try`/`if`.
    Function(StmtPath),
    Class(StmtPath),
    Assigned(StmtPath),
    /// `a, b = 1, 2`: the statement and the position of the name.
    Unpacked(StmtPath, usize),
    External(String),
    From {
        module: String,
        name: String,
    },
}

type StmtPath = Vec<usize>;

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) name: String,
    pub(crate) source: Source,
    ast: ModModule,
    names: FxHashMap<String, Entry>,
}

/// The files of a pass. Helper modules are named by their stem, however they are imported.
#[derive(Debug)]
pub struct ModuleSet {
    modules: Vec<Module>,
}

/// What can be the size of a block: a smaller number is a count of something else.
const BLOCK_SIZES: std::ops::RangeInclusive<i64> = 16..=1 << 16;

/// Chains of `from a import x` longer than this are cycles.
const MAX_IMPORT_CHAIN: usize = 16;

impl ModuleSet {
    /// The first source is the pass file. Each is parsed; a syntax error is returned where it stands.
    pub fn new(sources: Vec<(String, Source)>) -> Result<ModuleSet, Diagnostic> {
        let mut modules = Vec::with_capacity(sources.len());
        for (name, source) in sources {
            let ast = parse_imported(&source)?;
            let mut names = FxHashMap::default();
            collect(&ast.body, &mut Vec::new(), &mut names);
            modules.push(Module { name, source, ast, names });
        }
        Ok(ModuleSet { modules })
    }

    /// The text of a module.
    pub fn source(&self, module: usize) -> &Source {
        &self.modules[module].source
    }

    /// How many modules there are.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// Whether a word stands somewhere in the files.
    pub fn mention(&self, word: &str) -> bool {
        self.modules.iter().any(|module| module.source.text().contains(word))
    }

    /// The powers of two that stand in the files and may be sizes of blocks, the smallest first.
    pub fn block_sizes(&self) -> Vec<i64> {
        let texts = self.modules.iter().map(|module| module.source.text());
        let words = texts.flat_map(|text| text.split(|c: char| !(c.is_alphanumeric() || c == '_')));
        let numbers = words.filter_map(|word| word.parse::<i64>().ok());
        let mut sizes: Vec<i64> =
            numbers.filter(|size| BLOCK_SIZES.contains(size) && size.count_ones() == 1).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.modules.iter().map(|m| m.source.path().to_string()).collect()
    }

    /// Names of the `@triton.jit` functions of the pass file, in order.
    pub fn kernels(&self) -> Vec<String> {
        self.modules
            .first()
            .map(|m| {
                let functions = m.ast.body.iter().filter_map(|s| match s {
                    Stmt::FunctionDef(def) => Some(FunctionRef { module: 0, def }),
                    _ => None,
                });
                functions.filter(FunctionRef::is_kernel).map(|f| f.def.name.to_string()).collect()
            })
            .unwrap_or_default()
    }

    fn module_named(&self, path: &str) -> Option<usize> {
        let stem = path.rsplit('.').next().unwrap_or(path);
        self.modules.iter().position(|m| m.name == stem)
    }

    fn statement(&self, module: usize, path: &[usize]) -> Option<&Stmt> {
        let mut body: &[Stmt] = &self.modules.get(module)?.ast.body;
        let (last, outer) = path.split_last()?;
        for &index in outer {
            body = match body.get(index)? {
                Stmt::Try(t) => &t.body,
                Stmt::If(i) => &i.body,
                _ => return None,
            };
        }
        body.get(*last)
    }

    /// What a name means at the top level of a module. Classes are for wrappers only: see [`class`](Self::class).
    pub(crate) fn lookup(&self, module: usize, name: &str) -> Option<Binding<'_>> {
        match self.find(module, name)? {
            Found::Binding(binding) => Some(binding),
            Found::Class(_) => None,
        }
    }

    /// A class by name, wherever the pass file gets it from.
    pub(crate) fn class(&self, module: usize, name: &str) -> Option<ClassRef<'_>> {
        match self.find(module, name)? {
            Found::Class(class) => Some(class),
            Found::Binding(_) => None,
        }
    }

    fn find(&self, module: usize, name: &str) -> Option<Found<'_>> {
        let mut module = module;
        let mut name = name.to_string();
        let found = |binding| Some(Found::Binding(binding));
        for _ in 0..MAX_IMPORT_CHAIN {
            match self.modules.get(module)?.names.get(&name)? {
                Entry::Function(path) => {
                    let Stmt::FunctionDef(def) = self.statement(module, path)? else { return None };
                    return found(Binding::Function(FunctionRef { module, def }));
                }
                Entry::Class(path) => {
                    let Stmt::ClassDef(def) = self.statement(module, path)? else { return None };
                    return Some(Found::Class(ClassRef { module, def }));
                }
                Entry::Assigned(path) => {
                    let value = match self.statement(module, path)? {
                        Stmt::Assign(s) => &*s.value,
                        Stmt::AnnAssign(s) => s.value.as_deref()?,
                        _ => return None,
                    };
                    return found(Binding::Assigned(module, value));
                }
                Entry::Unpacked(path, index) => {
                    let Stmt::Assign(s) = self.statement(module, path)? else { return None };
                    let items: &[Expr] = match &*s.value {
                        Expr::Tuple(t) => &t.elts,
                        Expr::List(l) => &l.elts,
                        _ => return None,
                    };
                    return items.get(*index).and_then(|e| found(Binding::Assigned(module, e)));
                }
                Entry::External(path) => {
                    return found(match self.module_named(path) {
                        Some(index) if !is_library(path) => Binding::Module(index),
                        _ => Binding::External(path.clone()),
                    });
                }
                Entry::From { module: from, name: wanted } => {
                    if is_library(from) {
                        return found(Binding::External(format!("{from}.{wanted}")));
                    }
                    if let Some(target) = self.module_named(from) {
                        module = target;
                        name.clone_from(wanted);
                        continue;
                    }
                    // `from pass_dir import helper`
                    return found(match self.module_named(wanted) {
                        Some(target) => Binding::Module(target),
                        None => Binding::External(format!("{from}.{wanted}")),
                    });
                }
            }
        }
        None
    }

    /// A function by name, wherever the pass file gets it from.
    pub(crate) fn function(&self, module: usize, name: &str) -> Option<FunctionRef<'_>> {
        match self.lookup(module, name)? {
            Binding::Function(f) => Some(f),
            _ => None,
        }
    }

    pub(crate) fn line(&self, module: usize, node: &impl Ranged) -> u32 {
        let offset = node.range().start().to_usize();
        self.modules[module].source.position(offset).0 as u32
    }
}

fn is_library(path: &str) -> bool {
    let root = path.split('.').next().unwrap_or(path);
    matches!(
        root,
        "torch"
            | "triton"
            | "math"
            | "typing"
            | "functools"
            | "operator"
            | "numpy"
            | "os"
            | "sys"
            | "dataclasses"
            | "enum"
    )
}

fn collect(body: &[Stmt], path: &mut StmtPath, names: &mut FxHashMap<String, Entry>) {
    for (index, stmt) in body.iter().enumerate() {
        path.push(index);
        match stmt {
            Stmt::FunctionDef(def) => {
                names.insert(def.name.to_string(), Entry::Function(path.clone()));
            }
            Stmt::ClassDef(def) => {
                names.insert(def.name.to_string(), Entry::Class(path.clone()));
            }
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    match target {
                        Expr::Name(n) => {
                            names.insert(n.id.to_string(), Entry::Assigned(path.clone()));
                        }
                        Expr::Tuple(t) => {
                            for (i, item) in t.elts.iter().enumerate() {
                                if let Expr::Name(n) = item {
                                    names
                                        .insert(n.id.to_string(), Entry::Unpacked(path.clone(), i));
                                }
                            }
                        }
                        _ => {}
                    }
                }
            }
            Stmt::AnnAssign(assign) if assign.value.is_some() => {
                if let Expr::Name(n) = &*assign.target {
                    names.insert(n.id.to_string(), Entry::Assigned(path.clone()));
                }
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    let full = alias.name.as_str();
                    let (bound, target) = match &alias.asname {
                        Some(asname) => (asname.as_str(), full),
                        None => {
                            let root = full.split('.').next().unwrap_or(full);
                            (root, root)
                        }
                    };
                    names.insert(bound.to_string(), Entry::External(target.to_string()));
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map_or("", |m| m.as_str());
                for alias in &import.names {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name);
                    let entry =
                        Entry::From { module: module.to_string(), name: alias.name.to_string() };
                    names.insert(bound.to_string(), entry);
                }
            }
            Stmt::Try(t) if path.len() < 4 => collect(&t.body, path, names),
            Stmt::If(i) if path.len() < 4 => collect(&i.body, path, names),
            _ => {}
        }
        path.pop();
    }
}
