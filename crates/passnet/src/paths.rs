//! From the paths a user names to the graphs they hold.

use crate::error::CommandError;
use crate::output::warn_located;
use crate::progress::Bar;
use clap::builder::{OsStringValueParser, TypedValueParser};
use passnet_bench::sample::Sample;
use passnet_dataset::lists::{GRAPH_LIST, SampleList};
use passnet_dataset::source::{self, GraphSource, Limits, Meter};
use passnet_graph::{Diagnostic, FileName, GraphFiles};
use passnet_work::parallel::{self, Stopped};
use passnet_work::progress::Task;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// A path of an option, empty or not: a variable of the environment that is empty counts as one that is not there, by [`named`].
pub fn any_path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

/// The path that an option names, if any.
pub fn named(path: Option<&Path>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty())
}

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
        let source = open(path)?;
        let meter = source.meter();
        let mut task = Task::begin(&bar, "reading graphs", None);
        let result = parallel::ordered(
            source,
            workers,
            |item| item.map(|files| (work(&files), files.path)),
            |item| {
                task.advance_to_fraction(1, meter.fraction());
                match item {
                    Ok(Ok((result, path))) => {
                        found = true;
                        consume(&path, result)
                    }
                    Ok(Err(error)) => {
                        unreadable += 1;
                        warn_located(&[error]);
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

/// The graphs at a path, under names that the user would type. A sample has those that its list names: its folder may lead
/// to the graphs of a whole checkout.
fn open(path: &Path) -> Result<Box<dyn GraphSource>, CommandError> {
    if path.join(GRAPH_LIST).is_file() {
        return Ok(Box::new(SampleGraphs::open(path)?));
    }
    let source = source::open(path, Limits::default())?;
    Ok(Box::new(Named { root: path.to_path_buf(), source }))
}

/// The graphs of a sample.
struct SampleGraphs {
    sample: Sample,
    next: usize,
    meter: Meter,
}

impl SampleGraphs {
    fn open(folder: &Path) -> Result<Self, Diagnostic> {
        Ok(Self { sample: Sample::read(folder)?, next: 0, meter: Meter::default() })
    }
}

impl Iterator for SampleGraphs {
    type Item = Result<GraphFiles, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        let graph = self.sample.graphs.get(self.next)?;
        self.next += 1;
        self.meter.set(self.next as f64 / self.sample.graphs.len() as f64);
        let path = self.sample.graph_folder(graph).display().to_string();
        Some(self.sample.graph_files(graph).map(|files| GraphFiles { path, ..files }))
    }
}

impl GraphSource for SampleGraphs {
    fn meter(&self) -> Meter {
        self.meter.clone()
    }
}

/// A source whose graphs are named as the user would.
struct Named {
    root: PathBuf,
    source: Box<dyn GraphSource>,
}

impl Iterator for Named {
    type Item = Result<GraphFiles, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        let named =
            |files: GraphFiles| GraphFiles { path: shown_path(&self.root, files.path), ..files };
        self.source.next().map(|item| item.map(named))
    }
}

impl GraphSource for Named {
    fn meter(&self) -> Meter {
        self.source.meter()
    }
}

/// The samples that a command names, with those of a published list.
pub fn with_list(samples: &[PathBuf], list: Option<&Path>) -> Result<Vec<PathBuf>, CommandError> {
    let mut all = samples.to_vec();
    if let Some(path) = list {
        let name = path.display().to_string();
        let bytes = std::fs::read(path)
            .map_err(|error| Diagnostic::file(name.as_str(), error.to_string()))?;
        all.extend(SampleList::parse(&name, &bytes)?.folders(path)?);
    }
    Ok(all)
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
