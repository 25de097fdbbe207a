//! The usual lines by which a pass imports files of its own folder: they add that folder to `sys.path`.
//!
//! Such files are found without them, so the lines are dropped. Whatever else is done with `os` or `sys` stays where it
//! is, and then all of it stays.

use passnet_graph::syntax::ast::{self, visitor::Visitor};
use rustc_hash::FxHashSet;

/// Removes the lines that add the file's own folder to `sys.path`, and the imports that only they need.
pub(super) fn drop_path_setup(module: &mut ast::ModModule) {
    let mut setup = Setup::default();
    let is_setup: Vec<bool> = module.body.iter().map(|stmt| setup.takes(stmt)).collect();
    if !setup.adds_folder {
        return;
    }
    let mut used = Used(FxHashSet::default());
    for (stmt, _) in module.body.iter().zip(&is_setup).filter(|(_, is_setup)| !**is_setup) {
        used.visit_stmt(stmt);
    }
    if setup.names.iter().all(|name| !used.0.contains(name.as_str())) {
        let mut is_setup = is_setup.into_iter();
        module.body.retain(|_| !is_setup.next().unwrap_or(false));
    }
}

#[derive(Default)]
struct Setup {
    /// What the lines bind: modules, and names of the folder.
    names: FxHashSet<String>,
    folders: FxHashSet<String>,
    adds_folder: bool,
}

impl Setup {
    fn takes(&mut self, stmt: &ast::Stmt) -> bool {
        match stmt {
            ast::Stmt::Import(import) => self.takes_import(import),
            ast::Stmt::ImportFrom(import) => {
                let is_path = import.module.as_ref().is_some_and(|name| name == "pathlib")
                    && import
                        .names
                        .iter()
                        .all(|name| &name.name == "Path" && name.asname.is_none());
                if is_path {
                    self.names.insert("Path".into());
                }
                is_path
            }
            ast::Stmt::Assign(assign) => match assign.targets.as_slice() {
                [ast::Expr::Name(name)] if self.is_folder(&assign.value) => {
                    self.names.insert(name.id.to_string());
                    self.folders.insert(name.id.to_string());
                    true
                }
                _ => false,
            },
            ast::Stmt::Expr(stmt) => self.takes_call(&stmt.value),
            ast::Stmt::If(block) => {
                let asks = match &*block.test {
                    ast::Expr::Compare(compare) => {
                        let not_in = matches!(*compare.ops, [ast::CmpOp::NotIn]);
                        let path = compare.comparators.first().and_then(dotted);
                        not_in
                            && self.is_folder(&compare.left)
                            && path.as_deref() == Some("sys.path")
                    }
                    _ => false,
                };
                asks && block.elif_else_clauses.is_empty()
                    && block.body.iter().all(|stmt| {
                        matches!(stmt, ast::Stmt::Expr(stmt) if self.takes_call(&stmt.value))
                    })
            }
            _ => false,
        }
    }

    fn takes_import(&mut self, import: &ast::StmtImport) -> bool {
        let known = |name: &str| matches!(name, "os" | "os.path" | "sys" | "pathlib");
        let all = import.names.iter().all(|name| known(&name.name) && name.asname.is_none());
        if all {
            let roots = import.names.iter().map(|name| name.name.split('.').next().unwrap_or(""));
            self.names.extend(roots.map(str::to_string));
        }
        all
    }

    /// `sys.path.insert(0, folder)` or `sys.path.append(folder)`.
    fn takes_call(&mut self, expr: &ast::Expr) -> bool {
        let ast::Expr::Call(call) = expr else { return false };
        if !call.arguments.keywords.is_empty() {
            return false;
        }
        let adds = match (dotted(&call.func).as_deref(), &*call.arguments.args) {
            (Some("sys.path.insert"), [ast::Expr::NumberLiteral(_), folder])
            | (Some("sys.path.append"), [folder]) => self.is_folder(folder),
            _ => false,
        };
        self.adds_folder |= adds;
        adds
    }

    /// The folder of the file itself, in its usual spellings.
    fn is_folder(&self, expr: &ast::Expr) -> bool {
        match expr {
            ast::Expr::Name(name) => self.folders.contains(name.id.as_str()),
            ast::Expr::Attribute(attribute) => {
                attribute.attr.as_str() == "parent" && is_path_of_file(&attribute.value)
            }
            ast::Expr::Call(call) => match (dotted(&call.func).as_deref(), argument(call)) {
                (Some("os.path.dirname"), Some(file)) => is_file(file),
                (Some("os.path.abspath" | "os.path.realpath" | "str"), Some(folder)) => {
                    self.is_folder(folder)
                }
                _ => false,
            },
            _ => false,
        }
    }
}

fn argument(call: &ast::ExprCall) -> Option<&ast::Expr> {
    match (&*call.arguments.args, &*call.arguments.keywords) {
        ([only], []) => Some(only),
        _ => None,
    }
}

/// `__file__`, perhaps made absolute.
fn is_file(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Name(name) => name.id.as_str() == "__file__",
        ast::Expr::Call(call) => {
            matches!(dotted(&call.func).as_deref(), Some("os.path.abspath" | "os.path.realpath"))
                && argument(call).is_some_and(is_file)
        }
        _ => false,
    }
}

/// `Path(__file__)`, perhaps made absolute.
fn is_path_of_file(expr: &ast::Expr) -> bool {
    let ast::Expr::Call(call) = expr else { return false };
    match (dotted(&call.func).as_deref(), &*call.func) {
        (Some("Path" | "pathlib.Path"), _) => argument(call).is_some_and(is_file),
        (_, ast::Expr::Attribute(method)) => {
            matches!(method.attr.as_str(), "resolve" | "absolute")
                && call.arguments.is_empty()
                && is_path_of_file(&method.value)
        }
        _ => false,
    }
}

/// `a.b.c` as text.
fn dotted(expr: &ast::Expr) -> Option<String> {
    match expr {
        ast::Expr::Name(name) => Some(name.id.to_string()),
        ast::Expr::Attribute(attribute) => {
            Some(format!("{}.{}", dotted(&attribute.value)?, attribute.attr))
        }
        _ => None,
    }
}

/// All names in code.
struct Used<'a>(FxHashSet<&'a str>);

impl<'a> Visitor<'a> for Used<'a> {
    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        if let ast::Expr::Name(name) = expr {
            self.0.insert(name.id.as_str());
        }
        ast::visitor::walk_expr(self, expr);
    }
}
