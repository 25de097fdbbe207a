//! What the names at the top level of a file stand for.

use super::{ModuleId, Program};
use passnet_graph::syntax::ast;
use rustc_hash::FxHashMap;

/// What a top-level name is bound to; where it is bound several times, the last one.
#[derive(Debug, Clone)]
pub enum Binding<'a> {
    /// A function of the module.
    Function(&'a ast::StmtFunctionDef),
    /// A class of the module.
    Class(&'a ast::StmtClassDef),
    /// `name = expr`, or an element of an unpacked right-hand side: the indices lead to it.
    Value {
        /// What is assigned.
        expr: &'a ast::Expr,
        /// Which element of it, where the target is a tuple: the outermost index first.
        element: Vec<usize>,
    },
    /// A module or member of a module outside the folder, by its dotted path.
    Outside(String),
    /// Another file of the folder.
    Module(ModuleId),
    /// A name defined in another file of the folder.
    Member(ModuleId, &'a str),
}

/// The names of every file of a program.
#[derive(Debug)]
pub struct Bindings<'a> {
    files: Vec<FxHashMap<&'a str, Binding<'a>>>,
}

impl<'a> Bindings<'a> {
    /// Reads the top level of every module.
    pub fn of(program: &'a Program) -> Self {
        let files = program.ids().map(|id| {
            let mut names = FxHashMap::default();
            bind_block(program, id, &program.module(id).syntax.body, &mut names);
            names
        });
        Bindings { files: files.collect() }
    }

    /// What a name means in a module; `None` where it is not bound.
    pub fn get(&self, module: ModuleId, name: &str) -> Option<&Binding<'a>> {
        self.files.get(module.index())?.get(name)
    }

    /// Follows names through imports to where they are defined. Cyclic imports end in `None`.
    pub fn resolve(&self, module: ModuleId, name: &str) -> Option<(ModuleId, &Binding<'a>)> {
        let mut at = (module, name);
        for _ in 0..64 {
            match self.get(at.0, at.1)? {
                Binding::Member(next, member) => at = (*next, member),
                binding => return Some((at.0, binding)),
            }
        }
        None
    }

    /// The function that a name means, followed through imports.
    pub fn function(
        &self,
        module: ModuleId,
        name: &str,
    ) -> Option<(ModuleId, &'a ast::StmtFunctionDef)> {
        match self.resolve(module, name)? {
            (home, Binding::Function(function)) => Some((home, function)),
            _ => None,
        }
    }
}

fn bind_block<'a>(
    program: &'a Program,
    module: ModuleId,
    body: &'a [ast::Stmt],
    names: &mut FxHashMap<&'a str, Binding<'a>>,
) {
    for stmt in body {
        match stmt {
            ast::Stmt::FunctionDef(function) => {
                names.insert(function.name.as_str(), Binding::Function(function));
            }
            ast::Stmt::ClassDef(class) => {
                names.insert(class.name.as_str(), Binding::Class(class));
            }
            ast::Stmt::Assign(assign) => {
                for target in &assign.targets {
                    bind_target(target, &assign.value, &mut Vec::new(), names);
                }
            }
            ast::Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    bind_target(&assign.target, value, &mut Vec::new(), names);
                }
            }
            ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => {
                names.extend(imported_names(program, module, stmt));
            }
            ast::Stmt::Try(block) => {
                for handler in &block.handlers {
                    let ast::ExceptHandler::ExceptHandler(handler) = handler;
                    bind_block(program, module, &handler.body, names);
                }
                bind_block(program, module, &block.body, names);
                bind_block(program, module, &block.orelse, names);
                bind_block(program, module, &block.finalbody, names);
            }
            ast::Stmt::If(block) => {
                bind_block(program, module, &block.body, names);
                for clause in &block.elif_else_clauses {
                    bind_block(program, module, &clause.body, names);
                }
            }
            ast::Stmt::With(block) => bind_block(program, module, &block.body, names),
            _ => {}
        }
    }
}

/// The names that an import statement binds.
pub fn imported_names<'a>(
    program: &'a Program,
    module: ModuleId,
    stmt: &'a ast::Stmt,
) -> Vec<(&'a str, Binding<'a>)> {
    let mut names = Vec::new();
    match stmt {
        ast::Stmt::Import(import) => {
            for alias in &import.names {
                let path = alias.name.as_str();
                let local = program.import(module, 0, path);
                match (&alias.asname, local) {
                    (Some(name), Some(local)) => {
                        names.push((name.as_str(), Binding::Module(local)))
                    }
                    (Some(name), None) => {
                        names.push((name.as_str(), Binding::Outside(path.into())))
                    }
                    (None, Some(local)) if !path.contains('.') => {
                        names.push((path, Binding::Module(local)));
                    }
                    (None, _) => {
                        let first = path.split('.').next().unwrap_or(path);
                        names.push((first, Binding::Outside(first.into())));
                    }
                }
            }
        }
        ast::Stmt::ImportFrom(import) => {
            let base = import.module.as_ref().map_or("", |name| name.as_str());
            for alias in &import.names {
                let member = alias.name.as_str();
                let name = alias.asname.as_ref().map_or(member, |name| name.as_str());
                let path = if base.is_empty() { member.into() } else { format!("{base}.{member}") };
                let binding = if let Some(file) = program.import(module, import.level, &path) {
                    Binding::Module(file)
                } else if let Some(file) = program.import(module, import.level, base) {
                    Binding::Member(file, member)
                } else {
                    Binding::Outside(path)
                };
                names.push((name, binding));
            }
        }
        _ => {}
    }
    names
}

fn bind_target<'a>(
    target: &'a ast::Expr,
    expr: &'a ast::Expr,
    element: &mut Vec<usize>,
    names: &mut FxHashMap<&'a str, Binding<'a>>,
) {
    match target {
        ast::Expr::Name(name) => {
            names.insert(name.id.as_str(), Binding::Value { expr, element: element.clone() });
        }
        ast::Expr::Tuple(ast::ExprTuple { elts, .. })
        | ast::Expr::List(ast::ExprList { elts, .. }) => {
            for (index, target) in elts.iter().enumerate() {
                element.push(index);
                bind_target(target, expr, element, names);
                element.pop();
            }
        }
        _ => {}
    }
}
