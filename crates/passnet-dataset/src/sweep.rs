//! Sweeps: one parallel, resumable loop over graphs of a store that writes what it makes into the same store.
//!
//! A job names a graph and the key of everything its result depends on. A job whose mark carries the same key was
//! done by an earlier run and is passed over; its report is read from the mark, so that the second run of a command
//! says the same as the first. Results are committed in job order: the content of the store does not depend on the
//! number of workers or on how often the sweep was interrupted.

use crate::content::ContentKey;
use crate::store::{Entry, EntryChange, Mark, Record, Store, StoreError, StoreErrorKind};
use passnet_graph::GraphFiles;
use passnet_work::parallel::{self, Stopped};
use passnet_work::progress::{Progress, Task};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroUsize;

/// A batch is committed when it holds this many graphs or bytes: what a kill can cost, and what memory holds.
const BATCH_GRAPHS: usize = 1024;
const BATCH_BYTES: usize = 32 << 20;

/// One graph to work on.
#[derive(Debug, Clone)]
pub struct Job<T> {
    /// The graph.
    pub record: Record,
    /// What to do with it.
    pub task: T,
    /// Everything besides the graph's files that the result depends on, as text.
    pub settings: String,
}

impl<T> Job<T> {
    fn stamp(&self) -> ContentKey {
        let mut bytes = self.record.content.0.to_vec();
        bytes.extend_from_slice(self.settings.as_bytes());
        ContentKey::of(&bytes)
    }
}

/// What came of one job.
#[derive(Debug, Clone, Default)]
pub struct Product {
    /// Graphs to be stored.
    pub entries: Vec<Entry>,
    /// Things the sweep should have made, but equal to another one it made.
    pub repeats: u64,
    /// What could not be made.
    pub refusals: Vec<Refusal>,
}

impl Product {
    /// Notes something that could not be made.
    pub fn refuse(&mut self, what: impl Into<String>, reason: impl ToString) {
        self.refusals.push(Refusal { what: what.into(), reason: reason.to_string() });
    }
}

/// Something that could not be made, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What it would have been.
    pub what: String,
    /// Why not, in words.
    pub reason: String,
}

/// What is remembered of one job.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    made: u64,
    repeats: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<Refusal>,
}

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SweepReport {
    /// Graphs worked on, in this run or an earlier one.
    pub graphs: u64,
    /// Those of them that an earlier run had done.
    pub done_before: u64,
    /// Graphs that were made of them.
    pub made: u64,
    /// Equal to another one made from the same graph.
    pub repeats: u64,
    /// Things that could not be made.
    pub refused: u64,
    /// Refusals by kind of reason.
    pub reasons: BTreeMap<String, Reason>,
}

/// How often something was refused for one kind of reason, with the first example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// How often.
    pub count: u64,
    /// The first of them.
    pub example: Refusal,
}

impl SweepReport {
    fn add(&mut self, job: Remembered) {
        self.graphs += 1;
        self.made += job.made;
        self.repeats += job.repeats;
        for refusal in job.refusals {
            self.refused += 1;
            let kind = kind_of(&refusal.reason);
            self.reasons
                .entry(kind)
                .and_modify(|reason| reason.count += 1)
                .or_insert(Reason { count: 1, example: refusal });
        }
    }
}

/// A reason without names and numbers, so that reasons of one kind are counted together.
fn kind_of(reason: &str) -> String {
    let mut kind = String::with_capacity(reason.len());
    let (mut quoted, mut number) = (false, false);
    for c in reason.chars() {
        if c == '`' {
            quoted = !quoted;
            kind.push_str(if quoted { "`" } else { "_`" });
        } else if !quoted {
            if !c.is_ascii_digit() {
                kind.push(c);
            } else if !number {
                kind.push('N');
            }
            number = c.is_ascii_digit();
        }
    }
    // Lists of any length are one kind.
    while let Some(shorter) =
        ["N, N", "NxN"].iter().find_map(|list| kind.contains(list).then(|| kind.replace(list, "N")))
    {
        kind = shorter;
    }
    kind
}

