//! The benchmark set: evaluation tasks whose graphs were tried, in a small store of their own.
//!
//! More tasks than wanted are put on the evaluation side of a split, so that those that do not run or show nothing can
//! be left out. Those that show most transitions are tried first, as the split itself chooses, until enough pass. Training tasks
//! were kept apart from all of them already; which structures those hold is noted in the set, so that anyone can check
//! it without the rest of the dataset.
//!
//! A hidden part may be set aside for later verification: which tasks are candidates for it follows from their ids and a
//! phrase, so whoever has the dataset and the phrase makes the same one, and both parts are chosen alike.

use crate::sample::buckets::PieceKind;
use crate::sample::identity::{SampleId, Uid};
use crate::sample::least::LeastGraphs;
use crate::sample::split::{self, choose_evaluation};
use crate::sample::tasks::{SplitSide, StoredTask, TaskGraph, load, save};
use crate::store::{Entry, Record, Store, StoreError, StoreErrorKind};
use crate::sweep;
use passnet_graph::GraphFiles;
use passnet_work::progress::Progress;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// A graph is stored with so many others in one transaction.
const BATCH: usize = 256;
/// A task is given up after so many times the graphs that it may keep.
const PATIENCE: usize = 3;
/// For so many tasks that are lacking, one more is tried: some have too few graphs that pass.
const SPARE_ONE_IN: usize = 4;
/// An operation is rare if at most one task in so many has it.
const RARE: usize = 100;
pub(crate) const TRAINING_NOTE: &str = "training structures";
/// Hexadecimal digits of a structure's digest in the note: two different structures among 10^5 and 10^4 share them
/// with probability 10^-5.
pub(crate) const NOTED_DIGITS: usize = 12;

/// One candidate in so many is set aside for the hidden part.
pub const HIDDEN_ONE_IN: u64 = 5;
pub(crate) const VERSION_NOTE: &str = "version";

/// Says why a graph does not belong into a benchmark, if so.
pub type Judge<'a> = &'a (dyn Fn(&GraphFiles) -> Result<(), String> + Sync);

#[derive(Debug, Clone, Copy)]
/// How large the set shall be.
pub struct BenchmarkOptions {
    /// Tasks of each kind.
    pub tasks: usize,
    /// Graphs of a task, at most: those of other dtypes and sizes first.
    pub graphs: usize,
    /// Graphs of a task, at least: others are left out.
    pub least_graphs: LeastGraphs,
    /// Threads that try graphs.
    pub workers: NonZeroUsize,
}

/// Where the hidden part goes, and the phrase that draws it.
#[derive(Debug)]
pub struct HiddenPart<'a> {
    /// The store that it is written to.
    pub out: &'a mut Store,
    /// What draws it.
    pub phrase: &'a str,
}

/// What was chosen of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KindReport {
    /// Evaluation tasks of the split.
    pub candidates: usize,
    /// Of these, tasks whose graphs were tried: those that show most, until enough passed.
    pub tried: usize,
    /// Of these, tasks with enough graphs that passed.
    pub passed: usize,
    /// Chosen tasks.
    pub tasks: usize,
    /// Graphs of the chosen tasks.
    pub graphs: usize,
    /// Operations that occur in any task of this kind, and those that chosen tasks have.
    pub operations: Shown,
    /// The same of operations that at most one task in a hundred has.
    pub rare_operations: Shown,
    /// Pairs of operations that follow each other.
    pub transitions: Shown,
}

/// How many of something there are, and how many of them the chosen tasks show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Of all tasks.
    pub all: usize,
    /// Of the chosen tasks.
    pub shown: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
/// What a choice of evaluation tasks came to.
pub struct BenchmarkReport {
    /// By kind of piece.
    pub kinds: BTreeMap<&'static str, KindReport>,
    /// The same of the hidden part.
    pub hidden: BTreeMap<&'static str, KindReport>,
    /// Graphs that did not pass, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Different structures on the training side, none of which is in the set.
    pub training_structures: usize,
}

/// Tries the evaluation tasks of `store` and puts the best of those that pass into `out`, and of those that are drawn for
/// the hidden part, where one is asked for, as large a share into that.
pub fn benchmark(
    store: &Store,
    out: &mut Store,
    hidden: Option<HiddenPart<'_>>,
    judge: Judge<'_>,
    options: BenchmarkOptions,
    progress: &dyn Progress,
) -> Result<BenchmarkReport, StoreError> {
    let tasks: Vec<StoredTask> = load(store)?;
    let mut report = BenchmarkReport::default();
    let is_candidate = |task: &&StoredTask| task.side == Some(SplitSide::Evaluation);
    let candidates: Vec<&StoredTask> = tasks.iter().filter(is_candidate).collect();
    let (drawn, open): (Vec<&StoredTask>, Vec<&StoredTask>) = candidates
        .iter()
        .partition(|task| hidden.as_ref().is_some_and(|part| is_hidden(part.phrase, &task.id)));
    let training = training_structures(store, &tasks)?;
    report.training_structures = training.len();
    let admissions = Admissions { store, judge, options, progress };
    let part = Part { tasks: &tasks, training: &training, admissions: &admissions };
    report.kinds = part.write(&open, options.tasks, out, &mut report.refused)?;
    if let Some(hidden) = hidden {
        let share =
            usize::try_from(HIDDEN_ONE_IN - 1).map_or(options.tasks, |of| options.tasks / of);
        report.hidden = part.write(&drawn, share, hidden.out, &mut report.refused)?;
    }
    Ok(report)
}

