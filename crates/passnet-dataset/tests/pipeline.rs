//! The pipeline from whole models to split tasks: the same content whatever the number of workers and however often
//! it was interrupted; pieces, variants and tasks are what their documentation says.

mod common;

use common::{corpus, model, write_graph};
use passnet_dataset::content::ContentKey;
use passnet_dataset::decompose::kernels::DecomposeError;
use passnet_dataset::decompose::run::{Method, decompose};
use passnet_dataset::decompose::typical::TypicalOptions;
use passnet_dataset::dedup::{DedupOptions, Level, dedup};
use passnet_dataset::describe::describe;
use passnet_dataset::estimate::Estimate;
use passnet_dataset::export::ExportOptions;
use passnet_dataset::export::folders::export_folders;
use passnet_dataset::import::{ImportOptions, import};
use passnet_dataset::pipeline::{BuildOptions, Step, StepResult, build};
use passnet_dataset::sample::buckets::PieceKind;
use passnet_dataset::sample::least::LeastGraphs;
use passnet_dataset::sample::sides::SplitOptions;
use passnet_dataset::sample::withhold::{Withheld, difference};
use passnet_dataset::sample::{sides, tasks};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::stats::stats;
use passnet_dataset::store::{Kind, Store, StoreError, StoreErrorKind};
use passnet_dataset::vary::run::{VaryOptions, vary};
use passnet_dataset::verify::{Constraint, verify};
use passnet_graph::FileName;
use passnet_graph::read::read_folder;
use passnet_work::progress::Silent;
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use tempfile::TempDir;

fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn options(count: usize) -> BuildOptions<'static> {
    BuildOptions {
        workers: workers(count),
        methods: vec![Method::Typical(TypicalOptions::default()), Method::SoleOp],
        level: Level::Full,
        vary: VaryOptions::default(),
        measure: None,
        evaluation: 2,
    }
}

fn run(store: &mut Store, source: &Path, count: usize) -> Result<Vec<Step>, DecomposeError> {
    let source = source::open(source, Limits::default()).unwrap();
    build(store, source, &options(count), &Silent, |_| {})
}

/// Everything a store holds that others see.
fn content(path: &Path) -> (BTreeMap<String, ContentKey>, Vec<(String, String)>) {
    let store = Store::open(path).unwrap();
    let entries = store.entries().map(|record| record.unwrap());
    (entries.map(|record| (record.path, record.content)).collect(), store.tasks().unwrap())
}

#[test]
fn a_build_is_the_same_for_any_number_of_workers_and_when_run_twice() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let (one, three) = (out.path().join("one"), out.path().join("three"));
    for (path, count) in [(&one, 1), (&three, 3)] {
        let mut store = Store::open_for_writing(path, workers(count)).unwrap();
        run(&mut store, source.path(), count).unwrap();
    }
    let first = content(&one);
    assert_eq!(first, content(&three));
    let kinds = |kind: Kind| Store::open(&one).unwrap().of_kind(kind).unwrap().len();
    assert_eq!(kinds(Kind::Full), 9, "the twin collapses");
    assert!(kinds(Kind::Typical) > 9 && kinds(Kind::SoleOp) > 9);

    let mut store = Store::open_for_writing(&one, workers(2)).unwrap();
    let steps = run(&mut store, source.path(), 2).unwrap();
    drop(store);
    assert_eq!(content(&one), first);
    let estimate = Estimate::of_models(10, &[Kind::Typical, Kind::SoleOp], workers(2));
    assert_eq!(estimate.steps.len(), steps.len(), "time is expected of every step");
    for step in &steps {
        match &step.result {
            StepResult::Decompose(report) => {
                assert_eq!(report.sweep.done_before, report.sweep.graphs, "{}", step.name);
            }
            StepResult::Vary(report) => assert_eq!(report.done_before, report.graphs),
            _ => {}
        }
    }
}

