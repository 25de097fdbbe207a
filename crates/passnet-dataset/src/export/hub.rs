//! A folder for the Hugging Face hub ([`hub`] has its layout). It is written beside its place and moved there
//! when it is complete.

use super::{ExportError, ExportOptions, Exported, card};
use crate::benchmark::{NOTED_DIGITS, TRAINING_NOTE, VERSION_NOTE};
use crate::hub::{self, DATA, ENDING, FILES, GRAPH_TEXTS, GRAPHS, SPLITS, TASKS};
use crate::layout;
use crate::parquet::{RowGroup, Table};
use crate::sample::tasks::{SplitSide, StoredTask, uid_of};
use crate::store::{Kind, Record, Store};
use passnet_graph::{Diagnostic, FileName, GraphFiles};
use passnet_work::progress::{Progress, Task};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A group of rows is written when it holds this many graphs or bytes: what memory holds, and what a reader skips.
const GROUP_ROWS: usize = 4_096;
const GROUP_BYTES: usize = 32 << 20;
/// A table is ended when it is larger: what people download at once.
const TABLE_BYTES: u64 = 256 << 20;

/// Rows of each split of each configuration.
pub(super) type Counts = BTreeMap<(&'static str, &'static str), u64>;

/// Writes tables and card below `out`, which must hold no tables yet.
pub fn export_hub(
    store: &Store,
    out: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let tasks = options.tasks(store)?;
    let files: Vec<String> =
        store.file_paths()?.into_iter().filter(|path| options.wants_file(path)).collect();
    options.check(store, &tasks, files.len())?;
    let place = out.join(DATA);
    if place.exists() {
        let message = "there is a dataset here already";
        let hint = "name another folder, or remove this one";
        let error = Diagnostic::file(place.display().to_string(), message).with_hint(hint);
        return Err(ExportError::Write(error));
    }
    // What an interrupted export left has no other use.
    let partial = out.join(format!("{DATA}.partial"));
    match fs::remove_dir_all(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(ExportError::write(&partial, error));
        }
        _ => {}
    }
    let mut counts = write_graphs(store, &partial.join(GRAPHS), options, &tasks, progress)?;
    write_tasks(&partial.join(TASKS), &tasks, &mut counts)?;
    write_files(store, &partial.join(FILES), &files, &mut counts)?;
    write_structures(store, &partial)?;
    write_version(store, &partial)?;
    let readme = out.join("README.md");
    let text = card::card(&counts, &store.content()?.to_string());
    fs::write(&readme, text).map_err(|error| ExportError::write(&readme, error))?;
    fs::rename(&partial, &place).map_err(|error| ExportError::write(&place, error))?;
    let sum = |config| counts.iter().filter(|((of, _), _)| *of == config).map(|(_, n)| n).sum();
    Ok(Exported { graphs: sum(GRAPHS), tasks: sum(TASKS), files: sum(FILES) })
}

/// Which split each graph of a task is in. What is for evaluation in one task is so in all; only what stands in no other
/// task is for training.
fn sides(tasks: &[StoredTask]) -> HashMap<&str, Option<SplitSide>> {
    let strictness = |side: Option<SplitSide>| match side {
        Some(SplitSide::Evaluation) => 3,
        Some(SplitSide::Withheld) => 2,
        None => 1,
        Some(SplitSide::Training) => 0,
    };
    let mut sides: HashMap<&str, Option<SplitSide>> = HashMap::new();
    for task in tasks {
        for graph in &task.graphs {
            let side = sides.entry(&graph.path).or_insert(task.side);
            if strictness(task.side) > strictness(*side) {
                *side = task.side;
            }
        }
    }
    sides
}