/// Whether a candidate is set aside: by the SHA-256 of the phrase, a line break and its id, as one in
/// [`HIDDEN_ONE_IN`].
pub fn is_hidden(phrase: &str, id: &str) -> bool {
    let digest = Sha256::digest(format!("{phrase}\n{id}"));
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first) % HIDDEN_ONE_IN == 0
}

/// Which version of the benchmark a set is, if it says so.
pub fn version(set: &Store) -> Result<Option<String>, StoreError> {
    set.note(VERSION_NOTE)
}

/// Says in a set which version of the benchmark it is.
pub fn set_version(set: &mut Store, version: &str) -> Result<(), StoreError> {
    set.set_note(VERSION_NOTE, version)
}

/// One part of the set, the public or the hidden one, and what both share.
struct Part<'a> {
    /// All tasks of the dataset.
    tasks: &'a [StoredTask],
    /// Structures of training tasks, as they are noted.
    training: &'a BTreeSet<String>,
    admissions: &'a Admissions<'a>,
}

impl Part<'_> {
    /// Tries candidates and writes the best of each kind, `count` at most.
    fn write(
        &self,
        candidates: &[&StoredTask],
        count: usize,
        out: &mut Store,
        refused: &mut BTreeMap<String, u64>,
    ) -> Result<BTreeMap<&'static str, KindReport>, StoreError> {
        let mut kinds = BTreeMap::new();
        let mut chosen = Vec::new();
        for kind in [PieceKind::Fusible, PieceKind::SoleOp, PieceKind::Typical] {
            // A split has evaluation tasks of single operations only where they were asked for.
            if kind == PieceKind::SoleOp && candidates.iter().all(|task| task.kind != kind) {
                continue;
            }
            let of_kind = candidates.iter().copied().filter(|task| task.kind == kind).collect();
            let (line, taken) = self.choose(kind, of_kind, count, refused)?;
            kinds.insert(kind.as_str(), line);
            chosen.extend(taken);
        }
        let paths: BTreeSet<&str> =
            chosen.iter().flat_map(|task| &task.graphs).map(|graph| graph.path.as_str()).collect();
        copy(self.admissions.store, out, &paths, self.training)?;
        save(out, &chosen)?;
        let noted: Vec<&str> = self.training.iter().map(String::as_str).collect();
        out.set_note(TRAINING_NOTE, &noted.concat())?;
        Ok(kinds)
    }

    /// Tries the candidates of a kind that show most until `count` passed, and takes those that show most of these.
    fn choose(
        &self,
        kind: PieceKind,
        candidates: Vec<&StoredTask>,
        count: usize,
        refused: &mut BTreeMap<String, u64>,
    ) -> Result<(KindReport, Vec<StoredTask>), StoreError> {
        let all = candidates.len();
        let least = self.admissions.options.least_graphs.of(kind);
        let (mut left, mut tried, mut passed) = (candidates, 0, Vec::new());
        left.retain(|task| task.graphs.len() >= least);
        let mut verdicts = BTreeMap::new();
        while passed.len() < count && !left.is_empty() {
            let lacking = count - passed.len();
            let best = show_most(&left, lacking + lacking.div_ceil(SPARE_ONE_IN));
            let next: Vec<&StoredTask> = best.iter().map(|place| left[*place]).collect();
            if next.is_empty() {
                break;
            }
            tried += next.len();
            passed.extend(self.admissions.run(&next, &mut verdicts, refused)?);
            // Of one op sequence one task is enough.
            let has = |task: &StoredTask| passed.iter().any(|one: &StoredTask| one.ops == task.ops);
            let others = left.iter().enumerate();
            let others = others.filter(|(place, task)| !best.contains(place) && !has(task));
            left = others.map(|(_, task)| *task).collect();
        }
        let best = show_most(&passed.iter().collect::<Vec<_>>(), count);
        let taken: Vec<StoredTask> = best.iter().map(|place| passed[*place].clone()).collect();
        let of_kind: Vec<&StoredTask> =
            self.tasks.iter().filter(|task| task.kind == kind).collect();
        let line = KindReport {
            candidates: all,
            tried,
            passed: passed.len(),
            tasks: taken.len(),
            graphs: taken.iter().map(|task| task.graphs.len()).sum(),
            ..coverage(&of_kind, &taken)
        };
        Ok((line, taken))
    }
}