/// A build that goes on after a kill finds variants where one in one go has none yet: they must not collapse.
#[test]
fn originals_are_compared_without_the_variants_beside_them() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let mut store = Store::open_for_writing(&out.path().join("store"), workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    let mut looked_at = |originals_only| {
        let options = DedupOptions {
            kinds: vec![Kind::Typical],
            originals_only,
            dry_run: true,
            ..DedupOptions::default()
        };
        dedup(&mut store, &options, &Silent).unwrap().looked_at
    };
    let (all, originals) = (looked_at(false), looked_at(true));
    assert!(0 < originals && originals < all, "{originals} of {all}");
}

#[test]
fn a_full_disk_stops_the_build_and_the_next_run_completes_it() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let (whole, broken) = (out.path().join("whole"), out.path().join("broken"));
    let mut store = Store::open_for_writing(&whole, workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    drop(store);
    let full_size = fs::metadata(&whole).unwrap().len();
    let mut stops = 0;
    for part in 1..8 {
        let mut store = Store::open_for_writing(&broken, workers(2)).unwrap();
        store.limit_size(full_size * part / 8).unwrap();
        match run(&mut store, source.path(), 2) {
            Err(DecomposeError::Store(StoreError { kind: StoreErrorKind::Full, .. })) => stops += 1,
            Err(other) => panic!("{other}"),
            Ok(_) => {}
        }
    }
    assert!(stops > 0, "the limit never hit");
    let mut store = Store::open_for_writing(&broken, workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    drop(store);
    assert_eq!(content(&broken), content(&whole));
}

/// A store with the corpus in it.
fn imported(source: &Path, path: &Path) -> Store {
    let mut store = Store::open_for_writing(path, workers(2)).unwrap();
    let source = source::open(source, Limits::default()).unwrap();
    let report = import(&mut store, source, describe, ImportOptions::default(), &Silent).unwrap();
    assert_eq!(report.diagnostics, []);
    store
}

#[test]
fn pieces_carry_types_and_places_and_equal_ones_collapse() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let mut store = imported(source.path(), &out.path().join("store"));
    let report = decompose(&mut store, &Method::SoleOp, None, workers(2), &Silent).unwrap();
    assert_eq!(report.sweep.refused, 0, "{:?}", report.sweep.reasons);
    // Blocks of one model are alike: all but the first are repeats.
    let ops: u64 = [2, 3, 4].iter().map(|depth| 3 * 7 * depth).sum::<u64>() + 7 * 2;
    assert_eq!(report.sweep.made + report.sweep.repeats, ops);

    let path = "sole_op_subgraphs/float32/samples/zoo/net_2_8/_decomposed/net_2_8_start1_end2_1";
    let record = store.get(path).unwrap().unwrap();
    let [place] = record.description.provenance.as_slice() else { panic!("one model") };
    assert_eq!(
        (place.parent.as_str(), place.ranges.as_slice()),
        ("samples/zoo/net_2_8", &[1..2, 8..9][..])
    );
    let files = store.load(&record).unwrap();
    let text = |name| String::from_utf8(files.get(name).unwrap().to_vec()).unwrap();
    assert!(text(FileName::Model).contains("torch._C._nn.linear(in_0, w_0, w_1)"));
    assert!(text(FileName::WeightMeta).contains("shape = [1, 6, 8]"));
    assert_eq!(text(FileName::SubgraphSources), "{\"samples/zoo/net_2_8\":[[1,2],[8,9]]}\n");

    let options = DedupOptions { kinds: vec![Kind::SoleOp], ..DedupOptions::default() };
    let dry = DedupOptions { dry_run: true, ..options.clone() };
    let planned = dedup(&mut store, &dry, &Silent).unwrap();
    let done = dedup(&mut store, &options, &Silent).unwrap();
    assert_eq!(planned, done);
    let collapse = done.collapses.iter().find(|collapse| collapse.kept == path).unwrap();
    assert_eq!(collapse.removed.len(), 3, "depths 3 and 4, and the twin: {collapse:?}");
    let kept = store.get(path).unwrap().unwrap().description.provenance;
    assert_eq!(kept.len(), 4);
    assert_eq!(kept[0].parent, "samples/zoo/net_2_8");
    assert_eq!(dedup(&mut store, &options, &Silent).unwrap().removed, 0);
}

