//! `--shard I/N`: a part of a run, made apart from the others; `passnet merge` puts them together.

use crate::error::CommandError;
use passnet_bench::sample::Sample;
use passnet_bench::shard::{Manifest, Shard, Unit};
use std::path::{Path, PathBuf};

/// A part that is being made.
#[derive(Debug)]
pub struct Part {
    folder: PathBuf,
    manifest: Manifest,
}

impl Part {
    /// Begins a part, or goes on with it. Without `--shard` there is none; a folder that holds another part, or a part
    /// where the whole run is asked for, is refused.
    pub fn begin(
        shard: Option<Shard>,
        folder: Option<&Path>,
        command: &str,
        settings: impl IntoIterator<Item = (&'static str, String)>,
        units: impl FnOnce() -> Vec<Unit>,
    ) -> Result<Option<Part>, CommandError> {
        let Some(folder) = folder else { return Ok(None) };
        let before = match Manifest::path(folder).exists() {
            true => Some(Manifest::read(folder)?),
            false => None,
        };
        let refuse = |text: String| {
            let error = CommandError::input(format!("{}: {text}", folder.display()));
            Err(error.with_hint("every part, and the whole run, has a folder of its own"))
        };
        let Some(shard) = shard else {
            return match before {
                None => Ok(None),
                Some(before) => refuse(format!("here is shard {} of a run", before.shard)),
            };
        };
        let manifest = Manifest::new(command, shard, settings, units());
        if let Some(before) = before {
            if before.shard != shard {
                return refuse(format!("here is shard {}, not {shard}", before.shard));
            }
            if let Some(difference) = before.difference(&manifest) {
                return refuse(format!("the part here was begun with {difference}"));
            }
        }
        manifest.write(folder)?;
        Ok(Some(Part { folder: folder.to_path_buf(), manifest }))
    }

    pub fn holds(&self, unit: &str) -> bool {
        self.manifest.shard.holds(unit)
    }

    /// Says that all units of the part are done.
    pub fn finish(mut self) -> Result<(), CommandError> {
        self.manifest.is_done = true;
        Ok(self.manifest.write(&self.folder)?)
    }
}

/// Tasks as units; `labels` tell samples of one name apart.
pub fn tasks(samples: &[Sample], labels: &[String]) -> Vec<Unit> {
    let unit = |(index, (sample, label)): (usize, (&Sample, &String))| Unit {
        index,
        name: label.clone(),
        sample: sample.name.clone(),
        folder: sample.path.display().to_string(),
        graphs: sample.graphs.clone(),
    };
    samples.iter().zip(labels).enumerate().map(unit).collect()
}
