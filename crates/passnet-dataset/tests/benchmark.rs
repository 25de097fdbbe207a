//! The benchmark set: what passes is taken, what does not is counted, and tasks keep graphs of all dtypes first.

#[path = "common/built.rs"]
mod built;
mod common;

use built::built;
use passnet_dataset::benchmark::{
    BenchmarkOptions, HiddenPart, benchmark, is_hidden, overlap_with_training, set_version, version,
};
use passnet_dataset::sample::least::LeastGraphs;
use passnet_dataset::sample::tasks::{SplitSide, StoredTask, TaskGraph, load};
use passnet_dataset::store::{Store, StoreErrorKind};
use passnet_graph::GraphFiles;
use passnet_work::progress::Silent;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const OPTIONS: BenchmarkOptions = BenchmarkOptions {
    tasks: 1,
    graphs: 9,
    least_graphs: LeastGraphs::all(1),
    workers: NonZeroUsize::MIN,
};

#[test]
fn only_graphs_that_pass_are_taken() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let judge = |files: &GraphFiles| match files.path.contains("float16") {
        true if !files.path.contains("bfloat16") => Err("half precision".to_string()),
        _ => Ok(()),
    };
    let options = BenchmarkOptions { tasks: 1, graphs: 1_000, ..OPTIONS };
    let report = benchmark(&store, &mut out, None, &judge, options, &Silent).unwrap();
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
fn no_more_tasks_are_tried_than_it_takes() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 9);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let report = benchmark(&store, &mut out, None, &|_| Ok(()), OPTIONS, &Silent).unwrap();
    let typical = &report.kinds["typical"];
    assert!(typical.candidates > 2, "{typical:?}");
    assert_eq!((typical.tried, typical.passed, typical.tasks), (2, 2, 1));
    // Where none passes, all were tried.
    let mut out = Store::open_for_writing(&folder.path().join("none"), NonZeroUsize::MIN).unwrap();
    let judge = |_: &GraphFiles| Err("no".to_string());
    let report = benchmark(&store, &mut out, None, &judge, OPTIONS, &Silent).unwrap();
    let typical = &report.kinds["typical"];
    assert_eq!((typical.tried, typical.passed), (typical.candidates, 0));
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
    let options = BenchmarkOptions { tasks: 1, graphs: 3, ..OPTIONS };
    let report = benchmark(&store, &mut out, None, &judge, options, &Silent).unwrap();
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
    let options = BenchmarkOptions { tasks: 9, graphs: 9, ..OPTIONS };
    let judge = |_: &GraphFiles| Err("no".to_string());
    let report = benchmark(&store, &mut out, None, &judge, options, &Silent).unwrap();
    assert_eq!((report.kinds["typical"].passed, out.len().unwrap()), (0, 0));
}

#[test]
fn a_task_with_enough_graphs_is_not_tried_further() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let options = BenchmarkOptions { tasks: 2, graphs: 2, ..OPTIONS };
    let tried = AtomicUsize::new(0);
    // The first graph of all fails, so one task needs a second round.
    let judge = |_: &GraphFiles| match tried.fetch_add(1, Ordering::Relaxed) {
        0 => Err("the first".to_string()),
        _ => Ok(()),
    };
    let report = benchmark(&store, &mut out, None, &judge, options, &Silent).unwrap();
    let kind = &report.kinds["typical"];
    assert_eq!((kind.tasks, kind.graphs, tried.into_inner()), (2, 4, 5));
    assert!(kind.operations.shown > 0 && kind.operations.shown <= kind.operations.all);
    assert!(kind.transitions.shown > 0 && kind.transitions.shown <= kind.transitions.all);
}

#[test]
fn a_set_that_is_tried_again_still_knows_the_structures_of_training() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut set = Store::open_for_writing(&folder.path().join("set"), NonZeroUsize::MIN).unwrap();
    let first = benchmark(&store, &mut set, None, &|_| Ok(()), OPTIONS, &Silent).unwrap();
    assert!(first.training_structures > 0);
    let again = folder.path().join("again");
    let mut again = Store::open_for_writing(&again, NonZeroUsize::MIN).unwrap();
    let report = benchmark(&set, &mut again, None, &|_| Ok(()), OPTIONS, &Silent).unwrap();
    assert_eq!(report.training_structures, first.training_structures);
    assert_eq!(overlap_with_training(&again).unwrap(), (Vec::new(), first.training_structures));
    assert_eq!(load(&again).unwrap(), load(&set).unwrap());
}

