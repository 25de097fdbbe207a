//! Where a graph stands in the dataset: `<kind>_subgraphs/<dtype>/<shape index>/samples/<family>/<model>/_decomposed/
//! <model>_start<S>_end<E>_<k>` for pieces (no shape index for single ops), `samples/<family>/<model>` for whole
//! models. Existing PassNet lists use these paths.

use crate::store::{Kind, Variant};
use std::ops::Range;

/// The shape index of graphs whose sizes are those they were extracted with; 0 to 8 are shape variants.
pub const ORIGINAL_SHAPE: u32 = 9;
/// The element type that graphs have before dtype variants are made, whatever their tensors hold.
pub const ORIGINAL_DTYPE: &str = "float32";

const SAMPLES: &str = "samples";
const DECOMPOSED: &str = "_decomposed";

/// The variant that is none: as extracted.
pub fn original() -> Variant {
    Variant { dtype: ORIGINAL_DTYPE.into(), shape_index: ORIGINAL_SHAPE }
}

/// The folder of all pieces of a kind; `None` for whole models.
pub fn folder_of(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Full => None,
        Kind::SoleOp => Some("sole_op_subgraphs"),
        Kind::Typical => Some("typical_subgraphs"),
        Kind::Fusible => Some("fusible_subgraphs"),
    }
}

/// The kind that a path shows.
pub fn kind_of(path: &str) -> Kind {
    let first = path.split('/').next().unwrap_or("");
    Kind::ALL.into_iter().find(|kind| folder_of(*kind) == Some(first)).unwrap_or(Kind::Full)
}

/// The name of a piece inside its model.
pub fn piece_name(model_path: &str, range: &Range<usize>, number: usize) -> String {
    format!("{}_start{}_end{}_{number}", model_of(model_path), range.start, range.end)
}

/// The path of a piece of the model at `model_path`.
pub fn piece_path(kind: Kind, variant: &Variant, model_path: &str, name: &str) -> String {
    let below = match model_path.split_once('/') {
        Some((SAMPLES, below)) => below,
        _ => model_path,
    };
    let top = folder_of(kind).unwrap_or("full_graphs");
    let Variant { dtype, shape_index } = variant;
    match kind {
        Kind::SoleOp => format!("{top}/{dtype}/{SAMPLES}/{below}/{DECOMPOSED}/{name}"),
        Kind::Full => format!("{top}/{dtype}/{shape_index}/{SAMPLES}/{below}"),
        _ => format!("{top}/{dtype}/{shape_index}/{SAMPLES}/{below}/{DECOMPOSED}/{name}"),
    }
}

/// The variant that the path of a piece shows.
pub fn variant_of(path: &str) -> Option<Variant> {
    let mut parts = path.split('/');
    let kind = kind_of(parts.next()?);
    let dtype = parts.next()?.to_string();
    match kind {
        Kind::Full => None,
        Kind::SoleOp => Some(Variant { dtype, shape_index: ORIGINAL_SHAPE }),
        _ => Some(Variant { dtype, shape_index: parts.next()?.parse().ok()? }),
    }
}

/// The last part of a path.
pub fn model_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Where a model comes from: the folder below `samples`, or the first folder.
pub fn family_of(path: &str) -> &str {
    let parts: Vec<&str> = path.split('/').collect();
    let after = parts.iter().position(|part| *part == SAMPLES).map_or(0, |place| place + 1);
    match parts.get(after) {
        // A path of one part has no family.
        Some(family) if after + 1 < parts.len() => family,
        _ => "others",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_pieces_tell_what_they_are() {
        let name = piece_name("samples/timm/resnet18", &(3..7), 2);
        let path = piece_path(Kind::Typical, &original(), "samples/timm/resnet18", &name);
        assert_eq!(
            path,
            "typical_subgraphs/float32/9/samples/timm/resnet18/_decomposed/resnet18_start3_end7_2"
        );
        assert_eq!(kind_of(&path), Kind::Typical);
        assert_eq!(variant_of(&path), Some(original()));
        assert_eq!(family_of(&path), "timm");

        let half = Variant { dtype: "float16".into(), shape_index: ORIGINAL_SHAPE };
        let path = piece_path(Kind::SoleOp, &half, "net", "net_start0_end1_0");
        assert_eq!(path, "sole_op_subgraphs/float16/samples/net/_decomposed/net_start0_end1_0");
        assert_eq!(variant_of(&path), Some(half));
        assert_eq!(family_of("net"), "others");
    }
}
