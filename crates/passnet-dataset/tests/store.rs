//! The store: what goes in comes out, whatever happens in between.

use passnet_dataset::store::{
    Description, Digests, Entry, EntryChange, Kind, Provenance, Store, StoreErrorKind, Variant,
};
use passnet_graph::{FileName, GraphFiles};
use passnet_work::parallel::default_workers;
use passnet_work::progress::Silent;
use proptest::prelude::*;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn place() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("corpus.store");
    (dir, path)
}

fn writer(path: &Path) -> Store {
    Store::open_for_writing(path, default_workers()).unwrap()
}

/// A small graph, like others but not equal to them.
fn entry(number: usize) -> Entry {
    let model = format!(
        "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, in_0, in_1):\n        \
         tmp_0 = torch.nn.functional.linear(in_0, in_1, None)\n        tmp_1 = tmp_0.view(1, {number}, 64)\n        \
         return (tmp_1,)\n"
    );
    let meta: String = (0..6)
        .map(|tensor| {
            format!(
                "class Program_weight_tensor_meta_{tensor}:\n    name = \"in_{tensor}\"\n    \
                 shape = [{number}, 64]\n    dtype = \"torch.float32\"\n    device = \"cuda:0\"\n    \
                 mean = 0.0{number}\n    std = 1.{number}\n    data = None\n\n"
            )
        })
        .collect();
    Entry {
        graph: GraphFiles::new(format!("family/graph{number:06}"))
            .with(FileName::Model, model)
            .with(FileName::WeightMeta, meta)
            .with(FileName::InputMeta, "")
            .with(FileName::GraphNet, "{\"framework\": \"torch\"}"),
        description: Description {
            kind: Kind::Typical,
            digests: Digests {
                structure: "ab".repeat(32),
                literals: format!("{number:064x}"),
                full: "not hex".into(),
            },
            op_count: 2,
            provenance: vec![Provenance {
                parent: format!("parent{}", number % 3),
                ranges: vec![0..5, 7..9],
            }],
            variant: Some(Variant { dtype: "float16".into(), shape_index: 3 }),
        },
    }
}

fn entries(numbers: std::ops::Range<usize>) -> Vec<Entry> {
    numbers.map(entry).collect()
}

/// Everything in the store, in its order.
fn dump(store: &Store) -> Vec<Entry> {
    store
        .entries()
        .map(|record| {
            let record = record.unwrap();
            let graph = store.load(&record).unwrap();
            Entry { graph, description: record.description }
        })
        .collect()
}

fn assert_sound(store: &Store) {
    assert_eq!(store.check(&Silent).unwrap(), Vec::<String>::new());
}

#[test]
fn what_goes_in_comes_out_in_path_order() {
    let (_dir, path) = place();
    let mut all = entries(0..600);
    let mut store = writer(&path);
    for batch in all.rchunks(97) {
        assert!(store.insert(batch).unwrap().iter().all(|outcome| *outcome == EntryChange::Added));
    }
    drop(store);
    let store = Store::open(&path).unwrap();
    all.sort_by(|a, b| a.graph.path.cmp(&b.graph.path));
    assert_eq!(store.len().unwrap(), 600);
    assert_eq!(dump(&store), all);
    let record = store.get("family/graph000042").unwrap().unwrap();
    assert_eq!(
        store.load_file(&record, FileName::Model).unwrap().as_deref(),
        all[42].graph.get(FileName::Model)
    );
    assert_eq!(store.load_file(&record, FileName::GraphHash).unwrap(), None);
    assert_eq!(store.get("family/none").unwrap(), None);
    assert_sound(&store);
}

#[test]
fn a_store_that_was_closed_is_one_file() {
    let (dir, path) = place();
    writer(&path).insert(&entries(0..10)).unwrap();
    dump(&Store::open(&path).unwrap());
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["corpus.store", "corpus.store.lock"]);
}

