//! A store goes into tables for the Hugging Face hub and comes out of them again, equal by content; tables that say what is
//! not so cost themselves only.

#[path = "common/checkout.rs"]
mod checkout;
mod common;

use checkout::tree;
use common::corpus;
use passnet_dataset::benchmark::{set_version, version};
use passnet_dataset::checkout::{Checkout, import_checkout};
use passnet_dataset::decompose::run::Method;
use passnet_dataset::decompose::typical::TypicalOptions;
use passnet_dataset::dedup::Level;
use passnet_dataset::export::ExportOptions;
use passnet_dataset::export::folders::export_folders;
use passnet_dataset::export::hub::export_hub;
use passnet_dataset::hub::{Hub, HubReport, import_hub, is_hub};
use passnet_dataset::import::ImportOptions;
use passnet_dataset::parquet::{Field, Reader, Table, Type};
use passnet_dataset::pipeline::{BuildOptions, build};
use passnet_dataset::sample::tasks::{self, SplitSide};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::store::{Kind, Record, Store};
use passnet_dataset::vary::run::VaryOptions;
use passnet_work::progress::Silent;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use tempfile::TempDir;

const TWO: NonZeroUsize = NonZeroUsize::new(2).unwrap();

fn everything() -> ExportOptions {
    ExportOptions { kinds: Kind::ALL.to_vec(), only_tasks: false }
}

/// A store with models, pieces, variants and split tasks.
fn built(path: &Path) -> Store {
    let mut store = Store::open_for_writing(path, TWO).unwrap();
    let models = corpus();
    let source = source::open(models.path(), Limits::default()).unwrap();
    let options = BuildOptions {
        workers: TWO,
        methods: vec![Method::Typical(TypicalOptions::default()), Method::SoleOp],
        level: Level::Full,
        vary: VaryOptions::default(),
        measure: None,
        evaluation: 2,
    };
    build(&mut store, source, &options, &Silent, |_| {}).unwrap();
    store
}

fn empty(path: &Path) -> Store {
    Store::open_for_writing(path, TWO).unwrap()
}

fn bring(store: &mut Store, folder: &Path) -> HubReport {
    assert!(is_hub(folder));
    let hub = Hub::open(folder, Limits::default()).unwrap();
    import_hub(store, hub, ImportOptions::default(), &Silent).unwrap()
}

/// What a store knows of its graphs, beside where it keeps their files.
fn known(store: &Store) -> Vec<String> {
    let shown = |record: Record| format!("{} {:?}", record.path, record.description);
    store.entries().map(|record| shown(record.unwrap())).collect()
}

#[test]
fn a_store_comes_back_from_its_tables() {
    let dir = TempDir::new().unwrap();
    let (store, out) = (built(&dir.path().join("s")), dir.path().join("hub"));
    // What an interrupted export left is of no use to anyone.
    fs::create_dir_all(out.join("data.partial/graphs")).unwrap();
    fs::write(out.join("data.partial/graphs/train-00007.parquet"), "half").unwrap();
    let done = export_hub(&store, &out, &everything(), &Silent).unwrap();
    assert_eq!(done.graphs, store.len().unwrap());
    let mut again = empty(&dir.path().join("again"));
    let report = bring(&mut again, &out);
    assert_eq!((report.failed, report.graphs.failed), (0, 0), "{report:?}");
    assert_eq!((report.graphs.added, report.tasks), (done.graphs, done.tasks));
    assert_eq!(known(&again), known(&store));
    assert_eq!(tasks::load(&again).unwrap(), tasks::load(&store).unwrap());
    assert_eq!(again.content().unwrap(), store.content().unwrap());
    assert_eq!(bring(&mut again, &out).graphs.skipped, done.graphs, "a second time adds nothing");

    let refused = export_hub(&store, &out, &everything(), &Silent).unwrap_err().to_string();
    assert!(refused.contains("there is a dataset here already"), "{refused}");
    assert!(!out.join("data.partial").exists());
}

