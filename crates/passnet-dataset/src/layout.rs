//! Where a graph stands in the dataset: `<kind>_subgraphs/<dtype>/<shape index>/samples/<family>/<model>/_decomposed/
//! <model>_start<S>_end<E>_<k>` for pieces (no shape index for single ops), `samples/<family>/<model>` for whole
//! models. Existing PassNet lists use these paths.

use crate::store::{Kind, Variant};
use passnet_graph::DType;
use std::ops::Range;

/// The shape index of graphs whose sizes are those they were extracted with; 0 to 8 are shape variants.
pub const ORIGINAL_SHAPE: u32 = 9;
/// The element type that graphs have before dtype variants are made, whatever their tensors hold.
pub const ORIGINAL_DTYPE: &str = "float32";

/// The folder of all graphs of a checkout.
pub const GRAPHS: &str = "graphs";
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

/// The kind that a path shows: the first folder that is one of a kind, at the top of our own paths and below the name of
/// the set in published ones (`graphs/hf_subgraphs_v2/fusible_subgraphs/…`).
pub fn kind_of(path: &str) -> Kind {
    path.split('/').find_map(kind_of_folder).unwrap_or(Kind::Full)
}

fn kind_of_folder(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| folder_of(*kind) == Some(name))
}

/// The kind of pieces that a path or the name of a list names: `typical_subgraphs/…`, `hf_typical_train_samples_v2.csv`.
pub fn kind_named(path: &str) -> Option<Kind> {
    let folder = path.split('/').find_map(kind_of_folder);
    let word = |kind: &Kind| {
        let (name, start) = (kind.as_str(), format!("{kind}_"));
        path.split('/').any(|part| part == name || part.contains(&start))
    };
    folder.or_else(|| [Kind::SoleOp, Kind::Typical, Kind::Fusible].into_iter().find(word))
}

/// Whether a path is that of a published graph: it begins where lists of graphs of samples begin.
pub fn is_published(path: &str) -> bool {
    path.strip_prefix(GRAPHS).is_some_and(|below| below.starts_with('/'))
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

/// The variant that the path of a piece shows. Older sets have none: their kinds hold models at once.
pub fn variant_of(path: &str) -> Option<Variant> {
    let mut parts = path.split('/');
    let kind = parts.find_map(kind_of_folder)?;
    let dtype = parts.next()?.to_string();
    DType::from_name(&dtype)?;
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

/// Where a model comes from: the folder below `samples`, or the first folder; published pieces without the former do not
/// say it.
pub fn family_of(path: &str) -> &str {
    let parts: Vec<&str> = path.split('/').collect();
    let samples = parts.iter().position(|part| *part == SAMPLES);
    let after = samples.map_or(0, |place| place + 1);
    match parts.get(after) {
        Some(_) if samples.is_none() && is_published(path) => "others",
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

    #[test]
    fn published_paths_tell_what_they_are() {
        let half = Variant { dtype: "bfloat16".into(), shape_index: 2 };
        let path = "graphs/hf_subgraphs_v2/typical_subgraphs/bfloat16/2/samples/timm/m/_decomposed/m_start1_end2_0";
        assert_eq!((kind_of(path), variant_of(path)), (Kind::Typical, Some(half)));
        assert_eq!((family_of(path), is_published(path)), ("timm", true));

        let path = "graphs/hf_subgraphs_v2/sole_op_subgraphs/float16/samples/timm/m/_decomposed/m_start1_end2_0";
        let half = Variant { dtype: "float16".into(), shape_index: ORIGINAL_SHAPE };
        assert_eq!((kind_of(path), variant_of(path)), (Kind::SoleOp, Some(half)));

        // The older set and the demo have neither dtypes nor shapes in their paths.
        let path =
            "graphs/hf_subgraphs/fusible_subgraphs/samples/timm/m/_decomposed/m_start1_end2_0";
        assert_eq!((kind_of(path), variant_of(path)), (Kind::Fusible, None));
        let path = "graphs/fusible_subgraphs/m/m_0_start1_end2_0";
        assert_eq!((kind_of(path), variant_of(path)), (Kind::Fusible, None));
        assert_eq!((family_of(path), is_published(path)), ("others", true));
        assert!(!is_published("graphs_of_mine/m"));
    }
}