#[test]
fn every_graph_of_a_build_meets_the_constraints_and_a_bad_one_does_not() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let path = out.path().join("store");
    let mut store = Store::open_for_writing(&path, workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    let mut found = Vec::new();
    let report = verify(&store, &Kind::ALL, None, workers(2), &Silent, |record, violations| {
        found.extend(violations.iter().map(|v| format!("{}: {}", record.path, v.reason)));
        Ok(())
    })
    .unwrap();
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(report.sound, store.len().unwrap());

    let bad = TempDir::new().unwrap();
    let (text, metas) = model(2, 6, 8);
    write_graph(
        bad.path(),
        "shapes",
        &text.replace("view(1, 6, 2, 4)", "view(1, 6, 2, 5)"),
        &metas,
    );
    write_graph(bad.path(), "ops", &text.replace("functional.gelu(", "functional.gelo("), &metas);
    let store = imported(bad.path(), &out.path().join("bad"));
    let report = verify(&store, &Kind::ALL, None, workers(1), &Silent, |_, _| Ok(())).unwrap();
    assert_eq!(report.sound, 0);
    assert_eq!(report.violations.get(&Constraint::Runnable), Some(&2));
    assert_eq!(report.violations.get(&Constraint::Analysable), Some(&1));
    assert_eq!(report.violations.get(&Constraint::Serialisable), None);
}

#[test]
fn variants_follow_the_changed_sizes_and_have_one_dtype() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let path = out.path().join("store");
    let mut store = Store::open_for_writing(&path, workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    let read = |path: &str, name| {
        let record = store.get(path).unwrap().unwrap_or_else(|| panic!("no `{path}`"));
        String::from_utf8(store.load_file(&record, name).unwrap().unwrap()).unwrap()
    };
    let typical: Vec<String> =
        store.of_kind(Kind::Typical).unwrap().into_iter().map(|record| record.path).collect();
    // Batch and tokens vary: (1,16) … (16,4096); some piece reshapes, and its literals follow.
    let models: Vec<String> = typical
        .iter()
        .filter(|p| p.contains("/float32/4/"))
        .map(|p| read(p, FileName::Model))
        .collect();
    assert!(models.iter().any(|model| model.contains(".view(4, 256, 2,")), "{models:?}");
    assert!(models.iter().all(|model| !model.contains("(1, 6, ")));

    let half: Vec<&String> =
        typical.iter().filter(|p| p.starts_with("typical_subgraphs/float16/9/")).collect();
    assert!(!half.is_empty());
    let metas: String = half.iter().map(|p| read(p, FileName::WeightMeta)).collect();
    // Parameters of a layer norm have the dtype of what it normalises.
    assert!(metas.contains("ln_parameters"));
    for class in metas.split("class ").skip(1) {
        assert!(class.contains("torch.float16"), "{class}");
    }
    let sole = "sole_op_subgraphs/float16/samples/zoo/net_2_8/_decomposed/net_2_8_start1_end2_1";
    assert!(!read(sole, FileName::Model).contains(".to("), "all operands are half already");
}