#[test]
fn the_same_again_changes_nothing_and_other_files_replace() {
    let (_dir, path) = place();
    let mut store = writer(&path);
    store.insert(&entries(0..3)).unwrap();
    let mut changed = entries(0..4);
    changed[1].graph.files.insert(FileName::InputMeta, b"new".to_vec());
    changed[2].description.op_count = 9;
    assert_eq!(
        store.insert(&changed).unwrap(),
        [EntryChange::Unchanged, EntryChange::Replaced, EntryChange::Replaced, EntryChange::Added]
    );
    assert_eq!(dump(&store), changed);
    assert_sound(&store);
}

#[test]
fn equal_files_are_stored_once() {
    let (_dir, path) = place();
    // Noise, so that compression cannot hide copies.
    let noise: Vec<u8> =
        (0..100_000u32).map(|n| blake3::hash(&n.to_le_bytes()).as_bytes()[0]).collect();
    let shared: Vec<_> = entries(0..50)
        .into_iter()
        .map(|mut entry| {
            entry.graph.files.insert(FileName::GraphNet, noise.clone());
            entry
        })
        .collect();
    let mut store = writer(&path);
    store.insert(&shared).unwrap();
    assert!(store.size().unwrap() < 200_000, "{} bytes", store.size().unwrap());
    assert_eq!(dump(&store), shared);
}

#[test]
fn dictionaries_make_small_graphs_small_and_compaction_smaller_still() {
    let (_dir, path) = place();
    let all = entries(0..4000);
    let raw: usize = all.iter().map(|entry| entry.graph.size()).sum();
    let mut store = writer(&path);
    for batch in all.chunks(250) {
        store.insert(batch).unwrap();
    }
    let before = store.size().unwrap();
    assert!(before < raw as u64 / 3, "{before} of {raw} bytes");

    let gone: Vec<_> = (0..2000).map(|n| format!("family/graph{n:06}")).collect();
    assert_eq!(store.remove(gone.iter().map(String::as_str)).unwrap(), 2000);
    let compacted = store.compact(&Silent).unwrap();
    assert_eq!(compacted.files_dropped, 4000);
    assert!(compacted.bytes_after < before * 6 / 10, "{compacted:?}, {before} before");
    assert_eq!(dump(&store), all[2000..]);
    assert_sound(&store);
    // Dictionaries made after a compaction must not be taken for older ones.
    store.insert(&all[..2000]).unwrap();
    assert_eq!(dump(&store), all);
    assert_sound(&store);
}

#[test]
fn readers_see_committed_batches_while_a_writer_works() {
    let (_dir, path) = place();
    let mut store = writer(&path);
    store.insert(&entries(0..5)).unwrap();
    let reader = Store::open(&path).unwrap();
    assert_eq!(reader.len().unwrap(), 5);
    store.insert(&entries(5..9)).unwrap();
    assert_eq!(dump(&reader), entries(0..9));
    drop(store);
    assert_eq!(dump(&reader), entries(0..9));
}

#[test]
fn a_reader_cannot_write() {
    let (_dir, path) = place();
    drop(writer(&path));
    let error = Store::open(&path).unwrap().insert(&entries(0..1)).unwrap_err();
    assert!(matches!(error.kind, StoreErrorKind::ReadOnly), "{error}");
}

#[test]
fn bad_entries_are_refused_before_anything_is_written() {
    let (_dir, path) = place();
    let mut store = writer(&path);
    let mut climbing = entry(1);
    climbing.graph.path = "a/../b".into();
    let mut hollow = entry(1);
    hollow.description.provenance[0].ranges.push(4..4);
    for bad in [climbing, hollow] {
        let error = store.insert(&[entry(0), bad]).unwrap_err();
        assert!(matches!(error.kind, StoreErrorKind::Refused(_)), "{error}");
    }
    assert!(store.is_empty().unwrap());
}

mod opening {
    use super::*;

    fn error(path: &Path) -> String {
        let reading = Store::open(path).unwrap_err().to_string();
        reading.replace(&path.display().to_string(), "STORE")
    }

    #[test]
    fn nothing_there() {
        let (_dir, path) = place();
        assert_eq!(
            error(&path),
            "STORE: there is no store here (hint: `passnet dataset import` makes one)"
        );
    }

