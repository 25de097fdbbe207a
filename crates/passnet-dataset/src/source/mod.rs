//! Where graphs come from: a folder tree or a tar archive, read one graph at a time.
//!
//! A source yields a graph or a located error for each item and goes on after errors, so that one bad folder never
//! costs the rest of a corpus. Whatever the input claims about itself, sizes are bounded by [`Limits`].

mod archive;
mod folder;
mod tar_stream;

pub use archive::ArchiveSource;
pub use folder::FolderSource;
pub(crate) use folder::{problem as problem_at, read_graph_folder, read_regular};

use passnet_graph::Diagnostic;
use passnet_graph::{FileName, GraphFiles};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Graphs in a deterministic order. The iterator ends only when the input does.
pub trait GraphSource: Iterator<Item = Result<GraphFiles, Diagnostic>> + Send {
    /// How far the reading is; can be asked from another thread.
    fn meter(&self) -> Meter;
}

impl<S: GraphSource + ?Sized> GraphSource for Box<S> {
    fn meter(&self) -> Meter {
        (**self).meter()
    }
}

/// What one input may take. The defaults are far above anything real.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// One file of a graph.
    pub file_bytes: u64,
    /// All files of a graph; in an archive, of all graphs whose folders lie inside each other.
    pub graph_bytes: u64,
    /// Everything an archive unpacks to.
    pub archive_bytes: u64,
    /// A name inside an archive.
    pub name_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            graph_bytes: 128 << 20,
            archive_bytes: 256 << 30,
            name_bytes: 4096,
        }
    }
}

/// The fraction of a source that has been read, from 0 to 1: exact for archives, a guess for folder trees.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<AtomicU64>);

impl Meter {
    /// What has been read so far.
    pub fn fraction(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// For sources of others.
    pub fn set(&self, fraction: f64) {
        self.0.store(fraction.to_bits(), Ordering::Relaxed);
    }
}

/// Opens what `path` names: a graph folder, a tree of them, a `model.py`, a `.tar` or a `.tar.zst`.
pub fn open(path: &Path, limits: Limits) -> Result<Box<dyn GraphSource>, Diagnostic> {
    let error = |message: String| Diagnostic::file(path.display().to_string(), message);
    let metadata = std::fs::metadata(path).map_err(|e| error(format!("cannot be read: {e}")))?;
    if metadata.is_dir() {
        return Ok(Box::new(FolderSource::open(path, limits)?));
    }
    if path.file_name().is_some_and(|name| name == FileName::Model.as_str()) {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        return Ok(Box::new(FolderSource::open(folder.unwrap_or(Path::new(".")), limits)?));
    }
    if metadata.is_file() {
        return Ok(Box::new(ArchiveSource::open(path, limits)?));
    }
    Err(error("is neither a folder nor a file".into())
        .with_hint("give a graph folder, a tree of graph folders, a `.tar` or a `.tar.zst`"))
}

/// A name from an untrusted place, fit to be shown: escaped and shortened.
fn shown(name: &str) -> String {
    const LONGEST: usize = 200;
    let escaped: String = name.escape_debug().collect();
    match escaped.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &escaped[..end]),
        None => escaped,
    }
}
