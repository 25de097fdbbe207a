//! The benchmark set that is shipped in `bench/set`: what it promises, and that the commands take it.

use assert_cmd::Command;
use passnet_dataset::benchmark::overlap_with_training;
use passnet_dataset::sample::buckets::PieceKind;
use passnet_dataset::sample::tasks::{SplitSide, StoredTask, load, uid_of};
use passnet_dataset::store::{Record, Store};
use passnet_engine::native::folder::draw_inputs;
use passnet_engine::native::{NativeEngine, Wrappers};
use passnet_engine::{Engine, Precision, RunOptions, dump};
use passnet_graph::ops::Class;
use passnet_graph::read::read_folder;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How many tasks of each kind there are, and how many graphs at least.
const KINDS: [(PieceKind, usize, usize); 3] = [
    (PieceKind::Fusible, 200, 2_060),
    (PieceKind::Typical, 200, 1_900),
    (PieceKind::SoleOp, 47, 600),
];
/// It is cloned with the repository.
const MOST_BYTES: u64 = 8 << 20;
/// The native engine runs the smallest graph of every task of so many.
const EVERY: usize = 10;
/// Elements of the arguments of a graph that a test may run.
const SMALL: i64 = 2_000_000;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/set/evaluation.pnds")
}

fn set() -> (Store, Vec<StoredTask>) {
    let store = Store::open(&path()).unwrap();
    let tasks = load(&store).unwrap();
    (store, tasks)
}

fn record(store: &Store, path: &str) -> Record {
    store.get(path).unwrap().unwrap_or_else(|| panic!("{path} is missing"))
}

#[test]
fn each_kind_has_its_tasks_in_a_small_file() {
    let (store, tasks) = set();
    assert!(std::fs::metadata(path()).unwrap().len() < MOST_BYTES);
    for (kind, count, graphs) in KINDS {
        let of_kind: Vec<_> = tasks.iter().filter(|task| task.kind == kind).collect();
        assert_eq!(of_kind.len(), count, "{kind:?}");
        let sequences: BTreeSet<_> = of_kind.iter().map(|task| &task.ops).collect();
        assert_eq!(sequences.len(), count, "every task has its own op sequence");
        let found: usize = of_kind.iter().map(|task| task.graphs.len()).sum();
        assert!(found >= graphs, "{kind:?} has {found} graphs");
    }
    assert_eq!(tasks.len(), KINDS.iter().map(|(_, count, _)| count).sum::<usize>());
    assert!(tasks.iter().all(|task| task.side == Some(SplitSide::Evaluation)));
    let listed: BTreeSet<&str> =
        tasks.iter().flat_map(|task| &task.graphs).map(|graph| graph.path.as_str()).collect();
    assert_eq!(listed.len() as u64, store.len().unwrap(), "nothing but the graphs of tasks");
    assert_eq!(store.check(&passnet_work::progress::Silent).unwrap(), [""; 0]);
}

#[test]
fn all_dtypes_and_sizes_are_there() {
    let (store, tasks) = set();
    let (mut dtypes, mut shapes) = (BTreeSet::new(), BTreeSet::new());
    let mut several = 0;
    for task in &tasks {
        let mut of_task = BTreeSet::new();
        for graph in &task.graphs {
            let record = record(&store, &graph.path);
            assert_eq!(uid_of(&record).unwrap().to_string(), graph.uid);
            let variant = record.description.variant.unwrap();
            of_task.insert(variant.dtype.clone());
            dtypes.insert(variant.dtype);
            shapes.insert(variant.shape_index);
        }
        several += usize::from(of_task.len() == 3);
    }
    let named = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    assert_eq!(dtypes, named(&["bfloat16", "float16", "float32"]));
    assert_eq!(shapes, (0..=9).collect());
    // PyTorch's kernels for the CPU lack half precision in places, so not every task can show all.
    assert!(5 * several > 2 * tasks.len(), "only {several} tasks show all three dtypes");
}

