//! The tasks that this site has itself: whole graphs, which bundles do not carry.

use crate::Error;
use passnet_bench::sample::{self, Sample, labels};
use passnet_graph::{FileName, GraphFiles};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Samples by the name that runs give them.
#[derive(Debug, Default)]
pub struct TaskIndex {
    samples: BTreeMap<String, Sample>,
}

impl TaskIndex {
    /// The samples at or below these folders.
    pub fn read(folders: &[PathBuf]) -> Result<TaskIndex, Error> {
        if folders.is_empty() {
            return Ok(TaskIndex::default());
        }
        let failed = |error: passnet_graph::Diagnostic| {
            let hint = error.hint.clone();
            let error = Error::input(error.to_string());
            match hint {
                Some(hint) => error.with_hint(hint),
                None => error,
            }
        };
        let found = sample::find(folders).map_err(failed)?;
        let samples: Vec<Sample> = found
            .iter()
            .map(|folder| Sample::read(folder))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let keys: Vec<(String, String)> = samples
            .iter()
            .map(|sample| (sample.name.clone(), sample.path.display().to_string()))
            .collect();
        let labels = labels(keys.iter().map(|(name, path)| (name.as_str(), path.as_str())));
        let label = |key: &(String, String)| labels.get(&(key.0.as_str(), key.1.as_str())).cloned();
        let named = keys.iter().zip(samples).map(|(key, sample)| (label(key), sample));
        let named =
            named.map(|(label, sample)| (label.unwrap_or_else(|| sample.name.clone()), sample));
        Ok(TaskIndex { samples: named.collect() })
    }

    /// Whether nothing can be judged again.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Graphs.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Another one where there are other tasks or other graphs.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("passnet tasks of a site 1");
        for (name, sample) in &self.samples {
            for text in std::iter::once(name).chain(&sample.graphs) {
                hasher.update(&(text.len() as u64).to_le_bytes());
                hasher.update(text.as_bytes());
            }
            hasher.update(&u64::MAX.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The files of a graph, if this site has it and its model is the one that was judged.
    pub fn graph(&self, task: &str, graph: &str, model: &str) -> Option<GraphFiles> {
        let sample = self.samples.get(task)?;
        // The name comes from a bundle: only graphs of the sample's own list are read.
        let listed = sample.graphs.iter().find(|listed| *listed == graph)?;
        let files = sample.graph_files(listed).ok()?;
        let digest = blake3::hash(files.get(FileName::Model)?).to_hex();
        (*digest == *model).then_some(files)
    }
}
