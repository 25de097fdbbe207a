//! What rules look at: every function of every reachable file, with its role.

use super::names::Names;
use crate::load::{Binding, Bindings, ModuleId, PassFile, Program};
use crate::trace::Pass;
use passnet_graph::syntax::ast::{self, visitor::Visitor};
use passnet_graph::syntax::{Ranged, TextRange};
use rustc_hash::FxHashSet;

/// What a piece of code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reached from `pattern` or `replacement_args` only: it becomes a graph and is never run.
    Traced,
    /// The wrapper and what it calls.
    Host,
    /// A `@triton.jit` function.
    Kernel,
    /// Statements outside functions.
    TopLevel,
    /// Nothing calls it.
    Unreached,
}

/// A function, or the top level of a file.
#[derive(Debug)]
pub struct Unit<'a> {
    /// The file it stands in.
    pub module: ModuleId,
    /// The function; `None` for the top level of a file.
    pub function: Option<&'a ast::StmtFunctionDef>,
    /// What it is for.
    pub role: Role,
    /// Its statements.
    pub body: Vec<&'a ast::Stmt>,
    /// What its names mean.
    pub names: Names<'a>,
}

/// A pass as the rules see it.
#[derive(Debug)]
pub struct Context<'a> {
    /// All files of the folder.
    pub program: &'a Program,
    /// What names mean at the top level of each.
    pub bindings: &'a Bindings<'a>,
    /// The file of the pass itself.
    pub pass: ModuleId,
    /// The pass, where tracing it succeeded.
    pub traced: Option<&'a Pass>,
    /// The files that the pass reaches.
    pub modules: Vec<ModuleId>,
    /// The functions and top levels of these files.
    pub units: Vec<Unit<'a>>,
}

/// A function by its place: methods of classes share names.
type FunctionKey = (ModuleId, TextRange);

impl<'a> Context<'a> {
    /// Finds what a pass reaches.
    pub fn new(
        program: &'a Program,
        bindings: &'a Bindings<'a>,
        file: &PassFile,
        traced: Option<&'a Pass>,
    ) -> Self {
        let modules = program.reachable(file.module);
        let host = reached(bindings, file.module, &["replacement_func"]);
        let traced_code = reached(bindings, file.module, &["pattern", "replacement_args"]);
        let mut units = Vec::new();
        for &module in &modules {
            let body = &program.module(module).syntax.body;
            let (functions, rest) = split(body);
            units.push(Unit {
                module,
                function: None,
                role: Role::TopLevel,
                body: rest,
                names: Names::new(program, bindings, module, None),
            });
            for function in functions {
                let names = Names::new(program, bindings, module, Some(function));
                let key = (module, function.range());
                let role = if is_kernel(function, &names) {
                    Role::Kernel
                } else if host.contains(&key) {
                    Role::Host
                } else if traced_code.contains(&key) {
                    Role::Traced
                } else {
                    Role::Unreached
                };
                let body = function.body.iter().collect();
                units.push(Unit { module, function: Some(function), role, body, names });
            }
        }
        Context { program, bindings, pass: file.module, traced, modules, units }
    }

    /// Code that would run on the host: functions reached from the wrapper, and code nobody reaches.
    pub fn host(&self) -> impl Iterator<Item = &Unit<'a>> {
        self.units.iter().filter(|unit| matches!(unit.role, Role::Host | Role::Unreached))
    }

    /// The same, and the top level of every file.
    pub fn executed(&self) -> impl Iterator<Item = &Unit<'a>> {
        let roles = [Role::Host, Role::Unreached, Role::TopLevel];
        self.units.iter().filter(move |unit| roles.contains(&unit.role))
    }

    /// The functions that run on the device.
    pub fn kernels(&self) -> impl Iterator<Item = &Unit<'a>> {
        self.units.iter().filter(|unit| unit.role == Role::Kernel)
    }

    /// The function that `replacement_func` returns, where it could be told.
    pub fn wrapper(&self) -> Option<&Unit<'a>> {
        let wrapper = &self.traced?.wrapper;
        self.units.iter().find(|unit| {
            unit.module == wrapper.module
                && unit.function.is_some_and(|f| f.name.as_str() == wrapper.function)
        })
    }
}

