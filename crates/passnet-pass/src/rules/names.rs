//! What a dotted expression refers to, through imports, aliases and plain assignments.

use crate::load::{Binding, Bindings, ModuleId, Program, imported_names};
use passnet_graph::syntax::ast::{self, visitor::Visitor};
use rustc_hash::{FxHashMap, FxHashSet};

/// How many aliases are followed: `t = torch; u = t; v = u.nn`.
const MAX_HOPS: usize = 32;

/// The names visible in a function.
#[derive(Debug)]
pub struct Names<'a> {
    bindings: &'a Bindings<'a>,
    module: ModuleId,
    /// Local names with everything they are assigned.
    assigned: FxHashMap<&'a str, Vec<&'a ast::Expr>>,
    imported: FxHashMap<&'a str, Binding<'a>>,
    parameters: FxHashSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(
        program: &'a Program,
        bindings: &'a Bindings<'a>,
        module: ModuleId,
        function: Option<&'a ast::StmtFunctionDef>,
    ) -> Self {
        let mut collect = Collect { program, module, assigned: Vec::new(), imported: Vec::new() };
        let mut parameters = FxHashSet::default();
        if let Some(function) = function {
            function.body.iter().for_each(|stmt| collect.visit_stmt(stmt));
            parameters.extend(function.parameters.iter().map(|p| p.name().as_str()));
            let defaults = function.parameters.iter_non_variadic_params();
            for parameter in defaults {
                if let Some(default) = &parameter.default {
                    collect.assigned.push((parameter.parameter.name.as_str(), default));
                }
            }
        }
        let mut assigned: FxHashMap<&'a str, Vec<&'a ast::Expr>> = FxHashMap::default();
        for (name, value) in collect.assigned {
            assigned.entry(name).or_default().push(value);
        }
        let imported = collect.imported.into_iter().collect();
        Names { bindings, module, assigned, imported, parameters }
    }

    /// The dotted path of something outside the folder: `torch.nn.functional.relu`.
    pub fn path(&self, expr: &'a ast::Expr) -> Option<String> {
        self.paths(expr, 0).into_iter().next()
    }

    /// The same, if any of the values a name may have is such a path: a name assigned twice may be either.
    pub fn any_path(&self, expr: &'a ast::Expr, test: impl Fn(&str) -> bool) -> Option<String> {
        self.paths(expr, 0).into_iter().find(|path| test(path))
    }

    fn paths(&self, expr: &'a ast::Expr, hops: usize) -> Vec<String> {
        if hops > MAX_HOPS {
            return Vec::new();
        }
        match expr {
            ast::Expr::Name(name) => self.name_paths(name.id.as_str(), hops),
            ast::Expr::Attribute(attribute) => {
                let bases = self.paths(&attribute.value, hops + 1);
                bases.into_iter().map(|base| format!("{base}.{}", attribute.attr)).collect()
            }
            // `getattr(torch, "relu")` is `torch.relu` in disguise.
            ast::Expr::Call(call) => match (&*call.func, &*call.arguments.args) {
                (ast::Expr::Name(name), [object, ast::Expr::StringLiteral(member), ..])
                    if name.id.as_str() == "getattr" =>
                {
                    let bases = self.paths(object, hops + 1);
                    bases
                        .into_iter()
                        .map(|base| format!("{base}.{}", member.value.to_str()))
                        .collect()
                }
                _ => Vec::new(),
            },
            ast::Expr::If(choice) => {
                let mut paths = self.paths(&choice.body, hops + 1);
                paths.extend(self.paths(&choice.orelse, hops + 1));
                paths
            }
            ast::Expr::Named(named) => self.paths(&named.value, hops + 1),
            _ => Vec::new(),
        }
    }

    fn name_paths(&self, name: &'a str, hops: usize) -> Vec<String> {
        if let Some(values) = self.assigned.get(name) {
            return values.iter().flat_map(|value| self.paths(value, hops + 1)).collect();
        }
        match self.imported.get(name) {
            Some(Binding::Outside(path)) => return vec![path.clone()],
            Some(Binding::Member(module, member)) => {
                return self.global_paths(*module, member, hops);
            }
            Some(_) => return Vec::new(),
            None => {}
        }
        if self.parameters.contains(name) {
            return Vec::new();
        }
        self.global_paths(self.module, name, hops)
    }

    fn global_paths(&self, module: ModuleId, name: &str, hops: usize) -> Vec<String> {
        match self.bindings.resolve(module, name) {
            Some((_, Binding::Outside(path))) => vec![path.clone()],
            Some((_, Binding::Value { expr, element })) if element.is_empty() => {
                self.paths(expr, hops + 1)
            }
            Some((_, Binding::Value { expr, element })) => {
                let picked = element.iter().try_fold(*expr, |expr, index| match expr {
                    ast::Expr::Tuple(tuple) => tuple.elts.get(*index),
                    ast::Expr::List(list) => list.elts.get(*index),
                    _ => None,
                });
                picked.map(|expr| self.paths(expr, hops + 1)).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a name is a local variable or parameter.
    pub fn is_local(&self, name: &str) -> bool {
        self.assigned.contains_key(name) || self.parameters.contains(name)
    }

    /// What a local name is assigned.
    pub fn values(&self, name: &str) -> &[&'a ast::Expr] {
        self.assigned.get(name).map_or(&[], Vec::as_slice)
    }

    /// A name defined at the top level of the file or imported from another file of the folder.
    pub fn global(&self, name: &str) -> Option<(ModuleId, &Binding<'a>)> {
        if self.is_local(name) {
            return None;
        }
        match self.imported.get(name) {
            Some(Binding::Member(module, member)) => self.bindings.resolve(*module, member),
            _ => self.bindings.resolve(self.module, name),
        }
    }
}

struct Collect<'a> {
    program: &'a Program,
    module: ModuleId,
    assigned: Vec<(&'a str, &'a ast::Expr)>,
    imported: Vec<(&'a str, Binding<'a>)>,
}

impl<'a> Collect<'a> {
    fn target(&mut self, target: &'a ast::Expr, value: &'a ast::Expr) {
        match (target, value) {
            (ast::Expr::Name(name), value) => self.assigned.push((name.id.as_str(), value)),
            (ast::Expr::Tuple(targets), ast::Expr::Tuple(values))
                if targets.elts.len() == values.elts.len() =>
            {
                for (target, value) in targets.elts.iter().zip(&values.elts) {
                    self.target(target, value);
                }
            }
            (ast::Expr::Tuple(targets), value) => {
                targets.elts.iter().for_each(|target| self.target(target, value));
            }
            _ => {}
        }
    }
}

impl<'a> Visitor<'a> for Collect<'a> {
    fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
        match stmt {
            ast::Stmt::Assign(assign) => {
                assign.targets.iter().for_each(|target| self.target(target, &assign.value));
            }
            ast::Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.target(&assign.target, value);
                }
            }
            ast::Stmt::For(block) => self.target(&block.target, &block.iter),
            ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_) => {
                self.imported.extend(imported_names(self.program, self.module, stmt));
            }
            _ => {}
        }
        ast::visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        if let ast::Expr::Named(named) = expr {
            self.target(&named.target, &named.value);
        }
        ast::visitor::walk_expr(self, expr);
    }
}