fn write_graphs(
    store: &Store,
    folder: &Path,
    options: &ExportOptions,
    tasks: &[StoredTask],
    progress: &dyn Progress,
) -> Result<Counts, ExportError> {
    make_folder(folder)?;
    let (wanted, sides) = (options.filter(tasks), sides(tasks));
    let mut splits: BTreeMap<&str, Shards> = BTreeMap::new();
    let mut counts = Counts::new();
    let mut task = Task::begin(progress, "writing rows", None);
    for record in store.entries() {
        let record = record?;
        if !wanted(&record) {
            continue;
        }
        let split = hub::split_of(sides.get(record.path.as_str()).copied().flatten());
        let graph = store.load(&record)?;
        let shards = splits.entry(split).or_insert_with(|| Shards::new(folder, split));
        shards.push(record, graph)?;
        *counts.entry((GRAPHS, split)).or_insert(0) += 1;
        task.advance(1);
    }
    for shards in splits.into_values() {
        shards.close()?;
    }
    Ok(counts)
}

/// The tables of one split.
struct Shards {
    folder: PathBuf,
    split: &'static str,
    number: usize,
    table: Option<(PathBuf, Table)>,
    rows: Vec<(Record, GraphFiles)>,
    bytes: usize,
}

impl Shards {
    fn new(folder: &Path, split: &'static str) -> Self {
        Self {
            folder: folder.to_owned(),
            split,
            number: 0,
            table: None,
            rows: Vec::new(),
            bytes: 0,
        }
    }

    fn push(&mut self, record: Record, graph: GraphFiles) -> Result<(), ExportError> {
        for (name, bytes) in &graph.files {
            // Columns of text hold text: readers would fail on anything else, and far from here.
            if std::str::from_utf8(bytes).is_err() {
                let path = format!("{}/{name}", graph.path);
                let error =
                    Diagnostic::file(path, "is not UTF-8, so it cannot be a text of a table")
                        .with_hint("write folders instead: `--format folders`");
                return Err(ExportError::Write(error));
            }
        }
        self.bytes += graph.size();
        self.rows.push((record, graph));
        match self.rows.len() >= GROUP_ROWS || self.bytes >= GROUP_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        if rows.is_empty() {
            return Ok(());
        }
        let (path, mut table) = match self.table.take() {
            Some(open) => open,
            None => {
                let name = format!("{}-{:05}.{ENDING}", self.split, self.number);
                self.number += 1;
                let path = self.folder.join(name);
                let table = Table::create(&path, hub::graph_fields());
                let table = table.map_err(|error| ExportError::write(&path, error))?;
                (path, table)
            }
        };
        let written = table.group(|group| graph_rows(group, &rows));
        written.map_err(|error| ExportError::write(&path, error))?;
        match table.size() >= TABLE_BYTES {
            true => table.close().map_err(|error| ExportError::write(&path, error))?,
            false => self.table = Some((path, table)),
        }
        Ok(())
    }

    fn close(mut self) -> Result<(), ExportError> {
        self.flush()?;
        match self.table {
            Some((path, table)) => table.close().map_err(|error| ExportError::write(&path, error)),
            None => Ok(()),
        }
    }
}

fn graph_rows(group: &mut RowGroup<'_>, rows: &[(Record, GraphFiles)]) -> io::Result<()> {
    for name in GRAPH_TEXTS {
        group.texts(rows.iter().map(|(record, _)| text(record, name)))?;
    }
    let shape = |record: &Record| {
        let variant = record.description.variant.as_ref()?;
        // Sizes are varied for whole models and their pieces, not for single operations.
        (record.description.kind != Kind::SoleOp).then_some(i64::from(variant.shape_index))
    };
    group.optional_numbers(rows.iter().map(|(record, _)| shape(record)))?;
    group.numbers(rows.iter().map(|(record, _)| i64::from(record.description.op_count)))?;
    for file in FileName::ALL {
        group.optional_texts(rows.iter().map(|(_, graph)| graph.get(file)))?;
    }
    Ok(())
}

fn text(record: &Record, column: &str) -> String {
    let description = &record.description;
    match column {
        "path" => record.path.clone(),
        "kind" => description.kind.to_string(),
        "family" => layout::family_of(&record.path).to_string(),
        "dtype" => description.variant.as_ref().map_or(String::new(), |v| v.dtype.clone()),
        "uid" => uid_of(record).map_or(String::new(), |uid| uid.to_string()),
        "structure" => description.digests.structure.clone(),
        "literals" => description.digests.literals.clone(),
        _ => description.digests.full.clone(),
    }
}

