//! What lies in a checkout: one walk over its folders, in order, without following a link.

use super::links;
use crate::content::check_path_part;
use crate::lists::GRAPH_LIST;
use crate::source::{GraphSource, Limits, Meter, problem_at, read_graph_folder};
use passnet_graph::{Diagnostic, FileName, GraphFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub(super) const GRAPHS: &str = crate::layout::GRAPHS;
pub(super) const GRAPH_LISTS: &str = "graph_lists";
pub(super) const SAMPLES: &str = "samples";
pub(super) const SAMPLE_LISTS: &str = "sample_lists";
/// The folders that hold data.
const DATA: [&str; 4] = [GRAPH_LISTS, GRAPHS, SAMPLE_LISTS, SAMPLES];
/// Folders inside each other.
const MAX_DEPTH: usize = 64;
/// Files, folders and links together; the published data has two millions.
const MAX_ITEMS: usize = 100_000_000;

/// A file of a checkout that is no part of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    File {
        executable: bool,
    },
    Link(String),
    /// A folder with nothing in it.
    Folder,
}

/// A folder with a `graph_list.txt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SampleFolder {
    pub(super) path: String,
    /// The folder that `graphs` in its list means, from the top of the checkout.
    pub(super) graphs: String,
}

/// A checkout as found, with paths from its top.
#[derive(Debug)]
pub struct Checkout {
    pub(super) root: PathBuf,
    pub(super) limits: Limits,
    pub(super) graphs: BTreeSet<String>,
    pub(super) items: BTreeMap<String, Item>,
    pub(super) samples: Vec<SampleFolder>,
    pub(super) problems: Vec<Diagnostic>,
    /// Folders whose content was read: no link makes us read one twice.
    walked: BTreeSet<String>,
    /// Links that lead where none may lead.
    refused: BTreeSet<String>,
    seen: usize,
}

impl Checkout {
    /// Looks at everything in the checkout, and reads nothing yet.
    pub fn open(root: &Path, limits: Limits) -> Result<Self, Diagnostic> {
        let real = fs::canonicalize(root)
            .map_err(|error| problem_at(root, format!("cannot be read: {error}")))?;
        let mut checkout = Self {
            root: real,
            limits,
            graphs: BTreeSet::new(),
            items: BTreeMap::new(),
            samples: Vec::new(),
            problems: Vec::new(),
            walked: BTreeSet::new(),
            refused: BTreeSet::new(),
            seen: 0,
        };
        for folder in DATA {
            match fs::symlink_metadata(checkout.root.join(folder)) {
                Err(_) => {}
                Ok(data) if data.is_dir() => checkout.walk(folder)?,
                Ok(_) => checkout.problem(
                    folder,
                    "is no folder",
                    "the data of a checkout lies in folders of its own",
                ),
            }
        }
        checkout.find_samples()?;
        Ok(checkout)
    }

    /// What else lies at the top.
    pub(super) fn left_out(&self) -> Vec<String> {
        let names = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names
            .filter(|name| !DATA.contains(&name.as_str()) && !self.walked.contains(name))
            .collect();
        names.sort_unstable();
        names
    }

    pub(super) fn problem(&mut self, path: &str, message: impl Into<String>, hint: &str) {
        let problem = problem_at(Path::new(path), message.into());
        self.problems.push(if hint.is_empty() { problem } else { problem.with_hint(hint) });
    }

    fn walk(&mut self, top: &str) -> Result<(), Diagnostic> {
        let mut stack = vec![top.to_string()];
        while let Some(folder) = stack.pop() {
            if !self.walked.insert(folder.clone()) {
                continue;
            }
            if folder.matches('/').count() >= MAX_DEPTH {
                self.problem(
                    &folder,
                    format!("more than {MAX_DEPTH} folders inside each other"),
                    "",
                );
                continue;
            }
            let mut below = self.folder(&folder)?;
            below.reverse();
            stack.extend(below);
        }
        Ok(())
    }