#[test]
fn structures_of_training_are_noted_and_refused() {
    let folder = TempDir::new().unwrap();
    let mut store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let report = benchmark(&store, &mut out, None, &|_| Ok(()), OPTIONS, &Silent).unwrap();
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
    let error = benchmark(&store, &mut out, None, &|_| Ok(()), OPTIONS, &Silent).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Damaged(why) if why.contains("both sides")));
}

#[test]
fn a_task_with_too_few_graphs_is_left_out() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let judge = |files: &GraphFiles| match files.path.contains("/float32/") {
        true => Ok(()),
        false => Err("another dtype".to_string()),
    };
    let options = BenchmarkOptions {
        tasks: 9,
        graphs: 1_000,
        least_graphs: LeastGraphs::all(1_000),
        ..OPTIONS
    };
    let report = benchmark(&store, &mut out, None, &judge, options, &Silent).unwrap();
    assert_eq!((report.kinds["typical"].candidates, report.kinds["typical"].passed), (2, 0));
    assert!(load(&out).unwrap().is_empty());
}

#[test]
fn the_hidden_part_is_drawn_by_its_phrase_and_shares_no_task_with_the_public_one() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 2);
    let all = load(&store).unwrap();
    let candidates = all.iter().filter(|task| task.side == Some(SplitSide::Evaluation));
    let ids: Vec<&str> = candidates.map(|task| task.id.as_str()).collect();
    // A phrase that hides one of the two candidates.
    let hides_one = |phrase: &String| ids.iter().filter(|id| is_hidden(phrase, id)).count() == 1;
    let phrase = (0..1_000).map(|number| format!("phrase {number}")).find(hides_one).unwrap();
    let options = BenchmarkOptions { tasks: 8, ..OPTIONS };
    let open =
        |name| Store::open_for_writing(&folder.path().join(name), NonZeroUsize::MIN).unwrap();
    let (mut out, mut aside) = (open("out"), open("aside"));
    let part = HiddenPart { out: &mut aside, phrase: &phrase };
    let report = benchmark(&store, &mut out, Some(part), &|_| Ok(()), options, &Silent).unwrap();
    assert_eq!((report.kinds["typical"].tasks, report.hidden["typical"].tasks), (1, 1));
    let (public, hidden) = (load(&out).unwrap(), load(&aside).unwrap());
    assert_ne!(public[0].ops, hidden[0].ops);
    assert_eq!(overlap_with_training(&aside).unwrap(), (Vec::new(), report.training_structures));

    // The same phrase draws the same part again.
    let (mut again, mut aside_again) = (open("again"), open("aside again"));
    let part = HiddenPart { out: &mut aside_again, phrase: &phrase };
    benchmark(&store, &mut again, Some(part), &|_| Ok(()), options, &Silent).unwrap();
    assert_eq!(aside_again.content().unwrap(), aside.content().unwrap());
}

#[test]
fn one_candidate_in_five_is_hidden() {
    let hidden = (0..10_000).filter(|number| is_hidden("a phrase", &number.to_string())).count();
    assert!(
        (1_880..2_120).contains(&hidden),
        "{hidden} of 10,000: three standard deviations are 120"
    );
    assert_ne!(
        (0..64).map(|n| is_hidden("a phrase", &n.to_string())).collect::<Vec<_>>(),
        (0..64).map(|n| is_hidden("another", &n.to_string())).collect::<Vec<_>>()
    );
}

#[test]
fn a_set_knows_its_version_and_its_content_does_not_change_by_it() {
    let folder = TempDir::new().unwrap();
    let mut store = built(&folder, 1);
    let content = store.content().unwrap();
    assert_eq!(version(&store).unwrap(), None);
    set_version(&mut store, "1").unwrap();
    assert_eq!(version(&store).unwrap().as_deref(), Some("1"));
    assert_eq!(store.content().unwrap(), content);
}