#[test]
fn tasks_are_written_as_folders_that_find_their_graphs() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let path = out.path().join("store");
    let mut store = Store::open_for_writing(&path, workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    let options = ExportOptions { kinds: vec![Kind::Typical], only_tasks: true };
    let folder = out.path().join("export");
    let done = export_folders(&store, &folder, "tiny", &options, &Silent).unwrap();
    let all = tasks::load(&store).unwrap();
    let typical = all.iter().filter(|task| task.kind.as_str() == "typical");
    assert_eq!(done.tasks, typical.clone().count() as u64);
    for task in typical {
        let (a, b) = (&task.id[..2], &task.id[2..4]);
        let sample = folder.join(format!("samples/tiny/typical/{a}/{b}/{}", task.id));
        let list = fs::read_to_string(sample.join("graph_list.txt")).unwrap();
        assert_eq!(list.lines().count(), task.graphs.len());
        for graph in list.lines() {
            assert!(sample.join(graph).join("model.py").is_file(), "{graph}");
            assert!(sample.join(graph).join("graph_net.json").is_file());
        }
        let uids = fs::read_to_string(sample.join("sample_uids.txt")).unwrap();
        assert!(uids.split(',').all(|uid| uid.len() == 32));
        assert!(sample.join("pass_dir/.ignore").is_file());
    }
    let evaluation = fs::read_to_string(folder.join("sample_lists/typical_eval.txt")).unwrap();
    assert_eq!(evaluation.lines().count(), 2);
    // Writing over it changes nothing and fails nowhere.
    assert_eq!(export_folders(&store, &folder, "tiny", &options, &Silent).unwrap(), done);
}

/// The inputs of a piece may be intermediates of its model, and larger than anything that the model is given.
#[test]
fn no_variant_has_more_elements_than_allowed() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let mut store = imported(source.path(), &out.path().join("store"));
    decompose(&mut store, &Method::SoleOp, None, workers(2), &Silent).unwrap();
    let most = 100;
    let options =
        VaryOptions { kinds: vec![Kind::SoleOp], max_elements: most, ..VaryOptions::default() };
    let report = vary(&mut store, &options, None, workers(2), &Silent).unwrap();
    let refused: Vec<&str> =
        report.reasons.values().map(|reason| reason.example.reason.as_str()).collect();
    assert!(
        refused.iter().any(|reason| reason.ends_with("elements, more than 100")),
        "{refused:?}"
    );
    let mut variants = 0;
    for record in store.of_kind(Kind::SoleOp).unwrap() {
        if record.description.variant == Some(passnet_dataset::layout::original()) {
            continue;
        }
        let folder = read_folder(&store.load(&record).unwrap()).unwrap();
        let elements: i64 = folder.metas.iter().map(|meta| meta.elements()).sum();
        assert!(elements <= most as i64, "{}: {elements}", record.path);
        variants += 1;
    }
    assert!(variants > 0);
}

#[test]
fn stats_count_what_differs() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let store = imported(source.path(), &out.path().join("store"));
    let stats = stats(&store, &[Kind::Full], workers(2), &Silent).unwrap();
    let full = &stats.kinds["full"];
    assert_eq!(full.graphs, 10);
    assert_eq!((full.unique_structure, full.unique_literals, full.unique_full), (3, 9, 9));
    assert_eq!(full.families, BTreeMap::from([("zoo".to_string(), 10)]));
    assert_eq!(full.dtypes, BTreeMap::from([("float32".to_string(), 10)]));
    assert_eq!(stats.ops["layer_norm"].graphs, 10);
    assert_eq!(full.known, 10);
    let pictures = &stats.pictures.kinds["full"];
    // Blocks of seven operations; the sum at the end of a block is one step after its seventh.
    let lengths: Vec<(u64, u64)> = pictures.lengths.iter().map(|(n, c)| (*n, *c)).collect();
    assert_eq!(lengths, [(14, 4), (21, 3), (28, 3)]);
    assert_eq!(pictures.depths, pictures.lengths, "each operation waits for the one before it");
    let alike: Vec<(u64, u64)> = pictures.alike.iter().map(|(n, c)| (*n, *c)).collect();
    assert_eq!(alike, [(3, 2), (4, 1)], "three depths in three widths, and the twin");
    assert_eq!(stats.pictures.operations["gelu"]["zoo"], 10);
}

