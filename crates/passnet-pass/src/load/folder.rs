//! Where pass files lie: a folder on disk, or texts in memory that stand for one.

use passnet_graph::Diagnostic;
use passnet_graph::syntax::Source;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a folder in memory is called: passes import each other by this name.
const NAME: &str = "pass_dir";

/// Where pass files lie.
#[derive(Debug)]
pub enum Folder {
    /// Files as they lie on disk.
    Disk(PathBuf),
    /// Texts by their paths below the folder.
    Memory(BTreeMap<String, String>),
}

impl Folder {
    /// The folder, as errors name it.
    pub fn path(&self) -> &Path {
        match self {
            Folder::Disk(path) => path,
            Folder::Memory(_) => Path::new(NAME),
        }
    }

    /// Whether there is anything of this name.
    pub fn holds(&self, name: &str) -> bool {
        match self {
            Folder::Disk(folder) => folder.join(name).exists(),
            Folder::Memory(files) => files.contains_key(name),
        }
    }

    pub(super) fn is_file(&self, path: &Path) -> bool {
        match self {
            Folder::Disk(_) => path.is_file(),
            Folder::Memory(files) => text(files, path).is_some(),
        }
    }

    /// How large a file is; an error where it leads out of the folder or is no plain file.
    pub(super) fn bytes(&self, path: &Path) -> Result<u64, Diagnostic> {
        let shown = path.display().to_string();
        let describe = |error: std::io::Error| Diagnostic::file(&shown, error.to_string());
        let folder = match self {
            Folder::Disk(folder) => folder,
            Folder::Memory(_) => return self.source(path).map(|source| source.text().len() as u64),
        };
        let real = path.canonicalize().map_err(describe)?;
        if !real.starts_with(folder.canonicalize().map_err(describe)?) {
            return Err(Diagnostic::file(&shown, "leads out of the pass folder"));
        }
        let metadata = std::fs::metadata(&real).map_err(describe)?;
        // Reading a pipe would wait for somebody to write into it.
        match metadata.is_file() {
            true => Ok(metadata.len()),
            false => Err(Diagnostic::file(&shown, "not a plain file")),
        }
    }

    pub(super) fn source(&self, path: &Path) -> Result<Source, Diagnostic> {
        match self {
            Folder::Disk(_) => Source::read(path),
            Folder::Memory(files) => {
                let shown = path.display().to_string();
                let text = text(files, path);
                text.map(|text| Source::new(&*shown, text))
                    .ok_or_else(|| Diagnostic::file(&shown, "no such file"))
            }
        }
    }
}

fn text<'a>(files: &'a BTreeMap<String, String>, path: &Path) -> Option<&'a str> {
    files.get(path.strip_prefix(NAME).ok()?.to_str()?).map(String::as_str)
}
