//! The same pages as files, for any static host or a disk.

use crate::Error;
use crate::bundle::{Bundle, Limits, MakeOptions, draft_of_run};
use crate::pages::{CORPUS_ROWS, Pages, Query, Route, matrix_route, shelf_route};
use crate::store::{Admission, Entry, EntryState, Filter, Shelf, Store, readied};
use crate::tasks::TaskIndex;
use passnet_agent::run::{RunFolder, is_agent_run};
use passnet_bench::report::RunRecord;
use serde::Serialize;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Runs of one ranking that have pages against each other.
const COMPARED: usize = 20;

/// What is written, and where.
#[derive(Debug, Clone, Default)]
pub struct SiteOptions {
    /// Run folders.
    pub runs: Vec<PathBuf>,
    /// Sample folders, for plans.
    pub tasks: Vec<PathBuf>,
    /// A store of graphs to browse.
    pub dataset: Option<PathBuf>,
    /// Who made the runs.
    pub author: String,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SiteReport {
    /// That were put on rankings.
    pub runs: usize,
    /// Rankings.
    pub boards: usize,
    /// Files that were written.
    pub pages: usize,
    /// Of all pages.
    pub bytes: u64,
    /// Of the largest page.
    pub largest: u64,
}

/// Puts a run folder on a board, as a run of the board's owner. The entry's id.
pub fn add_run(store: &Store, folder: &Path, author: &str) -> Result<String, Error> {
    let options = MakeOptions { name: None, trajectories: true };
    let file = draft_of_run(folder, &options)?.pack(None)?;
    let bundle = Bundle::parse(file, &Limits::default())?;
    let results = match is_agent_run(folder) {
        true => RunFolder::reader(folder).best_run(),
        false => folder.to_path_buf(),
    };
    let run = RunRecord::read(&results)?;
    let run = RunRecord { name: bundle.manifest.name.clone(), ..run };
    let ready = readied(&run, Some(&bundle.manifest))
        .ok_or_else(|| Error::input(format!("{}: the run has no results", folder.display())))?;
    let began = run.start.as_ref().map(|start| i64::try_from(start.time).unwrap_or(i64::MAX));
    let admission = Admission { author: author.to_string(), added: began, ..Admission::default() };
    store.admit(&bundle, &run, &ready, &admission)
}

/// Writes a site into a folder, which must be new or empty. `each` is told of every page.
pub fn write_site(
    options: &SiteOptions,
    folder: &Path,
    each: &mut dyn FnMut(usize),
) -> Result<SiteReport, Error> {
    begin(folder)?;
    let memory = tempfile::tempdir().map_err(|error| Error::lacking(error.to_string()))?;
    let store = Store::open(memory.path())?;
    for run in &options.runs {
        add_run(&store, run, &options.author)?;
    }
    if let Some(path) = &options.dataset {
        store.import_dataset(path)?;
    }
    let boards = store.boards()?;
    boards.iter().try_for_each(|board| store.rank(board))?;
    let tasks = TaskIndex::read(&options.tasks)?;
    let pages = Pages { store: &store, tasks: Some(&tasks), is_static: true };
    let entries = store.all_entries()?;
    let mut report =
        SiteReport { runs: entries.len(), boards: boards.len(), pages: 0, bytes: 0, largest: 0 };
    let mut routes = VecDeque::from(routes(&pages, &entries)?);
    while let Some(route) = routes.pop_front() {
        // A task without passes has no page of them.
        let Some(page) = pages.write(&route, &Query::default())? else { continue };
        let below = folder.join(route.path());
        std::fs::create_dir_all(&below).map_err(Error::at(&below))?;
        let path = below.join("index.html");
        std::fs::write(&path, &page).map_err(Error::at(&path))?;
        report.pages += 1;
        report.bytes += page.len() as u64;
        report.largest = report.largest.max(page.len() as u64);
        each(report.pages);
        // How many pages a matrix has is known when they are written.
        if let Route::Matrix(ids, page) = route {
            routes.push_back(Route::Matrix(ids, page + 1));
        }
    }
    Ok(report)
}

/// Nothing that somebody put there is overwritten.
fn begin(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(Error::at(folder))?;
    match std::fs::read_dir(folder).map_err(Error::at(folder))?.next() {
        None => Ok(()),
        Some(_) => Err(Error::input(format!("{}: is not empty", folder.display()))
            .with_hint("name a new folder for the site")),
    }
}

/// Every page of a store.
fn routes(pages: &Pages<'_>, entries: &[Entry]) -> Result<Vec<Route>, Error> {
    let store = pages.store;
    let mut routes = vec![Route::Home, Route::Dataset, Route::Reference];
    for board in store.boards()? {
        let filter =
            Filter { state: Some(EntryState::Listed), limit: COMPARED, ..Filter::default() };
        let (best, _) = store.entries(&board, &filter)?;
        for (index, one) in best.iter().enumerate() {
            let pairs = best[index + 1..].iter();
            routes.extend(pairs.map(|two| Route::Compare(two.id.clone(), one.id.clone())));
        }
        let matrices = (0..best.len()).filter_map(|first| matrix_route(pages, &best, first));
        routes.extend(matrices);
        routes.push(Route::Board(board.key));
    }
    for entry in entries {
        let detail = store.detail(entry)?;
        routes.push(Route::Run(entry.id.clone()));
        for task in 0..detail.tasks.len() {
            routes.push(Route::Task(entry.id.clone(), task));
            routes.push(Route::Pass(entry.id.clone(), task));
        }
        let attempts = 0..detail.attempts.len();
        routes.extend(attempts.map(|attempt| Route::Attempt(entry.id.clone(), attempt)));
    }
    let (_, graphs) = store.corpus(None, 0, 1)?;
    let pages_of = |graphs: usize| 2..=graphs.div_ceil(CORPUS_ROWS);
    routes.extend(pages_of(graphs).map(Route::DatasetPage));
    routes.extend((0..graphs).map(Route::Graph));
    for shelf in Shelf::ALL.into_iter().filter(|_| graphs > 0) {
        routes.push(Route::Shelves(shelf));
        for shelved in store.shelf(shelf)? {
            let first = shelf_route(shelf, &shelved.name);
            let Route::Shelf(_, slug, _) = &first else { continue };
            let more = pages_of(usize::try_from(shelved.graphs).unwrap_or(0));
            routes.extend(more.map(|page| Route::Shelf(shelf, slug.clone(), page)));
            routes.push(first);
        }
    }
    Ok(routes)
}
