//! What a build will take, said before it begins: from the size of its source, by rates that were measured; and again after each
//! step, by how long the steps so far took.

use crate::source::{Limits, open};
use crate::store::Kind;
use passnet_graph::{Diagnostic, FileName};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// What steps cost for each model, in seconds of one core. 1,713 models of the catalogue, 802 operations each, took 0.6 s each with
/// all kinds of pieces; the public corpus, 560 operations each, takes half of that. An estimate is good to a factor of two.
const IMPORT: f64 = 0.015;
/// Graphs that are equal, and sides of tasks: a hundredth of the rest.
const SORTING: f64 = 0.005;
/// Of variants and tasks together, the share of variants.
const VARIANTS: f64 = 0.75;
/// A step that took many times longer or shorter than expected says little about the others: it may have been done before.
const MOST_CORRECTION: f64 = 4.0;
/// What the store keeps for each graph: 60 MB for 36,548 of the public corpus.
const STORE_BYTES_PER_GRAPH: f64 = 1_640.0;
/// A model's share of an archive that was compressed with zstd: 27.6 MB for 2,019 models.
const COMPRESSED_BYTES_PER_MODEL: f64 = 13_700.0;
/// The same in a plain archive.
const PLAIN_BYTES_PER_MODEL: f64 = 453_000.0;

/// What a build is expected to take and to give.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Whole models; counted in a folder tree, guessed from the size of an archive.
    pub models: u64,
    /// Graphs that the store will hold, pieces and variants included.
    pub graphs: u64,
    /// How long each step takes, in seconds, in the order of [`crate::pipeline::build`].
    pub steps: Vec<f64>,
    /// How large the store becomes.
    pub store_bytes: u64,
}

impl Estimate {
    /// Of the source at a path, as [`open`] reads it.
    pub fn of_source(
        path: &Path,
        kinds: &[Kind],
        workers: NonZeroUsize,
    ) -> Result<Estimate, Diagnostic> {
        // What cannot be opened is said here, in the words of the source.
        drop(open(path, Limits::default())?);
        let archive = |bytes: u64| match path.extension().is_some_and(|end| end == "zst") {
            true => bytes as f64 / COMPRESSED_BYTES_PER_MODEL,
            false => bytes as f64 / PLAIN_BYTES_PER_MODEL,
        };
        let models = match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => models_below(path),
            Ok(found) if path.extension().is_some_and(|end| end == "tar" || end == "zst") => {
                (archive(found.len()).round() as u64).max(1)
            }
            _ => 1,
        };
        Ok(Estimate::of_models(models, kinds, workers))
    }

    /// Of so many models and these kinds of pieces.
    pub fn of_models(models: u64, kinds: &[Kind], workers: NonZeroUsize) -> Estimate {
        let count = models as f64;
        let mut each = vec![IMPORT, SORTING];
        for kind in kinds {
            each.extend([cutting(*kind), SORTING]);
        }
        let varying: f64 = kinds.iter().map(|kind| varying(*kind)).sum();
        each.extend([varying * VARIANTS, varying * (1.0 - VARIANTS), SORTING]);
        let graphs: f64 = kinds.iter().map(|kind| graphs(*kind)).sum();
        Estimate {
            models,
            graphs: (count * (1.0 + graphs)) as u64,
            steps: each.iter().map(|seconds| count * seconds / workers.get() as f64).collect(),
            store_bytes: (count * (1.0 + graphs) * STORE_BYTES_PER_GRAPH) as u64,
        }
    }

    /// How long all of it takes.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().sum()
    }

    /// The same when the first `done` steps took `elapsed` seconds: the others are as much faster or slower.
    pub fn seconds_after(&self, done: usize, elapsed: f64) -> f64 {
        let (past, left) = self.steps.split_at(done.min(self.steps.len()));
        let expected: f64 = past.iter().sum();
        let ratio = if expected > 0.0 { elapsed / expected } else { 1.0 };
        elapsed + left.iter().sum::<f64>() * ratio.clamp(1.0 / MOST_CORRECTION, MOST_CORRECTION)
    }
}

/// Seconds to cut the pieces of a kind from a model.
fn cutting(kind: Kind) -> f64 {
    match kind {
        Kind::Full => 0.0,
        Kind::SoleOp => 0.15,
        Kind::Typical | Kind::Fusible => 0.06,
    }
}

/// Seconds to make the variants and tasks of a model's pieces of a kind.
fn varying(kind: Kind) -> f64 {
    match kind {
        Kind::Full => 0.0,
        Kind::SoleOp => 0.05,
        Kind::Typical => 0.06,
        Kind::Fusible => 0.1,
    }
}

/// Pieces and variants of a kind for each model.
fn graphs(kind: Kind) -> f64 {
    match kind {
        Kind::Full => 0.0,
        Kind::SoleOp => 45.0,
        Kind::Typical => 60.0,
        Kind::Fusible => 120.0,
    }
}

/// How many graphs a folder tree holds. A link is not followed: a source reads what it leads to, an estimate need not.
fn models_below(folder: &Path) -> u64 {
    let mut left: Vec<PathBuf> = vec![folder.to_owned()];
    let mut models = 0;
    while let Some(folder) = left.pop() {
        for item in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match item.file_type() {
                Ok(kind) if kind.is_dir() => left.push(item.path()),
                Ok(_) if item.file_name() == FileName::Model.as_str() => models += 1,
                _ => {}
            }
        }
    }
    models
}
