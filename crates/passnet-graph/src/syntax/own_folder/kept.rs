//! Files that are loaded once and kept in `sys.modules`, so that several passes share one module. A file is read once in
//! any case: what keeps it is dropped, and who takes it from there takes the module that was loaded.

use super::{Setup, Taken};
use crate::syntax::ast::visitor::transformer::{Transformer, walk_expr};
use crate::syntax::{Ranged, ast};

/// What a condition asks of `sys.modules`.
enum Asks {
    IsThere(String),
    IsMissing(String),
}

impl Setup {
    /// A text, or a name that stands for one.
    pub(super) fn text(&self, expr: &ast::Expr) -> Option<String> {
        match expr {
            ast::Expr::StringLiteral(text) => Some(text.value.to_str().to_string()),
            ast::Expr::Name(name) => self.texts.get(name.id.as_str()).cloned(),
            _ => None,
        }
    }

    /// The text under which `sys.modules[text]` looks.
    fn place(&self, expr: &ast::Expr) -> Option<String> {
        let ast::Expr::Subscript(subscript) = expr else { return None };
        let is_table = self.path(&subscript.value).as_deref() == Some("sys.modules");
        if is_table { self.text(&subscript.slice) } else { None }
    }

    /// `sys.modules["helper"] = module`
    pub(super) fn takes_keeping(&mut self, target: &ast::Expr, value: &ast::Expr) -> Taken {
        let (Some(key), ast::Expr::Name(module)) = (self.place(target), value) else {
            return Taken::Not;
        };
        let name = module.id.to_string();
        match self.modules.get(&name) {
            Some(file) if is_named_after(&key, file) => {
                self.kept.insert(key, name);
                Taken::Dropped
            }
            _ => Taken::Not,
        }
    }

    /// `if "helper" not in sys.modules:` around lines that load a file and keep it there.
    pub(super) fn takes_loading(&mut self, block: &ast::StmtIf) -> Taken {
        let (hit, load, key): (&[ast::Stmt], &[ast::Stmt], String) =
            match (self.asks(&block.test), &*block.elif_else_clauses) {
                (Some(Asks::IsMissing(key)), []) => (&[], &block.body, key),
                (Some(Asks::IsMissing(key)), [other]) if other.test.is_none() => {
                    (&other.body, &block.body, key)
                }
                (Some(Asks::IsThere(key)), [other]) if other.test.is_none() => {
                    (&block.body, &other.body, key)
                }
                _ => return Taken::Not,
            };
        let mut inside = self.clone();
        let mut found = None;
        for stmt in load {
            match inside.takes(stmt) {
                Taken::Dropped => {}
                Taken::Import { file, name } if found.is_none() => found = Some((file, name)),
                _ => return Taken::Not,
            }
        }
        let Some((file, name)) = found.filter(|(_, name)| inside.kept.get(&key) == Some(name))
        else {
            return Taken::Not;
        };
        if !hit.iter().all(|stmt| self.is_taken_from(stmt, &key, &name)) {
            return Taken::Not;
        }
        *self = inside;
        Taken::Import { file, name }
    }

    fn asks(&self, test: &ast::Expr) -> Option<Asks> {
        let ast::Expr::Compare(compare) = test else { return None };
        let [table] = &*compare.comparators else { return None };
        if self.path(table).as_deref() != Some("sys.modules") {
            return None;
        }
        let key = self.text(&compare.left)?;
        match *compare.ops {
            [ast::CmpOp::In] => Some(Asks::IsThere(key)),
            [ast::CmpOp::NotIn] => Some(Asks::IsMissing(key)),
            _ => None,
        }
    }

    /// `name = sys.modules[key]`
    fn is_taken_from(&self, stmt: &ast::Stmt, key: &str, name: &str) -> bool {
        let ast::Stmt::Assign(assign) = stmt else { return false };
        matches!(assign.targets.as_slice(), [ast::Expr::Name(target)] if target.id.as_str() == name)
            && self.place(&assign.value).as_deref() == Some(key)
    }

