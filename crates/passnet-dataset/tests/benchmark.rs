//! The benchmark set: what passes is taken, what does not is counted, and tasks keep graphs of all dtypes first.

mod common;

use common::corpus;
use passnet_dataset::benchmark::{BenchmarkOptions, benchmark};
use passnet_dataset::decompose::run::Method;
use passnet_dataset::decompose::typical::TypicalOptions;
use passnet_dataset::dedup::Level;
use passnet_dataset::pipeline::{BuildOptions, build};
use passnet_dataset::progress::Silent;
use passnet_dataset::sample::tasks::{Side, load};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::store::Store;
use passnet_dataset::vary::run::VaryOptions;
use passnet_graph::GraphFiles;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use tempfile::TempDir;

fn built(folder: &TempDir) -> Store {
    let source = corpus();
    let mut store = Store::open_for_writing(&folder.path().join("all"), NonZeroUsize::MIN).unwrap();
    let options = BuildOptions {
        workers: NonZeroUsize::MIN,
        methods: vec![Method::Typical(TypicalOptions::default())],
        level: Level::Full,
        vary: VaryOptions::default(),
        evaluation: 2,
    };
    let source = source::open(source.path(), Limits::default()).unwrap();
    build(&mut store, source, &options, &Silent, |_| {}).unwrap();
    store
}

#[test]
fn only_graphs_that_pass_are_taken() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let judge = |files: &GraphFiles| match files.path.contains("float16") {
        true if !files.path.contains("bfloat16") => Err("half precision".to_string()),
        _ => Ok(()),
    };
    let options = BenchmarkOptions { tasks: 1, graphs: 3, workers: NonZeroUsize::MIN };
    let report = benchmark(&store, &mut out, &judge, options, &Silent).unwrap();
    let typical = &report.kinds["typical"];
    assert_eq!((typical.candidates, typical.passed, typical.tasks), (2, 2, 1));
    assert!(report.refused["half precision"] > 0);

    let tasks = load(&out).unwrap();
    let graphs = &tasks[0].graphs;
    assert_eq!((tasks.len(), graphs.len(), typical.graphs), (1, 3, 3));
    assert_eq!(tasks[0].side, Some(Side::Evaluation));
    assert!(graphs.iter().all(|graph| out.get(&graph.path).unwrap().is_some()));
    assert_eq!(out.len().unwrap(), 3, "nothing else is in the store");
    let dtypes: BTreeSet<&str> =
        graphs.iter().map(|graph| graph.path.split('/').nth(1).unwrap()).collect();
    assert_eq!(dtypes, BTreeSet::from(["bfloat16", "float32"]));
    // Three graphs of a larger task are another task.
    assert!(load(&store).unwrap().iter().all(|task| task.id != tasks[0].id));
}

#[test]
fn where_nothing_passes_nothing_is_taken() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder);
    let mut out = Store::open_for_writing(&folder.path().join("out"), NonZeroUsize::MIN).unwrap();
    let options = BenchmarkOptions { tasks: 9, graphs: 9, workers: NonZeroUsize::MIN };
    let judge = |_: &GraphFiles| Err("no".to_string());
    let report = benchmark(&store, &mut out, &judge, options, &Silent).unwrap();
    assert_eq!((report.kinds["typical"].passed, out.len().unwrap()), (0, 0));
}
