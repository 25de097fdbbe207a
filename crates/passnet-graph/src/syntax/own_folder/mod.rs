//! The usual lines by which a file gets at other files of its own folder: they add the folder to `sys.path`, or load a file
//! by its path.
//!
//! Such files are found without them, so the first kind is dropped and the second becomes a plain import. Whatever else
//! is done with `os`, `sys` or `importlib` stays where it is, and then all of it stays.

mod kept;

use super::{Ranged, TextRange, ast};
use ast::visitor::Visitor;
use rustc_hash::{FxHashMap, FxHashSet};

/// Modules whose only purpose here is to reach files of the folder.
const MODULES: [&str; 6] = ["os", "os.path", "sys", "pathlib", "importlib", "importlib.util"];

/// What may be imported from them by name.
const MEMBERS: [&str; 10] = [
    "pathlib.Path",
    "os.path",
    "os.path.dirname",
    "os.path.abspath",
    "os.path.realpath",
    "os.path.join",
    "importlib.util",
    "importlib.import_module",
    "importlib.util.spec_from_file_location",
    "importlib.util.module_from_spec",
];

/// Removes the lines that make files of the own folder importable, and the imports that only they need; files that are
/// loaded by their path are imported instead.
pub(super) fn find_own_files(module: &mut ast::ModModule) {
    let mut setup = Setup::default();
    let taken: Vec<Taken> = module.body.iter().map(|stmt| setup.takes(stmt)).collect();
    if !setup.reaches_folder {
        return;
    }
    let mut body = module.body.clone();
    let mut used = Used(FxHashSet::default());
    for (stmt, _) in body.iter_mut().zip(&taken).filter(|(_, taken)| **taken == Taken::Not) {
        setup.name_kept_modules(stmt);
        used.visit_stmt(stmt);
    }
    if setup.names.iter().any(|name| used.0.contains(name.as_str())) {
        return;
    }
    module.body.clear();
    for (stmt, taken) in body.into_iter().zip(taken) {
        match (taken, stmt) {
            (Taken::Not, stmt) => module.body.push(stmt),
            (Taken::Dropped, _) => {}
            (Taken::Import { file, name }, stmt) => {
                module.body.push(import(&file, &name, stmt.range()));
            }
            (Taken::Member { file, member, name }, stmt) => {
                module.body.push(import_member(&file, &member, &name, stmt.range()));
            }
            (Taken::FirstTry, ast::Stmt::Try(block)) => {
                let kept = block.body.into_iter().filter(is_import);
                module.body.extend(kept.filter(|stmt| !setup.is_tool(stmt)));
            }
            (Taken::FirstTry, stmt) => module.body.push(stmt),
        }
    }
}

/// What becomes of a statement.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Not,
    Dropped,
    /// It becomes `import file as name`.
    Import {
        file: String,
        name: String,
    },
    /// It becomes `from file import member as name`.
    Member {
        file: String,
        member: String,
        name: String,
    },
    /// Of a `try`, what it tries first.
    FirstTry,
}

#[derive(Default, Clone)]
struct Setup {
    /// What the lines bind for themselves: modules, folders, paths.
    names: FxHashSet<String>,
    /// Names of modules and their members, by what they are called here.
    tools: FxHashMap<String, String>,
    folders: FxHashSet<String>,
    /// Paths of files of the folder, specifications of modules and modules made of them, each with the file's stem.
    files: FxHashMap<String, String>,
    specs: FxHashMap<String, String>,
    modules: FxHashMap<String, String>,
    /// Texts that names stand for.
    texts: FxHashMap<String, String>,
    /// Names of modules that lie in `sys.modules`, by the texts under which they lie there.
    kept: FxHashMap<String, String>,
    /// Functions that load a file of the folder and return it, each with the file's stem.
    loaders: FxHashMap<String, String>,
    /// Whether something is reached that way.
    reaches_folder: bool,
}

impl Setup {
    fn takes(&mut self, stmt: &ast::Stmt) -> Taken {
        let dropped = |yes: bool| if yes { Taken::Dropped } else { Taken::Not };
        match stmt {
            ast::Stmt::Import(import) => dropped(self.takes_import(import)),
            ast::Stmt::ImportFrom(import) => dropped(self.takes_members(import)),
            ast::Stmt::Assign(assign) => self.takes_assign(assign),
            ast::Stmt::Expr(stmt) => self.takes_call(&stmt.value),
            ast::Stmt::If(block) => match self.takes_loading(block) {
                Taken::Not => dropped(self.takes_if(block)),
                taken => taken,
            },
            ast::Stmt::FunctionDef(function) => dropped(self.takes_loader(function)),
            ast::Stmt::Assert(assert) => dropped(self.is_about_spec(&assert.test)),
            ast::Stmt::Try(block) => self.takes_try(block),
            _ => Taken::Not,
        }
    }

