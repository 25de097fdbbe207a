//! How many kernels a compiler launches for every prefix of a graph: counted by a model of a compiler, or recorded.

use super::plateau::KernelCounts;
use crate::store::StoreError;
use passnet_graph::Diagnostic;
use passnet_graph::fusion::kernel_counts;
use passnet_graph::infer::Inference;
use passnet_graph::read::GraphFolder;
use passnet_graph::syntax::Source;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A model of a fusing compiler.
pub trait KernelCounter: Sync {
    /// The number of kernels of every prefix: entry `k` belongs to the first `k + 1` ops.
    fn prefix_counts(&self, folder: &GraphFolder, types: &Inference) -> Vec<u32>;

    /// Names the model and its version: another name means other counts.
    fn name(&self) -> &str;
}

/// The fusion model of `passnet-graph`: TorchInductor's rules, no GPU needed.
#[derive(Debug, Clone, Copy, Default)]
pub struct NativeFusion;

impl KernelCounter for NativeFusion {
    fn prefix_counts(&self, folder: &GraphFolder, types: &Inference) -> Vec<u32> {
        kernel_counts(&folder.graph, types)
    }

    fn name(&self) -> &str {
        "native 1"
    }
}

/// Where kernel counts come from.
pub enum Counts<'a> {
    /// What a model of the compiler says.
    Model(&'a dyn KernelCounter),
    /// A folder with the recordings of a graph at `<graph path>.json` or below `<graph path>/`.
    Recorded(PathBuf),
}

impl std::fmt::Debug for Counts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Counts::Model(model) => f.debug_tuple("Model").field(&model.name()).finish(),
            Counts::Recorded(path) => f.debug_tuple("Recorded").field(path).finish(),
        }
    }
}

/// The largest recording that is read; a model of 5,000 ops takes a hundredth of it.
const MAX_RECORDING: u64 = 16 << 20;

/// The fusible ranges that the recordings of the graph at `graph` show, ascending and disjoint; nothing when there
/// are none.
pub fn recorded_ranges(folder: &Path, graph: &str) -> Result<Vec<Range<usize>>, Diagnostic> {
    let mut files = Vec::new();
    let single = folder.join(format!("{graph}.json"));
    if single.is_file() {
        files.push(single);
    }
    if let Ok(entries) = std::fs::read_dir(folder.join(graph)) {
        let json = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "json");
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())).filter(json));
    }
    files.sort();
    let mut ranges = Vec::new();
    for file in files {
        let shown = file.display().to_string();
        let unreadable = |error| Diagnostic::file(&shown, format!("cannot be read: {error}"));
        let size = file.metadata().map_err(unreadable)?.len();
        if size > MAX_RECORDING {
            return Err(Diagnostic::file(&shown, "is too large to be a recording"));
        }
        let source = Source::from_bytes(shown.clone(), std::fs::read(&file).map_err(unreadable)?)?;
        ranges.extend(KernelCounts::parse(&source)?.ranges_in_original());
    }
    ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut end = 0;
    ranges.retain(|range| {
        let starts_after = range.start >= end;
        if starts_after {
            end = range.end;
        }
        starts_after
    });
    Ok(ranges)
}

/// Why a decomposition stopped.
#[derive(Debug)]
pub enum DecomposeError {
    /// The store cannot be read or written.
    Store(StoreError),
    /// The models have more operations than the search can number.
    TooManyOps(super::typical::TooManyOps),
    /// A recording of kernel counts cannot be used.
    Counts(Diagnostic),
}

impl std::fmt::Display for DecomposeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::TooManyOps(error) => error.fmt(f),
            Self::Counts(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DecomposeError {}

impl From<StoreError> for DecomposeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
