//! Import: resumable, the same for any number of workers, and never stopped by a bad graph.

use passnet_dataset::content::ContentKey;
use passnet_dataset::import::{ImportOptions, ImportReport, import};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::store::{Description, Digests, Kind, Provenance, Store, StoreErrorKind};
use passnet_graph::Diagnostic;
use passnet_graph::{FileName, GraphFiles};
use passnet_work::progress::Silent;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// Describes a graph by its bytes; refuses, or panics at, what the model's text asks for.
fn describe(graph: &GraphFiles) -> Result<Description, Diagnostic> {
    let model = graph.get(FileName::Model).unwrap_or_default();
    let mut provenance = Vec::new();
    match model {
        b"refuse me" => return Err(Diagnostic::file(&graph.path, "refused")),
        b"panic" => panic!("cannot cope"),
        b"bad range" => {
            provenance.push(Provenance { parent: "p".into(), ranges: vec![0..2, 3..3] });
        }
        _ => {}
    }
    Ok(Description {
        kind: Kind::Full,
        digests: Digests {
            structure: blake3::hash(model).to_string(),
            literals: String::new(),
            full: ContentKey::of_graph(graph).to_string(),
        },
        op_count: u32::try_from(model.len()).unwrap_or(u32::MAX),
        provenance,
        variant: None,
    })
}

fn tree(count: usize) -> TempDir {
    let dir = TempDir::new().unwrap();
    for n in 0..count {
        graph(
            dir.path(),
            &format!("family{}/graph{n}", n % 7),
            &format!("model {n} {}", "x = 1\n".repeat(n)),
        );
    }
    dir
}

fn graph(root: &Path, path: &str, model: &str) {
    let folder = root.join(path);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("model.py"), model).unwrap();
}

fn run(tree: &Path, store: &mut Store, count: usize) -> ImportReport {
    let options = ImportOptions { workers: workers(count), describe_again: false };
    let source = source::open(tree, Limits::default()).unwrap();
    import(store, source, describe, options, &Silent).unwrap()
}

#[test]
fn the_store_is_the_same_to_the_byte_for_any_number_of_workers() {
    let tree = tree(1500);
    let place = TempDir::new().unwrap();
    let stores: Vec<_> = [1, 2, 5]
        .into_iter()
        .map(|count| {
            let path = place.path().join(format!("store{count}"));
            let mut store = Store::open_for_writing(&path, workers(count)).unwrap();
            assert_eq!(run(tree.path(), &mut store, count).added, 1500);
            drop(store);
            fs::read(path).unwrap()
        })
        .collect();
    assert!(stores.iter().all(|store| *store == stores[0]));
}

#[test]
fn bad_graphs_are_reported_and_the_others_stored() {
    let tree = TempDir::new().unwrap();
    for (path, model) in
        [("a", "fine"), ("b", "refuse me"), ("c", "panic"), ("d", "bad range"), ("e", "fine too")]
    {
        graph(tree.path(), path, model);
    }
    let place = TempDir::new().unwrap();
    let mut store = Store::open_for_writing(&place.path().join("store"), workers(2)).unwrap();
    let report = run(tree.path(), &mut store, 2);
    assert_eq!((report.added, report.skipped, report.failed), (2, 0, 3));
    let messages: Vec<_> = report.diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "b: refused",
            "c: internal error (please report it): cannot cope",
            "d: `d` cannot be stored: it comes from the empty range 3..3",
        ]
    );
    let paths: Vec<_> = store.entries().map(|record| record.unwrap().path).collect();
    assert_eq!(paths, ["a", "e"]);
}

#[test]
fn a_second_import_describes_only_what_is_new_or_changed() {
    let tree = tree(20);
    let place = TempDir::new().unwrap();
    let mut store = Store::open_for_writing(&place.path().join("store"), workers(2)).unwrap();
    run(tree.path(), &mut store, 2);
    graph(tree.path(), "family0/graph0", "changed");
    graph(tree.path(), "family0/new", "new");

    let described = AtomicUsize::new(0);
    let counting = |graph: &GraphFiles| {
        described.fetch_add(1, Ordering::SeqCst);
        describe(graph)
    };
    let again = |store: &mut Store, describe_again| {
        let source = source::open(tree.path(), Limits::default()).unwrap();
        let options = ImportOptions { workers: workers(2), describe_again };
        import(store, source, counting, options, &Silent).unwrap()
    };
    let report = again(&mut store, false);
    assert_eq!((report.added, report.replaced, report.skipped), (1, 1, 19));
    assert_eq!(described.swap(0, Ordering::SeqCst), 2);
    let report = again(&mut store, true);
    assert_eq!((report.added, report.replaced, report.skipped), (0, 0, 21));
    assert_eq!(described.load(Ordering::SeqCst), 21);
}

#[test]
fn an_import_stopped_by_a_full_disk_continues() {
    let tree = tree(1100);
    let place = TempDir::new().unwrap();
    let path = place.path().join("store");
    let mut store = Store::open_for_writing(&path, workers(2)).unwrap();
    store.limit_size(150_000).unwrap();
    let source = source::open(tree.path(), Limits::default()).unwrap();
    let options = ImportOptions { workers: workers(2), describe_again: false };
    let error = import(&mut store, source, describe, options, &Silent).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::Full), "{error}");
    let kept = store.len().unwrap();
    assert!(kept > 0 && kept < 1100, "{kept} kept");
    drop(store);

    let mut store = Store::open_for_writing(&path, workers(2)).unwrap();
    let report = run(tree.path(), &mut store, 2);
    assert_eq!((report.added, report.skipped, report.failed), (1100 - kept, kept, 0));
    assert_eq!(store.check(&Silent).unwrap(), Vec::<String>::new());
}
