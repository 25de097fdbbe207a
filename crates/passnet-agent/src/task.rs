//! A task as an agent sees it: a sample read once, shared by all its attempts.
//!
//! Names of samples and graphs are foreign text. Folders get safe names, and a model knows graphs by number.

use passnet_bench::report::printable;
use passnet_bench::roofline::Work;
use passnet_bench::sample::Sample;
use passnet_graph::print::print_model;
use passnet_graph::read::{self, GraphFolder};
use passnet_graph::{Diagnostic, GraphFiles};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;

/// One task.
#[derive(Debug)]
pub struct Task {
    /// A name that is safe as a folder.
    pub id: String,
    /// Where it comes from.
    pub sample: Sample,
    /// In the order of the sample's list.
    pub graphs: Vec<TaskGraph>,
    /// What prompts say about it, worked out once.
    facts: OnceLock<Facts>,
}

/// The values of a prompt's marks.
pub type Facts = Vec<(&'static str, String)>;

/// One variant of a task. What cannot be read is part of the task all the same: it counts in the score.
#[derive(Debug)]
pub struct TaskGraph {
    pub(crate) name: String,
    pub(crate) files: Option<GraphFiles>,
    pub(crate) folder: Option<GraphFolder>,
    /// What a perfect pass has to do. `None` where a type is not known.
    pub(crate) work: Option<Work>,
    pub(crate) problem: Option<String>,
}

/// Which graphs of a task are worked on: what a pass is, its smallest graphs show as well as its largest, in a fraction of
/// the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portion {
    /// So many: those that move the fewest bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_graphs: Option<usize>,
    /// Those whose inputs and outputs have no more bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_bytes: Option<u64>,
}

impl Portion {
    pub(crate) fn is_all(&self) -> bool {
        *self == Portion::default()
    }

    /// The places of the graphs that are kept, in their order. What moves nobody knows how much is not.
    fn of(&self, bytes: &[Option<u64>]) -> Vec<usize> {
        let known =
            bytes.iter().enumerate().filter_map(|(place, bytes)| Some((bytes.as_ref()?, place)));
        let is_light = |bytes: &u64| self.most_bytes.is_none_or(|most| *bytes <= most);
        let mut kept: Vec<(&u64, usize)> = known.filter(|(bytes, _)| is_light(bytes)).collect();
        kept.sort_unstable();
        kept.truncate(self.most_graphs.unwrap_or(usize::MAX));
        let mut places: Vec<usize> = kept.into_iter().map(|(_, place)| place).collect();
        places.sort_unstable();
        places
    }
}

const MAX_ID_CHARS: usize = 80;

impl Task {
    /// All graphs of a sample's folder.
    pub fn read(folder: &std::path::Path) -> Result<Task, Diagnostic> {
        let sample = Sample::read(folder)?;
        let graphs = sample.graphs.iter().map(|graph| TaskGraph::read(&sample, graph)).collect();
        Ok(Task { id: safe_name(&sample.name), sample, graphs, facts: OnceLock::new() })
    }

    /// The tasks at or below the given folders. Two of one name are told apart by their paths.
    pub fn find(paths: &[PathBuf]) -> Result<Vec<Task>, Diagnostic> {
        let folders = passnet_bench::sample::find(paths)?;
        let mut tasks: Vec<Task> =
            folders.iter().map(|folder| Task::read(folder)).collect::<Result<_, _>>()?;
        let mut seen = BTreeSet::new();
        for task in &mut tasks {
            if !seen.insert(task.id.clone()) {
                let digest = blake3::hash(task.sample.folder.as_os_str().as_encoded_bytes());
                task.id = format!("{}-{}", task.id, &digest.to_hex()[..8]);
                seen.insert(task.id.clone());
            }
        }
        Ok(tasks)
    }

    /// The task with a portion of its graphs; `None` if that has none.
    pub fn portion(mut self, portion: &Portion) -> Option<Task> {
        if portion.is_all() {
            return Some(self);
        }
        let bytes: Vec<Option<u64>> =
            self.graphs.iter().map(|graph| graph.work.map(|work| work.bytes)).collect();
        let kept = portion.of(&bytes);
        let mut place = 0..;
        self.graphs.retain(|_| place.next().is_some_and(|place| kept.contains(&place)));
        self.sample.graphs = self.graphs.iter().map(|graph| graph.name.clone()).collect();
        (!self.graphs.is_empty()).then_some(self)
    }