/// Does `work` for every job that is not marked as done, and commits what it makes.
pub fn run<T: Send + Sync>(
    store: &mut Store,
    sweep: &str,
    jobs: Vec<Job<T>>,
    workers: NonZeroUsize,
    progress: &dyn Progress,
    work: impl Fn(&GraphFiles, &Job<T>) -> Product + Sync,
) -> Result<SweepReport, StoreError> {
    let marks = store.marks(sweep)?;
    let reader = Reader { store: Store::open(store.path())?, left: VecDeque::from(jobs), marks };
    let mut task = Task::begin(progress, sweep, Some(reader.left.len() as u64));
    let mut report = SweepReport::default();
    let mut batch = Batch::default();
    let done = |item: Item<T>| -> Result<Finished, StoreError> {
        let (job, files) = match item {
            Item::Before(remembered) => return Ok(Finished::Before(remembered)),
            Item::Work(job, files) => (job, files?),
        };
        let product = parallel::guard(|| work(&files, &job)).unwrap_or_else(|panic| {
            let mut product = Product::default();
            product.refuse(job.record.path.as_str(), panic);
            product
        });
        Ok(Finished::Now(product, job.record.path.clone(), job.stamp()))
    };
    let path = store.path().to_owned();
    parallel::ordered(reader, workers, done, |finished| {
        task.advance(1);
        match finished.map_err(|panic| StoreError {
            store: path.clone(),
            kind: StoreErrorKind::Damaged(panic.to_string()),
        })?? {
            Finished::Before(remembered) => {
                report.done_before += 1;
                report.add(remembered);
                Ok(())
            }
            Finished::Now(product, path, input) => {
                report.add(batch.push(product, path, input));
                if batch.is_full() { batch.commit(store, sweep) } else { Ok(()) }
            }
        }
    })
    .map_err(|stopped| match stopped {
        Stopped::Consumer(error) => error,
        Stopped::NoThread(error) => {
            StoreError { store: path.clone(), kind: StoreErrorKind::Io(error) }
        }
    })?;
    batch.commit(store, sweep)?;
    Ok(report)
}

enum Item<T> {
    Before(Remembered),
    Work(Box<Job<T>>, Result<GraphFiles, StoreError>),
}

enum Finished {
    Before(Remembered),
    Now(Product, String, ContentKey),
}

/// Reads the graphs of the jobs, on a connection of its own.
struct Reader<T> {
    store: Store,
    left: VecDeque<Job<T>>,
    marks: BTreeMap<String, (ContentKey, String)>,
}

impl<T> Iterator for Reader<T> {
    type Item = Item<T>;

    fn next(&mut self) -> Option<Item<T>> {
        let job = self.left.pop_front()?;
        if let Some((input, report)) = self.marks.get(&job.record.path)
            && *input == job.stamp()
            && let Ok(remembered) = serde_json::from_str(report)
        {
            return Some(Item::Before(remembered));
        }
        let files = self.store.load(&job.record);
        Some(Item::Work(Box::new(job), files))
    }
}

#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    marks: Vec<Mark>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, mut product: Product, path: String, input: ContentKey) -> Remembered {
        let mut entries = std::mem::take(&mut product.entries);
        // An entry that cannot be stored must not cost its batch.
        entries.retain(|entry| match entry.check() {
            Ok(()) => true,
            Err(why) => {
                product.refuse(entry.graph.path.as_str(), why);
                false
            }
        });
        let remembered = Remembered {
            made: entries.len() as u64,
            repeats: product.repeats,
            refusals: product.refusals,
        };
        // Strings and numbers: cannot fail.
        let report = serde_json::to_string(&remembered).unwrap_or_default();
        self.bytes += report.len() + entries.iter().map(|e| e.graph.size()).sum::<usize>();
        self.entries.extend(entries);
        self.marks.push(Mark { path, input, report });
        remembered
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_GRAPHS || self.bytes >= BATCH_BYTES
    }

    fn commit(&mut self, store: &mut Store, sweep: &str) -> Result<(), StoreError> {
        self.bytes = 0;
        let (entries, marks) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.marks));
        let _: Vec<EntryChange> = store.insert_marked(&entries, sweep, &marks)?;
        Ok(())
    }
}

/// Reads graphs of a store in parallel and hands what `look` makes of them to `consume`, in the order of `records`.
/// For sweeps that only read.
pub fn read_all<R: Send>(
    store: &Store,
    records: Vec<Record>,
    task_name: &str,
    workers: NonZeroUsize,
    progress: &dyn Progress,
    look: impl Fn(&Record, &GraphFiles) -> R + Sync,
    mut consume: impl FnMut(Record, R) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let reader = Store::open(store.path())?;
    let mut task = Task::begin(progress, task_name, Some(records.len() as u64));
    let path = store.path().to_owned();
    let failed = |message: String| StoreError {
        store: path.clone(),
        kind: StoreErrorKind::Damaged(message),
    };
    let loaded = records.into_iter().map(move |record| {
        let files = reader.load(&record);
        (record, files)
    });
    parallel::ordered(
        loaded,
        workers,
        |(record, files)| -> Result<(Record, R), StoreError> {
            let files = files?;
            let seen = parallel::guard(|| look(&record, &files))
                .map_err(|panic| failed(format!("`{}`: {panic}", record.path)))?;
            Ok((record, seen))
        },
        |seen| {
            task.advance(1);
            let (record, seen) = seen.map_err(|panic| failed(panic.to_string()))??;
            consume(record, seen)
        },
    )
    .map_err(|stopped| match stopped {
        Stopped::Consumer(error) => error,
        Stopped::NoThread(error) => {
            StoreError { store: path.clone(), kind: StoreErrorKind::Io(error) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_one_kind_share_a_text() {
        let one = kind_of("the type of `tmp_3` is not known: shape [1, 2, 3]");
        assert_eq!(one, "the type of `_` is not known: shape [N]");
        assert_eq!(one, kind_of("the type of `x` is not known: shape [40]"));
    }
}
