//! The dataset, as far as it can be browsed: graphs, their operations, their tasks.

use super::Store;
use crate::Error;
use crate::bundle::parse_model;
use passnet_dataset::layout;
use passnet_dataset::sample::tasks::load as load_tasks;
use passnet_dataset::store::Store as Dataset;
use passnet_graph::read::read_folder;
use passnet_graph::{Call, FileName, Graph};
use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// One graph of the dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CorpusGraph {
    /// In the order of paths, from 0.
    pub number: usize,
    /// In the dataset.
    pub path: String,
    /// Whole, or of what kind of pieces.
    pub kind: String,
    /// The collection that its model comes from.
    pub family: String,
    /// Where it belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Digest of its operations without sizes and numbers.
    pub structure: String,
    /// How many it has.
    pub operations: i64,
}

/// A graph of the dataset, read.
#[derive(Debug)]
pub struct CorpusModel {
    pub(crate) number: usize,
    pub(crate) path: String,
    pub(crate) graph: Graph,
}

/// What a [`CorpusGraph`] is made from.
const GRAPH: &str = "number, path, kind, family, task, structure, operations";
/// Graphs that are read and kept, so that patterns can be looked for in them.
const MODELS: usize = 2000;

/// By what graphs of the dataset can be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shelf {
    /// Graphs that have an operation.
    Operation,
    /// Graphs of a task.
    Task,
    /// Graphs of one structure.
    Structure,
}

impl Shelf {
    /// In the order in which pages list them.
    pub const ALL: [Shelf; 3] = [Shelf::Operation, Shelf::Task, Shelf::Structure];

    /// As it stands in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Shelf::Operation => "operation",
            Shelf::Task => "task",
            Shelf::Structure => "structure",
        }
    }

    /// What graphs on it have, `?1` being a name.
    const fn condition(self) -> &'static str {
        match self {
            Shelf::Operation => "path IN (SELECT path FROM dataset_operation WHERE operation = ?1)",
            Shelf::Task => "task = ?1",
            Shelf::Structure => "structure = ?1",
        }
    }
}

/// One name on a shelf.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shelved {
    /// Of the operation, task or structure.
    pub name: String,
    /// That are on it.
    pub graphs: i64,
    /// Of an operation how often it is called, otherwise how many operations the graphs have.
    pub calls: i64,
}

impl Store {
    /// Replaces what can be browsed by the graphs of a dataset; gives how many there are.
    pub fn import_dataset(&self, path: &Path) -> Result<usize, Error> {
        let failed = |error: passnet_dataset::store::StoreError| Error::input(error.to_string());
        let dataset = Dataset::open(path).map_err(failed)?;
        let mut tasks: BTreeMap<String, String> = BTreeMap::new();
        for task in load_tasks(&dataset).map_err(failed)? {
            tasks.extend(task.graphs.into_iter().map(|graph| (graph.path, task.id.clone())));
        }
        let records = dataset.entries().collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let mut order: Vec<usize> = (0..records.len()).collect();
        order.sort_by_key(|index| &records[*index].path);
        let mut count = 0;
        self.write(|connection| {
            connection.execute("DELETE FROM dataset", [])?;
            connection.execute("DELETE FROM dataset_operation", [])?;
            connection.execute("UPDATE generation SET dataset = dataset + 1", [])?;
            let mut insert = connection.prepare(
                "INSERT INTO dataset (number, path, kind, family, task, structure, operations, model)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            let mut operation = connection.prepare(
                "INSERT INTO dataset_operation (operation, path, calls) VALUES (?1, ?2, ?3)",
            )?;
            for (number, index) in order.iter().enumerate() {
                let record = &records[*index];
                let files = dataset.load(record).map_err(failed)?;
                let model = files.get(FileName::Model).unwrap_or_default();
                let description = &record.description;
                insert.execute(params![
                    number as i64,
                    record.path,
                    description.kind.as_str(),
                    layout::family_of(&record.path),
                    tasks.get(&record.path),
                    description.digests.structure,
                    description.op_count,
                    String::from_utf8_lossy(model),
                ])?;
                // What cannot be read has no operations to count.
                let Ok(folder) = read_folder(&files) else { continue };
                let mut calls: BTreeMap<String, i64> = BTreeMap::new();
                for (_, call) in folder.graph.calls() {
                    *calls.entry(operation_name(call)).or_default() += 1;
                }
                for (name, calls) in calls {
                    operation.execute(params![name, record.path, calls])?;
                }
                count += 1;
            }
            Ok(())
        })?;
        Ok(count)
    }

