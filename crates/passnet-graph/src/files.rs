//! One graph as files: what a graph folder holds, as bytes nobody has looked into yet.

use crate::Diagnostic;
use crate::syntax::Source;
use std::collections::BTreeMap;
use std::fmt;

/// The files a graph folder may hold. Anything else in the folder is not part of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is a file of the same name in a graph folder")]
pub enum FileName {
    Model,
    WeightMeta,
    InputMeta,
    InputTensorConstraints,
    GraphNet,
    GraphHash,
    SubgraphSources,
}

impl FileName {
    /// The code first.
    pub const ALL: [Self; 7] = [
        Self::Model,
        Self::WeightMeta,
        Self::InputMeta,
        Self::InputTensorConstraints,
        Self::GraphNet,
        Self::GraphHash,
        Self::SubgraphSources,
    ];

    /// The name on disk.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model.py",
            Self::WeightMeta => "weight_meta.py",
            Self::InputMeta => "input_meta.py",
            Self::InputTensorConstraints => "input_tensor_constraints.py",
            Self::GraphNet => "graph_net.json",
            Self::GraphHash => "graph_hash.txt",
            Self::SubgraphSources => "subgraph_sources.json",
        }
    }

    /// `None` for files that are no part of a graph.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.as_str() == name)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A graph as it was read, under the path that messages call it by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphFiles {
    /// Where the graph stands in its corpus, with `/` between the parts: `timm/resnet18`.
    pub path: String,
    /// What was found, as it lies on disk.
    pub files: BTreeMap<FileName, Vec<u8>>,
}

impl GraphFiles {
    /// A folder without files; the path is for messages.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), files: BTreeMap::new() }
    }

    /// The same, with a file more.
    #[must_use]
    pub fn with(mut self, name: FileName, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name, bytes.into());
        self
    }

    /// A file's content, where there is one.
    pub fn get(&self, name: FileName) -> Option<&[u8]> {
        self.files.get(&name).map(Vec::as_slice)
    }

    /// Bytes of all files together.
    pub fn size(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }

    /// What messages call one of the files.
    pub fn file_path(&self, name: FileName) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}/{name}", self.path) }
    }

    /// A file as text; `None` when the graph has no such file.
    pub fn source(&self, name: FileName) -> Option<Result<Source, Diagnostic>> {
        let bytes = self.files.get(&name)?;
        Some(Source::from_bytes(self.file_path(name), bytes.clone()))
    }
}
