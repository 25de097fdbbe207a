//! Runs of parts put together into the run that one process would have made.

use super::{RunError, RunFolder, Settings};
use crate::task::Task;
use passnet_bench::run::merge::merge as merge_runs;
use passnet_bench::shard::{Part, Unit, copy_folder};
use std::path::{Path, PathBuf};

/// Tasks as units of a run.
pub fn units(tasks: &[Task]) -> Vec<Unit> {
    let unit = |(index, task): (usize, &Task)| Unit {
        index,
        name: task.id.clone(),
        sample: task.id.clone(),
        folder: String::new(),
        graphs: task.graphs.iter().map(|graph| graph.name.clone()).collect(),
    };
    tasks.iter().enumerate().map(unit).collect()
}

/// Puts the parts of a run together: trajectories as they are, and the results of the best attempts in the order of the
/// tasks. `units` are all tasks, each with the place of its part.
pub fn merge(parts: &[Part], units: &[(usize, &Unit)], out: &Path) -> Result<(), RunError> {
    let settings = one_settings(parts)?;
    let folder = RunFolder::open(out)?;
    let from: Vec<RunFolder> = parts.iter().map(|part| RunFolder::reader(&part.folder)).collect();
    for (place, unit) in units {
        let (source, target) = (&from[*place], folder.attempts().join(&unit.name));
        for attempt in 0..settings.attempts {
            let attempt_folder = source.attempt(&unit.name, attempt);
            copy_folder(&attempt_folder, &target.join(attempt.to_string()))?;
        }
    }
    settings.write(&folder)?;
    let runs: Vec<PathBuf> = from.iter().map(RunFolder::best_run).collect();
    merge_runs(&runs, units, &folder.best_run())?;
    Ok(())
}

/// What all parts were begun with; the largest noise of any of them is that of all.
fn one_settings(parts: &[Part]) -> Result<Settings, RunError> {
    let mut all = parts
        .iter()
        .map(|part| Ok((part, Settings::read(&part.folder)?)))
        .collect::<Result<Vec<_>, RunError>>()?
        .into_iter();
    let Some((first, mut whole)) = all.next() else {
        return Err(RunError::Unlike("there is nothing to merge".into()));
    };
    for (part, settings) in all {
        let attempts = |settings: &Settings| format!("number of attempts: {}", settings.attempts);
        let difference = whole.difference(&settings).or_else(|| {
            (whole.attempts != settings.attempts)
                .then(|| format!("{} and {}", attempts(&whole), settings.attempts))
        });
        if let Some(what) = difference {
            let (one, two) = (first.folder.display(), part.folder.display());
            return Err(RunError::Unlike(format!(
                "{one} and {two} were begun with another {what}"
            )));
        }
        let floor = &mut whole.evaluate.noise_floor;
        *floor = floor.max(settings.evaluate.noise_floor);
    }
    whole.shard = None;
    Ok(whole)
}
