//! One graph as files: what a graph folder holds, under the graph's logical path, and the key of its content.

use std::collections::BTreeMap;
use std::fmt;

/// The files a graph folder may hold. Anything else in the folder is not part of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    pub const ALL: [Self; 7] = [
        Self::Model,
        Self::WeightMeta,
        Self::InputMeta,
        Self::InputTensorConstraints,
        Self::GraphNet,
        Self::GraphHash,
        Self::SubgraphSources,
    ];

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

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.as_str() == name)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A graph as it was read: the files are bytes, because nothing has looked into them yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GraphFiles {
    /// Where the graph stands in its corpus, with `/` between the parts: `timm/resnet18`.
    pub path: String,
    pub files: BTreeMap<FileName, Vec<u8>>,
}

impl GraphFiles {
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), files: BTreeMap::new() }
    }

    #[must_use]
    pub fn with(mut self, name: FileName, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name, bytes.into());
        self
    }

    pub fn get(&self, name: FileName) -> Option<&[u8]> {
        self.files.get(&name).map(Vec::as_slice)
    }

    /// Bytes of all files together.
    pub fn size(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }

    /// The key of the files, whatever the path.
    pub fn content_key(&self) -> ContentKey {
        let mut hasher = blake3::Hasher::new();
        for (name, bytes) in &self.files {
            hasher.update(name.as_str().as_bytes());
            hasher.update(&[0]);
            hasher.update(&ContentKey::of(bytes).0);
        }
        ContentKey::truncate(hasher.finalize())
    }
}

/// The first 128 bits of a BLAKE3 hash: two different contents among 10^9 share one with probability 10^-21.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentKey(pub [u8; 16]);

impl ContentKey {
    pub fn of(bytes: &[u8]) -> Self {
        Self::truncate(blake3::hash(bytes))
    }

    fn truncate(hash: blake3::Hash) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        Self(key)
    }
}

impl fmt::Display for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why `part` cannot be one part of a logical path. Paths end up in line-based lists and in folder names, so what
/// would break either is refused where it enters.
pub fn check_path_part(part: &str) -> Result<(), &'static str> {
    match part {
        "" | "." => Err("has an empty part"),
        ".." => Err("climbs out of its folder with `..`"),
        _ if part.contains(char::is_control) => Err("holds a control character"),
        _ if part.contains('/') => Err("has a `/` inside a part"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_read_back() {
        for name in FileName::ALL {
            assert_eq!(FileName::parse(name.as_str()), Some(name));
        }
        assert_eq!(FileName::parse("README.md"), None);
    }

    #[test]
    fn the_content_key_sees_names_and_bytes_but_not_the_path() {
        let a = GraphFiles::new("a").with(FileName::Model, "x").with(FileName::WeightMeta, "y");
        let b = GraphFiles { path: "b".into(), ..a.clone() };
        assert_eq!(a.content_key(), b.content_key());
        let moved = GraphFiles::new("a").with(FileName::Model, "x").with(FileName::InputMeta, "y");
        let swapped =
            GraphFiles::new("a").with(FileName::Model, "y").with(FileName::WeightMeta, "x");
        let empty = a.clone().with(FileName::InputMeta, "");
        for other in [moved, swapped, empty] {
            assert_ne!(a.content_key(), other.content_key());
        }
    }
}
