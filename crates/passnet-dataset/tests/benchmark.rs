//! The benchmark set: what passes is taken, what does not is counted, and tasks keep graphs of all dtypes first.

#[path = "common/built.rs"]
mod built;
mod common;

use built::built;
use passnet_dataset::benchmark::{BenchmarkOptions, benchmark, overlap_with_training};
use passnet_dataset::sample::tasks::{SplitSide, StoredTask, TaskGraph, load};
use passnet_dataset::store::{Store, StoreErrorKind};
use passnet_graph::GraphFiles;
use passnet_work::progress::Silent;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

#[test]
fn only_graphs_that_pass_are_taken() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let judge = |files: &GraphFiles| match files.path.contains("float16") {
        true if !files.path.contains("bfloat16") => Err("half precision".to_string()),
        _ => Ok(()),
    };
    let options = BenchmarkOptions { tasks: 1, graphs: 1_000, workers: NonZeroUsize::MIN };
    let report = benchmark(&store, &mut out, &judge, options, &Silent).unwrap();
    let typical = &report.kinds["typical"];
    assert_eq!((typical.candidates, typical.passed, typical.tasks), (2, 2, 1));
    let dtype = |path: &str| path.split('/').nth(1).unwrap().to_string();
    let all = load(&store).unwrap();
    let candidates = all.iter().filter(|task| task.side == Some(SplitSide::Evaluation));
    let half =
        candidates.clone().flat_map(|task| &task.graphs).filter(|g| dtype(&g.path) == "float16");
    let half = half.count();
    assert!(half > 0);
    assert_eq!(report.refused["half precision"], half as u64);

    let tasks = load(&out).unwrap();
    let graphs = &tasks[0].graphs;
    assert_eq!((tasks.len(), typical.graphs), (1, graphs.len()));
    assert_eq!(tasks[0].side, Some(SplitSide::Evaluation));
    assert!(graphs.iter().all(|graph| out.get(&graph.path).unwrap().is_some()));
    assert_eq!(out.len().unwrap(), graphs.len() as u64, "nothing else is in the store");
    let rest = |task: &StoredTask| -> Vec<TaskGraph> {
        task.graphs.iter().filter(|graph| dtype(&graph.path) != "float16").cloned().collect()
    };
    assert!(candidates.map(rest).any(|rest| rest == *graphs), "all others of its candidate");
    // What is left of a larger task is another task.
    assert!(all.iter().all(|task| task.id != tasks[0].id));
}

#[test]
fn a_small_task_has_every_dtype_that_passes() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let judge = |files: &GraphFiles| match files.path.contains("/float16/") {
        true => Err("half precision".to_string()),
        false => Ok(()),
    };
    let options = BenchmarkOptions { tasks: 1, graphs: 3, workers: NonZeroUsize::MIN };
    let report = benchmark(&store, &mut out, &judge, options, &Silent).unwrap();
    let kind = &report.kinds["typical"];
    assert_eq!((kind.tasks, kind.graphs), (1, 3));
    let graphs = &load(&out).unwrap()[0].graphs;
    assert_eq!((graphs.len(), out.len().unwrap()), (3, 3));
    let dtypes: BTreeSet<&str> =
        graphs.iter().filter_map(|graph| graph.path.split('/').nth(1)).collect();
    assert_eq!(dtypes, BTreeSet::from(["bfloat16", "float32"]));
}

#[test]
fn where_nothing_passes_nothing_is_taken() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let options = BenchmarkOptions { tasks: 9, graphs: 9, workers: NonZeroUsize::MIN };
    let judge = |_: &GraphFiles| Err("no".to_string());
    let report = benchmark(&store, &mut out, &judge, options, &Silent).unwrap();
    assert_eq!((report.kinds["typical"].passed, out.len().unwrap()), (0, 0));
}

#[test]
fn a_task_with_enough_graphs_is_not_tried_further() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let options = BenchmarkOptions { tasks: 2, graphs: 2, workers: NonZeroUsize::MIN };
    let tried = AtomicUsize::new(0);
    // The first graph of all fails, so one task needs a second round.
    let judge = |_: &GraphFiles| match tried.fetch_add(1, Ordering::Relaxed) {
        0 => Err("the first".to_string()),
        _ => Ok(()),
    };
    let report = benchmark(&store, &mut out, &judge, options, &Silent).unwrap();
    let kind = &report.kinds["typical"];
    assert_eq!((kind.tasks, kind.graphs, tried.into_inner()), (2, 4, 5));
    assert!(kind.operations.shown > 0 && kind.operations.shown <= kind.operations.all);
    assert!(kind.transitions.shown > 0 && kind.transitions.shown <= kind.transitions.all);
}

#[test]
fn structures_of_training_are_noted_and_refused() {
    let folder = TempDir::new().unwrap();
    let mut store = built(&folder, 2);
    let options = BenchmarkOptions { tasks: 1, graphs: 9, workers: NonZeroUsize::MIN };
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let report = benchmark(&store, &mut out, &|_| Ok(()), options, &Silent).unwrap();
    let noted = overlap_with_training(&out).unwrap();
    assert_eq!(noted, (Vec::new(), report.training_structures));

    // The same graphs once more, as a task for training.
    let mut tasks = store.tasks().unwrap();
    for (id, body) in tasks.clone() {
        let leaked = body.replace("\"evaluation\"", "\"training\"");
        tasks.push((format!("{id}0"), leaked));
    }
    store.set_tasks(&tasks).unwrap();
    let mut out = Store::open_for_writing(&folder.path().join("bad"), NonZeroUsize::MIN).unwrap();
    let error = benchmark(&store, &mut out, &|_| Ok(()), options, &Silent).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Damaged(why) if why.contains("both sides")));
}
