//! Pass folders: which files belong to a set of passes, in which order the passes apply.
//!
//! A folder lists its passes in `sorted_output_pass_rule_names.json`; files it does not list are helpers and
//! are read when an import reaches them. Nothing outside the folder is read.

mod bindings;
mod manifest;
mod program;

pub use bindings::{Binding, Bindings, imported_names};
pub use program::{Module, ModuleId, Program, is_well_known};

use manifest::Manifest;
use passnet_graph::Diagnostic;
use program::Loader;
use std::path::{Path, PathBuf};

/// What bounds the reading of a pass folder.
#[derive(Debug, Clone)]
pub struct Limits {
    pub file_bytes: u64,
    pub total_bytes: u64,
    pub modules: usize,
    pub passes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { file_bytes: 4 << 20, total_bytes: 32 << 20, modules: 512, passes: 1024 }
    }
}

#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Passes that apply before the folder's own (`const_pass_dir` of a sample).
    pub input_dir: Option<PathBuf>,
    pub limits: Limits,
}

/// The passes of a folder in the order in which they apply, with every file they can reach.
#[derive(Debug)]
pub struct PassSet {
    pub program: Program,
    pub passes: Vec<PassFile>,
    /// What could not be read; the other passes are there all the same.
    pub errors: Vec<Diagnostic>,
    pub notes: Vec<Diagnostic>,
}

/// One listed pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassFile {
    pub name: String,
    pub module: ModuleId,
    /// Whether it comes from the folder of input passes.
    pub is_input: bool,
}

/// Loads a pass folder, or a single pass file given directly.
pub fn load(path: &Path, options: &LoadOptions) -> PassSet {
    let mut loader = Loader::new(options.limits.clone());
    let mut set = Selection::default();
    if path.is_dir() {
        set.folder(path, options);
    } else {
        set.file(path);
    }
    if set.passes.len() > options.limits.passes {
        set.errors.push(Diagnostic::file(
            path.display().to_string(),
            format!(
                "{} passes, more than the limit of {}",
                set.passes.len(),
                options.limits.passes
            ),
        ));
        set.passes.truncate(options.limits.passes);
    }
    let mut passes = Vec::new();
    for listed in set.passes {
        match loader.load_pass(&listed.root, &listed.name) {
            Ok(module) => {
                passes.push(PassFile { name: listed.name, module, is_input: listed.is_input });
            }
            Err(error) => set.errors.push(error),
        }
    }
    let (program, errors) = loader.finish();
    set.errors.extend(errors);
    PassSet { program, passes, errors: set.errors, notes: set.notes }
}

/// What to do about a folder without a list of passes: it may hold pass folders, or loose pass files.
fn how_to_name_passes(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.take(Limits::default().passes).map(|entry| entry.path());
    let is_pass_folder = |path: &PathBuf| path.join(Manifest::OUTPUT).is_file();
    let inner = paths.filter(is_pass_folder).min();
    match inner.as_deref().and_then(Path::file_name) {
        Some(name) => format!(
            "it holds pass folders: give one of them, such as `{}`",
            folder.join(name).display()
        ),
        None => "it holds a JSON list of file stems in the order of application, for example \
                 `[\"fuse_add_relu\"]`; a single pass file can be given by its own path"
            .into(),
    }
}

/// A pass named by a manifest, not read yet.
struct Listed {
    name: String,
    root: PathBuf,
    is_input: bool,
}

#[derive(Default)]
struct Selection {
    passes: Vec<Listed>,
    errors: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
}

impl Selection {
    fn file(&mut self, path: &Path) {
        let root = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        match path.file_stem().and_then(|stem| stem.to_str()) {
            Some(stem) if path.extension().is_some_and(|e| e == "py") => self.passes.push(Listed {
                name: stem.to_string(),
                root: root.to_path_buf(),
                is_input: false,
            }),
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
    fn folder(&mut self, folder: &Path, options: &LoadOptions) {
        let own = self.manifest(folder, Manifest::OUTPUT).unwrap_or_else(|| {
            self.notes.push(
                Diagnostic::file(
                    folder.join(Manifest::OUTPUT).display().to_string(),
                    "no such file, so no pass of this folder is applied",
                )
                .with_hint(how_to_name_passes(folder)),
            );
            Vec::new()
        });
        let inputs = match &options.input_dir {
            Some(input_dir) => self.input_names(input_dir, folder),
            None => Vec::new(),
        };
        for name in &inputs {
            let (root, is_input) = match (&options.input_dir, own.contains(name)) {
                (Some(input_dir), false) => (input_dir.clone(), true),
                _ => (folder.to_path_buf(), false),
            };
            self.passes.push(Listed { name: name.clone(), root, is_input });
        }
        for name in own.into_iter().filter(|name| !inputs.contains(name)) {
            self.passes.push(Listed { name, root: folder.to_path_buf(), is_input: false });
        }
    }

    /// The input passes, in the order the output folder asks for if it lists the same set.
    fn input_names(&mut self, input_dir: &Path, folder: &Path) -> Vec<String> {
        let names = self.manifest(input_dir, Manifest::INPUT).unwrap_or_default();
        let Some(reordered) = self.manifest(folder, Manifest::INPUT) else { return names };
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
                folder.join(Manifest::INPUT).display().to_string(),
                "it must list exactly the input passes, in any order",
            )
            .with_hint(format!("the input passes are {}", names.join(", "))),
        );
        names
    }

    fn manifest(&mut self, folder: &Path, name: &str) -> Option<Vec<String>> {
        match Manifest::read(&folder.join(name)) {
            Ok(manifest) => manifest.map(|manifest| manifest.names),
            Err(errors) => {
                self.errors.extend(errors);
                Some(Vec::new())
            }
        }
    }
}