    #[test]
    fn a_newer_format() {
        let (_dir, path) = place();
        drop(writer(&path));
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute("UPDATE meta SET value = 7 WHERE key = 'format'", []).unwrap();
        drop(connection);
        let expected =
            "STORE: this store has format 7; this program reads up to 1 (hint: update passnet)";
        assert_eq!(error(&path), expected);
        let writing = Store::open_for_writing(&path, default_workers()).unwrap_err();
        assert!(matches!(writing.kind, StoreErrorKind::NewerFormat { found: 7, supported: 1 }));
    }

    #[test]
    fn other_files() {
        let (_dir, path) = place();
        fs::write(
            &path,
            "a text that is long enough to be looked at as a database header".repeat(9),
        )
        .unwrap();
        assert_eq!(error(&path), "STORE: this file is not a graph store");
        fs::remove_file(&path).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute("CREATE TABLE t (a)", []).unwrap();
        assert_eq!(error(&path), "STORE: this file is not a graph store");
        let before = fs::read(&path).unwrap();
        assert!(Store::open_for_writing(&path, default_workers()).is_err());
        assert_eq!(fs::read(&path).unwrap(), before, "a foreign file must not be changed");
    }
}

#[test]
fn a_full_disk_is_a_clear_error_and_loses_nothing() {
    let (_dir, path) = place();
    let mut store = writer(&path);
    store.insert(&entries(0..100)).unwrap();
    store.limit_size(store.size().unwrap() + 40_000).unwrap();
    let mut done = 100;
    let error = loop {
        match store.insert(&entries(done..done + 50)) {
            Ok(_) => done += 50,
            Err(error) => break error,
        }
        assert!(done < 10_000, "the limit does not hold");
    };
    assert!(matches!(error.kind, StoreErrorKind::Full), "{error}");
    assert!(error.to_string().contains("no space left"), "{error}");
    assert_eq!(dump(&store), entries(0..done));
    // With room again, the same handle goes on.
    store.limit_size(1 << 30).unwrap();
    store.insert(&entries(done..done + 50)).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(dump(&store), entries(0..done + 50));
    assert_sound(&store);
}