    /// Looks at one folder; returns the folders in it, in order.
    fn folder(&mut self, folder: &str) -> Result<Vec<String>, Diagnostic> {
        let entries = match self.entries(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.problem(folder, format!("this folder cannot be read: {error}"), "");
                return Ok(Vec::new());
            }
        };
        self.seen += entries.len();
        if self.seen > MAX_ITEMS {
            return Err(problem_at(&self.root, format!("holds more than {MAX_ITEMS} files")));
        }
        if entries.is_empty() {
            self.items.insert(folder.to_string(), Item::Folder);
        }
        let model = FileName::Model.as_str();
        let is_graph = entries.iter().any(|(name, data)| *name == *model && data.is_file());
        if is_graph {
            self.graphs.insert(folder.to_string());
        }
        let mut below = Vec::new();
        for (name, data) in entries {
            let shown = format!("{folder}/{}", name.to_string_lossy());
            let checked = match name.to_str() {
                None => Err("is not UTF-8"),
                Some(name) => check_path_part(name),
            };
            if let Err(why) = checked {
                self.problem(&shown, format!("the name {why}"), "");
                continue;
            }
            let part_of_graph = is_graph && name.to_str().and_then(FileName::parse).is_some();
            if data.is_dir() {
                below.push(shown);
            } else if data.is_symlink() && part_of_graph {
                let hint = "put the file itself there";
                self.problem(&shown, "a file of a graph is a link", hint);
                self.graphs.remove(folder);
            } else if data.is_symlink() {
                self.link(&shown);
            } else if !data.is_file() {
                self.problem(&shown, "is neither a file nor a folder nor a link", "");
            } else if !part_of_graph {
                let executable = data.permissions().mode() & 0o111 != 0;
                self.items.insert(shown, Item::File { executable });
            }
        }
        Ok(below)
    }

    fn entries(&self, folder: &str) -> std::io::Result<Vec<(std::ffi::OsString, fs::Metadata)>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.root.join(folder))? {
            let entry = entry?;
            // Of a link, its own.
            let data = entry.metadata()?;
            entries.push((entry.file_name(), data));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    fn link(&mut self, path: &str) {
        let target = match fs::read_link(self.root.join(path)) {
            Ok(target) => target,
            Err(error) => return self.problem(path, format!("cannot be read: {error}"), ""),
        };
        let Some(target) = target.to_str() else {
            return self.problem(path, "this link leads to a name that is not UTF-8", "");
        };
        match links::check(&self.root, path, target) {
            Ok(()) => {
                self.items.insert(path.to_string(), Item::Link(target.to_string()));
            }
            Err(refused) => {
                self.refused.insert(path.to_string());
                self.problem(path, refused.message, refused.hint);
            }
        }
    }

    /// Finds the samples and the folders that they take their graphs from; each such folder is read once, however many
    /// samples lead to it. A sample with a bad link is refused whole.
    fn find_samples(&mut self) -> Result<(), Diagnostic> {
        let list = format!("/{GRAPH_LIST}");
        let folders: Vec<String> = self
            .items
            .iter()
            .filter(|(_, item)| matches!(item, Item::File { .. }))
            .filter_map(|(path, _)| path.strip_suffix(&list))
            .filter(|folder| folder.split('/').next() == Some(SAMPLES))
            .map(str::to_string)
            .collect();
        for path in folders {
            let graphs = format!("{path}/{GRAPHS}");
            let found = match self.items.get(&graphs) {
                Some(Item::Link(target)) => links::graphs_folder(&self.root, &graphs, target),
                _ if self.refused.contains(&graphs) => {
                    self.forget(&path);
                    continue;
                }
                _ if self.root.join(&graphs).is_dir() => Ok(graphs.clone()),
                // A download of the data has no links: the lists begin at the top.
                _ => Ok(GRAPHS.to_string()),
            };
            match found {
                Ok(found) => {
                    if !self.walked.contains(&found) && self.root.join(&found).is_dir() {
                        self.walk(&found)?;
                    }
                    self.samples.push(SampleFolder { path, graphs: found });
                }
                Err(refused) => {
                    self.problem(&graphs, refused.message, refused.hint);
                    self.forget(&path);
                }
            }
        }
        Ok(())
    }

    /// Leaves a sample out with all its files.
    fn forget(&mut self, sample: &str) {
        let below = format!("{sample}/");
        let is_below = |path: &&String| path.starts_with(&below);
        let items: Vec<String> = self
            .items
            .range(below.clone()..)
            .map(|(path, _)| path)
            .take_while(is_below)
            .cloned()
            .collect();
        let graphs: Vec<String> =
            self.graphs.range(below.clone()..).take_while(is_below).cloned().collect();
        for path in items {
            self.items.remove(&path);
        }
        for path in graphs {
            self.graphs.remove(&path);
        }
    }

    /// The graphs, to be read one after the other.
    pub(super) fn graphs(&self) -> Graphs {
        Graphs {
            root: self.root.clone(),
            limits: self.limits,
            total: self.graphs.len(),
            left: self.graphs.iter().cloned().collect::<Vec<_>>().into_iter(),
            meter: Meter::default(),
        }
    }
}

/// The graphs of a checkout as a source.
pub(super) struct Graphs {
    root: PathBuf,
    limits: Limits,
    total: usize,
    left: std::vec::IntoIter<String>,
    meter: Meter,
}

impl Iterator for Graphs {
    type Item = Result<GraphFiles, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.left.next();
        self.meter.set(1.0 - self.left.len() as f64 / self.total.max(1) as f64);
        next.map(|path| read_graph_folder(&self.root.join(&path), &path, self.limits))
    }
}

impl GraphSource for Graphs {
    fn meter(&self) -> Meter {
        self.meter.clone()
    }
}
