//! Pieces and their variants say which of their sizes may vary, and the sizes in their code follow.

#[path = "common/built.rs"]
mod built;
mod common;

use built::built;
use passnet_dataset::store::Kind;
use passnet_graph::read::{ShapeDim, read_folder};
use passnet_graph::resize::{Generalised, records_symbols, with_sizes};
use std::collections::BTreeSet;
use tempfile::TempDir;

#[test]
fn other_sizes_of_every_piece_bind() {
    let folder = TempDir::new().unwrap();
    let store = built(&folder, 1);
    let mut seen = BTreeSet::new();
    for record in store.entries().map(|record| record.unwrap()) {
        if record.description.kind == Kind::Full {
            continue;
        }
        let piece = read_folder(&store.load(&record).unwrap()).unwrap();
        assert!(records_symbols(&piece.constraints), "{}", record.path);
        let example = |name: &str| {
            piece.constraints.symbols.iter().find(|(symbol, _)| symbol == name).map(|(_, v)| *v)
        };
        for ((name, shape), meta) in piece.constraints.input_shapes.iter().zip(&piece.metas) {
            assert_eq!(*name, meta.name);
            let sizes = shape.iter().map(|dim| match dim {
                ShapeDim::Size(size) => Some(*size),
                ShapeDim::Symbol(symbol) => example(symbol),
            });
            assert_eq!(sizes.collect::<Option<Vec<_>>>().unwrap(), meta.shape, "{}", record.path);
            let is_weight = name.starts_with("w_");
            let fixed = shape.iter().all(|dim| matches!(dim, ShapeDim::Size(_)));
            assert_eq!(is_weight, fixed, "data varies, weights do not: {}", record.path);
        }
        // Batch and tokens, whose sizes are written into views, both at once.
        let larger = piece.constraints.symbols.iter().map(|(name, size)| (name.clone(), size + 1));
        let larger = larger.collect();
        let variant = with_sizes(&piece, &Generalised::new(&piece), &larger);
        assert!(variant.is_ok(), "{}: {}", record.path, variant.unwrap_err());
        let variant = record.description.variant.unwrap();
        seen.insert((variant.dtype, variant.shape_index == 9));
    }
    let dtypes = ["bfloat16", "float16", "float32"];
    let all =
        dtypes.iter().flat_map(|dtype| [(dtype.to_string(), false), (dtype.to_string(), true)]);
    assert_eq!(seen, all.collect());
}