/// Runs this very test again in a process of its own, as the writer that is to be killed.
fn spawn_role(test: &str, store: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("PASSNET_TEST_STORE", store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_writer_loses_at_most_the_batch_in_flight() {
    const BATCH: usize = 40;
    if let Some(path) = std::env::var_os("PASSNET_TEST_STORE") {
        let mut store = writer(Path::new(&path));
        let mut done = usize::try_from(store.len().unwrap()).unwrap();
        loop {
            store.insert(&entries(done..done + BATCH)).unwrap();
            done += BATCH;
            writeln!(std::io::stdout(), "committed {done}").unwrap();
        }
    }
    let (_dir, path) = place();
    let mut expected = 0;
    // The second round crosses the first training of dictionaries.
    for batches in [1, 9, 14] {
        let mut child = spawn_role("a_killed_writer_loses_at_most_the_batch_in_flight", &path);
        // The test harness writes to the same pipe, not always ending its lines.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut committed = lines
            .by_ref()
            .filter_map(|line| line.rsplit_once("committed ")?.1.parse::<usize>().ok());
        let last = committed.nth(batches - 1).unwrap();
        assert_eq!(last, expected + batches * BATCH);

        // It holds the store, so nobody else gets it, and nobody waits for it.
        let refused = Store::open_for_writing(&path, default_workers()).unwrap_err();
        assert!(matches!(refused.kind, StoreErrorKind::InUse), "{refused}");
        assert!(refused.to_string().contains("in use by another process"), "{refused}");

        child.kill().unwrap();
        child.wait().unwrap();
        let store = writer(&path);
        let survived = usize::try_from(store.len().unwrap()).unwrap();
        assert!(survived >= last && survived.is_multiple_of(BATCH), "{survived} after {last}");
        assert_eq!(dump(&store), entries(0..survived));
        assert_sound(&store);
        expected = survived;
    }
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let files = prop::collection::btree_map(
        prop::sample::select(FileName::ALL.to_vec()),
        prop::collection::vec(any::<u8>(), 0..300),
        0..7,
    );
    let digest = prop_oneof!["[0-9a-f]{0,9}", "[0-9A-F]{4}", "\\PC{0,9}"];
    let provenance = prop::collection::vec(
        ("\\PC{0,9}", prop::collection::vec((any::<u16>(), 1..9u32), 0..4)),
        0..3,
    );
    let variant = prop::option::of(("\\PC{0,9}", any::<u32>()));
    let path = prop::collection::vec("[a-zA-Z0-9é_.\\- ]{1,9}x", 1..4);
    let kind = prop::sample::select(Kind::ALL.to_vec());
    (path, files, kind, [digest.clone(), digest.clone(), digest], any::<u32>(), provenance, variant)
        .prop_map(|(path, files, kind, digests, op_count, provenance, variant)| {
            let [structure, literals, full] = digests;
            Entry {
                graph: GraphFiles { path: path.join("/"), files },
                description: Description {
                    kind,
                    digests: Digests { structure, literals, full },
                    op_count,
                    provenance: provenance
                        .into_iter()
                        .map(|(parent, ranges)| Provenance {
                            parent,
                            ranges: ranges
                                .into_iter()
                                .map(|(start, length)| u32::from(start)..u32::from(start) + length)
                                .collect(),
                        })
                        .collect(),
                    variant: variant.map(|(dtype, shape_index)| Variant { dtype, shape_index }),
                },
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_entry_comes_back_as_it_was(all in prop::collection::vec(any_entry(), 1..8)) {
        let (_dir, path) = place();
        let mut store = writer(&path);
        store.insert(&all).unwrap();
        for (index, entry) in all.iter().enumerate() {
            // A later entry with the same path replaces an earlier one.
            let last = all.iter().rposition(|other| other.graph.path == entry.graph.path);
            if last == Some(index) {
                let record = store.get(&entry.graph.path).unwrap().unwrap();
                prop_assert_eq!(&store.load(&record).unwrap(), &entry.graph);
                prop_assert_eq!(&record.description, &entry.description);
            }
        }
        assert_sound(&store);
    }

    /// Damage gives errors, never a panic, and never wrong files.
    #[test]
    fn damage_is_noticed(spots in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let (_dir, path) = place();
        let all = entries(0..60);
        writer(&path).insert(&all).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        for (index, byte) in spots {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(store) = Store::open(&path) {
            for record in store.entries().take(1000).flatten() {
                if let Ok(graph) = store.load(&record) {
                    prop_assert!(
                        all.iter().any(|entry| entry.graph.files == graph.files)
                    );
                }
            }
            let _ = store.check(&Silent);
        }
    }
}

#[test]
fn content_is_what_is_stored_and_not_how_it_came_in() {
    let (dir, path) = place();
    let other = dir.path().join("other.store");
    let (mut one, mut two) = (writer(&path), writer(&other));
    one.insert(&[entry(1), entry(2)]).unwrap();
    two.insert(&[entry(3), entry(2)]).unwrap();
    assert_ne!(one.content().unwrap(), two.content().unwrap());
    two.insert(&[entry(1)]).unwrap();
    let extra = entry(3).graph.path;
    two.remove([extra.as_str()]).unwrap();
    two.compact(&Silent).unwrap();
    assert_eq!(one.content().unwrap(), two.content().unwrap());
    one.set_tasks(&[("a".into(), "{}".into())]).unwrap();
    assert_ne!(one.content().unwrap(), two.content().unwrap());
}

#[test]
fn a_sealed_store_is_one_file_with_its_notes() {
    let (dir, path) = place();
    let mut store = writer(&path);
    store.insert(&[entry(1)]).unwrap();
    store.set_note("origin", "somewhere").unwrap();
    store.set_note("origin", "here").unwrap();
    store.seal().unwrap();
    let read = Store::open(&path).unwrap();
    assert_eq!(read.note("origin").unwrap().as_deref(), Some("here"));
    assert_eq!(read.note("nothing").unwrap(), None);
    assert_eq!(
        read.load(&read.get(&entry(1).graph.path).unwrap().unwrap()).unwrap(),
        entry(1).graph
    );
    let mut files: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.retain(|name| !name.to_string_lossy().ends_with(".lock"));
    assert_eq!(files, ["corpus.store"]);
}