#[test]
fn the_version_of_a_benchmark_set_comes_back() {
    let folder = TempDir::new().unwrap();
    let mut store = built(&folder.path().join("store"));
    set_version(&mut store, "1, of a test").unwrap();
    let out = folder.path().join("tables");
    export_hub(&store, &out, &everything(), &Silent).unwrap();
    let mut again = empty(&folder.path().join("again"));
    bring(&mut again, &out);
    assert_eq!(version(&again).unwrap().as_deref(), Some("1, of a test"));
}

#[test]
fn no_graph_of_an_evaluation_task_is_in_the_training_split() {
    let dir = TempDir::new().unwrap();
    let (store, out) = (built(&dir.path().join("s")), dir.path().join("hub"));
    export_hub(&store, &out, &everything(), &Silent).unwrap();
    let mut splits: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in fs::read_dir(out.join("data/graphs")).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let split = name.split_once('-').unwrap().0.to_string();
        let mut reader = Reader::open(&path).unwrap();
        for group in 0..reader.groups() {
            splits.entry(split.clone()).or_default().extend(reader.texts(group, "path").unwrap());
        }
    }
    let all = tasks::load(&store).unwrap();
    let of = |side| {
        let tasks = all.iter().filter(move |task| task.side == Some(side));
        tasks.flat_map(|task| task.graphs.iter().map(|graph| graph.path.clone()))
    };
    let test: BTreeSet<String> = of(SplitSide::Evaluation).collect();
    assert!(!test.is_empty() && splits["test"] == test);
    assert!(splits["train"].is_disjoint(&test));
    assert!(of(SplitSide::Training).all(|path| splits["train"].contains(&path)));
    let rows: usize = splits.values().map(BTreeSet::len).sum();
    assert_eq!(rows as u64, store.len().unwrap(), "every graph is in one split");
    let card = fs::read_to_string(out.join("README.md")).unwrap();
    let row = format!("| `graphs` | `test` | {} |", test.len());
    assert!(card.starts_with("---\n") && card.contains(&row), "{card}");
}

#[test]
fn a_checkout_survives_its_tables_byte_for_byte() {
    let dir = TempDir::new().unwrap();
    let root = dir.path().join("checkout");
    let written = checkout::write(&root);
    let mut store = empty(&dir.path().join("s"));
    let whole = Checkout::open(&root, Limits::default()).unwrap();
    import_checkout(&mut store, whole, ImportOptions::default(), &Silent).unwrap();
    let (out, back) = (dir.path().join("hub"), dir.path().join("back"));
    let done = export_hub(&store, &out, &everything(), &Silent).unwrap();
    assert!(done.files > 0);
    let mut again = empty(&dir.path().join("again"));
    let report = bring(&mut again, &out);
    let samples = written.samples.len() as u64;
    assert_eq!((report.failed, report.files, report.tasks), (0, done.files, samples), "{report:?}");
    assert_eq!(again.content().unwrap(), store.content().unwrap());
    let options = ExportOptions { kinds: Kind::ALL[1..].to_vec(), only_tasks: false };
    export_folders(&again, &back, "passnet", &options, &Silent).unwrap();
    assert_eq!(tree(&back), tree(&root));
}

/// Writes one row of texts, each a column.
fn table(path: &Path, columns: &[(&str, &str)], lists: &[(&str, Vec<&str>)]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut fields: Vec<Field> =
        columns.iter().map(|(name, _)| Field::required(name, Type::Text)).collect();
    fields.extend(lists.iter().map(|(name, _)| Field::texts(name)));
    let mut table = Table::create(path, fields).unwrap();
    table
        .group(|group| {
            columns.iter().try_for_each(|(_, text)| group.texts([text]))?;
            lists.iter().try_for_each(|(_, texts)| group.lists([texts]))
        })
        .unwrap();
    table.close().unwrap();
}

