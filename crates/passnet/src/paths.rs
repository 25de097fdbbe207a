//! From the paths a user names to the graphs they hold.

use crate::error::CommandError;
use crate::output::warn;
use crate::progress::Bar;
use passnet_dataset::parallel::{self, Stopped};
use passnet_dataset::progress::Task;
use passnet_dataset::source::{self, Limits};
use passnet_graph::{FileName, GraphFiles};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Runs `work` on every graph below the given paths, in parallel, and hands the results to `consume` in
/// order. What cannot be read as a graph is reported on stderr and the rest is done.
pub fn for_each_graph<R: Send>(
    paths: &[PathBuf],
    work: impl Fn(&GraphFiles) -> R + Sync,
    consume: impl FnMut(&str, R) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    for_each_graph_with(parallel::default_workers(), paths, work, consume)
}

/// As `for_each_graph`, with a number of workers; one where the work itself is to be timed.
pub fn for_each_graph_with<R: Send>(
    workers: NonZeroUsize,
    paths: &[PathBuf],
    work: impl Fn(&GraphFiles) -> R + Sync,
    mut consume: impl FnMut(&str, R) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let bar = Bar::new();
    let mut found = false;
    let mut unreadable = 0;
    for path in paths {
        let source = source::open(path, Limits::default())?;
        let meter = source.meter();
        let mut task = Task::begin(&bar, "reading graphs", None);
        let result = parallel::ordered(
            source,
            workers,
            |item| {
                item.map(|mut files| {
                    files.path = shown_path(path, files.path);
                    (work(&files), files.path)
                })
            },
            |item| {
                task.advance_to_fraction(1, meter.fraction());
                match item {
                    Ok(Ok((result, path))) => {
                        found = true;
                        consume(&path, result)
                    }
                    Ok(Err(error)) => {
                        unreadable += 1;
                        warn(&crate::error::render_diagnostic(&error));
                        Ok(())
                    }
                    Err(panicked) => Err(CommandError::bug(panicked.to_string())),
                }
            },
        );
        match result {
            Ok(()) => {}
            Err(Stopped::Consumer(error)) => return Err(error),
            Err(Stopped::NoThread(error)) => return Err(error.into()),
        }
    }
    if !found {
        let shown: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        return Err(CommandError::input(format!("no graph found in {}", shown.join(", ")))
            .with_hint("a graph is a folder that holds `model.py`"));
    }
    if unreadable > 0 {
        return Err(CommandError::input(format!(
            "{unreadable} items could not be read (see above)"
        )));
    }
    Ok(())
}

/// What the user would type to name a graph found below `root`; inside an archive, its path there.
fn shown_path(root: &Path, found: String) -> String {
    if !root.is_dir() {
        let is_model = root.file_name().is_some_and(|name| name == FileName::Model.as_str());
        return match root.parent() {
            Some(folder) if is_model && folder.as_os_str().is_empty() => ".".into(),
            Some(folder) if is_model => folder.display().to_string(),
            _ => found,
        };
    }
    // A root that is itself a graph stands under its own name.
    let below = if root.join(FileName::Model.as_str()).is_file() {
        found.split_once('/').map_or("", |(_, below)| below)
    } else {
        &found
    };
    if below.is_empty() {
        root.display().to_string()
    } else {
        root.join(below).display().to_string()
    }
}
