//! What tests over folders of kernels share.

use std::path::{Path, PathBuf};

/// The Python files of a folder beside the tests, in order of their names.
pub fn python_files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "py")).collect();
    files.sort();
    files
}
