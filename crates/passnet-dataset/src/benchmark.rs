//! The benchmark set: evaluation tasks whose graphs were tried, in a small store of their own.
//!
//! More tasks than wanted are put on the evaluation side of a split, so that those that do not run or show nothing can
//! be left out; of the rest the ones that show most transitions are taken, as the split itself does. Training tasks
//! were kept apart from all of them already.

use crate::progress::Progress;
use crate::sample::buckets::PieceKind;
use crate::sample::identity::{SampleId, Uid};
use crate::sample::split::{self, choose_evaluation};
use crate::sample::tasks::{Side, StoredTask, TaskGraph, load, save};
use crate::stage;
use crate::store::{Entry, Record, Store, StoreError};
use passnet_graph::GraphFiles;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// A graph is stored with so many others in one transaction.
const BATCH: usize = 256;

/// Says why a graph does not belong into a benchmark, if so.
pub type Judge<'a> = &'a (dyn Fn(&GraphFiles) -> Result<(), String> + Sync);

#[derive(Debug, Clone, Copy)]
pub struct BenchmarkOptions {
    /// Tasks of each kind.
    pub tasks: usize,
    /// Graphs of a task, at most: those of other dtypes and sizes first.
    pub graphs: usize,
    pub workers: NonZeroUsize,
}

/// What was chosen of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct KindReport {
    /// Evaluation tasks of the split.
    pub candidates: usize,
    /// Of these, tasks with a graph that passed.
    pub passed: usize,
    pub tasks: usize,
    pub graphs: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BenchmarkReport {
    pub kinds: BTreeMap<&'static str, KindReport>,
    /// Graphs that did not pass, by reason.
    pub refused: BTreeMap<String, u64>,
}

/// Tries the evaluation tasks of `store` and puts the best of those that pass into `out`.
pub fn benchmark(
    store: &Store,
    out: &mut Store,
    judge: Judge<'_>,
    options: BenchmarkOptions,
    progress: &dyn Progress,
) -> Result<BenchmarkReport, StoreError> {
    let mut candidates: Vec<StoredTask> = load(store)?;
    candidates.retain(|task| task.side == Some(Side::Evaluation));
    let mut report = BenchmarkReport::default();
    let passed = try_graphs(store, &candidates, judge, options.workers, progress, &mut report)?;
    let mut chosen = Vec::new();
    for kind in [PieceKind::Fusible, PieceKind::Typical] {
        let of_kind = candidates.iter().filter(|task| task.kind == kind);
        let left: Vec<StoredTask> =
            of_kind.clone().filter_map(|task| reduced(task, &passed, options.graphs)).collect();
        let views: Vec<split::Task<'_>> =
            left.iter().map(|task| split::Task { ops: &task.ops, structures: &[] }).collect();
        let best: BTreeSet<usize> = choose_evaluation(&views, options.tasks).into_iter().collect();
        let line = KindReport {
            candidates: of_kind.count(),
            passed: left.len(),
            tasks: best.len(),
            graphs: best.iter().filter_map(|place| Some(left.get(*place)?.graphs.len())).sum(),
        };
        report.kinds.insert(kind.as_str(), line);
        let taken = left.into_iter().enumerate().filter(|(place, _)| best.contains(place));
        chosen.extend(taken.map(|(_, task)| task));
    }
    let paths: BTreeSet<&str> =
        chosen.iter().flat_map(|task| &task.graphs).map(|graph| graph.path.as_str()).collect();
    copy(store, out, &paths)?;
    save(out, &chosen)?;
    Ok(report)
}

/// The variant of every graph that passed, by path.
fn try_graphs(
    store: &Store,
    tasks: &[StoredTask],
    judge: Judge<'_>,
    workers: NonZeroUsize,
    progress: &dyn Progress,
    report: &mut BenchmarkReport,
) -> Result<BTreeMap<String, (String, u32)>, StoreError> {
    let paths: BTreeSet<&str> =
        tasks.iter().flat_map(|task| &task.graphs).map(|graph| graph.path.as_str()).collect();
    let mut records: Vec<Record> = Vec::new();
    for path in paths {
        records.extend(store.get(path)?);
    }
    let mut passed = BTreeMap::new();
    let look = |_: &Record, files: &GraphFiles| judge(files);
    stage::read_all(
        store,
        records,
        "trying graphs",
        workers,
        progress,
        look,
        |record, verdict| {
            match verdict {
                Ok(()) => {
                    let variant = record.description.variant.map(|v| (v.dtype, v.shape_index));
                    passed.insert(record.path, variant.unwrap_or_default());
                }
                Err(reason) => *report.refused.entry(reason).or_default() += 1,
            }
            Ok(())
        },
    )?;
    Ok(passed)
}

/// The task with those of its graphs that passed, under a new id; `None` if there are none.
fn reduced(
    task: &StoredTask,
    passed: &BTreeMap<String, (String, u32)>,
    most: usize,
) -> Option<StoredTask> {
    let mut left: Vec<(&TaskGraph, &(String, u32))> =
        task.graphs.iter().filter_map(|graph| Some((graph, passed.get(&graph.path)?))).collect();
    let (mut dtypes, mut shapes) = (BTreeSet::new(), BTreeSet::new());
    // Stable: among graphs that show nothing new, the order of uids stays.
    left.sort_by_cached_key(|(_, (dtype, shape))| {
        !(dtypes.insert(dtype.clone()) | shapes.insert(*shape))
    });
    left.truncate(most);
    let mut graphs: Vec<TaskGraph> = left.into_iter().map(|(graph, _)| graph.clone()).collect();
    graphs.sort_by(|a, b| a.uid.cmp(&b.uid));
    let uids: Vec<Uid> = graphs.iter().filter_map(|graph| graph.uid.parse().ok()).collect();
    let id = SampleId::of(&uids).to_string();
    (!graphs.is_empty()).then(|| StoredTask { id, graphs, ..task.clone() })
}

fn copy(store: &Store, out: &mut Store, paths: &BTreeSet<&str>) -> Result<(), StoreError> {
    let mut batch = Vec::new();
    for path in paths {
        if let Some(record) = store.get(path)? {
            let graph = store.load(&record)?;
            batch.push(Entry { graph, description: record.description });
        }
        if batch.len() == BATCH {
            out.insert(&std::mem::take(&mut batch))?;
        }
    }
    out.insert(&batch).map(|_| ())
}
