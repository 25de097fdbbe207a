//! Graphs in a folder tree, in sorted order. A folder is a graph if it holds a `model.py`.

use super::{GraphSource, Limits, Meter, shown};
use crate::content::check_path_part;
use passnet_graph::Diagnostic;
use passnet_graph::{FileName, GraphFiles};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Walks depth first. Links to folders are followed, but every real folder is read once, so that loops end and
/// links upon links do not multiply; a folder met again is reported.
#[derive(Debug)]
pub struct FolderSource {
    stack: Vec<Level>,
    /// Every folder entered, by its real path, with the path it was first reached by.
    seen: BTreeMap<PathBuf, PathBuf>,
    ready: VecDeque<Result<GraphFiles, Diagnostic>>,
    limits: Limits,
    meter: Meter,
}

/// A folder being walked.
#[derive(Debug)]
struct Level {
    folder: Folder,
    children: Vec<Child>,
    next: usize,
}

#[derive(Debug, Clone)]
struct Folder {
    /// The path as the user would write it.
    path: PathBuf,
    /// The path without links: the folder's identity.
    real: PathBuf,
    logical: String,
}

#[derive(Debug)]
struct Child {
    name: OsString,
    is_link: bool,
}

impl FolderSource {
    /// Opens a tree of graph folders, or one that is a graph folder itself.
    pub fn open(root: &Path, limits: Limits) -> Result<Self, Diagnostic> {
        let cannot = |error| problem(root, format!("cannot be read: {error}"));
        let real = fs::canonicalize(root).map_err(cannot)?;
        fs::read_dir(&real).map_err(cannot)?;
        // A tree's graphs are named by their paths below the root; a root that is itself a graph needs a name too.
        let mut logical = String::new();
        if real.join(FileName::Model.as_str()).exists() {
            let name = real.file_name().and_then(OsStr::to_str).unwrap_or("graph");
            check_path_part(name).map_err(|why| problem(root, format!("the name {why}")))?;
            logical = name.to_owned();
        }
        let mut source = Self {
            stack: Vec::new(),
            seen: BTreeMap::new(),
            ready: VecDeque::new(),
            limits,
            meter: Meter::default(),
        };
        source.enter(Folder { path: root.to_owned(), real, logical });
        Ok(source)
    }

    /// Reads the folder's list and, if it is a graph, its files; its subfolders are left for later.
    fn enter(&mut self, folder: Folder) {
        if let Some(first) = self.seen.get(&folder.real) {
            let is_loop = self.stack.iter().any(|level| level.folder.real == folder.real);
            let what = if is_loop { "a loop: a link to the enclosing folder" } else { "a link to" };
            let message = format!("{what} `{}`, which is read already", first.display());
            self.ready.push_back(Err(problem(&folder.path, message)));
            return;
        }
        self.seen.insert(folder.real.clone(), folder.path.clone());

        let entries = match fs::read_dir(&folder.path) {
            Ok(entries) => entries,
            Err(error) => {
                let message = format!("this folder cannot be read: {error}");
                return self.ready.push_back(Err(problem(&folder.path, message)));
            }
        };
        let mut children = Vec::new();
        let mut is_graph = false;
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) {
                Ok((name, kind)) => {
                    is_graph |= name == FileName::Model.as_str();
                    // A link in the place of a graph's file is `read_graph`'s to follow.
                    let is_file = name.to_str().and_then(FileName::parse).is_some();
                    if kind.is_dir() || kind.is_symlink() && !is_file {
                        children.push(Child { name, is_link: kind.is_symlink() });
                    }
                }
                Err(error) => {
                    let message = format!("this folder cannot be read to its end: {error}");
                    self.ready.push_back(Err(problem(&folder.path, message)));
                    break;
                }
            }
        }
        children.sort_by(|a, b| a.name.cmp(&b.name));
        if is_graph {
            let graph = read_graph_folder(&folder.path, &folder.logical, self.limits);
            self.ready.push_back(graph);
        }
        self.stack.push(Level { folder, children, next: 0 });
    }

    /// Goes on with the next subfolder of the innermost folder, or leaves it.
    fn step(&mut self) {
        let Some(level) = self.stack.last_mut() else { return };
        let Some(child) = level.children.get(level.next) else {
            self.stack.pop();
            return;
        };
        level.next += 1;
        let path = level.folder.path.join(&child.name);
        let real = if child.is_link {
            match fs::metadata(&path).and_then(|data| Ok((data, fs::canonicalize(&path)?))) {
                Ok((data, real)) if data.is_dir() => real,
                Ok(_) => return,
                Err(error) => {
                    let message = format!("this link leads nowhere: {error}");
                    return self.ready.push_back(Err(problem(&path, message)));
                }
            }
        } else {
            level.folder.real.join(&child.name)
        };
        let logical = match child.name.to_str() {
            None => Err("is not UTF-8"),
            Some(name) => check_path_part(name).map(|()| match level.folder.logical.as_str() {
                "" => name.to_owned(),
                parent => format!("{parent}/{name}"),
            }),
        };
        match logical {
            Ok(logical) => self.enter(Folder { path, real, logical }),
            Err(why) => self.ready.push_back(Err(problem(&path, format!("the name {why}")))),
        }
    }

    /// Each folder counts as an equal part of the one around it.
    fn measure(&self) -> f64 {
        if self.stack.is_empty() {
            return 1.0;
        }
        let mut fraction = 0.0;
        let mut weight = 1.0;
        for level in &self.stack {
            // Below this, further levels do not show.
            if level.children.is_empty() || weight < 1e-6 {
                break;
            }
            weight /= level.children.len() as f64;
            fraction += weight * level.next.saturating_sub(1) as f64;
        }
        fraction
    }
}

impl Iterator for FolderSource {
    type Item = Result<GraphFiles, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.meter.set(self.measure());
                return Some(item);
            }
            if self.stack.is_empty() {
                self.meter.set(1.0);
                return None;
            }
            self.step();
        }
    }
}

impl GraphSource for FolderSource {
    fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

/// The files of the graph in a folder, under the path that they are known by.
pub(crate) fn read_graph_folder(
    folder: &Path,
    logical: &str,
    limits: Limits,
) -> Result<GraphFiles, Diagnostic> {
    let mut graph = GraphFiles::new(logical);
    let mut left = limits.graph_bytes;
    for name in FileName::ALL {
        let path = folder.join(name.as_str());
        if let Some(bytes) = read_regular(&path, left.min(limits.file_bytes))? {
            left = left.saturating_sub(bytes.len() as u64);
            graph.files.insert(name, bytes);
        }
    }
    Ok(graph)
}

/// The file's bytes, or nothing if there is no such file.
pub(crate) fn read_regular(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Diagnostic> {
    let cannot = |error: std::io::Error| problem(path, format!("cannot be read: {error}"));
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        // A link to nothing is not the same as no file.
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound
                && fs::symlink_metadata(path).is_err() =>
        {
            return Ok(None);
        }
        Err(error) => return Err(cannot(error)),
    };
    // Opening a pipe would wait for a writer for ever.
    if !metadata.is_file() {
        return Err(problem(path, "is not a regular file".into()));
    }
    let mut bytes = Vec::with_capacity(metadata.len().min(limit) as usize);
    let file = fs::File::open(path).map_err(cannot)?;
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > limit {
        return Err(problem(path, format!("is larger than the {limit} bytes allowed here")));
    }
    Ok(Some(bytes))
}

pub(crate) fn problem(path: &Path, message: String) -> Diagnostic {
    Diagnostic::file(shown(&path.to_string_lossy()), message)
}
