//! The files of a pass set: each read once, imports between them followed, nothing outside the folder opened.

use super::Limits;
use super::folder::Folder;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::{Ranged, Source, ast, parse_imported};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Index of a module in a [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(usize);

impl ModuleId {
    /// Its place among the modules of the program.
    pub fn index(self) -> usize {
        self.0
    }
}

/// One Python file.
#[derive(Debug)]
pub struct Module {
    /// Dotted name below the folder: `fuse`, `kernels.norm`.
    pub name: String,
    /// The text.
    pub source: Source,
    /// The parsed text.
    pub syntax: ast::ModModule,
    root: usize,
    /// Whether a list names the file: it lies in the folder itself, though its name may hold dots.
    is_listed: bool,
}

/// All files that the listed passes can reach.
#[derive(Debug, Default)]
pub struct Program {
    modules: Vec<Module>,
    by_name: FxHashMap<(usize, String), ModuleId>,
    /// The folders, as given.
    roots: Vec<Folder>,
}

impl Program {
    /// A program of one module, from text.
    pub fn from_source(source: Source) -> Result<Self, Diagnostic> {
        let syntax = parse_imported(&source)?;
        let path = Path::new(source.path());
        let name = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let mut program =
            Program { roots: vec![Folder::Disk(PathBuf::from("."))], ..Program::default() };
        program.by_name.insert((0, name.clone()), ModuleId(0));
        program.modules.push(Module { name, source, syntax, root: 0, is_listed: true });
        Ok(program)
    }

    /// The module with this id; ids come from this program.
    pub fn module(&self, id: ModuleId) -> &Module {
        &self.modules[id.0]
    }

    /// All modules, in the order in which they were found.
    pub fn ids(&self) -> impl Iterator<Item = ModuleId> + use<> {
        (0..self.modules.len()).map(ModuleId)
    }

    /// The folder that the file was found in.
    pub fn folder_of(&self, id: ModuleId) -> &Folder {
        &self.roots[self.module(id).root]
    }

    /// The file that an import names, if it is one of the folder's.
    pub fn import(&self, from: ModuleId, level: u32, path: &str) -> Option<ModuleId> {
        let root = self.module(from).root;
        let local = self.local_name(from, level, path)?;
        self.by_name.get(&(root, local)).copied()
    }

    /// An import path as a dotted name below the folder; `None` if it cannot be one.
    fn local_name(&self, from: ModuleId, level: u32, path: &str) -> Option<String> {
        let module = self.module(from);
        if level > 0 {
            let mut package: Vec<&str> = match module.is_listed {
                true => vec![&module.name],
                false => module.name.split('.').collect(),
            };
            for _ in 0..level {
                package.pop()?;
            }
            package.extend(path.split('.').filter(|part| !part.is_empty()));
            return Some(package.join("."));
        }
        let folder = self.roots[module.root].path().file_name().and_then(|name| name.to_str());
        let (first, rest) = path.split_once('.').unwrap_or((path, ""));
        if first == "pass_dir" || Some(first) == folder {
            return Some(rest.to_string());
        }
        (!is_well_known(first)).then(|| path.to_string())
    }

    /// Every file that `start` can reach through imports, itself first.
    pub fn reachable(&self, start: ModuleId) -> Vec<ModuleId> {
        let mut seen = vec![start];
        let mut next = 0;
        while let Some(&id) = seen.get(next) {
            for (level, path) in imports(&self.module(id).syntax) {
                let found = self.import(id, level, &path);
                if let Some(found) = found.filter(|found| !seen.contains(found)) {
                    seen.push(found);
                }
            }
            next += 1;
        }
        seen
    }
}

/// Modules that are never taken from the pass folder: a file of that name there is a trick, not a helper.
pub fn is_well_known(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "abc",
        "ast",
        "atexit",
        "builtins",
        "collections",
        "contextlib",
        "copy",
        "ctypes",
        "dataclasses",
        "enum",
        "functools",
        "gc",
        "importlib",
        "inspect",
        "io",
        "itertools",
        "json",
        "logging",
        "math",
        "multiprocessing",
        "numbers",
        "numpy",
        "operator",
        "os",
        "pathlib",
        "pickle",
        "platform",
        "random",
        "re",
        "shutil",
        "signal",
        "socket",
        "statistics",
        "struct",
        "subprocess",
        "sys",
        "tempfile",
        "threading",
        "time",
        "torch",
        "traceback",
        "triton",
        "types",
        "typing",
        "urllib",
        "warnings",
        "weakref",
        "__future__",
    ];
    NAMES.contains(&name)
}

