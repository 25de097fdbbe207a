//! The vary sweep: pieces of a store with other sizes and other dtypes.
//!
//! Sizes are varied in the whole model, where the meaning of its inputs is known; then the same ranges are cut out of
//! each variant. Dtypes are varied in the pieces. What inference refuses is reported and not written, and a variant
//! that equals one made before (a piece the changed size does not reach) is not written twice.

use super::dtypes::convert;
use super::reify::{VARIANTS, reify};
use super::roles::Domain;
use crate::decompose::cutting::variable_sizes;
use crate::describe::Made;
use crate::layout::{self, ORIGINAL_SHAPE};
use crate::legal::legalise;
use crate::measure::{self, Measure};
use crate::store::{Kind, Provenance, Record, Store, StoreError, Variant};
use crate::sweep::{self, Job, Product, SweepReport};
use passnet_graph::cut::cut_with;
use passnet_graph::infer::{Inference, infer_folder};
use passnet_graph::read::{GraphFolder, read_folder};
use passnet_graph::resize::{Generalised, inherited_symbols, with_sizes};
use passnet_graph::stats::Seen;
use passnet_graph::{DType, Digest, GraphFiles, identify};
use passnet_work::progress::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::ops::Range;

/// What to make.
#[derive(Debug, Clone)]
pub struct VaryOptions {
    /// Kinds of pieces to vary.
    pub kinds: Vec<Kind>,
    /// Make the nine shape variants.
    pub shapes: bool,
    /// Make these dtypes.
    pub dtypes: Vec<DType>,
    /// Elements that the inputs of a variant may have together; those of a model that vary, too.
    pub max_elements: u64,
}

impl Default for VaryOptions {
    fn default() -> Self {
        Self {
            kinds: vec![Kind::SoleOp, Kind::Typical, Kind::Fusible],
            shapes: true,
            dtypes: vec![DType::Float16, DType::BFloat16],
            max_elements: 1 << 28,
        }
    }
}

/// A piece to vary: where it stands in its model.
struct Wanted {
    kind: Kind,
    name: String,
    range: Range<usize>,
}

/// Makes variants of all unvaried pieces of the store. Measured statistics are those of the model in its own sizes: mean and
/// spread of an intermediate hardly depend on how many elements it has.
pub fn vary(
    store: &mut Store,
    options: &VaryOptions,
    measure: Option<Measure<'_>>,
    workers: NonZeroUsize,
    progress: &dyn Progress,
) -> Result<SweepReport, StoreError> {
    let mut models: BTreeMap<String, Vec<Wanted>> = BTreeMap::new();
    for &kind in &options.kinds {
        for record in store.of_kind(kind)? {
            if let Some((model, wanted)) = wanted(&record) {
                models.entry(model).or_default().push(wanted);
            }
        }
    }
    let mut jobs = Vec::with_capacity(models.len());
    for (model, pieces) in models {
        // A piece whose model is not in the store cannot be cut again.
        let Some(record) = store.get(&model)? else { continue };
        let names: Vec<&str> = pieces.iter().map(|piece| piece.name.as_str()).collect();
        let settings =
            format!("{names:?} {} {:?} {}", options.shapes, options.dtypes, options.max_elements)
                + &measure::stamp(measure);
        jobs.push(Job { record, task: pieces, settings });
    }
    sweep::run(store, "vary", jobs, workers, progress, |files, job| {
        vary_model(files, &job.task, options, measure)
    })
}

fn wanted(record: &Record) -> Option<(String, Wanted)> {
    let description = &record.description;
    if description.variant != Some(layout::original()) {
        return None;
    }
    let place = description.provenance.first()?;
    let range = place.ranges.first()?;
    let wanted = Wanted {
        kind: description.kind,
        name: layout::model_of(&record.path).to_string(),
        range: range.start as usize..range.end as usize,
    };
    Some((place.parent.clone(), wanted))
}

fn vary_model(
    files: &GraphFiles,
    pieces: &[Wanted],
    options: &VaryOptions,
    measure: Option<Measure<'_>>,
) -> Product {
    let mut product = Product::default();
    let mut folder = match read_folder(files) {
        Ok(folder) => folder,
        Err(errors) => {
            errors.iter().take(1).for_each(|error| product.refuse(files.path.as_str(), error));
            return product;
        }
    };
    let measured = measure::seen(measure, files, &folder, &mut product);
    let seen = BTreeMap::new();
    let mut maker = Maker { path: &files.path, pieces, options, measured, product, seen };
    let types = infer_folder(&folder);
    let sizes = variable_sizes(&mut folder, &types);
    maker.pieces_of(&folder, &types, &sizes, ORIGINAL_SHAPE);
    let any_shapes = pieces.iter().any(|piece| piece.kind != Kind::SoleOp);
    if options.shapes && any_shapes {
        match types.failures.first() {
            Some(failure) => maker.product.refuse(
                format!("{} shapes", files.path),
                format!(
                    "the model itself does not fit together: `{}`: {}",
                    failure.name, failure.message
                ),
            ),
            None => maker.shape_variants(&folder, &sizes),
        }
    }
    maker.product
}

