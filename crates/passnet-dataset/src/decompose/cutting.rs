//! Taking ranges out of a model: each range becomes an entry of the store, or a refusal.

use crate::describe::Made;
use crate::layout;
use crate::legal::legalise;
use crate::store::{Kind, Provenance};
use crate::sweep::Product;
use passnet_graph::cut::cut_with;
use passnet_graph::infer::{Inference, infer_folder};
use passnet_graph::read::{Constraints, GraphFolder};
use passnet_graph::resize::{Generalised, find_symbols, inherited_symbols};
use passnet_graph::stats::Stats;
use passnet_graph::{Digest, identify};
use std::collections::BTreeMap;
use std::ops::Range;

/// Cuts all `ranges` out of the model at `path`; arguments that are intermediates of it are described by `statistics`. Pieces that are equal, shapes and dtypes included, are made once and
/// remember all their places.
pub fn cut_ranges(
    path: &str,
    folder: &GraphFolder,
    types: &Inference,
    kind: Kind,
    ranges: &[Range<usize>],
    statistics: &Stats,
) -> Product {
    let mut product = Product::default();
    let mut pieces = Vec::new();
    let mut known: BTreeMap<Digest, usize> = BTreeMap::new();
    let sizes = variable_sizes(&mut folder.clone(), types);
    for (number, range) in ranges.iter().enumerate() {
        let mut piece = match cut_with(folder, types, statistics, range.clone()) {
            Ok(piece) => piece,
            Err(error) => {
                product.refuse(format!("{path} {}..{}", range.start, range.end), error);
                continue;
            }
        };
        let piece_types = infer_folder(&piece.folder);
        legalise(&mut piece.folder, &piece_types);
        piece.folder.constraints = inherited_symbols(&sizes, &piece.inputs, &piece.folder);
        let graph = &piece.folder.graph;
        let needed = graph.needed().into_iter().filter(|id| graph.call(*id).is_some()).count();
        if kind == Kind::Fusible && needed < 2 {
            // A library call beside sizes that only other pieces use.
            let what = format!("{path} {}..{}", range.start, range.end);
            product.refuse(what, "one operation alone is needed: there is nothing to fuse");
            continue;
        }
        let identity = identify(graph, &piece.folder.metas);
        match known.get(&identity.full) {
            Some(&first) => {
                let (_, _, _, places): &mut (_, _, _, Vec<Range<u32>>) = &mut pieces[first];
                places.push(narrow(range));
                product.repeats += 1;
            }
            None => {
                known.insert(identity.full, pieces.len());
                let name = layout::piece_name(path, range, number);
                pieces.push((name, piece.folder, identity, vec![narrow(range)]));
            }
        }
    }
    let variant = layout::original();
    for (name, folder, identity, ranges) in &pieces {
        let provenance = Provenance { parent: path.to_string(), ranges: ranges.clone() };
        let made = Made {
            path: layout::piece_path(kind, &variant, path, name),
            folder,
            kind,
            identity: *identity,
            provenance: vec![provenance],
            variant: Some(variant.clone()),
        };
        product.entries.push(made.into_entry());
    }
    product
}

/// The sizes of a model as expressions over the symbols that it has or that are found; a model that does not fit together
/// has none.
pub fn variable_sizes(folder: &mut GraphFolder, types: &Inference) -> Generalised {
    folder.constraints = match types.failures.is_empty() {
        true => find_symbols(folder),
        false => Constraints::default(),
    };
    Generalised::new(folder)
}

/// Positions in graphs fit 32 bits: the reader's limits are far below.
pub fn narrow(range: &Range<usize>) -> Range<u32> {
    let narrow = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
    narrow(range.start)..narrow(range.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use passnet_graph::read::read_folder;
    use passnet_graph::{FileName, GraphFiles};

    const MODEL: &str = "import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, w):
        tmp_0 = x @ w
        tmp_1 = 2 * 3
        tmp_2 = tmp_0.relu()
        return (tmp_2,)
";
    fn meta(name: &str, shape: &str) -> String {
        format!(
            "class Program_weight_tensor_meta_{name}:
    name = \"{name}\"
    shape = {shape}
    dtype = \"torch.float32\"
    device = \"cpu\"
    mean = 0.0
    std = 1.0
    data = None
"
        )
    }

    #[test]
    fn a_piece_of_which_one_operation_is_needed_is_not_fusible() {
        let files = GraphFiles::new("model")
            .with(FileName::Model, MODEL)
            .with(FileName::WeightMeta, meta("x", "[4, 8]") + &meta("w", "[8, 8]"));
        let folder = read_folder(&files).unwrap();
        let types = infer_folder(&folder);
        let statistics = passnet_graph::stats::propagate(&folder, &types);
        let cut = |kind| cut_ranges("model", &folder, &types, kind, &[0..2, 0..3], &statistics);
        let fusible = cut(Kind::Fusible);
        assert_eq!((fusible.entries.len(), fusible.refusals.len()), (1, 1));
        assert!(fusible.refusals[0].reason.contains("nothing to fuse"), "{:?}", fusible.refusals);
        assert_eq!(cut(Kind::Typical).entries.len(), 2);
    }
}