/// The places of the `count` tasks that show most transitions, in the order of the tasks.
fn show_most(tasks: &[&StoredTask], count: usize) -> BTreeSet<usize> {
    let views: Vec<split::Task<'_>> =
        tasks.iter().map(|task| split::Task { ops: &task.ops, structures: &[] }).collect();
    choose_evaluation(&views, count).into_iter().collect()
}

/// The paths of a set's graphs whose structure stands on the training side of the dataset that it was chosen from,
/// and with how many structures they were compared.
pub fn overlap_with_training(set: &Store) -> Result<(Vec<String>, usize), StoreError> {
    let training = noted_structures(set)?;
    let mut found = Vec::new();
    for record in set.entries() {
        let record = record?;
        if training.contains(noted(&record)) {
            found.push(record.path);
        }
    }
    Ok((found, training.len()))
}

/// As much of a graph's structure digest as a set notes.
fn noted(record: &Record) -> &str {
    record.description.digests.structure.get(..NOTED_DIGITS).unwrap_or_default()
}

/// The structures of training tasks that a set notes; none where the store is no set.
fn noted_structures(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    let note = store.note(TRAINING_NOTE)?.unwrap_or_default();
    let digests = note.as_bytes().chunks(NOTED_DIGITS);
    Ok(digests.map(|digest| String::from_utf8_lossy(digest).into_owned()).collect())
}

/// Trying the graphs of tasks, those of other dtypes and sizes first, until each task has enough.
struct Admissions<'a> {
    store: &'a Store,
    judge: Judge<'a>,
    options: BenchmarkOptions,
    progress: &'a dyn Progress,
}

/// One task on trial: its graphs in the order in which they are tried, and how far that went.
struct TaskAdmission<'a> {
    task: &'a StoredTask,
    order: Vec<&'a TaskGraph>,
    tried: usize,
    passed: Vec<&'a TaskGraph>,
}

impl<'a> Admissions<'a> {
    /// The tasks that have graphs which pass, with those alone and under new ids. Verdicts stay: tasks share graphs.
    fn run<'t>(
        &self,
        candidates: &[&'t StoredTask],
        verdicts: &mut BTreeMap<&'t str, bool>,
        refused: &mut BTreeMap<String, u64>,
    ) -> Result<Vec<StoredTask>, StoreError> {
        let mut trials: Vec<TaskAdmission<'_>> =
            candidates.iter().map(|task| self.prepare(task)).collect::<Result<_, _>>()?;
        loop {
            let next: Vec<Vec<&TaskGraph>> =
                trials.iter_mut().map(|trial| trial.next(self.options.graphs)).collect();
            let paths: BTreeSet<&str> = next.iter().flatten().map(|g| g.path.as_str()).collect();
            if paths.is_empty() {
                break;
            }
            let new = paths.into_iter().filter(|path| !verdicts.contains_key(path)).collect();
            verdicts.extend(self.judge(new, refused)?);
            for (trial, graphs) in trials.iter_mut().zip(next) {
                let passes = |graph: &&TaskGraph| verdicts.get(graph.path.as_str()) == Some(&true);
                trial.passed.extend(graphs.into_iter().filter(passes));
            }
        }
        let least = |task: &StoredTask| self.options.least_graphs.of(task.kind);
        let enough = |trial: &&TaskAdmission<'_>| trial.passed.len() >= least(trial.task);
        Ok(trials.iter().filter(enough).filter_map(TaskAdmission::result).collect())
    }

    fn prepare<'t>(&self, task: &'t StoredTask) -> Result<TaskAdmission<'t>, StoreError> {
        let mut order = Vec::with_capacity(task.graphs.len());
        for graph in &task.graphs {
            if let Some(record) = self.store.get(&graph.path)? {
                let variant = record.description.variant.map(|v| (v.dtype, v.shape_index));
                order.push((graph, variant.unwrap_or_default()));
            }
        }
        let (mut dtypes, mut shapes) = (BTreeSet::new(), BTreeSet::new());
        // Stable: among graphs that show nothing new, the order of uids stays.
        order.sort_by_cached_key(|(_, (dtype, shape))| {
            !(dtypes.insert(dtype.clone()) | shapes.insert(*shape))
        });
        let order = order.into_iter().map(|(graph, _)| graph).collect();
        Ok(TaskAdmission { task, order, tried: 0, passed: Vec::new() })
    }

    /// Whether each graph passes, by path.
    fn judge<'p>(
        &self,
        paths: Vec<&'p str>,
        refused: &mut BTreeMap<String, u64>,
    ) -> Result<BTreeMap<&'p str, bool>, StoreError> {
        let mut records: Vec<Record> = Vec::new();
        for path in &paths {
            records.extend(self.store.get(path)?);
        }
        let mut passed = BTreeSet::new();
        let look = |_: &Record, files: &GraphFiles| (self.judge)(files);
        let workers = self.options.workers;
        let name = "trying graphs";
        sweep::read_all(
            self.store,
            records,
            name,
            workers,
            self.progress,
            look,
            |record, verdict| {
                match verdict {
                    Ok(()) => drop(passed.insert(record.path)),
                    Err(reason) => *refused.entry(reason).or_default() += 1,
                }
                Ok(())
            },
        )?;
        Ok(paths.into_iter().map(|path| (path, passed.contains(path))).collect())
    }
}

