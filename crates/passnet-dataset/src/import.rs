//! Import: a source's graphs, described by the caller, into a store.
//!
//! Running the same import again continues where it stopped: what is stored with the same files is not described
//! again. The result depends on the source alone, not on the number of workers.

use crate::content::ContentKey;
use crate::source::GraphSource;
use crate::store::{Description, Entry, EntryChange, Store, StoreError, StoreErrorKind};
use passnet_graph::Diagnostic;
use passnet_graph::GraphFiles;
use passnet_work::parallel::{self, Stopped};
use passnet_work::progress::{Progress, Task};
use std::num::NonZeroUsize;

/// A batch is committed when it holds this many graphs or bytes: what a kill can cost, and what memory holds.
const BATCH_GRAPHS: usize = 512;
const BATCH_BYTES: usize = 32 << 20;

/// Failures beyond these are counted but not described: a hostile source must not fill the memory with messages.
const DIAGNOSTICS_KEPT: usize = 10_000;

#[derive(Debug, Clone, Copy)]
/// How to import.
pub struct ImportOptions {
    /// Threads that read and describe graphs.
    pub workers: NonZeroUsize,
    /// Describe graphs again that are stored already: needed when describing itself has changed.
    pub describe_again: bool,
}

impl Default for ImportOptions {
    fn default() -> Self {
        Self { workers: parallel::default_workers(), describe_again: false }
    }
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportReport {
    /// Graphs whose path was new.
    pub added: u64,
    /// Graphs whose path was there with other files or another description.
    pub replaced: u64,
    /// Graphs that were there already.
    pub skipped: u64,
    /// Items that are not in the store because something is wrong with them.
    pub failed: u64,
    /// The reasons, in the order of the source; the first 10,000 of them.
    pub diagnostics: Vec<Diagnostic>,
}

impl ImportReport {
    fn fail(&mut self, diagnostic: Diagnostic) {
        self.failed += 1;
        if self.diagnostics.len() < DIAGNOSTICS_KEPT {
            self.diagnostics.push(diagnostic);
        }
    }
}

/// One graph after the workers' part.
enum Seen {
    New(Box<Entry>),
    Stored,
    Bad(Diagnostic),
}

/// Imports everything `source` yields. `describe` runs on worker threads with deep stacks. Errors of single graphs
/// are in the report; an error of the store ends the import, with all batches before it kept.
pub fn import(
    store: &mut Store,
    source: impl GraphSource,
    describe: impl Fn(&GraphFiles) -> Result<Description, Diagnostic> + Sync,
    options: ImportOptions,
    progress: &dyn Progress,
) -> Result<ImportReport, StoreError> {
    let known = if options.describe_again { Default::default() } else { store.content_keys()? };
    let meter = source.meter();
    let mut task = Task::begin(progress, "importing", None);
    let mut report = ImportReport::default();
    let mut batch = Batch::default();

    let look = |item: Result<GraphFiles, Diagnostic>| -> Seen {
        let graph = match item {
            Ok(graph) => graph,
            Err(diagnostic) => return Seen::Bad(diagnostic),
        };
        if known.get(&graph.path) == Some(&ContentKey::of_graph(&graph)) {
            return Seen::Stored;
        }
        // Guarded here as well as by the loop, because here the graph has a name.
        let bad = |message: String| Diagnostic::file(graph.path.as_str(), message);
        match parallel::guard(|| describe(&graph)) {
            Err(panic) => Seen::Bad(bad(panic.to_string())),
            Ok(Err(diagnostic)) => Seen::Bad(diagnostic),
            Ok(Ok(description)) => {
                let entry = Entry { graph, description };
                match entry.check() {
                    Ok(()) => Seen::New(Box::new(entry)),
                    Err(why) => Seen::Bad(Diagnostic::file(entry.graph.path, why)),
                }
            }
        }
    };
    parallel::ordered(source, options.workers, look, |seen| {
        match seen {
            Ok(Seen::New(entry)) => batch.push(*entry),
            Ok(Seen::Stored) => report.skipped += 1,
            Ok(Seen::Bad(diagnostic)) => report.fail(diagnostic),
            Err(panic) => report.fail(Diagnostic::file("import", panic.to_string())),
        }
        task.advance_to_fraction(1, meter.fraction());
        if batch.is_full() { batch.commit(store, &mut report) } else { Ok(()) }
    })
    .map_err(|stopped| match stopped {
        Stopped::Consumer(error) => error,
        Stopped::NoThread(error) => {
            StoreError { store: store.path().to_owned(), kind: StoreErrorKind::Io(error) }
        }
    })?;
    batch.commit(store, &mut report)?;
    Ok(report)
}

#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, entry: Entry) {
        self.bytes += entry.graph.size();
        self.entries.push(entry);
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_GRAPHS || self.bytes >= BATCH_BYTES
    }

    fn commit(&mut self, store: &mut Store, report: &mut ImportReport) -> Result<(), StoreError> {
        self.bytes = 0;
        for outcome in store.insert(&std::mem::take(&mut self.entries))? {
            match outcome {
                EntryChange::Added => report.added += 1,
                EntryChange::Replaced => report.replaced += 1,
                EntryChange::Unchanged => report.skipped += 1,
            }
        }
        Ok(())
    }
}