struct Maker<'a> {
    path: &'a str,
    pieces: &'a [Wanted],
    options: &'a VaryOptions,
    /// What a run of the model showed.
    measured: Vec<Seen>,
    product: Product,
    /// For each piece, what was made of it so far.
    seen: BTreeMap<usize, BTreeSet<Digest>>,
}

impl Maker<'_> {
    fn shape_variants(&mut self, folder: &GraphFolder, sizes: &Generalised) {
        let tag = folder.info.get("heuristic_tag").and_then(|tag| tag.as_str());
        let domain = Domain::of(layout::family_of(self.path), tag);
        let reified = match reify(&folder.constraints, domain, self.options.max_elements) {
            Ok(reified) => reified,
            Err(why) => return self.product.refuse(format!("{} shapes", self.path), why),
        };
        for (index, values) in (0..VARIANTS as u32).zip(&reified.variants) {
            match with_sizes(folder, sizes, values) {
                Ok((variant, types)) => self.pieces_of(&variant, &types, sizes, index),
                Err(why) => {
                    self.product.refuse(format!("{} shape {index}", self.path), why);
                }
            }
        }
    }

    /// Cuts all pieces out of one shape variant of the model and makes all dtypes of them.
    fn pieces_of(
        &mut self,
        folder: &GraphFolder,
        types: &Inference,
        sizes: &Generalised,
        shape_index: u32,
    ) {
        let statistics = measure::statistics(folder, types, &self.measured);
        for (number, wanted) in self.pieces.iter().enumerate() {
            if shape_index != ORIGINAL_SHAPE && wanted.kind == Kind::SoleOp {
                continue;
            }
            let what = || format!("{} shape {shape_index}", wanted.name);
            let mut piece = match cut_with(folder, types, &statistics, wanted.range.clone()) {
                Ok(piece) => piece,
                Err(why) => {
                    self.product.refuse(what(), why);
                    continue;
                }
            };
            let piece_types = infer_folder(&piece.folder);
            legalise(&mut piece.folder, &piece_types);
            let constraints = inherited_symbols(sizes, &piece.inputs, &piece.folder);
            let piece = GraphFolder { constraints, ..piece.folder };
            let original = Variant { dtype: layout::ORIGINAL_DTYPE.into(), shape_index };
            if !self.add(number, &piece, original) {
                // Sizes do not reach this piece, so its dtypes are made already.
                continue;
            }
            for &dtype in &self.options.dtypes {
                match convert(&piece, &piece_types, dtype) {
                    Ok(converted) => {
                        let variant = Variant { dtype: dtype.name().into(), shape_index };
                        self.add(number, &converted, variant);
                    }
                    Err(why) => self.product.refuse(format!("{} {dtype}", what()), why),
                }
            }
        }
    }

    /// Adds a variant unless it equals one made before; says whether it is new. The original is there already.
    fn add(&mut self, number: usize, folder: &GraphFolder, variant: Variant) -> bool {
        let wanted = &self.pieces[number];
        let identity = identify(&folder.graph, &folder.metas);
        if !self.seen.entry(number).or_default().insert(identity.full) {
            self.product.repeats += 1;
            return false;
        }
        if variant == layout::original() {
            return true;
        }
        let elements = folder.metas.iter().map(|meta| meta.elements().unsigned_abs());
        let elements = elements.fold(0, u64::saturating_add);
        if elements > self.options.max_elements {
            let what = format!("{} {} shape {}", wanted.name, variant.dtype, variant.shape_index);
            let most = self.options.max_elements;
            self.product
                .refuse(what, format!("its inputs have {elements} elements, more than {most}"));
            return true;
        }
        let range = crate::decompose::cutting::narrow(&wanted.range);
        let place = Provenance { parent: self.path.to_string(), ranges: vec![range] };
        let made = Made {
            path: layout::piece_path(wanted.kind, &variant, self.path, &wanted.name),
            folder,
            kind: wanted.kind,
            identity,
            provenance: vec![place],
            variant: Some(variant),
        };
        self.product.entries.push(made.into_entry());
        true
    }
}
