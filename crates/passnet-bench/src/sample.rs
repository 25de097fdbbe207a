//! Sample folders: one task, as the reference lays it out.
//!
//! `graph_list.txt` names the graphs, one path a line relative to the folder; `pass_dir` receives passes and
//! `const_pass_dir` may hold passes that apply before them. `entry.sh` and the links to a harness are ignored. A folder that
//! is a graph itself is a task of this one graph.

use crate::log::GraphList;
use passnet_graph::{Diagnostic, FileName, GraphFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A list longer than this is refused.
const MAX_LIST_BYTES: u64 = 16 << 20;
/// One file of a graph.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Folders are searched for samples this deep.
const MAX_DEPTH: usize = 16;
/// What the lists of published samples begin with.
const GRAPHS: &str = "graphs/";
/// Name of the list that makes a folder a sample.
const LIST: &str = "graph_list.txt";

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// As it was given.
    pub folder: PathBuf,
    /// The folder without links and relative parts: what tells samples of the same name apart.
    pub path: PathBuf,
    /// The folder's own name.
    pub name: String,
    /// Paths as the list gives them.
    pub graphs: Vec<String>,
    /// Passes that apply before all others, where they are not in the sample's own `const_pass_dir`.
    pub input_passes: Option<PathBuf>,
    /// Whether the folder is its only graph, without a list.
    pub is_graph: bool,
}

/// What a folder is called.
fn name_of(path: &Path) -> String {
    path.file_name()
        .map_or_else(|| "sample".to_string(), |name| name.to_string_lossy().into_owned())
}

impl Sample {
    /// Reads the list of graphs, and none of the graphs.
    pub fn read(folder: &Path) -> Result<Sample, Diagnostic> {
        if is_bare_graph(folder) {
            let name = name_of(&canonical(folder));
            return Ok(Sample { is_graph: true, ..Sample::of_graphs(folder, vec![name]) });
        }
        let path = folder.join(LIST);
        let bytes = read_bounded(&path, MAX_LIST_BYTES)?;
        let list = GraphList::parse(&path.display().to_string(), &bytes)?;
        Ok(Sample::of_graphs(folder, list.paths().to_vec()))
    }

    /// A sample of these graphs, whatever list lies in the folder that their paths begin at.
    pub fn of_graphs(folder: &Path, graphs: Vec<String>) -> Sample {
        let path = canonical(folder);
        let name = name_of(&path);
        Sample {
            folder: folder.to_path_buf(),
            path,
            name,
            graphs,
            input_passes: None,
            is_graph: false,
        }
    }

    /// Where a graph is. A sample has a link to the graphs of its checkout; a download of the data has no links, and there
    /// the graphs lie in a folder above.
    pub fn graph_folder(&self, graph: &str) -> PathBuf {
        if self.is_graph {
            return self.folder.clone();
        }
        let here = self.folder.join(graph);
        if here.is_dir() || !graph.starts_with(GRAPHS) || self.folder.join(GRAPHS).is_dir() {
            return here;
        }
        let above = self.path.ancestors().skip(1).map(|above| above.join(graph));
        above.into_iter().find(|folder| folder.is_dir()).unwrap_or(here)
    }

    /// The files of one of its graphs.
    pub fn graph_files(&self, graph: &str) -> Result<GraphFiles, Diagnostic> {
        read_graph_folder(&self.graph_folder(graph), graph)
    }

    /// Where passes are expected.
    pub fn pass_folder(&self) -> PathBuf {
        self.folder.join("pass_dir")
    }

    /// Passes that apply before all others, where the sample brings some.
    pub fn input_pass_folder(&self) -> Option<PathBuf> {
        let own = || Some(self.folder.join("const_pass_dir")).filter(|folder| folder.is_dir());
        self.input_passes.clone().or_else(own)
    }
}

/// Whether a folder is a graph and no sample.
fn is_bare_graph(folder: &Path) -> bool {
    !folder.join(LIST).is_file() && folder.join(FileName::Model.as_str()).is_file()
}

fn read_graph_folder(folder: &Path, name: &str) -> Result<GraphFiles, Diagnostic> {
    let mut files = GraphFiles::new(name);
    for file in FileName::ALL {
        let path = folder.join(file.as_str());
        if path.is_file() {
            files = files.with(file, read_bounded(&path, MAX_FILE_BYTES)?);
        }
    }
    if files.get(FileName::Model).is_none() {
        return Err(Diagnostic::file(
            folder.join(FileName::Model.as_str()).display().to_string(),
            "no such file",
        )
        .with_hint("the graph list names a folder that is no graph"));
    }
    Ok(files)
}

fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, Diagnostic> {
    let named =
        |error: std::io::Error| Diagnostic::file(path.display().to_string(), error.to_string());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(named)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(named)?;
    if bytes.len() as u64 > limit {
        let message = format!("larger than the limit of {limit} bytes");
        return Err(Diagnostic::file(path.display().to_string(), message));
    }
    Ok(bytes)
}

/// A folder's path without links and relative parts; as it is where the system cannot say.
fn canonical(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf())
}

