//! A PassNet checkout goes into a store and comes out again, byte for byte; links that would lead elsewhere do not.

#[path = "common/checkout.rs"]
mod checkout;

use checkout::{DEMO_GRAPH, DEMO_SAMPLE, Written, tree, uid};
use passnet_dataset::checkout::{Checkout, CheckoutReport, import_checkout, is_checkout};
use passnet_dataset::export::folders::export_folders;
use passnet_dataset::export::{ExportError, ExportOptions};
use passnet_dataset::import::ImportOptions;
use passnet_dataset::sample::sides::split_tasks;
use passnet_dataset::sample::tasks::{SplitSide, StoredTask, load, sample};
use passnet_dataset::source::Limits;
use passnet_dataset::store::{FileBody, Kind, Store, StoredFile};
use passnet_work::progress::Silent;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct Place {
    dir: TempDir,
    written: Written,
}

impl Place {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let written = checkout::write(&dir.path().join("checkout"));
        Self { dir, written }
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("checkout")
    }

    fn store(&self) -> Store {
        Store::open_for_writing(&self.dir.path().join("s.pnds"), NonZeroUsize::MIN).unwrap()
    }

    fn import(&self, store: &mut Store) -> CheckoutReport {
        let checkout = Checkout::open(&self.root(), Limits::default()).unwrap();
        let options = ImportOptions { workers: NonZeroUsize::MIN, describe_again: false };
        import_checkout(store, checkout, options, &Silent).unwrap()
    }

    fn export(&self, store: &Store, options: &ExportOptions) -> PathBuf {
        let out = self.dir.path().join("out");
        export_folders(store, &out, "passnet", options, &Silent).unwrap();
        out
    }
}

const ALL: [Kind; 3] = [Kind::SoleOp, Kind::Typical, Kind::Fusible];

fn everything() -> ExportOptions {
    ExportOptions { kinds: ALL.to_vec(), only_tasks: false }
}

fn task<'a>(tasks: &'a [StoredTask], path: &str) -> &'a StoredTask {
    tasks.iter().find(|task| task.path.as_deref() == Some(path)).unwrap()
}

#[test]
fn a_checkout_comes_out_as_it_went_in() {
    let place = Place::new();
    assert!(is_checkout(&place.root()));
    let mut store = place.store();
    let report = place.import(&mut store);
    assert_eq!((report.failed, report.graphs.failed), (0, 0), "{report:?}");
    assert_eq!((report.graphs.added, report.samples, report.groups), (6, 5, 0));
    assert_eq!((report.evaluation, report.training), (1, 2));
    assert_eq!(report.left_out, ["README.md", "entry_scripts", "pass_bench"]);
    let out = place.export(&store, &everything());
    assert_eq!(tree(&out), tree(&place.root()));

    // Again: nothing is new, and an export over an export changes nothing.
    let again = place.import(&mut store);
    assert_eq!((again.graphs.added, again.graphs.skipped), (0, 6));
    assert_eq!((again.files_added, again.files_replaced), (0, 0));
    place.export(&store, &everything());
    assert_eq!(tree(&out), tree(&place.root()));
    assert_eq!(store.check(&Silent).unwrap(), [""; 0]);
}

#[test]
fn kinds_uids_and_sides_are_those_that_were_published() {
    let place = Place::new();
    let mut store = place.store();
    place.import(&mut store);
    let kinds: Vec<(Kind, usize)> =
        ALL.map(|kind| (kind, store.of_kind(kind).unwrap().len())).to_vec();
    assert_eq!(kinds, [(Kind::SoleOp, 1), (Kind::Typical, 1), (Kind::Fusible, 4)]);

    let tasks = load(&store).unwrap();
    let samples = &place.written.samples;
    let of = |name: &str| task(&tasks, &samples[name]);
    let uids = |task: &StoredTask| -> Vec<String> {
        task.graphs.iter().map(|graph| graph.uid.clone()).collect()
    };
    assert_eq!(uids(of("v2_fusible")), [uid(0x2b), uid(0x7b)]);
    // The demo has no uids of its own; its graph list knows them.
    assert_eq!(uids(of("demo")), [uid(0x55)]);
    assert_eq!(of("demo").graphs[0].path, DEMO_GRAPH);
    assert_eq!(of("v2_fusible").side, Some(SplitSide::Evaluation));
    assert_eq!(of("v2_typical").side, Some(SplitSide::Training));
    assert_eq!(of("v2_sole_op").side, Some(SplitSide::Training));
    assert_eq!(of("demo").side, None);
    assert_eq!(of("v2_fusible").ops, ["mul", "relu"]);

    // Tasks of our own stand beside them, and a published split is not made again.
    let made = sample(&mut store, &ALL, NonZeroUsize::MIN, &Silent).unwrap();
    assert_eq!(load(&store).unwrap().len(), 5 + made.len());
    let error = split_tasks(&mut store, 1).unwrap_err().to_string();
    assert!(error.contains("split by published lists already"), "{error}");
}

