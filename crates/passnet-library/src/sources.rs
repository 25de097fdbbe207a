//! The files of a set of passes, wherever they come from: a pass folder, or a run that kept them.

use crate::entry::Listed;
use passnet_bench::candidate::Candidate;
use passnet_bench::run::{GraphEvent, read_object};
use passnet_graph::graph::Target;
use passnet_graph::{Call, Graph};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path};

/// The list of passes in a pass folder.
const LIST: &str = "sorted_output_pass_rule_names.json";
/// No pass file is larger.
const MAX_FILE: u64 = 4 << 20;

/// Names below the pass folder with their texts, and the passes in the order in which they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    files: BTreeMap<String, String>,
    order: Vec<String>,
}

impl Sources {
    /// The files that a checked pass folder, or one pass file, can reach.
    pub fn of(candidate: &Candidate) -> Sources {
        Sources {
            files: candidate.sources.iter().cloned().collect(),
            order: candidate.passes().iter().map(|pass| pass.name.clone()).collect(),
        }
    }

    /// The files that a run kept for one of its graphs. `None` where it kept none, or names that lead elsewhere.
    pub fn of_event(run: &Path, event: &GraphEvent) -> Option<Sources> {
        let mut files = BTreeMap::new();
        for (name, digest) in &event.artefacts {
            if name == "model.py" {
                continue;
            }
            let text = String::from_utf8(read_object(run, digest, MAX_FILE)?).ok()?;
            is_plain(name).then(|| files.insert(name.clone(), text))?;
        }
        let order: Vec<String> =
            event.evaluation.rewrites.iter().map(|rewrites| rewrites.pass.clone()).collect();
        (!files.is_empty() && !order.is_empty()).then_some(Sources { files, order })
    }

    /// Of the order, the names and the texts: the same passes have the same digest, wherever they lie.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let names = self.order.iter().map(String::as_bytes);
        let files = self.files.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]);
        hasher.update(&(self.order.len() as u64).to_le_bytes());
        for part in names.chain(files) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Writes a pass folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        for (name, text) in &self.files {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, text)?;
        }
        fs::write(folder.join(LIST), serde_json::to_vec_pretty(&self.order)?)
    }
}

/// Whether a name stays below the folder that it is joined to.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
}

/// A pass folder, checked and traced; an error says in words what is wrong with it.
pub fn load(folder: &Path) -> Result<Candidate, String> {
    Candidate::load(folder, None, true).map_err(|verdict| verdict.to_string())
}

/// What the index knows of each pass.
pub fn listed(candidate: &Candidate) -> Vec<Listed> {
    let of_pass = |pass: &passnet_pass::trace::Pass| {
        let graph = &pass.pattern.graph;
        Listed { name: pass.name.clone(), operations: operations(graph), size: graph.op_count() }
    };
    candidate.passes().iter().map(of_pass).collect()
}

/// The distinct operations of a graph, in the order of their names.
pub fn operations(graph: &Graph) -> Vec<String> {
    let mut names: Vec<String> = graph.calls().map(|(_, call)| operation(call)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// All spellings of an operation have one name.
fn operation(call: &Call) -> String {
    match &call.target {
        Target::Known(spelling) => format!("{:?}", spelling.op),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_passes_have_the_same_digest_wherever_they_lie() {
        let place = tempfile::tempdir().unwrap();
        let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/passes");
        let candidate = load(&bench.join("swiglu")).unwrap();
        let sources = Sources::of(&candidate);
        sources.write(place.path()).unwrap();
        let copy = load(place.path()).unwrap();
        assert_eq!(Sources::of(&copy), sources);
        assert_eq!(Sources::of(&copy).digest(), sources.digest());
        let other = Sources::of(&load(&bench.join("geglu_tanh")).unwrap());
        assert_ne!(other.digest(), sources.digest());
        assert_eq!(listed(&copy)[0].operations, ["Chunk", "GetItem", "Mul", "Silu"]);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "/etc/passwd", "../up.py", "a/../../b.py", "./a.py"] {
            assert!(!is_plain(name), "{name}");
        }
        assert!(is_plain("pass_dir/shared.py"));
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_said_in_words() {
        let place = tempfile::tempdir().unwrap();
        let error = load(place.path()).unwrap_err();
        assert!(error.contains("lists no pass"), "{error}");
    }
}