/// All imports of a file, wherever they stand: level and dotted path. `from a import b` gives `a` and `a.b`,
/// because `b` may be a module.
fn imports(syntax: &ast::ModModule) -> Vec<(u32, String)> {
    struct Collect(Vec<(u32, String)>);
    impl<'a> ast::visitor::Visitor<'a> for Collect {
        fn visit_stmt(&mut self, stmt: &'a ast::Stmt) {
            match stmt {
                ast::Stmt::Import(import) => {
                    self.0.extend(import.names.iter().map(|alias| (0, alias.name.to_string())));
                }
                ast::Stmt::ImportFrom(import) => {
                    let base = import.module.as_ref().map_or("", |name| name.as_str());
                    self.0.push((import.level, base.to_string()));
                    for alias in &import.names {
                        let path = [base, alias.name.as_str()];
                        let path = path.iter().filter(|p| !p.is_empty()).copied();
                        self.0.push((import.level, path.collect::<Vec<_>>().join(".")));
                    }
                }
                _ => ast::visitor::walk_stmt(self, stmt),
            }
        }
    }
    let mut collect = Collect(Vec::new());
    ast::visitor::walk_body(&mut collect, &syntax.body);
    collect.0
}

/// Reads files on demand, each once.
pub(super) struct Loader {
    program: Program,
    limits: Limits,
    bytes: u64,
    errors: Vec<Diagnostic>,
}

impl Loader {
    pub(super) fn new(roots: Vec<Folder>, limits: Limits) -> Self {
        let program = Program { roots, ..Program::default() };
        Loader { program, limits, bytes: 0, errors: Vec::new() }
    }

    /// Loads a listed pass of a folder and all it imports.
    pub(super) fn load_pass(&mut self, root: usize, name: &str) -> Result<ModuleId, Diagnostic> {
        if let Some(id) = self.program.by_name.get(&(root, name.to_string())) {
            return Ok(*id);
        }
        let file = format!("{name}.py");
        let path = self.program.roots[root].path().join(&file);
        if !self.program.roots[root].holds(&file) {
            return Err(Diagnostic::file(path.display().to_string(), "no such file").with_hint(
                "give a pass folder, or a pass file that exists; a folder's list names file stems",
            ));
        }
        let first = self.program.modules.len();
        let id = self.read(root, name.to_string(), &path, true)?;
        let mut next = first;
        while next < self.program.modules.len() {
            self.follow_imports(ModuleId(next));
            next += 1;
        }
        Ok(id)
    }

    fn follow_imports(&mut self, id: ModuleId) {
        for (level, path) in imports(&self.program.module(id).syntax) {
            let root = self.program.module(id).root;
            let Some(local) = self.program.local_name(id, level, &path) else { continue };
            if local.is_empty() || self.program.by_name.contains_key(&(root, local.clone())) {
                continue;
            }
            let Some(file) = self.find(root, &local) else { continue };
            if let Err(error) = self.read(root, local, &file, false) {
                self.errors.push(error);
            }
        }
    }

    fn find(&self, root: usize, local: &str) -> Option<PathBuf> {
        let relative: PathBuf = local.split('.').collect();
        let folder = &self.program.roots[root];
        let base = folder.path().join(relative);
        let files = [base.with_extension("py"), base.join("__init__.py")];
        files.into_iter().find(|file| folder.is_file(file))
    }

    fn read(
        &mut self,
        root: usize,
        name: String,
        path: &Path,
        is_listed: bool,
    ) -> Result<ModuleId, Diagnostic> {
        let shown = path.display().to_string();
        let refuse = |message: String| Err(Diagnostic::file(&shown, message));
        let size = self.program.roots[root].bytes(path)?;
        if size > self.limits.file_bytes {
            let limit = self.limits.file_bytes;
            let message = format!("file has {size} bytes, more than the limit of {limit}");
            return Err(Diagnostic::file(&shown, message)
                .with_hint("a pass is a page of source; tables and weights do not belong in it"));
        }
        self.bytes += size;
        if self.bytes > self.limits.total_bytes {
            let limit = self.limits.total_bytes;
            return refuse(format!("the files of this folder exceed {limit} bytes"));
        }
        if self.program.modules.len() >= self.limits.modules {
            let limit = self.limits.modules;
            return refuse(format!("more than {limit} files are imported"));
        }
        let source = self.program.roots[root].source(path)?;
        let syntax = parse_imported(&source)?;
        let id = ModuleId(self.program.modules.len());
        self.program.by_name.insert((root, name.clone()), id);
        self.program.modules.push(Module { name, source, syntax, root, is_listed });
        Ok(id)
    }

    pub(super) fn finish(self) -> (Program, Vec<Diagnostic>) {
        (self.program, self.errors)
    }
}

impl Module {
    /// The line at which a part of the tree begins.
    pub fn line(&self, node: &impl Ranged) -> u32 {
        self.source.position(node.range().start().to_usize()).0 as u32
    }
}
