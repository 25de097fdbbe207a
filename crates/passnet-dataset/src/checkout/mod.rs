//! A PassNet checkout, or a download of its data: graphs, lists and samples, brought into a store so that nothing is lost.
//!
//! ```text
//! graphs/<set>/<kind>_subgraphs/…/<graph>/         graph folders: entries, under their paths from the top
//! graph_lists/*.txt                                uids of graphs, and which of them form a group
//! samples/<set>/<kind>_subgraphs/…/<sample>/       tasks: graph_list.txt, sample_uids.txt, pass_dir/, links
//! sample_lists/**                                  samples for training and for evaluation
//! ```
//!
//! Sets are `hf_subgraphs_v2`, the older `hf_subgraphs`, or none (the demo); the kind is the folder `sole_op_subgraphs`,
//! `fusible_subgraphs` or `typical_subgraphs`. Graphs become entries, samples tasks; every other file is kept as it is, and
//! [`export`](crate::export::folders) writes all of it back. What stands beside these four folders (a harness, its
//! documentation) is named in the report and left out.

pub(crate) mod links;
mod samples;
mod walk;

pub use walk::Checkout;

use crate::describe::describe;
use crate::import::{ImportOptions, ImportReport, import};
use crate::source::read_regular;
use crate::store::{EntryChange, FileBody, Store, StoreError, StoredFile};
use passnet_graph::{Diagnostic, FileName};
use passnet_work::progress::Progress;
use samples::Published;
use std::collections::BTreeSet;
use std::path::Path;
use walk::Item;

/// Files are committed when so many bytes of them are held.
const BATCH_BYTES: usize = 16 << 20;
/// Problems beyond these are counted but not described.
const PROBLEMS_KEPT: usize = 10_000;

/// What an import of a checkout did.
#[derive(Debug, Clone, Default)]
pub struct CheckoutReport {
    /// What became of the graph folders.
    pub graphs: ImportReport,
    /// Samples that are tasks now.
    pub samples: u64,
    /// Samples whose files are kept, but that are no tasks: some of their graphs are not here or cannot be read.
    pub incomplete: u64,
    /// Groups of a graph list without a sample of their own, which became tasks.
    pub groups: u64,
    /// Tasks on the evaluation side of the published split.
    pub evaluation: u64,
    /// Tasks on its training side.
    pub training: u64,
    /// Files beside the graphs whose path was new.
    pub files_added: u64,
    /// Files whose path was there with another content.
    pub files_replaced: u64,
    /// Files that were there already.
    pub files_unchanged: u64,
    /// Folders, links, lists and samples that were refused or cannot be used as they are.
    pub failed: u64,
    /// Why, the first 10,000 of them.
    pub problems: Vec<Diagnostic>,
    /// What lies beside the data and was left out.
    pub left_out: Vec<String>,
}

impl CheckoutReport {
    fn fail(&mut self, problem: Diagnostic) {
        self.failed += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

/// Whether a folder is laid out as a checkout: it has lists, or graphs and samples side by side.
pub fn is_checkout(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).is_dir();
    let is_graph = folder.join(FileName::Model.as_str()).exists();
    !is_graph
        && (has(walk::GRAPH_LISTS)
            || has(walk::SAMPLE_LISTS)
            || has(walk::GRAPHS) && has(walk::SAMPLES))
}

/// Brings a whole checkout into a store. Running it again continues, and takes over what changed.
pub fn import_checkout(
    store: &mut Store,
    mut checkout: Checkout,
    options: ImportOptions,
    progress: &dyn Progress,
) -> Result<CheckoutReport, StoreError> {
    let mut report = CheckoutReport { left_out: checkout.left_out(), ..CheckoutReport::default() };
    let published = Published::read(&mut checkout);
    report.graphs = import(store, checkout.graphs(), describe, options, progress)?;
    let unread = keep_files(store, &checkout, &mut report)?;
    published.into_tasks(store, &checkout, &unread, &mut report)?;
    std::mem::take(&mut checkout.problems).into_iter().for_each(|problem| report.fail(problem));
    Ok(report)
}

/// Keeps all files that are no part of an entry, and those of graphs that could not become one. Returns the latter graphs.
fn keep_files(
    store: &mut Store,
    checkout: &Checkout,
    report: &mut CheckoutReport,
) -> Result<BTreeSet<String>, StoreError> {
    let mut batch = Batch::default();
    let mut unread = BTreeSet::new();
    let kept: BTreeSet<String> = store.file_paths()?.into_iter().collect();
    let mut replaced = Vec::new();
    for graph in &checkout.graphs {
        let is_entry = store.get(graph)?.is_some();
        if !is_entry {
            unread.insert(graph.clone());
        }
        for name in FileName::ALL {
            let path = format!("{graph}/{name}");
            match is_entry {
                // It could not be read once, and can now.
                true if kept.contains(&path) => replaced.push(path),
                true => {}
                false => batch.read(checkout, path, false, report),
            }
        }
        batch.commit_if(BATCH_BYTES, store, report)?;
    }
    for (path, item) in &checkout.items {
        match item {
            Item::File { executable } => batch.read(checkout, path.clone(), *executable, report),
            Item::Link(target) => batch.push(path.clone(), FileBody::Link(target.clone())),
            Item::Folder => batch.push(path.clone(), FileBody::Folder),
        }
        batch.commit_if(BATCH_BYTES, store, report)?;
    }
    batch.commit_if(0, store, report)?;
    store.remove_files(replaced.iter().map(String::as_str))?;
    Ok(unread)
}

#[derive(Default)]
struct Batch {
    files: Vec<StoredFile>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, path: String, body: FileBody) {
        self.files.push(StoredFile { path, body });
    }

    /// Adds a file of the checkout, if it is there.
    fn read(
        &mut self,
        checkout: &Checkout,
        path: String,
        executable: bool,
        report: &mut CheckoutReport,
    ) {
        match read_regular(&checkout.root.join(&path), checkout.limits.file_bytes) {
            Ok(None) => {}
            Ok(Some(bytes)) => {
                self.bytes += bytes.len();
                self.push(
                    path,
                    if executable { FileBody::Script(bytes) } else { FileBody::Text(bytes) },
                );
            }
            Err(problem) => report.fail(problem),
        }
    }

    fn commit_if(
        &mut self,
        bytes: usize,
        store: &mut Store,
        report: &mut CheckoutReport,
    ) -> Result<(), StoreError> {
        // Links and empty files take room, too.
        if self.bytes < bytes && self.files.len() < bytes / 1024 {
            return Ok(());
        }
        self.bytes = 0;
        for outcome in store.put_files(&std::mem::take(&mut self.files))? {
            match outcome {
                EntryChange::Added => report.files_added += 1,
                EntryChange::Replaced => report.files_replaced += 1,
                EntryChange::Unchanged => report.files_unchanged += 1,
            }
        }
        Ok(())
    }
}