#[test]
fn no_structure_is_known_from_training() {
    let (store, _) = set();
    let (known, compared) = overlap_with_training(&store).unwrap();
    assert_eq!(known, [""; 0]);
    assert!(compared > 1_000, "only {compared} structures of training tasks are noted");
}

#[test]
fn every_graph_can_be_prepared_and_launches_something() {
    let (store, _) = set();
    for record in store.entries() {
        let record = record.unwrap();
        let folder = read_folder(&store.load(&record).unwrap()).unwrap();
        let works = |class: Class| !matches!(class, Class::View | Class::Creation);
        let mut ops = folder.graph.calls().filter_map(|(_, call)| call.op());
        assert!(ops.any(|op| works(op.class())), "{} launches nothing", record.path);
        let prepared =
            NativeEngine.prepare(&folder.graph, Precision::AsWritten, &Wrappers::default());
        assert!(prepared.is_ok(), "{}: {:?}", record.path, prepared.err());
    }
}

#[test]
fn some_graphs_of_all_over_run_and_depend_on_their_inputs() {
    let (store, tasks) = set();
    let mut ran = 0;
    for task in tasks.iter().step_by(EVERY) {
        let graphs = task.graphs.iter().map(|graph| {
            let files = store.load(&record(&store, &graph.path)).unwrap();
            let folder = read_folder(&files).unwrap();
            let elements: i64 = folder.metas.iter().map(|meta| meta.elements()).sum();
            (elements, files, folder)
        });
        let (elements, files, folder) = graphs.min_by_key(|(elements, ..)| *elements).unwrap();
        if elements > SMALL {
            continue;
        }
        let graph = &folder.graph;
        let prepared =
            NativeEngine.prepare(graph, Precision::AsWritten, &Wrappers::default()).unwrap();
        let outputs = [1, 2].map(|seed| {
            let inputs = draw_inputs(&files, graph, seed, None).unwrap();
            let values = prepared.run(&inputs, &RunOptions::default()).unwrap();
            let tensors = dump::output_tensors(&values).unwrap();
            tensors.iter().map(|tensor| tensor.to_bytes().unwrap()).collect::<Vec<_>>()
        });
        assert_ne!(outputs[0], outputs[1], "{}", files.path);
        ran += 1;
    }
    assert!(2 * ran * EVERY > tasks.len(), "only {ran} were small enough");
}

#[test]
fn it_is_unpacked_by_one_command_and_evaluated_by_the_next() {
    let work = TempDir::new().unwrap();
    let passnet = |arguments: &[&str]| {
        let mut command = Command::cargo_bin("passnet").unwrap();
        let output = command.current_dir(work.path()).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    };
    let file = path();
    let (code, text) = passnet(&["dataset", "export", file.to_str().unwrap(), "--out", "set"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("and 447 tasks written"), "{text}");
    let list = work.path().join("set/sample_lists/fusible_eval.txt");
    let list = std::fs::read_to_string(list).unwrap();
    assert_eq!(list.lines().count(), KINDS[0].1);
    // The task whose largest graph is the smallest.
    let (store, tasks) = set();
    let size = |task: &StoredTask| {
        let sizes = task.graphs.iter().map(|graph| {
            let files = store.load(&record(&store, &graph.path)).unwrap();
            let folder = read_folder(&files).unwrap();
            folder.metas.iter().map(|meta| meta.elements()).sum::<i64>()
        });
        sizes.max()
    };
    let fusible = tasks.iter().filter(|task| task.kind == PieceKind::Fusible);
    let smallest = fusible.min_by_key(|task| size(task)).unwrap();
    let folder = list.lines().find(|line| line.ends_with(&smallest.id)).unwrap();
    let folder = format!("set/{folder}");
    let quick = ["--compiler", "eager", "--warmup", "1", "--trials", "10", "--seconds", "0"];
    let (code, text) = passnet(&[&["bench", folder.as_str()], &quick[..]].concat());
    assert_eq!(code, Some(0), "{text}");
}
