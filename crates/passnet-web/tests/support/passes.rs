//! Runs of a bundled pass, and its tasks.

use super::{Room, runs};
use passnet_bench::candidate::Rewrites;
use passnet_bench::run::{Event, RunStore};
use passnet_web::tasks::TaskIndex;
use std::path::{Path, PathBuf};

const PASS: &str = "layer_scale_add";

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A bundled task under other names.
pub fn tasks(room: &Room, names: &[&str]) -> TaskIndex {
    fn copy(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap().flatten() {
            let target = to.join(entry.file_name());
            match entry.path() {
                path if path.is_dir() => copy(&path, &target),
                path => drop(std::fs::copy(path, target).unwrap()),
            }
        }
    }
    let folder = room.path("tasks");
    for name in names {
        copy(&repository().join("bench/tasks").join(PASS), &folder.join(name));
    }
    TaskIndex::read(&[folder]).unwrap()
}

/// A run folder: the bundled pass, changed for each task or not, on one graph of each of these tasks.
pub fn pass_run(
    room: &Room,
    name: &str,
    tasks: &[&str],
    change: impl Fn(&str, String) -> String,
) -> PathBuf {
    let folder = room.path(name);
    let mut store = RunStore::open(&folder).unwrap();
    store.append(&runs::start()).unwrap();
    let file = format!("{PASS}.py");
    let path = repository().join("bench/passes").join(PASS).join(&file);
    let text = std::fs::read_to_string(path).unwrap();
    for task in tasks {
        let pass = store.keep(change(task, text.clone()).as_bytes()).unwrap();
        let graph = "graphs/float32_1x31x29x300";
        let sample = repository().join("bench/tasks").join(PASS);
        let model = std::fs::read(sample.join(graph).join("model.py")).unwrap();
        let mut event = runs::ran(task, graph, 1.2, -6);
        event.artefacts =
            vec![("model.py".into(), store.keep(&model).unwrap()), (file.clone(), pass)];
        event.evaluation.rewrites = vec![Rewrites { pass: PASS.into(), count: 1 }];
        store.append(&Event::Graph(Box::new(event))).unwrap();
    }
    store.append(&Event::End { graphs: tasks.len() }).unwrap();
    folder
}
