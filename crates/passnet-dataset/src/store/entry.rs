//! What the store knows about a graph besides its files.

use crate::content::{ContentKey, check_path_part};
use passnet_graph::{FileName, GraphFiles};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

/// A graph to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path and files.
    pub graph: GraphFiles,
    /// What is known of it.
    pub description: Description,
}

impl Entry {
    /// Why the entry cannot be stored, if so. [`super::Store::insert`] refuses a whole batch for one such entry.
    pub fn check(&self) -> Result<(), String> {
        let path = &self.graph.path;
        path.split('/')
            .try_for_each(check_path_part)
            .map_err(|why| format!("`{}` cannot be stored: its path {why}", path.escape_debug()))?;
        let mut ranges = self.description.provenance.iter().flat_map(|from| &from.ranges);
        match ranges.find(|range| range.is_empty()) {
            Some(range) => {
                Err(format!("`{path}` cannot be stored: it comes from the empty range {range:?}"))
            }
            None => Ok(()),
        }
    }
}

/// What reading a graph's files tells about it, and where the graph comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Whole model or piece, and of which kind.
    pub kind: Kind,
    /// Its identity.
    pub digests: Digests,
    /// How many operations it has.
    pub op_count: u32,
    /// The graphs this one was cut from: empty for full graphs, several after duplicates were merged.
    pub provenance: Vec<Provenance>,
    /// Set for graphs made by changing dtypes or shapes of another.
    pub variant: Option<Variant>,
}

/// What a graph of a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A whole model, as extracted.
    Full,
    /// One operation.
    SoleOp,
    /// A piece that recurs in the corpus.
    Typical,
    /// A piece that compilers fuse.
    Fusible,
}

impl Kind {
    /// All kinds, whole models first.
    pub const ALL: [Self; 4] = [Self::Full, Self::SoleOp, Self::Typical, Self::Fusible];

    /// What stores, lists and commands call it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::SoleOp => "sole_op",
            Self::Typical => "typical",
            Self::Fusible => "fusible",
        }
    }

    /// The kind of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A graph's identity at three levels, each finer than the one before. Hex digests are stored at half their length;
/// any other text is stored as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Digests {
    /// Operations and topology.
    pub structure: String,
    /// The same with literal arguments.
    pub literals: String,
    /// The same with shapes and dtypes of the inputs.
    pub full: String,
}

/// Ranges of operations of another graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The logical path of that graph.
    pub parent: String,
    /// Which of its operations, as half-open ranges.
    pub ranges: Vec<Range<u32>>,
}

/// How a variant differs from the graph that it was made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// The float type of its inputs.
    pub dtype: String,
    /// Which sizes it has: 9 are those as extracted, 0 to 8 are others.
    pub shape_index: u32,
}

/// An entry as found in the store: everything but the files, which are read on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its logical path.
    pub path: String,
    /// The key of its files.
    pub content: ContentKey,
    /// What is known of it.
    pub description: Description,
    pub(super) blobs: BTreeMap<FileName, i64>,
}

impl Record {
    /// The files that it has.
    pub fn file_names(&self) -> impl Iterator<Item = FileName> + '_ {
        self.blobs.keys().copied()
    }
}