const TWO_TASKS: SplitOptions =
    SplitOptions { evaluation: 2, sole_op: 0, least_graphs: LeastGraphs::all(1) };

#[test]
fn evaluation_tasks_have_graphs_enough() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let mut store = Store::open_for_writing(&out.path().join("all"), workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    let graphs = |store: &Store| -> Vec<usize> {
        let all = tasks::load(store).unwrap();
        let asked = all.iter().filter(|task| task.side == Some(tasks::SplitSide::Evaluation));
        asked.map(|task| task.graphs.len()).collect()
    };
    let most = graphs(&store).into_iter().max().unwrap();
    let mut asked_for = |least: usize| {
        let least_graphs = LeastGraphs::all(least);
        let options = SplitOptions { evaluation: 99, sole_op: 0, least_graphs };
        sides::split_tasks_without(&mut store, options, &Withheld::default()).unwrap();
        graphs(&store)
    };
    let found = asked_for(most);
    assert!(!found.is_empty() && found.iter().all(|count| *count >= most), "{found:?}");
    assert!(asked_for(most + 1).iter().all(|count| *count > most));
    assert_eq!(asked_for(1_000_000), [0; 0]);
}

#[test]
fn single_operations_are_asked_where_that_is_wanted() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let mut store = Store::open_for_writing(&out.path().join("all"), workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    let mut asked_for = |sole_op: usize| {
        let options = SplitOptions { sole_op, ..TWO_TASKS };
        sides::split_tasks_without(&mut store, options, &Withheld::default()).unwrap();
        let mut all = tasks::load(&store).unwrap();
        all.retain(|task| task.kind == PieceKind::SoleOp);
        all
    };
    let asked = |task: &tasks::StoredTask| task.side == Some(tasks::SplitSide::Evaluation);
    assert!(!asked_for(0).iter().any(asked));
    let tasks = asked_for(3);
    let (chosen, rest): (Vec<_>, Vec<_>) = tasks.into_iter().partition(asked);
    assert_eq!(chosen.len(), 3);
    assert!(chosen.iter().all(|task| task.ops.len() == 1));
    let of_training = rest.iter().filter(|task| task.side == Some(tasks::SplitSide::Training));
    assert!(of_training.count() > 0, "the others stay for training");
}

#[test]
fn no_structure_of_a_withheld_set_is_learned_from() {
    let (source, out) = (corpus(), TempDir::new().unwrap());
    let (path, exam) = (out.path().join("all"), out.path().join("exam"));
    let mut store = Store::open_for_writing(&path, workers(2)).unwrap();
    run(&mut store, source.path(), 2).unwrap();
    drop(store);
    fs::copy(&path, &exam).unwrap();
    let withheld = Withheld::of(&Store::open(&exam).unwrap()).unwrap();
    let training = |store: &Store| {
        let all = tasks::load(store).unwrap();
        all.iter().filter(|task| task.side == Some(tasks::SplitSide::Training)).count()
    };
    let mut store = Store::open_for_writing(&path, workers(2)).unwrap();
    let before = training(&store);
    assert!(before > 0);
    sides::split_tasks_without(&mut store, TWO_TASKS, &Withheld::default()).unwrap();
    assert_eq!(training(&store), before, "nothing is withheld by nothing");
    let found = difference(&store, &withheld).unwrap();
    assert_eq!(found.training.tasks, before);
    assert!(found.withheld.tasks > before && found.training.median > 0, "{found:?}");
    let reports = sides::split_tasks_without(&mut store, TWO_TASKS, &withheld).unwrap();
    assert_eq!(training(&store), 0, "all of it stands in the withheld set");
    assert!(reports.iter().all(|report| report.training == 0));
    let found = difference(&store, &withheld).unwrap();
    assert_eq!(found.training.tasks, 0);
    assert!(!found.never_learned.is_empty());
}
