//! The way back: rows of tables as graphs, tasks and files of a store. Tables come from anywhere, so what they say about a
//! graph is not believed: it is read again, and a task counts only if its graphs are there and are the ones it means.

use super::{DATA, ENDING, FILES, GRAPHS, TASKS, TRAINING_STRUCTURES, VERSION, column_of};
use crate::benchmark::{TRAINING_NOTE, VERSION_NOTE};
use crate::checkout::links;
use crate::describe::describe;
use crate::import::{ImportOptions, ImportReport, import};
use crate::parquet::{Cells, Reader};
use crate::sample::groups::Rule;
use crate::sample::identity::{SampleId, Uid};
use crate::sample::tasks::{self, SplitSide, StoredTask, TaskGraph, uid_of};
use crate::source::{GraphSource, Limits, Meter, read_regular};
use crate::store::{EntryChange, FileBody, Store, StoreError, StoredFile};
use passnet_graph::{Diagnostic, FileName, GraphFiles};
use passnet_work::progress::Progress;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

/// Problems beyond these are counted but not described.
const PROBLEMS_KEPT: usize = 10_000;

/// A folder of tables, looked through.
#[derive(Debug)]
pub struct Hub {
    graphs: Vec<PathBuf>,
    tasks: Vec<PathBuf>,
    files: Vec<PathBuf>,
    /// What a benchmark set says of itself: names of notes and their files.
    notes: Vec<(&'static str, PathBuf)>,
    limits: Limits,
}

/// What an import of tables did.
#[derive(Debug, Clone, Default)]
pub struct HubReport {
    /// What became of the rows of graphs.
    pub graphs: ImportReport,
    /// Tasks that are in the store now.
    pub tasks: u64,
    /// Files beside the graphs that are in the store now.
    pub files: u64,
    /// Tables, tasks and files that cannot be used.
    pub failed: u64,
    /// Why, the first 10,000 of them.
    pub problems: Vec<Diagnostic>,
}

impl HubReport {
    fn fail(&mut self, problem: Diagnostic) {
        self.failed += 1;
        if self.problems.len() < PROBLEMS_KEPT {
            self.problems.push(problem);
        }
    }
}

/// Whether a path is a folder with tables of graphs, or such a table itself.
pub fn is_hub(path: &Path) -> bool {
    path.join(DATA).join(GRAPHS).is_dir() || is_table(path) && path.is_file()
}

fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == ENDING)
}

impl Hub {
    /// Looks which tables are there; none is read yet.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, Diagnostic> {
        let nothing = (Vec::new(), Vec::new(), Vec::new());
        let (graphs, (tasks, files, notes)) = match path.is_file() {
            true => (vec![path.to_owned()], nothing),
            false => {
                let data = path.join(DATA);
                let notes = [(TRAINING_NOTE, TRAINING_STRUCTURES), (VERSION_NOTE, VERSION)];
                let notes = notes.map(|(note, file)| (note, data.join(file)));
                let notes = notes.into_iter().filter(|(_, path)| path.exists()).collect();
                let rest = (tables(&data.join(TASKS))?, tables(&data.join(FILES))?, notes);
                (tables(&data.join(GRAPHS))?, rest)
            }
        };
        // A table of something else is a mistake of the one who named it, to be told before anything is written.
        for table in &graphs {
            let reader = Reader::open(table)?;
            let lacking = ["path", "model_py"].into_iter().find(|column| !reader.has(column));
            if let Some(column) = lacking {
                let message = format!("this table has no column `{column}`");
                let hint = "a table of graphs is what `passnet dataset export --format hub` writes";
                return Err(Diagnostic::file(table.display().to_string(), message).with_hint(hint));
            }
        }
        Ok(Self { graphs, tasks, files, notes, limits })
    }
}