    /// A function without arguments that does nothing but load a file of the folder and return it.
    pub(super) fn takes_loader(&mut self, function: &ast::StmtFunctionDef) -> bool {
        if !function.parameters.is_empty() || !function.decorator_list.is_empty() {
            return false;
        }
        let mut inside = self.clone();
        let mut loaded: Option<(String, String)> = None;
        let mut returned: Option<String> = None;
        for stmt in &function.body {
            if returned.is_some() {
                return false;
            }
            match stmt {
                ast::Stmt::Return(end) => {
                    let Some(((file, name), value)) = loaded.as_ref().zip(end.value.as_deref())
                    else {
                        return false;
                    };
                    let is_name = matches!(value, ast::Expr::Name(n) if n.id.as_str() == name);
                    let kept = inside.place(value).and_then(|key| inside.kept.get(&key));
                    if !is_name && kept != Some(name) {
                        return false;
                    }
                    returned = Some(file.clone());
                }
                ast::Stmt::Expr(stmt) if stmt.value.is_string_literal_expr() => {}
                ast::Stmt::If(block) if inside.returns_kept(block) => {}
                _ => match inside.takes(stmt) {
                    Taken::Dropped => {}
                    Taken::Import { file, name } if loaded.is_none() => loaded = Some((file, name)),
                    Taken::Not if is_text(stmt) => {}
                    _ => return false,
                },
            }
        }
        let Some(file) = returned else { return false };
        let name = function.name.to_string();
        self.names.insert(name.clone());
        self.loaders.insert(name, file);
        true
    }

    /// `if key in sys.modules: return sys.modules[key]`
    fn returns_kept(&self, block: &ast::StmtIf) -> bool {
        let (Some(Asks::IsThere(key)), [ast::Stmt::Return(end)]) =
            (self.asks(&block.test), block.body.as_slice())
        else {
            return false;
        };
        block.elif_else_clauses.is_empty()
            && end.value.as_deref().and_then(|value| self.place(value)) == Some(key)
    }

    /// `name = load()` or `name = load().member`, with a function that loads a file of the folder.
    pub(super) fn loaded(&self, value: &ast::Expr, name: &str) -> Option<Taken> {
        let (call, member) = match value {
            ast::Expr::Attribute(attribute) => (&*attribute.value, Some(&attribute.attr)),
            _ => (value, None),
        };
        let ast::Expr::Call(call) = call else { return None };
        let ast::Expr::Name(callee) = &*call.func else { return None };
        let file = self.loaders.get(callee.id.as_str())?.clone();
        let name = name.to_string();
        call.arguments.is_empty().then(|| match member {
            Some(member) => Taken::Member { file, member: member.to_string(), name },
            None => Taken::Import { file, name },
        })
    }

    /// Writes the name of a module where a statement takes it from `sys.modules`.
    pub(super) fn name_kept_modules(&self, stmt: &mut ast::Stmt) {
        if !self.kept.is_empty() {
            Naming(self).visit_stmt(stmt);
        }
    }
}

struct Naming<'a>(&'a Setup);

impl Transformer for Naming<'_> {
    fn visit_expr(&self, expr: &mut ast::Expr) {
        let kept = self.0.place(expr).and_then(|key| self.0.kept.get(&key));
        match kept {
            Some(name) => {
                *expr = ast::Expr::Name(ast::ExprName {
                    id: name.as_str().into(),
                    ctx: ast::ExprContext::Load,
                    range: expr.range(),
                    node_index: ast::AtomicNodeIndex::default(),
                });
            }
            None => walk_expr(self, expr),
        }
    }
}

/// `name = "text"`
fn is_text(stmt: &ast::Stmt) -> bool {
    matches!(stmt, ast::Stmt::Assign(assign) if assign.value.is_string_literal_expr())
}

/// Whether a text holds the file's stem, perhaps with other words around it (`_helper`, `helper_module`): under the name of
/// another module the file would take that one's place.
fn is_named_after(text: &str, stem: &str) -> bool {
    let stem = stem.trim_matches('_');
    !stem.is_empty() && format!("_{text}_").contains(&format!("_{stem}_"))
}