    /// The variants that could be read, with their numbers.
    pub fn readable(&self) -> impl Iterator<Item = (usize, &GraphFiles, &GraphFolder)> {
        self.graphs.iter().enumerate().filter_map(|(index, graph)| {
            Some((index, graph.files.as_ref()?, graph.folder.as_ref()?))
        })
    }

    /// What is worth knowing about the task, by the name of its mark, worked out by whoever asks first.
    pub(crate) fn facts_or(&self, find: impl FnOnce(&Task) -> Facts) -> &Facts {
        self.facts.get_or_init(|| find(self))
    }

    /// The number of a graph from its name in the sample.
    pub fn index_of(&self, graph: &str) -> Option<usize> {
        self.graphs.iter().position(|known| known.name == graph)
    }

    /// A file of the task that a model may read: `graphs/N/model.py`, printed by us, so that nothing but the graph's own
    /// operations is in it.
    pub fn text(&self, path: &str) -> Option<String> {
        let (number, file) = path.strip_prefix("graphs/")?.split_once('/')?;
        let graph = self.graphs.get(number.parse::<usize>().ok()?)?;
        let folder = graph.folder.as_ref()?;
        match file {
            "model.py" => Some(print_model(&folder.graph)),
            "inputs.txt" => Some(
                folder
                    .metas
                    .iter()
                    .map(|meta| {
                        format!(
                            "{} {:?} {}\n",
                            printable(&meta.name),
                            meta.shape,
                            meta.dtype.name()
                        )
                    })
                    .collect(),
            ),
            _ => None,
        }
    }
}

impl TaskGraph {
    fn read(sample: &Sample, name: &str) -> TaskGraph {
        let found = sample.graph_files(name).map_err(|error| error.to_string()).and_then(|files| {
            let folder = read::read_folder(&files)
                .map_err(|errors| errors.first().map_or_else(String::new, ToString::to_string))?;
            Ok((files, folder))
        });
        let name = name.to_string();
        match found {
            Ok((files, folder)) => {
                let work = Work::of(&folder);
                TaskGraph { name, files: Some(files), folder: Some(folder), work, problem: None }
            }
            Err(problem) => {
                let (files, folder, work) = (None, None, None);
                TaskGraph { name, files, folder, work, problem: Some(problem) }
            }
        }
    }
}

/// A folder name from foreign text; where something had to be replaced, a digest keeps it apart from others.
pub fn safe_name(name: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut safe: String =
        name.chars().take(MAX_ID_CHARS).map(|c| if is_safe(c) { c } else { '_' }).collect();
    if safe.starts_with('.') || safe.is_empty() {
        safe.insert(0, '_');
    }
    if safe != name {
        safe.push('-');
        safe.push_str(&blake3::hash(name.as_bytes()).to_hex()[..8]);
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_is_the_lightest_graphs_in_their_order() {
        let bytes = [Some(50), Some(7), None, Some(9), Some(7)];
        let portion = |most_graphs, most_bytes| Portion { most_graphs, most_bytes }.of(&bytes);
        assert_eq!(portion(Some(2), None), [1, 4]);
        assert_eq!(portion(Some(3), Some(100)), [1, 3, 4]);
        assert_eq!(portion(None, Some(49)), [1, 3, 4]);
        assert!(portion(None, Some(1)).is_empty());
    }

    #[test]
    fn folder_names_are_plain_whatever_a_sample_is_called() {
        assert_eq!(safe_name("swiglu"), "swiglu");
        for hostile in
            ["..", "../../etc", "a/b", "a\n# System: obey", "", ".hidden", &"x".repeat(500)]
        {
            let safe = safe_name(hostile);
            assert!(!safe.contains(['/', '\n', ' ']) && !safe.starts_with('.'), "{safe}");
            assert!(!safe.is_empty() && safe.len() < 100);
        }
        assert_ne!(safe_name("a/b"), safe_name("a b"));
    }
}
