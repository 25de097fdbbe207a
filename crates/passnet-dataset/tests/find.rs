//! Searching a store: the index leaves out what cannot match, graphs that differ in sizes alone are read once, and what is
//! found is what looking at every graph would find.

mod common;

use common::corpus;
use passnet_dataset::decompose::run::{Method, decompose};
use passnet_dataset::describe::describe;
use passnet_dataset::find::{FindReport, Found, Index, Query, op_counts};
use passnet_dataset::import::{ImportOptions, import};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::store::{Kind, OpCounts, Store};
use passnet_dataset::vary::run::{VaryOptions, vary};
use passnet_graph::GraphFolder;
use passnet_graph::read::read_folder;
use passnet_work::progress::Silent;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

fn store(dir: &Path) -> PathBuf {
    let path = dir.join("s.pnds");
    let mut store = Store::open_for_writing(&path, TWO).unwrap();
    let models = corpus();
    let source = source::open(models.path(), Limits::default()).unwrap();
    import(&mut store, source, describe, ImportOptions::default(), &Silent).unwrap();
    decompose(&mut store, &Method::SoleOp, None, TWO, &Silent).unwrap();
    let kinds = vec![Kind::SoleOp];
    vary(&mut store, &VaryOptions { kinds, ..VaryOptions::default() }, None, TWO, &Silent).unwrap();
    path
}

fn search(path: &Path, kinds: &[Kind], query: Query<'_>) -> (Vec<Found>, FindReport) {
    let index = Index::open(path, kinds, TWO, &Silent).unwrap();
    let store = Store::open(path).unwrap();
    let mut found = Vec::new();
    let report = index.find(&store, query, TWO, &Silent, |one| found.push(one.clone())).unwrap();
    (found, report)
}

fn ops(names: &[(&str, u32)]) -> OpCounts {
    names.iter().map(|(name, count)| (name.to_string(), *count)).collect()
}

#[test]
fn operations_are_found_where_every_graph_is_looked_at() {
    let dir = TempDir::new().unwrap();
    let path = store(dir.path());
    let wanted = ops(&[("gelu", 3), ("linear", 1)]);
    let (found, report) = search(&path, &Kind::ALL, Query { ops: &wanted, matcher: None });
    let store = Store::open(&path).unwrap();
    let mut expected = Vec::new();
    for record in store.entries() {
        let record = record.unwrap();
        let folder = read_folder(&store.load(&record).unwrap()).unwrap();
        let counts = op_counts(&folder.graph);
        if counts.get("gelu").is_some_and(|n| *n >= 3) && counts.contains_key("linear") {
            let places = (counts["gelu"] + counts["linear"]) as usize;
            expected.push(Found { path: record.path, kind: record.description.kind, places });
        }
    }
    assert!(!expected.is_empty());
    assert_eq!(found, expected);
    assert_eq!(report.searched as u64, store.len().unwrap());
    assert_eq!((report.graphs, report.families["zoo"]), (expected.len(), expected.len()));
    assert_eq!((report.structures, report.read), (2, 0), "depths 3 and 4; nothing is read for it");
    let none = ops(&[("gelu", 1), ("conv2d", 1)]);
    assert_eq!(search(&path, &Kind::ALL, Query { ops: &none, matcher: None }).1.graphs, 0);
}

#[test]
fn a_pattern_is_tried_once_for_graphs_that_differ_in_sizes_alone() {
    let dir = TempDir::new().unwrap();
    let path = store(dir.path());
    let tried = AtomicUsize::new(0);
    let matcher = |folder: &GraphFolder| {
        tried.fetch_add(1, Ordering::Relaxed);
        folder
            .graph
            .calls()
            .filter(|(_, call)| call.op().is_some_and(|op| op.name() == "gelu"))
            .count()
    };
    let wanted = ops(&[("gelu", 1)]);
    let query = Query { ops: &wanted, matcher: Some(&matcher) };
    let (found, report) = search(&path, &[Kind::SoleOp], query);
    // One structure, no literals, three widths and three dtypes.
    assert_eq!((report.structures, report.read, tried.load(Ordering::Relaxed)), (1, 1, 1));
    assert!(found.len() >= 9 && found.len() == report.candidates, "{report:?}");
    assert!(found.iter().all(|one| one.places == 1 && one.kind == Kind::SoleOp));
    let by_path: Vec<&String> = found.iter().map(|one| &one.path).collect();
    assert!(by_path.is_sorted());
    // A matcher that finds nothing leaves nothing.
    let nothing = |_: &GraphFolder| 0;
    let query = Query { ops: &wanted, matcher: Some(&nothing) };
    let report = search(&path, &Kind::ALL, query).1;
    assert_eq!((report.graphs, report.places), (0, 0));
    assert!(report.candidates > 0);
}

#[test]
fn an_index_that_is_kept_is_used() {
    let dir = TempDir::new().unwrap();
    let path = store(dir.path());
    let before = Store::open(&path).unwrap().content().unwrap();
    let made = Index::open(&path, &Kind::ALL, TWO, &Silent).unwrap().made;
    assert!(made > 5);
    assert_eq!(Index::open(&path, &Kind::ALL, TWO, &Silent).unwrap().made, made, "it is small");
    // What is kept is believed, and what is lacking is made.
    let outlines = Store::open(&path).unwrap().outlines(&Kind::ALL).unwrap();
    let kept: Vec<(String, OpCounts)> =
        outlines.structures[1..].iter().map(|one| (one.clone(), ops(&[("kept", 1)]))).collect();
    Store::open_for_writing(&path, TWO).unwrap().keep_op_index(&kept).unwrap();
    let index = Index::open(&path, &Kind::ALL, TWO, &Silent).unwrap();
    assert_eq!((index.made, index.operations().contains("kept")), (1, true));
    assert_eq!(Store::open(&path).unwrap().content().unwrap(), before, "content is what it was");
}
