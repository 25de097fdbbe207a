//! Export: the dataset as other tools read it. [`folders`] writes graph folders, sample folders and lists as PassNet
//! has them; [`hub`] writes tables and a card for the Hugging Face hub.

mod card;
pub mod folders;
pub mod hub;

use crate::layout;
use crate::sample::tasks::{self, StoredTask};
use crate::store::{Kind, Record, Store, StoreError};
use passnet_graph::Diagnostic;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// What to write.
#[derive(Debug, Clone)]
pub struct ExportOptions {
    /// Graphs of these kinds, and tasks of their pieces.
    pub kinds: Vec<Kind>,
    /// Only graphs that some task uses.
    pub only_tasks: bool,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Graphs, pieces included.
    pub graphs: u64,
    /// Tasks, each as a sample.
    pub tasks: u64,
    /// Files that came with a checkout, beside its graphs.
    pub files: u64,
}

impl ExportOptions {
    /// The tasks of the wanted kinds.
    fn tasks(&self, store: &Store) -> Result<Vec<StoredTask>, StoreError> {
        let mut tasks = tasks::load(store)?;
        tasks.retain(|task| self.kinds.iter().any(|kind| kind.as_str() == task.kind.as_str()));
        Ok(tasks)
    }

    /// An export that would write nothing is a mistake of the one who asked for it.
    fn check(&self, store: &Store, tasks: &[StoredTask], files: usize) -> Result<(), ExportError> {
        let wanted = self.filter(tasks);
        let mut has_graph = false;
        for record in store.entries() {
            has_graph = wanted(&record?);
            if has_graph {
                break;
            }
        }
        if has_graph || !tasks.is_empty() || files > 0 {
            return Ok(());
        }
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.as_str()).collect();
        let message =
            format!("nothing to export: no graph and no task of kind {}", kinds.join(", "));
        let hint = "`passnet dataset stats` says what the store holds; `--kind` chooses";
        let store = store.path().display().to_string();
        Err(ExportError::Nothing(Diagnostic::file(store, message).with_hint(hint)))
    }

    /// Whether a file that came with a checkout is wanted: of lists and samples those of the wanted kinds.
    fn wants_file(&self, path: &str) -> bool {
        layout::kind_named(path).is_none_or(|kind| self.kinds.contains(&kind))
    }

    /// Says which graphs to write, given these tasks.
    fn filter(&self, tasks: &[StoredTask]) -> impl Fn(&Record) -> bool {
        let used: Option<BTreeSet<String>> = self.only_tasks.then(|| {
            tasks.iter().flat_map(|task| &task.graphs).map(|graph| graph.path.clone()).collect()
        });
        move |record| {
            self.kinds.contains(&record.description.kind)
                && used.as_ref().is_none_or(|used| used.contains(&record.path))
        }
    }
}

/// Why an export ended.
#[derive(Debug)]
pub enum ExportError {
    /// The store cannot be read.
    Store(StoreError),
    /// A file that could not be written.
    Write(Diagnostic),
    /// There is nothing to write.
    Nothing(Diagnostic),
}

impl ExportError {
    fn write(path: &Path, error: impl fmt::Display) -> Self {
        let message = format!("cannot be written: {error}");
        let hint = "make room or choose another folder, then run the same command again";
        Self::Write(Diagnostic::file(path.display().to_string(), message).with_hint(hint))
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::Write(error) | Self::Nothing(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
