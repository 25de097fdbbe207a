//! The bundled tasks say which of their sizes may change, and their graphs exist at other values of all of them.

use passnet_bench::sample::{self, Sample};
use passnet_graph::read;
use passnet_graph::resize::{Assignment, Generalised, records_symbols, with_sizes};
use std::path::Path;

#[test]
fn every_bundled_graph_promises_other_sizes_and_exists_at_them() {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let folders = sample::find(&[bench.join("tasks"), bench.join("redteam/tasks")]).unwrap();
    assert!(folders.len() >= 35, "{} tasks", folders.len());
    for folder in &folders {
        let sample = Sample::read(folder).unwrap();
        for graph in &sample.graphs {
            let folder = read::read_folder(&sample.graph_files(graph).unwrap()).unwrap();
            let named = format!("{}/{graph}", sample.name);
            assert!(records_symbols(&folder.constraints), "{named} promises nothing");
            for (name, shape) in &folder.constraints.input_shapes {
                let meta = folder.metas.iter().find(|meta| meta.name == *name);
                assert_eq!(meta.map(|meta| meta.shape.len()), Some(shape.len()), "{named}: {name}");
            }
            let generalised = Generalised::new(&folder);
            for change in [|size: i64| size + 1, |size: i64| (size / 2).max(1), |_| 1] {
                let symbols = folder.constraints.symbols.iter();
                let sizes: Assignment =
                    symbols.map(|(name, size)| (name.clone(), change(*size))).collect();
                let variant = with_sizes(&folder, &generalised, &sizes);
                assert!(variant.is_ok(), "{named} at {sizes:?}: {:?}", variant.err());
            }
        }
    }
}
