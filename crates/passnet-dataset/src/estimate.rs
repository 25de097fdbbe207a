//! What a build will take, said before it begins: from the size of its source, by rates that were measured.

use crate::source::{Limits, open};
use passnet_graph::{Diagnostic, FileName};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// What a model costs, in seconds of one core: import, pieces, variants, tasks.
///
/// 167 models of the public corpus took 26 s before pieces recorded their symbols (`passnet dataset build --workers 1`), and a
/// third more is allowed for that. Other models have other sizes: an estimate is good to a factor of two.
const SECONDS_PER_MODEL: f64 = 0.2;
/// Pieces and variants of a model, and what the store keeps for each model: 36,548 graphs and 60 MB for those 167.
const GRAPHS_PER_MODEL: f64 = 219.0;
const STORE_BYTES_PER_MODEL: f64 = 360_000.0;
/// A model's share of an archive that was compressed with zstd: 27.6 MB for 2,019 models.
const COMPRESSED_BYTES_PER_MODEL: f64 = 13_700.0;
/// The same in a plain archive.
const PLAIN_BYTES_PER_MODEL: f64 = 453_000.0;

/// What a build is expected to take and to give.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Whole models; counted in a folder tree, guessed from the size of an archive.
    pub models: u64,
    /// Graphs that the store will hold, pieces and variants included.
    pub graphs: u64,
    /// How long it takes.
    pub seconds: f64,
    /// How large the store becomes.
    pub store_bytes: u64,
}

impl Estimate {
    /// Of the source at a path, as [`open`] reads it.
    pub fn of_source(path: &Path, workers: NonZeroUsize) -> Result<Estimate, Diagnostic> {
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
        Ok(Estimate::of_models(models, workers))
    }

    /// Of so many models.
    pub fn of_models(models: u64, workers: NonZeroUsize) -> Estimate {
        let count = models as f64;
        Estimate {
            models,
            graphs: (count * (1.0 + GRAPHS_PER_MODEL)) as u64,
            seconds: count * SECONDS_PER_MODEL / workers.get() as f64,
            store_bytes: (count * STORE_BYTES_PER_MODEL) as u64,
        }
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