#[test]
fn tables_that_lie_cost_themselves_only() {
    let dir = TempDir::new().unwrap();
    let (store, out) = (built(&dir.path().join("s")), dir.path().join("hub"));
    export_hub(&store, &out, &everything(), &Silent).unwrap();
    let (all, data) = (tasks::load(&store).unwrap(), out.join("data"));
    let task = all.iter().find(|task| task.graphs.len() == 1).unwrap();
    let graph = &task.graphs[0];
    let other = "0".repeat(32);
    let columns = |id, side, path| {
        [("id", id), ("kind", "typical"), ("side", side), ("rule", "bucket_heads"), ("path", path)]
    };
    let lists = |path, uid| [("ops", vec!["add"]), ("graphs", vec![path]), ("uids", vec![uid])];
    let id = task.id.as_str();
    let wrong = [
        ("a", columns(id, "train", "p"), lists("nowhere", &graph.uid), "which is not here"),
        ("b", columns(id, "train", "p"), lists(&graph.path, &other), "means another graph"),
        ("c", columns(id, "train", "p"), lists(&graph.path, "no uid"), "for a uid"),
        ("d", columns(id, "left", "p"), lists(&graph.path, &graph.uid), "is on the side `left`"),
    ];
    for (name, columns, lists, _) in &wrong {
        table(&data.join(format!("tasks/{name}.parquet")), columns, lists);
    }
    let link = [("path", "samples/x/graphs"), ("kind", "link"), ("body", "../../../../etc")];
    table(&data.join("files/z.parquet"), &link, &[]);
    let climbing = [("path", "../up"), ("model_py", "import torch\n")];
    table(&data.join("graphs/z.parquet"), &climbing, &[]);
    fs::write(data.join("tasks/e.parquet"), "PAR1 and no more").unwrap();

    let mut again = empty(&dir.path().join("again"));
    let report = bring(&mut again, &out);
    let said: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    for says in wrong.iter().map(|(.., says)| *says) {
        assert!(said.iter().any(|line| line.contains(says)), "{says}: {said:#?}");
    }
    assert!(said.iter().any(|line| line.contains("leads out of the checkout")), "{said:#?}");
    assert!(said.iter().any(|line| line.contains("is no Parquet table")), "{said:#?}");
    assert_eq!((report.failed, report.graphs.failed), (6, 1), "{said:#?}");
    assert_eq!(again.content().unwrap(), store.content().unwrap(), "the rest is there");

    let foreign = dir.path().join("foreign.parquet");
    table(&foreign, &[("text", "a")], &[]);
    let refused = Hub::open(&foreign, Limits::default()).unwrap_err().to_string();
    assert!(refused.contains("this table has no column `path`"), "{refused}");
}

#[test]
fn lists_of_an_export_have_every_published_form_and_are_read_again() {
    let dir = TempDir::new().unwrap();
    let (store, out) = (built(&dir.path().join("s")), dir.path().join("folders"));
    let pieces = ExportOptions { kinds: Kind::ALL[1..].to_vec(), only_tasks: false };
    export_folders(&store, &out, "tiny", &pieces, &Silent).unwrap();
    let read = |path: &str| fs::read_to_string(out.join(path)).unwrap();
    let all = tasks::load(&store).unwrap();
    let typical = all.iter().filter(|task| task.kind.as_str() == "typical");
    let groups = read("graph_lists/grouped_typical_subgraph_uids.txt");
    assert_eq!(groups.lines().count(), typical.clone().count());
    for task in typical {
        let uids: Vec<&str> = task.graphs.iter().map(|graph| graph.uid.as_str()).collect();
        assert!(groups.lines().any(|line| line == uids.join(",")));
    }
    let text = read("sample_lists/typical_eval.txt");
    let csv = read("sample_lists/typical_eval.csv");
    assert_eq!(csv, format!("sample_path\n{text}"));

    let mut again = empty(&dir.path().join("again"));
    let checkout = Checkout::open(&out, Limits::default()).unwrap();
    let report = import_checkout(&mut again, checkout, ImportOptions::default(), &Silent).unwrap();
    assert_eq!((report.failed, report.groups), (0, 0), "{:?}", report.problems);
    assert_eq!(report.samples, all.len() as u64);
    let sides = |tasks: &[tasks::StoredTask]| -> BTreeMap<(String, &str), Vec<String>> {
        let uids = |task: &tasks::StoredTask| task.graphs.iter().map(|g| g.uid.clone()).collect();
        tasks.iter().map(|task| ((task.id.clone(), task.kind.as_str()), uids(task))).collect()
    };
    assert_eq!(sides(&tasks::load(&again).unwrap()), sides(&all));
    assert_eq!(
        report.evaluation,
        all.iter().filter(|t| t.side == Some(SplitSide::Evaluation)).count() as u64
    );
}