    fn takes_import(&mut self, import: &ast::StmtImport) -> bool {
        if !import.names.iter().all(|alias| MODULES.contains(&alias.name.as_str())) {
            return false;
        }
        for alias in &import.names {
            let path = alias.name.as_str();
            let (name, path) = match &alias.asname {
                Some(name) => (name.as_str(), path),
                None => {
                    let root = path.split('.').next().unwrap_or(path);
                    (root, root)
                }
            };
            self.bind_tool(name, path);
        }
        true
    }

    fn takes_members(&mut self, import: &ast::StmtImportFrom) -> bool {
        let module = import.module.as_ref().map_or("", |name| name.as_str());
        let path = |alias: &ast::Alias| format!("{module}.{}", alias.name);
        let known = |alias: &ast::Alias| MEMBERS.contains(&path(alias).as_str());
        if import.level > 0 || !import.names.iter().all(known) {
            return false;
        }
        for alias in &import.names {
            let name = alias.asname.as_ref().unwrap_or(&alias.name);
            self.bind_tool(name.as_str(), &path(alias));
        }
        true
    }

    fn bind_tool(&mut self, name: &str, path: &str) {
        self.names.insert(name.to_string());
        self.tools.insert(name.to_string(), path.to_string());
    }

    fn takes_assign(&mut self, assign: &ast::StmtAssign) -> Taken {
        let name = match assign.targets.as_slice() {
            [ast::Expr::Name(name)] => name.id.to_string(),
            [target @ ast::Expr::Subscript(_)] => return self.takes_keeping(target, &assign.value),
            _ => return Taken::Not,
        };
        let value = &assign.value;
        if let ast::Expr::StringLiteral(text) = &**value {
            self.texts.insert(name, text.value.to_str().to_string());
            return Taken::Not;
        }
        if let Some(taken) = self.loaded(value, &name) {
            self.reaches_folder = true;
            return taken;
        }
        if self.is_folder(value) {
            self.folders.insert(name.clone());
        } else if let Some(file) = self.file(value) {
            self.files.insert(name.clone(), file);
        } else if let Some(file) = self.spec(value) {
            self.specs.insert(name.clone(), file);
        } else if let Some(file) = self.module_of_spec(value) {
            self.modules.insert(name, file);
            return Taken::Dropped;
        } else if let Some(file) = self.imported(value) {
            self.reaches_folder = true;
            return Taken::Import { file, name };
        } else {
            return Taken::Not;
        }
        self.names.insert(name);
        Taken::Dropped
    }

    /// `sys.path.insert(0, folder)`, `sys.path.append(folder)` or `spec.loader.exec_module(module)`.
    fn takes_call(&mut self, expr: &ast::Expr) -> Taken {
        let ast::Expr::Call(call) = expr else { return Taken::Not };
        if !call.arguments.keywords.is_empty() {
            return Taken::Not;
        }
        match (self.path(&call.func).as_deref(), &*call.arguments.args) {
            (Some("sys.path.insert"), [ast::Expr::NumberLiteral(_), folder])
            | (Some("sys.path.append"), [folder])
                if self.is_folder(folder) =>
            {
                self.reaches_folder = true;
                Taken::Dropped
            }
            (None, [ast::Expr::Name(module)]) if self.is_execution(&call.func) => {
                match self.modules.get(module.id.as_str()) {
                    Some(file) => {
                        self.reaches_folder = true;
                        Taken::Import { file: file.clone(), name: module.id.to_string() }
                    }
                    None => Taken::Not,
                }
            }
            _ => Taken::Not,
        }
    }

    /// `if folder not in sys.path:` around lines that add it.
    fn takes_if(&mut self, block: &ast::StmtIf) -> bool {
        let asks = match &*block.test {
            ast::Expr::Compare(compare) => {
                let not_in = matches!(*compare.ops, [ast::CmpOp::NotIn]);
                let path = compare.comparators.first().and_then(|path| self.path(path));
                not_in && self.is_folder(&compare.left) && path.as_deref() == Some("sys.path")
            }
            _ => false,
        };
        asks && block.elif_else_clauses.is_empty()
            && block.body.iter().all(|stmt| {
                matches!(stmt, ast::Stmt::Expr(stmt) if self.takes_call(&stmt.value) == Taken::Dropped)
            })
    }