/// The tables of a folder by name; none where there is no such folder.
fn tables(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let unread = |error: std::io::Error| {
        Diagnostic::file(folder.display().to_string(), format!("cannot be read: {error}"))
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if is_table(&path) {
            found.push(path);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Brings tables into a store. Running it again continues, and takes over what changed.
pub fn import_hub(
    store: &mut Store,
    hub: Hub,
    options: ImportOptions,
    progress: &dyn Progress,
) -> Result<HubReport, StoreError> {
    let mut report = HubReport::default();
    let rows = Rows::new(hub.graphs, hub.limits);
    report.graphs = import(store, rows, describe, options, progress)?;
    for table in &hub.files {
        import_files(store, table, &mut report)?;
    }
    let mut all: BTreeMap<String, StoredTask> = BTreeMap::new();
    for task in tasks::load(store)? {
        all.insert(tasks::key(&task), task);
    }
    for table in &hub.tasks {
        import_tasks(store, table, &mut all, &mut report)?;
    }
    if report.tasks > 0 {
        tasks::save(store, &all.into_values().collect::<Vec<_>>())?;
    }
    for (note, path) in &hub.notes {
        import_note(store, note, path, hub.limits, &mut report)?;
    }
    Ok(report)
}

/// A table, or its problem in the report.
fn open(table: &Path, report: &mut HubReport) -> Option<Reader> {
    Reader::open(table).map_err(|problem| report.fail(problem)).ok()
}

fn import_tasks(
    store: &Store,
    table: &Path,
    all: &mut BTreeMap<String, StoredTask>,
    report: &mut HubReport,
) -> Result<(), StoreError> {
    let Some(mut reader) = open(table, report) else { return Ok(()) };
    for group in 0..reader.groups() {
        let rows = match task_rows(&mut reader, group) {
            Ok(rows) => rows,
            Err(problem) => {
                report.fail(problem);
                continue;
            }
        };
        for row in rows {
            let id = row.id.clone();
            match row.into_task(store)? {
                Ok(task) => {
                    all.insert(tasks::key(&task), task);
                    report.tasks += 1;
                }
                Err(why) => {
                    let message = format!("the task `{}` {why}", id.escape_debug());
                    report.fail(Diagnostic::file(table.display().to_string(), message));
                }
            }
        }
    }
    Ok(())
}

/// A task as its table has it.
struct TaskRow {
    id: String,
    kind: String,
    side: String,
    rule: String,
    path: Option<String>,
    ops: Vec<String>,
    graphs: Vec<String>,
    uids: Vec<String>,
}

fn task_rows(reader: &mut Reader, group: usize) -> Result<Vec<TaskRow>, Diagnostic> {
    let mut texts = |name| reader.texts(group, name).map(Vec::into_iter);
    let (ids, mut kinds) = (texts("id")?, texts("kind")?);
    let (mut sides, mut rules) = (texts("side")?, texts("rule")?);
    let mut paths = match reader.column(group, "path")? {
        Cells::Texts(paths) => paths.into_iter(),
        _ => Vec::new().into_iter(),
    };
    let mut lists = |name| reader.lists(group, name).map(Vec::into_iter);
    let (mut ops, mut graphs, mut uids) = (lists("ops")?, lists("graphs")?, lists("uids")?);
    // All columns of a group have as many rows: the reader saw to it.
    let mut row = |id| {
        Some(TaskRow {
            id,
            kind: kinds.next()?,
            side: sides.next()?,
            rule: rules.next()?,
            path: paths.next()?.and_then(|path| String::from_utf8(path).ok()),
            ops: ops.next()?,
            graphs: graphs.next()?,
            uids: uids.next()?,
        })
    };
    Ok(ids.map_while(&mut row).collect())
}

impl TaskRow {
    /// The task, or why it is none.
    fn into_task(self, store: &Store) -> Result<Result<StoredTask, String>, StoreError> {
        let (Some(kind), Some(rule)) = (named(&self.kind), named(&self.rule)) else {
            return Ok(Err("has a kind or a rule that is not known".into()));
        };
        let Some(side) = side_of(&self.side) else {
            return Ok(Err(format!("is on the side `{}`", self.side.escape_debug())));
        };
        if self.graphs.len() != self.uids.len() || self.graphs.is_empty() {
            return Ok(Err("has not one uid for each of its graphs".into()));
        }
        let mut members: Vec<Uid> = Vec::new();
        let mut graphs = Vec::new();
        for (path, uid) in self.graphs.into_iter().zip(self.uids) {
            let Some(record) = store.get(&path)? else {
                return Ok(Err(format!("means `{}`, which is not here", path.escape_debug())));
            };
            let Ok(member) = uid.parse::<Uid>() else {
                return Ok(Err(format!("has `{}` for a uid", uid.escape_debug())));
            };
            // Whoever publishes graphs names them; otherwise the name follows from the graph.
            if rule != Rule::Published && uid_of(&record) != Some(member) {
                return Ok(Err(format!("means another graph than `{path}`, by its uid")));
            }
            members.push(member);
            graphs.push(TaskGraph { uid, path });
        }
        if self.path.is_none() && SampleId::of(&members).to_string() != self.id {
            return Ok(Err("has an id that does not follow from its uids".into()));
        }
        let TaskRow { id, ops, path, .. } = self;
        Ok(Ok(StoredTask { id, kind, rule, ops, graphs, side, path }))
    }
}

/// A value of an enumeration by its name.
fn named<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(name.into())).ok()
}

fn side_of(name: &str) -> Option<Option<SplitSide>> {
    let sides =
        [None, Some(SplitSide::Training), Some(SplitSide::Evaluation), Some(SplitSide::Withheld)];
    sides.into_iter().find(|side| tasks::side_name(*side) == name)
}

fn import_files(store: &mut Store, table: &Path, report: &mut HubReport) -> Result<(), StoreError> {
    let name = table.display().to_string();
    let Some(mut reader) = open(table, report) else { return Ok(()) };
    for group in 0..reader.groups() {
        let mut read = || -> Result<_, Diagnostic> {
            let (paths, kinds) = (reader.texts(group, "path")?, reader.texts(group, "kind")?);
            Ok((paths, kinds, reader.column(group, "body")?))
        };
        let (paths, kinds, bodies) = match read() {
            Ok((paths, kinds, Cells::Texts(bodies))) => (paths, kinds, bodies),
            Ok(_) => {
                report.fail(Diagnostic::file(name.as_str(), "column `body`: bytes are expected"));
                continue;
            }
            Err(problem) => {
                report.fail(problem);
                continue;
            }
        };
        let mut files = Vec::new();
        for ((path, kind), bytes) in paths.into_iter().zip(kinds).zip(bodies) {
            match file_of(&path, &kind, bytes.unwrap_or_default()) {
                Ok(body) => files.push(StoredFile { path, body }),
                Err(why) => {
                    let message = format!("the file `{}` {why}", path.escape_debug());
                    report.fail(Diagnostic::file(name.as_str(), message));
                }
            }
        }
        report.files += files.len() as u64;
        let _: Vec<EntryChange> = store.put_files(&files)?;
    }
    Ok(())
}

fn file_of(path: &str, kind: &str, bytes: Vec<u8>) -> Result<FileBody, String> {
    path.split('/').try_for_each(crate::content::check_path_part)?;
    let body = FileBody::read(kind, bytes).ok_or("is of no known kind")?;
    if let FileBody::Link(target) = &body {
        links::destination(path, target).map_err(|refused| refused.message)?;
    }
    Ok(body)
}

fn import_note(
    store: &mut Store,
    note: &str,
    path: &Path,
    limits: Limits,
    report: &mut HubReport,
) -> Result<(), StoreError> {
    let bytes = match read_regular(path, limits.file_bytes) {
        Ok(bytes) => bytes.unwrap_or_default(),
        Err(problem) => {
            report.fail(problem);
            return Ok(());
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) if note == TRAINING_NOTE => {
            let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
            store.set_note(note, &digits)
        }
        Ok(text) => store.set_note(note, text.trim()),
        Err(_) => {
            report.fail(Diagnostic::file(path.display().to_string(), "the file is not UTF-8"));
            Ok(())
        }
    }
}

/// The graphs of some tables, a group of rows at a time.
struct Rows {
    tables: VecDeque<PathBuf>,
    total: usize,
    open: Option<(Reader, usize)>,
    ready: VecDeque<Result<GraphFiles, Diagnostic>>,
    limits: Limits,
    meter: Meter,
}

impl Rows {
    fn new(tables: Vec<PathBuf>, limits: Limits) -> Self {
        let (total, meter) = (tables.len(), Meter::default());
        Self { tables: tables.into(), total, open: None, ready: VecDeque::new(), limits, meter }
    }

    /// Reads the next group; nothing is left when it says so.
    fn advance(&mut self) -> Option<()> {
        let Some((reader, group)) = &mut self.open else {
            let done = self.total - self.tables.len();
            self.meter.set(done as f64 / self.total.max(1) as f64);
            let table = self.tables.pop_front()?;
            match Reader::open(&table) {
                Ok(reader) => self.open = Some((reader, 0)),
                Err(problem) => self.ready.push_back(Err(problem)),
            }
            return Some(());
        };
        if *group == reader.groups() {
            self.open = None;
            return Some(());
        }
        match graph_rows(reader, *group, self.limits) {
            Ok(rows) => self.ready.extend(rows),
            Err(problem) => self.ready.push_back(Err(problem)),
        }
        *group += 1;
        Some(())
    }
}

fn graph_rows(
    reader: &mut Reader,
    group: usize,
    limits: Limits,
) -> Result<Vec<Result<GraphFiles, Diagnostic>>, Diagnostic> {
    let mut rows: Vec<GraphFiles> =
        reader.texts(group, "path")?.into_iter().map(GraphFiles::new).collect();
    let mut problems: BTreeMap<usize, Diagnostic> = BTreeMap::new();
    for file in FileName::ALL {
        let column = column_of(file);
        if !reader.has(&column) {
            continue;
        }
        let Cells::Texts(cells) = reader.column(group, &column)? else { continue };
        for (place, (graph, cell)) in rows.iter_mut().zip(cells).enumerate() {
            let Some(bytes) = cell else { continue };
            if bytes.len() as u64 > limits.file_bytes {
                let message = format!("is larger than {} bytes", limits.file_bytes);
                problems.insert(place, Diagnostic::file(graph.file_path(file), message));
            } else {
                graph.files.insert(file, bytes);
            }
        }
    }
    let result = |(place, graph)| problems.remove(&place).map_or(Ok(graph), Err);
    Ok(rows.into_iter().enumerate().map(result).collect())
}

impl Iterator for Rows {
    type Item = Result<GraphFiles, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(ready) = self.ready.pop_front() {
                return Some(ready);
            }
            self.advance()?;
        }
    }
}

impl GraphSource for Rows {
    fn meter(&self) -> Meter {
        self.meter.clone()
    }
}
