//! Tables for the Hugging Face hub: `graphs.parquet` with a row for each graph, its description and its files as
//! columns, and `tasks.parquet` with a row for each task and the graphs it is made of.

use super::table::{RowGroup, Table, lists, optional, required, strings};
use super::{ExportError, ExportOptions, Exported};
use crate::progress::{Progress, Task};
use crate::sample::tasks::{StoredTask, uid_of};
use crate::store::{Kind, Record, Store};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type};
use parquet::errors::ParquetError;
use passnet_graph::{FileName, GraphFiles};
use std::fs;
use std::path::Path;

/// A row group is written when it holds this many graphs or bytes: what memory holds, and what a reader skips.
const GROUP_ROWS: usize = 4_096;
const GROUP_BYTES: usize = 64 << 20;

/// Columns of text that every graph has, before the numbers and the files.
const GRAPH_TEXTS: [&str; 7] = ["path", "kind", "dtype", "uid", "structure", "literals", "full"];

const TASK_SCHEMA: &str = "message task {
  REQUIRED BYTE_ARRAY id (UTF8);
  REQUIRED BYTE_ARRAY kind (UTF8);
  REQUIRED BYTE_ARRAY side (UTF8);
  REQUIRED GROUP graphs (LIST) { REPEATED GROUP list { REQUIRED BYTE_ARRAY element (UTF8); } }
  REQUIRED GROUP uids (LIST) { REPEATED GROUP list { REQUIRED BYTE_ARRAY element (UTF8); } }
}";

/// Writes both tables below `out`.
pub fn export_parquet(
    store: &Store,
    out: &Path,
    options: &ExportOptions,
    progress: &dyn Progress,
) -> Result<Exported, ExportError> {
    let tasks = options.tasks(store)?;
    options.check(store, &tasks, 0)?;
    fs::create_dir_all(out).map_err(|error| ExportError::write(out, error))?;
    let graphs = write_graphs(store, &out.join("graphs.parquet"), options, &tasks, progress)?;
    let mut table = Table::create(out.join("tasks.parquet"), TASK_SCHEMA)?;
    for rows in tasks.chunks(GROUP_ROWS) {
        table.group(|group| write_task_rows(group, rows))?;
    }
    table.close()?;
    Ok(Exported { graphs, tasks: tasks.len() as u64, files: 0 })
}

fn write_graphs(
    store: &Store,
    file: &Path,
    options: &ExportOptions,
    tasks: &[StoredTask],
    progress: &dyn Progress,
) -> Result<u64, ExportError> {
    let wanted = options.filter(tasks);
    let mut table = Table::create(file.to_owned(), &graph_schema())?;
    let mut task = Task::begin(progress, "writing rows", None);
    let mut rows: Vec<(Record, GraphFiles)> = Vec::new();
    let (mut bytes, mut count) = (0, 0);
    for record in store.entries() {
        let record = record?;
        if !wanted(&record) {
            continue;
        }
        let graph = store.load(&record)?;
        bytes += graph.size();
        rows.push((record, graph));
        count += 1;
        task.advance(1);
        if rows.len() >= GROUP_ROWS || bytes >= GROUP_BYTES {
            table.group(|group| write_graph_rows(group, &rows))?;
            rows.clear();
            bytes = 0;
        }
    }
    if !rows.is_empty() {
        table.group(|group| write_graph_rows(group, &rows))?;
    }
    table.close()?;
    Ok(count)
}

fn graph_schema() -> String {
    let mut text = String::from("message graph {\n");
    for name in GRAPH_TEXTS {
        text.push_str(&format!("  REQUIRED BYTE_ARRAY {name} (UTF8);\n"));
    }
    text.push_str("  OPTIONAL INT32 shape_index;\n  REQUIRED INT32 op_count;\n");
    for file in FileName::ALL {
        // Dots would read as nesting.
        let name = file.as_str().replace('.', "_");
        text.push_str(&format!("  OPTIONAL BYTE_ARRAY {name} (UTF8);\n"));
    }
    text.push('}');
    text
}

fn write_graph_rows(
    group: &mut RowGroup<'_>,
    rows: &[(Record, GraphFiles)],
) -> Result<(), ParquetError> {
    for name in GRAPH_TEXTS {
        let texts: Vec<String> = rows.iter().map(|(record, _)| text(record, name)).collect();
        strings(group, texts.iter().map(String::as_str))?;
    }
    let shape = |record: &Record| {
        let variant = record.description.variant.as_ref()?;
        // Sizes are varied for whole models and their pieces, not for single operations.
        (record.description.kind != Kind::SoleOp).then_some(variant.shape_index as i32)
    };
    optional::<Int32Type>(group, rows.iter().map(|(record, _)| shape(record)))?;
    let counts = rows.iter().map(|(record, _)| record.description.op_count as i32);
    required::<Int32Type>(group, counts)?;
    for file in FileName::ALL {
        let bytes = |graph: &GraphFiles| Some(ByteArray::from(graph.get(file)?.to_vec()));
        optional::<ByteArrayType>(group, rows.iter().map(|(_, graph)| bytes(graph)))?;
    }
    Ok(())
}

fn text(record: &Record, column: &str) -> String {
    let description = &record.description;
    match column {
        "path" => record.path.clone(),
        "kind" => description.kind.to_string(),
        "dtype" => description.variant.as_ref().map_or(String::new(), |v| v.dtype.clone()),
        "uid" => uid_of(record).map_or(String::new(), |uid| uid.to_string()),
        "structure" => description.digests.structure.clone(),
        "literals" => description.digests.literals.clone(),
        _ => description.digests.full.clone(),
    }
}

fn write_task_rows(group: &mut RowGroup<'_>, rows: &[StoredTask]) -> Result<(), ParquetError> {
    strings(group, rows.iter().map(|task| task.id.as_str()))?;
    strings(group, rows.iter().map(|task| task.kind.as_str()))?;
    strings(group, rows.iter().map(StoredTask::list_name))?;
    lists(group, rows.iter().map(|task| task.graphs.iter().map(|graph| graph.path.as_str())))?;
    lists(group, rows.iter().map(|task| task.graphs.iter().map(|graph| graph.uid.as_str())))
}