    /// The names on a shelf, the most used first.
    pub fn shelf(&self, shelf: Shelf) -> Result<Vec<Shelved>, Error> {
        let sql = match shelf {
            Shelf::Operation => {
                "SELECT operation, count(*), sum(calls) FROM dataset_operation
                 GROUP BY operation ORDER BY count(*) DESC, operation"
            }
            Shelf::Task => {
                "SELECT task, count(*), sum(operations) FROM dataset WHERE task IS NOT NULL
                 GROUP BY task ORDER BY count(*) DESC, task"
            }
            Shelf::Structure => {
                "SELECT structure, count(*), sum(operations) FROM dataset
                 GROUP BY structure ORDER BY count(*) DESC, structure"
            }
        };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([], |row| {
                Ok(Shelved { name: row.get(0)?, graphs: row.get(1)?, calls: row.get(2)? })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Graphs of the dataset, by path: those with a name on a shelf, or all; and how many there are.
    pub fn corpus(
        &self,
        of: Option<(Shelf, &str)>,
        skip: usize,
        limit: usize,
    ) -> Result<(Vec<CorpusGraph>, usize), Error> {
        let (condition, name) = match of {
            Some((shelf, name)) => (shelf.condition(), name),
            None => ("?1 = ''", ""),
        };
        self.read(|connection| {
            let mut count = connection
                .prepare_cached(&format!("SELECT count(*) FROM dataset WHERE {condition}"))?;
            let all: i64 = count.query_row([name], |row| row.get(0))?;
            let mut statement = connection.prepare_cached(&format!(
                "SELECT {GRAPH} FROM dataset WHERE {condition} ORDER BY number LIMIT ?2 OFFSET ?3"
            ))?;
            let rows =
                statement.query_map(params![name, limit as i64, skip as i64], corpus_graph)?;
            Ok((rows.collect::<Result<_, _>>()?, usize::try_from(all).unwrap_or(0)))
        })
    }

    /// A graph of the dataset by its number in the order of paths, with its model's text.
    pub fn corpus_graph(&self, number: usize) -> Result<Option<(CorpusGraph, String)>, Error> {
        self.read(|connection| {
            let sql = format!("SELECT {GRAPH}, model FROM dataset WHERE number = ?1");
            let mut statement = connection.prepare_cached(&sql)?;
            let found =
                statement.query_row([number as i64], |row| Ok((corpus_graph(row)?, row.get(7)?)));
            Ok(found.optional()?)
        })
    }

    /// The graphs of the dataset by path, read; at most so many, those that cannot be read left out. They are kept until
    /// another dataset is imported.
    pub fn corpus_models(&self) -> Result<Arc<Vec<CorpusModel>>, Error> {
        let mut kept = self.corpus.lock().unwrap_or_else(PoisonError::into_inner);
        let dataset: i64 = self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT dataset FROM generation")?;
            Ok(statement.query_row([], |row| row.get(0))?)
        })?;
        if let Some((of, models)) = &*kept
            && *of == dataset
        {
            return Ok(models.clone());
        }
        let texts: Vec<(i64, String, String)> = self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT number, path, model FROM dataset ORDER BY number LIMIT ?1",
            )?;
            let rows = statement
                .query_map([MODELS as i64], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?;
        let models = texts.into_iter().filter_map(|(number, path, model)| {
            let graph = parse_model(model.into_bytes()).ok()?;
            Some(CorpusModel { number: usize::try_from(number).ok()?, path, graph })
        });
        let models = Arc::new(models.collect::<Vec<_>>());
        *kept = Some((dataset, models.clone()));
        Ok(models)
    }
}

/// What a call is shelved under: its operation, or what it calls where the table has none for it.
pub(crate) fn operation_name(call: &Call) -> String {
    match call.op() {
        Some(op) => op.name().to_string(),
        None => call.target.op_name().into_owned(),
    }
}

fn corpus_graph(row: &rusqlite::Row<'_>) -> rusqlite::Result<CorpusGraph> {
    Ok(CorpusGraph {
        number: usize::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
        path: row.get(1)?,
        kind: row.get(2)?,
        family: row.get(3)?,
        task: row.get(4)?,
        structure: row.get(5)?,
        operations: row.get(6)?,
    })
}