    /// An import that is tried, and tried again when the folder has been added.
    fn takes_try(&mut self, block: &ast::StmtTry) -> Taken {
        if !block.orelse.is_empty() || !block.finalbody.is_empty() {
            return Taken::Not;
        }
        let reached = std::mem::replace(&mut self.reaches_folder, false);
        let mut only = block.body.iter().all(|stmt| self.is_dropped_or_import(stmt));
        for ast::ExceptHandler::ExceptHandler(handler) in &block.handlers {
            only &= handler.body.iter().all(|stmt| self.is_dropped_or_import(stmt));
        }
        let reaches = std::mem::replace(&mut self.reaches_folder, reached);
        self.reaches_folder |= only && reaches;
        if only && reaches { Taken::FirstTry } else { Taken::Not }
    }

    fn is_dropped_or_import(&mut self, stmt: &ast::Stmt) -> bool {
        self.takes(stmt) == Taken::Dropped || is_import(stmt)
    }

    /// Whether an import is of a module that these lines alone need.
    fn is_tool(&self, stmt: &ast::Stmt) -> bool {
        match stmt {
            ast::Stmt::Import(import) => {
                import.names.iter().all(|alias| MODULES.contains(&alias.name.as_str()))
            }
            _ => false,
        }
    }

    /// `spec is not None and spec.loader is not None`
    fn is_about_spec(&self, test: &ast::Expr) -> bool {
        let mut used = Used(FxHashSet::default());
        used.visit_expr(test);
        !used.0.is_empty() && used.0.iter().all(|name| self.specs.contains_key(name))
    }