/// Functions at the top level of a file (also below `if` and `try`, and methods), and the other statements.
fn split(body: &[ast::Stmt]) -> (Vec<&ast::StmtFunctionDef>, Vec<&ast::Stmt>) {
    struct Functions<'a>(Vec<&'a ast::StmtFunctionDef>);
    impl<'a> Visitor<'a> for Functions<'a> {
        fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
            match stmt {
                ast::Stmt::FunctionDef(function) => self.0.push(function),
                _ => ast::visitor::walk_stmt(self, stmt),
            }
        }
    }
    let mut functions = Functions(Vec::new());
    functions.visit_body(body);
    (functions.0, body.iter().filter(|stmt| !stmt.is_function_def_stmt()).collect())
}

fn is_kernel(function: &ast::StmtFunctionDef, names: &Names<'_>) -> bool {
    function.decorator_list.iter().any(|decorator| {
        let callee = match &decorator.expression {
            ast::Expr::Call(call) => &*call.func,
            other => other,
        };
        names.path(callee).is_some_and(|path| {
            matches!(path.as_str(), "triton.jit" | "triton.runtime.jit" | "triton.JITFunction")
        })
    })
}

/// The functions of the folder that can be called from the given ones.
fn reached(
    bindings: &Bindings<'_>,
    module: ModuleId,
    roots: &[&'static str],
) -> FxHashSet<FunctionKey> {
    let mut seen: FxHashSet<FunctionKey> = FxHashSet::default();
    let mut known: FxHashSet<(ModuleId, &str)> = FxHashSet::default();
    let mut names: Vec<(ModuleId, &str)> = roots.iter().map(|name| (module, *name)).collect();
    while let Some((module, name)) = names.pop() {
        if !known.insert((module, name)) {
            continue;
        }
        let mut mentioned = Mentioned::default();
        let home = match bindings.resolve(module, name) {
            Some((home, Binding::Function(function))) => {
                seen.insert((home, function.range()));
                mentioned.visit_function(function);
                home
            }
            // Whoever names a class may call its methods.
            Some((home, Binding::Class(class))) => {
                for stmt in &class.body {
                    match stmt {
                        ast::Stmt::FunctionDef(method) => {
                            seen.insert((home, method.range()));
                            mentioned.visit_function(method);
                        }
                        other => mentioned.visit_stmt(other),
                    }
                }
                if let Some(arguments) = &class.arguments {
                    arguments.args.iter().for_each(|base| mentioned.visit_expr(base));
                }
                home
            }
            // `dispatch = {"relu": fused_relu}` and the like.
            Some((home, Binding::Value { expr, .. })) => {
                mentioned.visit_expr(expr);
                home
            }
            _ => continue,
        };
        for name in &mentioned.names {
            if let Some((_, Binding::Module(file))) = bindings.resolve(home, name) {
                names.extend(mentioned.attributes.iter().map(|name| (*file, *name)));
            }
        }
        names.extend(mentioned.names.into_iter().map(|name| (home, name)));
    }
    seen
}

/// Names and attributes that occur in code.
#[derive(Default)]
struct Mentioned<'a> {
    names: Vec<&'a str>,
    attributes: Vec<&'a str>,
}

impl<'a> Mentioned<'a> {
    fn visit_function(&mut self, function: &'a ast::StmtFunctionDef) {
        function.body.iter().for_each(|stmt| self.visit_stmt(stmt));
        for decorator in &function.decorator_list {
            self.visit_expr(&decorator.expression);
        }
    }
}

impl<'a> Visitor<'a> for Mentioned<'a> {
    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        match expr {
            ast::Expr::Name(name) => self.names.push(name.id.as_str()),
            ast::Expr::Attribute(attribute) => self.attributes.push(attribute.attr.as_str()),
            _ => {}
        }
        ast::visitor::walk_expr(self, expr);
    }

    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        if let ast::Stmt::ImportFrom(import) = stmt {
            let names = import.names.iter();
            self.names.extend(names.map(|a| a.asname.as_ref().unwrap_or(&a.name).as_str()));
        }
        ast::visitor::walk_stmt(self, stmt);
    }
}