#[test]
fn one_kind_can_be_exported_alone() {
    let place = Place::new();
    let mut store = place.store();
    place.import(&mut store);
    let out = place.export(&store, &ExportOptions { kinds: vec![Kind::Typical], only_tasks: true });
    let expected: Vec<String> = tree(&place.root())
        .into_keys()
        .filter(|path| path.contains("typical") || path.contains("empty"))
        .collect();
    assert_eq!(tree(&out).into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn what_changed_is_taken_over() {
    let place = Place::new();
    let mut store = place.store();
    place.import(&mut store);
    let root = place.root();
    fs::write(root.join(DEMO_SAMPLE).join("pass_dir/FuseMulRelu.py"), "# better\n").unwrap();
    fs::write(root.join(DEMO_GRAPH).join("graph_hash.txt"), "1").unwrap();
    let report = place.import(&mut store);
    assert_eq!((report.files_replaced, report.graphs.replaced), (1, 1));
    let out = place.export(&store, &everything());
    assert_eq!(tree(&out), tree(&root));
}

#[test]
fn an_unreadable_graph_is_reported_and_kept() {
    let place = Place::new();
    let root = place.root();
    let model = root.join(DEMO_GRAPH).join("model.py");
    let good = fs::read(&model).unwrap();
    fs::write(&model, "this is no Python (").unwrap();
    let mut store = place.store();
    let report = place.import(&mut store);
    assert_eq!((report.graphs.failed, report.samples, report.incomplete), (1, 4, 1));
    let problem = report.problems[0].to_string();
    assert!(
        problem.starts_with(&format!("{DEMO_SAMPLE}/graph_list.txt:1:1: `{DEMO_GRAPH}` could")),
        "{problem}"
    );
    let out = place.export(&store, &everything());
    assert_eq!(tree(&out), tree(&root));

    // Mended, it is a graph like the others.
    fs::write(&model, good).unwrap();
    let report = place.import(&mut store);
    assert_eq!((report.failed, report.graphs.added, report.samples), (0, 1, 5));
    let out = place.export(&store, &everything());
    assert_eq!(tree(&out), tree(&root));
}

#[test]
fn a_download_without_links_is_a_checkout_too() {
    let place = Place::new();
    let root = place.root();
    for sample in place.written.samples.values() {
        for link in ["entry.sh", "graphs", "pass_bench"] {
            fs::remove_file(root.join(sample).join(link)).unwrap();
        }
    }
    let mut store = place.store();
    let report = place.import(&mut store);
    assert_eq!((report.failed, report.samples), (0, 5), "{:?}", report.problems);
    let out = place.export(&store, &everything());
    assert_eq!(tree(&out), tree(&root));
}

#[test]
fn groups_without_samples_become_tasks() {
    let place = Place::new();
    fs::remove_dir_all(place.root().join("samples")).unwrap();
    let mut store = place.store();
    let report = place.import(&mut store);
    assert_eq!((report.samples, report.groups, report.failed), (0, 4, 0));
    let out = place.export(&store, &everything());
    let sample = out.join(
        place.written.samples["v2_fusible"]
            .replace("hf_subgraphs_v2/fusible_subgraphs", "passnet/fusible"),
    );
    let list = fs::read_to_string(sample.join("graph_list.txt")).unwrap();
    assert!(list.starts_with("graphs/hf_subgraphs_v2/fusible_subgraphs/float32/9/"), "{list}");
    assert!(sample.join(list.lines().next().unwrap()).join("model.py").is_file());
}

/// Imports the checkout after `change` and returns what is said about the demo sample.
fn said_after(change: impl FnOnce(&Path, &Path)) -> (CheckoutReport, Vec<String>, Vec<StoredTask>) {
    let place = Place::new();
    let root = place.root();
    change(&root, &root.join(DEMO_SAMPLE));
    let mut store = place.store();
    let report = place.import(&mut store);
    let said = report.problems.iter().map(ToString::to_string).collect();
    (report, said, load(&store).unwrap())
}

#[test]
fn links_that_lead_elsewhere_are_refused() {
    let relink = |target: &'static str| {
        said_after(move |_, sample| {
            fs::remove_file(sample.join("graphs")).unwrap();
            symlink(target, sample.join("graphs")).unwrap();
        })
    };
    for (target, message) in [
        ("/etc", "this link leads to an absolute path, `/etc`"),
        ("../../../../..", "this link leads out of the checkout"),
        ("graphs", "this link leads in a circle"),
        ("../../../..", "this link leads to ``, which is no folder of graphs"),
        ("..", "this link leads to `samples/fusible_subgraphs/net`, which is no folder of graphs"),
        ("nothing", "this link leads nowhere: `nothing`"),
        ("graph_list.txt", "which is no folder of graphs"),
    ] {
        let (report, said, tasks) = relink(target);
        assert_eq!((report.failed, report.samples, tasks.len()), (1, 4, 4), "{target}: {said:?}");
        assert!(said[0].starts_with(&format!("{DEMO_SAMPLE}/graphs: ")), "{said:?}");
        assert!(said[0].contains(message) && said[0].contains("(hint: "), "{said:?}");
    }
    // Another link of a sample costs that link alone.
    let (report, said, _) =
        said_after(|_, sample| symlink("/etc/passwd", sample.join("notes")).unwrap());
    assert_eq!((report.failed, report.samples), (1, 5));
    assert!(
        said[0].starts_with(&format!("{DEMO_SAMPLE}/notes: this link leads to an absolute")),
        "{said:?}"
    );
    // A graph is made of files.
    let (report, said, _) = said_after(|root, _| {
        let meta = root.join(DEMO_GRAPH).join("weight_meta.py");
        fs::rename(&meta, root.join("meta.py")).unwrap();
        symlink("../../../../meta.py", meta).unwrap();
    });
    assert_eq!(report.samples, 4);
    assert!(
        said.iter().any(|said| said.contains("weight_meta.py: a file of a graph is a link")),
        "{said:?}"
    );
}

#[test]
fn a_folder_of_graphs_elsewhere_in_the_checkout_is_read_once() {
    let (report, said, tasks) = said_after(|root, sample| {
        fs::create_dir_all(root.join("mine/fusible_subgraphs")).unwrap();
        fs::rename(root.join(DEMO_GRAPH), root.join("mine/fusible_subgraphs/net")).unwrap();
        fs::remove_file(sample.join("graphs")).unwrap();
        symlink("../../../../mine", sample.join("graphs")).unwrap();
        fs::write(sample.join("graph_list.txt"), "graphs/fusible_subgraphs/net\n").unwrap();
    });
    assert_eq!((report.failed, report.samples), (0, 5), "{said:?}");
    assert_eq!(task(&tasks, DEMO_SAMPLE).graphs[0].path, "mine/fusible_subgraphs/net");
}

#[test]
fn lists_that_do_not_hold_are_named_with_their_lines() {
    let write = |name: &'static str, content: String| {
        said_after(move |root, _| fs::write(root.join(name), content).unwrap()).1
    };
    let said = write("graph_lists/hf_typical_subgraphs_v2.txt", "abc\tx\n".into());
    assert!(
        said[0].starts_with("graph_lists/hf_typical_subgraphs_v2.txt:1:1: `abc`: a uid has 32"),
        "{said:?}"
    );
    let train = format!("sample_path\n{DEMO_SAMPLE}\n");
    let (_, said, tasks) = said_after(|root, _| {
        fs::write(root.join("sample_lists/train/x.csv"), &train).unwrap();
        fs::write(root.join("sample_lists/eval/x.txt"), DEMO_SAMPLE).unwrap();
    });
    assert!(said[0].starts_with("sample_lists/train/x.csv:2:1: "), "{said:?}");
    assert!(said[0].contains("is listed for training and for evaluation"), "{said:?}");
    assert_eq!(task(&tasks, DEMO_SAMPLE).side, Some(SplitSide::Evaluation));

    let list = format!("{DEMO_SAMPLE}/graph_list.txt");
    let said =
        said_after(|_, sample| fs::write(sample.join("graph_list.txt"), "../secret\n").unwrap()).1;
    assert!(
        said[0].starts_with(&format!("{list}:1:1: `../secret` leads out of the sample")),
        "{said:?}"
    );
    let said =
        said_after(|_, sample| fs::write(sample.join("graph_list.txt"), "graphs/x\n").unwrap()).1;
    assert!(
        said[0].starts_with(&format!("{list}:1:1: `graphs/x` is no graph of this checkout")),
        "{said:?}"
    );
    let said = said_after(|_, sample| {
        fs::write(sample.join("sample_uids.txt"), format!("{},{}", uid(1), uid(2))).unwrap();
    });
    assert!(said.1[0].contains("sample_uids.txt: 2 uids for 1 graphs"), "{:?}", said.1);
}

