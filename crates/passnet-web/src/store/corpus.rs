//! The dataset, as far as it can be browsed: graphs, their operations, their tasks.

use super::Store;
use crate::Error;
use passnet_dataset::layout;
use passnet_dataset::sample::tasks::load as load_tasks;
use passnet_dataset::store::Store as Dataset;
use passnet_graph::FileName;
use passnet_graph::read::read_folder;
use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// One graph of the dataset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CorpusGraph {
    pub path: String,
    pub kind: String,
    pub family: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub structure: String,
    pub operations: i64,
}

/// How often an operation is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OperationCount {
    pub operation: String,
    pub graphs: i64,
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
        let mut count = 0;
        self.write(|connection| {
            connection.execute("DELETE FROM dataset", [])?;
            connection.execute("DELETE FROM dataset_operation", [])?;
            let mut insert = connection.prepare(
                "INSERT INTO dataset (path, kind, family, task, structure, operations, model)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            let mut operation = connection.prepare(
                "INSERT INTO dataset_operation (operation, path, calls) VALUES (?1, ?2, ?3)",
            )?;
            for record in dataset.entries() {
                let record = record.map_err(failed)?;
                let files = dataset.load(&record).map_err(failed)?;
                let model = files.get(FileName::Model).unwrap_or_default();
                let description = &record.description;
                insert.execute(params![
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
                    let name = call.op().map(|op| op.name().to_string());
                    let name = name.unwrap_or_else(|| call.target.op_name().into_owned());
                    *calls.entry(name).or_default() += 1;
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

    /// All operations, the most used first.
    pub fn operations(&self) -> Result<Vec<OperationCount>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT operation, count(*), sum(calls) FROM dataset_operation
                 GROUP BY operation ORDER BY count(*) DESC, operation",
            )?;
            let rows = statement.query_map([], |row| {
                Ok(OperationCount {
                    operation: row.get(0)?,
                    graphs: row.get(1)?,
                    calls: row.get(2)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Graphs of the dataset, by path: those with an operation, or all; and how many there are.
    pub fn corpus(
        &self,
        operation: &str,
        skip: usize,
        limit: usize,
    ) -> Result<(Vec<CorpusGraph>, usize), Error> {
        const WHERE: &str =
            "?1 = '' OR path IN (SELECT path FROM dataset_operation WHERE operation = ?1)";
        self.read(|connection| {
            let mut count = connection
                .prepare_cached(&format!("SELECT count(*) FROM dataset WHERE {WHERE}"))?;
            let all: i64 = count.query_row([operation], |row| row.get(0))?;
            let mut statement = connection.prepare_cached(&format!(
                "SELECT path, kind, family, task, structure, operations FROM dataset WHERE {WHERE}
                 ORDER BY path LIMIT ?2 OFFSET ?3"
            ))?;
            let rows =
                statement.query_map(params![operation, limit as i64, skip as i64], corpus_graph)?;
            Ok((rows.collect::<Result<_, _>>()?, usize::try_from(all).unwrap_or(0)))
        })
    }

    /// A graph of the dataset by its number in the order of paths, with its model's text.
    pub fn corpus_graph(&self, number: usize) -> Result<Option<(CorpusGraph, String)>, Error> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT path, kind, family, task, structure, operations, model FROM dataset
                 ORDER BY path LIMIT 1 OFFSET ?1",
            )?;
            let found =
                statement.query_row([number as i64], |row| Ok((corpus_graph(row)?, row.get(6)?)));
            Ok(found.optional()?)
        })
    }

    /// The number of a graph in the order of paths.
    pub fn corpus_number(&self, path: &str) -> Result<usize, Error> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT count(*) FROM dataset WHERE path < ?1")?;
            let number: i64 = statement.query_row([path], |row| row.get(0))?;
            Ok(usize::try_from(number).unwrap_or(0))
        })
    }

    /// The models of the dataset by path, at most so many.
    pub fn corpus_models(&self, limit: usize) -> Result<Vec<(String, String)>, Error> {
        self.read(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT path, model FROM dataset ORDER BY path LIMIT ?1")?;
            let rows = statement.query_map([limit as i64], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

fn corpus_graph(row: &rusqlite::Row<'_>) -> rusqlite::Result<CorpusGraph> {
    Ok(CorpusGraph {
        path: row.get(0)?,
        kind: row.get(1)?,
        family: row.get(2)?,
        task: row.get(3)?,
        structure: row.get(4)?,
        operations: row.get(5)?,
    })
}