/// Names for samples, given by name and path: the name itself where it is the only one of its kind, with as much of what
/// lies above as tells it from its namesakes where it is not. A sample without a path keeps its name.
pub fn labels<'a>(
    samples: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> BTreeMap<(&'a str, &'a str), String> {
    let mut namesakes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, path) in samples {
        namesakes.entry(name).or_default().insert(path);
    }
    let mut labels = BTreeMap::new();
    for (name, paths) in namesakes {
        let known: Vec<&str> = paths.iter().copied().filter(|path| !path.is_empty()).collect();
        let depth = (1..=MAX_LABEL).find(|depth| {
            let above: BTreeSet<String> = known.iter().map(|path| above(path, *depth)).collect();
            above.len() == known.len()
        });
        for path in paths {
            let label = match known.len() < 2 || path.is_empty() {
                true => name.to_string(),
                false => format!("{name}@{}", above(path, depth.unwrap_or(MAX_LABEL))),
            };
            labels.insert((name, path), label);
        }
    }
    labels
}

/// Folders above a sample that its label names at the most.
const MAX_LABEL: usize = 64;

/// The names of the folders above, the nearest last.
fn above(path: &str, depth: usize) -> String {
    let names = Path::new(path).parent().into_iter().flat_map(Path::components);
    let names: Vec<String> = names
        .filter_map(|part| match part {
            std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        })
        .collect();
    names[names.len().saturating_sub(depth)..].join(".")
}

/// The samples at or below the given folders, in the order of their paths; one that is named twice, or below two of
/// them, is there once. A graph is a sample only where it is named itself: below a folder it may belong to a sample that
/// lies elsewhere.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Diagnostic> {
    let mut found = Vec::new();
    for path in paths {
        let before = found.len();
        if is_bare_graph(path) {
            found.push(path.clone());
            continue;
        }
        search(path, 0, &mut found)
            .map_err(|error| Diagnostic::file(path.display().to_string(), error.to_string()))?;
        if found.len() == before {
            return Err(Diagnostic::file(path.display().to_string(), "no sample found here")
                .with_hint(format!(
                    "a sample is a folder that holds `{LIST}`; a folder that holds `{}` is taken as a sample of one \
                     graph, and `passnet init` makes one of several",
                    FileName::Model
                )));
        }
    }
    let mut known = BTreeSet::new();
    found.retain(|folder| known.insert(canonical(folder)));
    Ok(found)
}

fn search(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if folder.join(LIST).is_file() {
        found.push(folder.to_path_buf());
        return Ok(());
    }
    if depth >= MAX_DEPTH {
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        // Links are not followed: a sample links to the graphs of its whole corpus.
        if entry.file_type()?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|folder| search(folder, depth + 1, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_named_twice_is_found_once() {
        let root = tempfile::tempdir().unwrap();
        for name in ["a/x", "b/x"] {
            std::fs::create_dir_all(root.path().join(name)).unwrap();
            std::fs::write(root.path().join(name).join(LIST), "graphs/0\n").unwrap();
        }
        let at = |path: &str| root.path().join(path);
        let paths = [at("a/x"), at("a/../a/x"), at("b"), root.path().to_path_buf(), at("a/x/")];
        assert_eq!(find(&paths).unwrap(), [at("a/x"), at("b/x")]);
        let samples: Vec<Sample> =
            find(&paths).unwrap().iter().map(|f| Sample::read(f).unwrap()).collect();
        assert_eq!(samples[0].name, samples[1].name);
        assert_ne!(samples[0].path, samples[1].path);
    }

    #[test]
    fn graphs_of_a_sample_without_links_lie_above_it() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        let sample = top.join("samples/set/a");
        for folder in [&sample, &top.join("graphs/set/x"), &top.join("other/x")] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(sample.join(LIST), "graphs/set/x\n").unwrap();
        let read = || Sample::read(&sample).unwrap();
        assert_eq!(read().graph_folder("graphs/set/x"), top.join("graphs/set/x"));
        // Only what lists of samples begin with, and only where the sample has no graphs of its own.
        assert_eq!(read().graph_folder("other/x"), sample.join("other/x"));
        std::fs::create_dir_all(sample.join("graphs")).unwrap();
        assert_eq!(read().graph_folder("graphs/set/x"), sample.join("graphs/set/x"));
    }

    #[test]
    fn a_graph_is_a_sample_only_where_it_is_named() {
        let root = tempfile::tempdir().unwrap();
        let graph = root.path().join("corpus/rms");
        std::fs::create_dir_all(&graph).unwrap();
        std::fs::write(graph.join("model.py"), "import torch\n").unwrap();
        assert_eq!(find(std::slice::from_ref(&graph)).unwrap(), std::slice::from_ref(&graph));
        let sample = Sample::read(&graph).unwrap();
        assert_eq!((&*sample.name, &sample.graphs[..]), ("rms", &["rms".to_string()][..]));
        assert!(sample.graph_files("rms").unwrap().get(FileName::Model).is_some());
        assert_eq!(sample.pass_folder(), graph.join("pass_dir"));
        let error = find(&[root.path().to_path_buf()]).unwrap_err();
        assert!(error.hint.unwrap().contains("passnet init"));
        // A list beside it says what belongs to the task.
        std::fs::write(graph.join(LIST), "graphs/0\n").unwrap();
        assert_eq!(Sample::read(&graph).unwrap().graphs, ["graphs/0"]);
    }

    #[test]
    fn labels_tell_namesakes_apart_and_leave_the_rest_alone() {
        let samples = [
            ("x", "/one/tasks/x"),
            ("x", "/two/tasks/x"),
            ("x", ""),
            ("y", "/one/tasks/y"),
            ("y", ""),
            ("z", ""),
        ];
        let labels = labels(samples);
        let found: Vec<&str> = samples.iter().map(|key| labels[key].as_str()).collect();
        assert_eq!(found, ["x@one.tasks", "x@two.tasks", "x", "y", "y", "z"]);
    }
}