fn write_tasks(
    folder: &Path,
    tasks: &[StoredTask],
    counts: &mut Counts,
) -> Result<(), ExportError> {
    for split in SPLITS {
        let rows: Vec<&StoredTask> =
            tasks.iter().filter(|task| hub::split_of(task.side) == split).collect();
        if rows.is_empty() {
            continue;
        }
        make_folder(folder)?;
        let path = folder.join(format!("{split}.{ENDING}"));
        write_table(&path, hub::task_fields(), rows.chunks(GROUP_ROWS), task_rows)?;
        counts.insert((TASKS, split), rows.len() as u64);
    }
    Ok(())
}

fn task_rows(group: &mut RowGroup<'_>, rows: &[&StoredTask]) -> io::Result<()> {
    group.texts(rows.iter().map(|task| &task.id))?;
    group.texts(rows.iter().map(|task| task.kind.as_str()))?;
    group.texts(rows.iter().map(|task| task.list_name()))?;
    group.texts(rows.iter().map(|task| task.rule.name()))?;
    group.optional_texts(rows.iter().map(|task| task.path.as_ref()))?;
    group.lists(rows.iter().map(|task| &task.ops))?;
    group.lists(rows.iter().map(|task| task.graphs.iter().map(|graph| &graph.path)))?;
    group.lists(rows.iter().map(|task| task.graphs.iter().map(|graph| &graph.uid)))
}

fn write_files(
    store: &Store,
    folder: &Path,
    paths: &[String],
    counts: &mut Counts,
) -> Result<(), ExportError> {
    if paths.is_empty() {
        return Ok(());
    }
    make_folder(folder)?;
    let path = folder.join(format!("all.{ENDING}"));
    let failed = |error: io::Error| ExportError::write(&path, error);
    let mut table = Table::create(&path, hub::file_fields()).map_err(failed)?;
    for paths in paths.chunks(GROUP_ROWS) {
        let mut files = Vec::new();
        for path in paths {
            files.extend(store.file(path)?);
        }
        let written = table.group(|group| {
            group.texts(files.iter().map(|file| &file.path))?;
            group.texts(files.iter().map(|file| file.body.kind()))?;
            group.texts(files.iter().map(|file| file.body.bytes()))
        });
        written.map_err(failed)?;
        *counts.entry((FILES, "all")).or_insert(0) += files.len() as u64;
    }
    table.close().map_err(failed)
}

fn write_table<T>(
    path: &Path,
    fields: Vec<crate::parquet::Field>,
    groups: impl Iterator<Item = T>,
    write: impl Fn(&mut RowGroup<'_>, T) -> io::Result<()>,
) -> Result<(), ExportError> {
    let written = Table::create(path, fields).and_then(|mut table| {
        for rows in groups {
            table.group(|group| write(group, rows))?;
        }
        table.close()
    });
    written.map_err(|error| ExportError::write(path, error))
}

/// Of a benchmark set: the structures of training tasks, a line each, so that anyone can look for theirs.
fn write_structures(store: &Store, data: &Path) -> Result<(), ExportError> {
    let Some(noted) = store.note(TRAINING_NOTE)? else { return Ok(()) };
    let mut text = String::with_capacity(noted.len() * 2);
    for digits in noted.as_bytes().chunks(NOTED_DIGITS) {
        text.push_str(&String::from_utf8_lossy(digits));
        text.push('\n');
    }
    let path = data.join(hub::TRAINING_STRUCTURES);
    fs::write(&path, text).map_err(|error| ExportError::write(&path, error))
}

/// Of a benchmark set: which version it is.
fn write_version(store: &Store, data: &Path) -> Result<(), ExportError> {
    let Some(version) = store.note(VERSION_NOTE)? else { return Ok(()) };
    let path = data.join(hub::VERSION);
    fs::write(&path, format!("{version}\n")).map_err(|error| ExportError::write(&path, error))
}

fn make_folder(folder: &Path) -> Result<(), ExportError> {
    fs::create_dir_all(folder).map_err(|error| ExportError::write(folder, error))
}