#[test]
fn a_store_that_would_write_elsewhere_is_refused() {
    let link = |path: &str, target: &str| StoredFile {
        path: path.into(),
        body: FileBody::Link(target.into()),
    };
    let file = |path: &str| StoredFile { path: path.into(), body: FileBody::Text(b"x".to_vec()) };
    for (files, message) in [
        (vec![link("a", "/etc")], "leads to an absolute path"),
        (vec![link("a/b", "../../..")], "leads out of the checkout"),
        (vec![link("a", "b"), file("a/c")], "lies behind the link `a`"),
    ] {
        let (dir, out) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut store =
            Store::open_for_writing(&dir.path().join("s.pnds"), NonZeroUsize::MIN).unwrap();
        store.put_files(&files).unwrap();
        let error = export_folders(&store, out.path(), "set", &everything(), &Silent).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(store.put_files(&[file("../x")]).is_err());
    }
}

#[test]
fn an_export_of_nothing_is_an_error() {
    let dir = TempDir::new().unwrap();
    let store = Store::open_for_writing(&dir.path().join("s.pnds"), NonZeroUsize::MIN).unwrap();
    let out = dir.path().join("out");
    let error = export_folders(&store, &out, "set", &everything(), &Silent).unwrap_err();
    assert!(matches!(error, ExportError::Nothing(_)), "{error}");
    assert!(!out.exists());
}
