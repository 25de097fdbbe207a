//! Pass folders: which files belong to a set of passes, in which order the passes apply.
//!
//! A folder lists its passes in `sorted_output_pass_rule_names.json`; files it does not list are helpers and
//! are read when an import reaches them. Nothing outside the folder is read.

mod bindings;
mod folder;
mod manifest;
mod program;

pub use bindings::{Binding, Bindings, imported_names};
pub use folder::Folder;
pub use program::{Module, ModuleId, Program, is_well_known};

use manifest::Manifest;
use passnet_graph::Diagnostic;
use program::Loader;
use std::path::{Path, PathBuf};

/// What bounds the reading of a pass folder.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Files, imported ones included.
    pub modules: usize,
    /// Passes of one folder.
    pub passes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { file_bytes: 4 << 20, total_bytes: 32 << 20, modules: 512, passes: 1024 }
    }
}

/// How a folder is read.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Passes that apply before the folder's own (`const_pass_dir` of a sample).
    pub input_dir: Option<PathBuf>,
    /// How much is read before it is refused.
    pub limits: Limits,
}

/// The passes of a folder in the order in which they apply, with every file they can reach.
#[derive(Debug)]
pub struct PassSet {
    /// All files, parsed.
    pub program: Program,
    /// The passes, in the order of the list.
    pub passes: Vec<PassFile>,
    /// What could not be read; the other passes are there all the same.
    pub errors: Vec<Diagnostic>,
    /// What is odd and yet no error.
    pub notes: Vec<Diagnostic>,
}

/// One listed pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassFile {
    /// The name in the list.
    pub name: String,
    /// The file it stands in.
    pub module: ModuleId,
    /// Whether it comes from the folder of input passes.
    pub is_input: bool,
}

/// Loads a pass folder, or a single pass file given directly.
pub fn load(path: &Path, options: &LoadOptions) -> PassSet {
    match path.is_dir() {
        true => load_folder(Folder::Disk(path.to_path_buf()), options),
        false => {
            let root = path.parent().filter(|p| !p.as_os_str().is_empty());
            let root = Folder::Disk(root.unwrap_or(Path::new(".")).to_path_buf());
            let mut set = Selection { folders: vec![root], ..Selection::default() };
            set.file(path);
            set.load(path, options)
        }
    }
}

/// Loads a pass folder, wherever it lies.
pub fn load_folder(folder: Folder, options: &LoadOptions) -> PassSet {
    let path = folder.path().to_path_buf();
    let inputs = options.input_dir.clone().map(Folder::Disk);
    let folders = std::iter::once(folder).chain(inputs).collect();
    let mut set = Selection { folders, ..Selection::default() };
    set.list();
    set.load(&path, options)
}

impl Selection {
    fn load(mut self, path: &Path, options: &LoadOptions) -> PassSet {
        if self.passes.len() > options.limits.passes {
            self.errors.push(Diagnostic::file(
                path.display().to_string(),
                format!(
                    "{} passes, more than the limit of {}",
                    self.passes.len(),
                    options.limits.passes
                ),
            ));
            self.passes.truncate(options.limits.passes);
        }
        let Selection { folders, passes: listed, mut errors, notes } = self;
        let mut loader = Loader::new(folders, options.limits.clone());
        let mut passes = Vec::new();
        for Listed { name, root } in listed {
            match loader.load_pass(root, &name) {
                Ok(module) => passes.push(PassFile { name, module, is_input: root == INPUT }),
                Err(error) => errors.push(error),
            }
        }
        let (program, found) = loader.finish();
        errors.extend(found);
        PassSet { program, passes, errors, notes }
    }
}

/// What to do about a folder without a list of passes: it may hold pass folders, or loose pass files.
fn how_to_name_passes(folder: &Folder) -> String {
    let entries = match folder {
        Folder::Disk(path) => std::fs::read_dir(path).ok(),
        Folder::Memory(_) => None,
    };
    let entries = entries.into_iter().flatten().flatten();
    let paths = entries.take(Limits::default().passes).map(|entry| entry.path());
    let is_pass_folder = |path: &PathBuf| path.join(Manifest::OUTPUT).is_file();
    let inner = paths.filter(is_pass_folder).min();
    match inner.as_deref().and_then(Path::file_name) {
        Some(name) => format!(
            "it holds pass folders: give one of them, such as `{}`",
            folder.path().join(name).display()
        ),
        None => "it holds a JSON list of file stems in the order of application, for example \
                 `[\"fuse_add_relu\"]`; a single pass file can be given by its own path"
            .into(),
    }
}

/// The folder's own files, and those of the folder of input passes.
const OWN: usize = 0;
const INPUT: usize = 1;

/// A pass named by a manifest, not read yet.
struct Listed {
    name: String,
    root: usize,
}

#[derive(Default)]
struct Selection {
    folders: Vec<Folder>,
    passes: Vec<Listed>,
    errors: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
}

impl Selection {
    fn file(&mut self, path: &Path) {
        match path.file_stem().and_then(|stem| stem.to_str()) {
            Some(stem) if path.extension().is_some_and(|e| e == "py") => {
                self.passes.push(Listed { name: stem.to_string(), root: OWN });
            }
            _ => {
                let message = match path.exists() {
                    true => "neither a folder nor a `.py` file",
                    false => "no such file or folder",
                };
                self.errors.push(
                    Diagnostic::file(path.display().to_string(), message)
                        .with_hint("give a pass folder or one pass file"),
                );
            }
        }
    }

    /// Input passes first, then the folder's own; a pass of the folder with the name of an input pass takes
    /// that one's place.
    fn list(&mut self) {
        let own = self.manifest(OWN, Manifest::OUTPUT).unwrap_or_else(|| {
            let folder = &self.folders[OWN];
            self.notes.push(
                Diagnostic::file(
                    folder.path().join(Manifest::OUTPUT).display().to_string(),
                    "no such file, so no pass of this folder is applied",
                )
                .with_hint(how_to_name_passes(folder)),
            );
            Vec::new()
        });
        let inputs = match self.folders.len() > INPUT {
            true => self.input_names(),
            false => Vec::new(),
        };
        for name in &inputs {
            let root = if own.contains(name) { OWN } else { INPUT };
            self.passes.push(Listed { name: name.clone(), root });
        }
        for name in own.into_iter().filter(|name| !inputs.contains(name)) {
            self.passes.push(Listed { name, root: OWN });
        }
    }

    /// The input passes, in the order the output folder asks for if it lists the same set.
    fn input_names(&mut self) -> Vec<String> {
        let names = self.manifest(INPUT, Manifest::INPUT).unwrap_or_default();
        let Some(reordered) = self.manifest(OWN, Manifest::INPUT) else { return names };
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort();
            names
        };
        if sorted(&names) == sorted(&reordered) {
            return reordered;
        }
        self.errors.push(
            Diagnostic::file(
                self.folders[OWN].path().join(Manifest::INPUT).display().to_string(),
                "it must list exactly the input passes, in any order",
            )
            .with_hint(format!("the input passes are {}", names.join(", "))),
        );
        names
    }

    fn manifest(&mut self, root: usize, name: &str) -> Option<Vec<String>> {
        match Manifest::read(&self.folders[root], name) {
            Ok(manifest) => manifest.map(|manifest| manifest.names),
            Err(errors) => {
                self.errors.extend(errors);
                Some(Vec::new())
            }
        }
    }
}