    /// The folder of the file itself, in its usual spellings.
    fn is_folder(&self, expr: &ast::Expr) -> bool {
        match expr {
            ast::Expr::Name(name) => self.folders.contains(name.id.as_str()),
            ast::Expr::Attribute(attribute) => {
                attribute.attr.as_str() == "parent" && self.is_path_of_file(&attribute.value)
            }
            ast::Expr::Call(call) => match (self.path(&call.func).as_deref(), argument(call)) {
                (Some("os.path.dirname"), Some(file)) => self.is_this_file(file),
                (Some("os.path.abspath" | "os.path.realpath" | "str"), Some(folder)) => {
                    self.is_folder(folder)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// `__file__`, perhaps made absolute.
    fn is_this_file(&self, expr: &ast::Expr) -> bool {
        match expr {
            ast::Expr::Name(name) => name.id.as_str() == "__file__",
            ast::Expr::Call(call) => {
                let path = self.path(&call.func);
                matches!(path.as_deref(), Some("os.path.abspath" | "os.path.realpath"))
                    && argument(call).is_some_and(|file| self.is_this_file(file))
            }
            _ => false,
        }
    }

    /// `Path(__file__)`, perhaps made absolute.
    fn is_path_of_file(&self, expr: &ast::Expr) -> bool {
        let ast::Expr::Call(call) = expr else { return false };
        match (self.path(&call.func).as_deref(), &*call.func) {
            (Some("pathlib.Path"), _) => argument(call).is_some_and(|file| self.is_this_file(file)),
            (_, ast::Expr::Attribute(method)) => {
                matches!(method.attr.as_str(), "resolve" | "absolute")
                    && call.arguments.is_empty()
                    && self.is_path_of_file(&method.value)
            }
            _ => false,
        }
    }

    /// The stem of a Python file of the folder: `os.path.join(folder, "helper.py")`, `folder / "helper.py"`.
    fn file(&self, expr: &ast::Expr) -> Option<String> {
        match expr {
            ast::Expr::Name(name) => self.files.get(name.id.as_str()).cloned(),
            ast::Expr::BinOp(binary) if binary.op == ast::Operator::Div => {
                self.is_folder(&binary.left).then(|| stem(&binary.right)).flatten()
            }
            ast::Expr::Call(call) => {
                match (self.path(&call.func).as_deref(), &*call.arguments.args) {
                    (Some("os.path.join"), [folder, file]) => {
                        self.is_folder(folder).then(|| stem(file)).flatten()
                    }
                    (Some("os.path.abspath" | "str"), [file]) => self.file(file),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn spec(&self, expr: &ast::Expr) -> Option<String> {
        let ast::Expr::Call(call) = expr else { return None };
        match (self.path(&call.func).as_deref(), &*call.arguments.args) {
            (Some("importlib.util.spec_from_file_location"), [name, file])
                if self.text(name).is_some() && call.arguments.keywords.is_empty() =>
            {
                self.file(file)
            }
            _ => None,
        }
    }

    fn module_of_spec(&self, expr: &ast::Expr) -> Option<String> {
        let ast::Expr::Call(call) = expr else { return None };
        match (self.path(&call.func).as_deref(), argument(call)) {
            (Some("importlib.util.module_from_spec"), Some(ast::Expr::Name(spec))) => {
                self.specs.get(spec.id.as_str()).cloned()
            }
            _ => None,
        }
    }

    /// `importlib.import_module("helper")`
    fn imported(&self, expr: &ast::Expr) -> Option<String> {
        let ast::Expr::Call(call) = expr else { return None };
        match (self.path(&call.func).as_deref(), argument(call)) {
            (Some("importlib.import_module"), Some(ast::Expr::StringLiteral(text))) => {
                let name = text.value.to_str();
                name.split('.').all(is_identifier).then(|| name.to_string())
            }
            _ => None,
        }
    }

    /// `spec.loader.exec_module`
    fn is_execution(&self, callee: &ast::Expr) -> bool {
        let ast::Expr::Attribute(method) = callee else { return false };
        let ast::Expr::Attribute(loader) = &*method.value else { return false };
        method.attr.as_str() == "exec_module"
            && loader.attr.as_str() == "loader"
            && matches!(&*loader.value, ast::Expr::Name(spec)
                if self.specs.contains_key(spec.id.as_str()))
    }

    /// `a.b.c` as the modules name it, whatever they are called here.
    fn path(&self, expr: &ast::Expr) -> Option<String> {
        match expr {
            ast::Expr::Name(name) if name.id.as_str() == "str" => Some("str".into()),
            ast::Expr::Name(name) => self.tools.get(name.id.as_str()).cloned(),
            ast::Expr::Attribute(attribute) => {
                Some(format!("{}.{}", self.path(&attribute.value)?, attribute.attr))
            }
            _ => None,
        }
    }
}

fn is_import(stmt: &ast::Stmt) -> bool {
    matches!(stmt, ast::Stmt::Import(_) | ast::Stmt::ImportFrom(_))
}

fn argument(call: &ast::ExprCall) -> Option<&ast::Expr> {
    match (&*call.arguments.args, &*call.arguments.keywords) {
        ([only], []) => Some(only),
        _ => None,
    }
}

/// `"helper.py"` without its end, where that is a name.
fn stem(expr: &ast::Expr) -> Option<String> {
    let ast::Expr::StringLiteral(text) = expr else { return None };
    let stem = text.value.to_str().strip_suffix(".py")?;
    is_identifier(stem).then(|| stem.to_string())
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_numeric())
}

/// `import file as name`, standing where a statement stood.
fn import(file: &str, name: &str, range: TextRange) -> ast::Stmt {
    ast::Stmt::Import(ast::StmtImport {
        names: vec![alias(file, name, range)],
        is_lazy: false,
        range,
        node_index: ast::AtomicNodeIndex::default(),
    })
}

/// `from file import member as name`, standing where a statement stood.
fn import_member(file: &str, member: &str, name: &str, range: TextRange) -> ast::Stmt {
    ast::Stmt::ImportFrom(ast::StmtImportFrom {
        module: Some(ast::Identifier::new(file, range)),
        names: vec![alias(member, name, range)],
        level: 0,
        is_lazy: false,
        range,
        node_index: ast::AtomicNodeIndex::default(),
    })
}

fn alias(name: &str, asname: &str, range: TextRange) -> ast::Alias {
    let identifier = |text: &str| ast::Identifier::new(text, range);
    ast::Alias {
        name: identifier(name),
        asname: Some(identifier(asname)),
        range,
        node_index: ast::AtomicNodeIndex::default(),
    }
}

/// All names in code.
struct Used(FxHashSet<String>);

impl<'a> Visitor<'a> for Used {
    fn visit_expr(&mut self, expr: &'a ast::Expr) {
        if let ast::Expr::Name(name) = expr {
            self.0.insert(name.id.to_string());
        }
        ast::visitor::walk_expr(self, expr);
    }
}