impl<'a> TaskAdmission<'a> {
    /// As many graphs as the task still lacks.
    fn next(&mut self, most: usize) -> Vec<&'a TaskGraph> {
        let end = self.order.len().min(most.saturating_mul(PATIENCE));
        let lacking = most.saturating_sub(self.passed.len());
        let until = self.tried.saturating_add(lacking).min(end);
        let next = self.order.get(self.tried..until).unwrap_or_default().to_vec();
        self.tried = until;
        next
    }

    fn result(&self) -> Option<StoredTask> {
        let mut graphs: Vec<TaskGraph> = self.passed.iter().map(|graph| (*graph).clone()).collect();
        graphs.sort_by(|a, b| a.uid.cmp(&b.uid));
        let uids: Vec<Uid> = graphs.iter().filter_map(|graph| graph.uid.parse().ok()).collect();
        let id = SampleId::of(&uids).to_string();
        (!graphs.is_empty()).then(|| StoredTask { id, graphs, path: None, ..self.task.clone() })
    }
}

/// How much of what all tasks show the chosen ones show.
fn coverage(all: &[&StoredTask], chosen: &[StoredTask]) -> KindReport {
    let mut tasks_with: BTreeMap<&str, usize> = BTreeMap::new();
    for task in all {
        for op in task.ops.iter().collect::<BTreeSet<_>>() {
            *tasks_with.entry(op).or_default() += 1;
        }
    }
    let chosen_ops: BTreeSet<&str> =
        chosen.iter().flat_map(|t| &t.ops).map(String::as_str).collect();
    let is_rare = |op: &&str| tasks_with.get(*op).is_some_and(|count| count * RARE <= all.len());
    let pairs = |tasks: &mut dyn Iterator<Item = &StoredTask>| {
        let pairs = tasks.flat_map(|task| task.ops.windows(2).map(<[String]>::to_vec));
        pairs.collect::<BTreeSet<_>>().len()
    };
    KindReport {
        operations: Shown { all: tasks_with.len(), shown: chosen_ops.len() },
        rare_operations: Shown {
            all: tasks_with.keys().filter(|op| is_rare(op)).count(),
            shown: chosen_ops.iter().filter(|op| is_rare(op)).count(),
        },
        transitions: Shown {
            all: pairs(&mut all.iter().copied()),
            shown: pairs(&mut chosen.iter()),
        },
        ..KindReport::default()
    }
}

/// The structure of every graph of a training task, as it is noted, and those that the store notes itself: a set whose graphs
/// are tried again, on another device, has no training tasks any more.
fn training_structures(
    store: &Store,
    tasks: &[StoredTask],
) -> Result<BTreeSet<String>, StoreError> {
    let training = tasks.iter().filter(|task| task.side == Some(SplitSide::Training));
    let paths: BTreeSet<&str> =
        training.flat_map(|task| &task.graphs).map(|graph| graph.path.as_str()).collect();
    let mut structures = noted_structures(store)?;
    for record in store.entries() {
        let record = record?;
        if paths.contains(record.path.as_str()) {
            structures.insert(noted(&record).to_string());
        }
    }
    Ok(structures)
}

/// Copies graphs, and refuses one whose structure is known from training.
fn copy(
    store: &Store,
    out: &mut Store,
    paths: &BTreeSet<&str>,
    training: &BTreeSet<String>,
) -> Result<(), StoreError> {
    let mut batch = Vec::new();
    for path in paths {
        if let Some(record) = store.get(path)? {
            if training.contains(noted(&record)) {
                let message = format!("`{path}` stands on both sides of the split");
                let kind = StoreErrorKind::Damaged(message);
                return Err(StoreError { store: store.path().to_owned(), kind });
            }
            let graph = store.load(&record)?;
            batch.push(Entry { graph, description: record.description });
        }
        if batch.len() == BATCH {
            out.insert(&std::mem::take(&mut batch))?;
        }
    }
    out.insert(&batch).map(|_| ())
}
