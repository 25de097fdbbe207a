//! Tables for the Hugging Face hub: `graphs.parquet` with a row for each graph, its description and its files as
//! columns, and `tasks.parquet` with a row for each task and the graphs it is made of.
//!
//! Only the format's own writer is used, without Arrow: both tables are small in columns and written once. A table
//! gets its name when it is complete, so that an interrupted export leaves none that looks whole.

use super::{ExportError, ExportOptions, Exported};
use crate::progress::{Progress, Task};
use crate::sample::tasks::{StoredTask, uid_of};
use crate::store::{Kind, Record, Store};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use passnet_graph::{FileName, GraphFiles};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// A table being written, under another name until it is complete.
struct Table {
    file: PathBuf,
    partial: PathBuf,
    writer: SerializedFileWriter<File>,
}

impl Table {
    fn create(file: PathBuf, schema: &str) -> Result<Self, ExportError> {
        let fail = |error: ParquetError| ExportError::write(&file, error);
        let schema = parse_message_type(schema).map_err(fail)?;
        let compression = Compression::ZSTD(ZstdLevel::default());
        let properties = WriterProperties::builder().set_compression(compression).build();
        let partial = file.with_extension("parquet.partial");
        let target = File::create(&partial).map_err(|error| ExportError::write(&partial, error))?;
        let writer = SerializedFileWriter::new(target, Arc::new(schema), Arc::new(properties))
            .map_err(fail)?;
        Ok(Self { file, partial, writer })
    }

    fn group(
        &mut self,
        write: impl FnOnce(&mut Group<'_>) -> Result<(), ParquetError>,
    ) -> Result<(), ExportError> {
        let written = self.writer.next_row_group().and_then(|mut group| {
            write(&mut group)?;
            group.close().map(|_| ())
        });
        written.map_err(|error| ExportError::write(&self.partial, error))
    }

    fn close(self) -> Result<(), ExportError> {
        self.writer.close().map_err(|error| ExportError::write(&self.partial, error))?;
        fs::rename(&self.partial, &self.file).map_err(|error| ExportError::write(&self.file, error))
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, File>;

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
    group: &mut Group<'_>,
    rows: &[(Record, GraphFiles)],
) -> Result<(), ParquetError> {
    for name in GRAPH_TEXTS {
        let texts: Vec<String> = rows.iter().map(|(record, _)| text(record, name)).collect();
        required(group, texts.iter().map(|text| ByteArray::from(text.as_str())))?;
    }
    let shape = |record: &Record| {
        let variant = record.description.variant.as_ref()?;
        // Sizes are varied for whole models and their pieces, not for single operations.
        (record.description.kind != Kind::SoleOp).then_some(variant.shape_index as i32)
    };
    optional::<Int32Type>(group, rows.iter().map(|(record, _)| shape(record)))?;
    let counts = rows.iter().map(|(record, _)| record.description.op_count as i32);
    write::<Int32Type>(group, &counts.collect::<Vec<_>>(), None, None)?;
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

fn write_task_rows(group: &mut Group<'_>, rows: &[StoredTask]) -> Result<(), ParquetError> {
    required(group, rows.iter().map(|task| ByteArray::from(task.id.as_str())))?;
    required(group, rows.iter().map(|task| ByteArray::from(task.kind.as_str())))?;
    required(group, rows.iter().map(|task| ByteArray::from(task.list_name())))?;
    lists(group, rows, |task| task.graphs.iter().map(|graph| graph.path.as_str()).collect())?;
    lists(group, rows, |task| task.graphs.iter().map(|graph| graph.uid.as_str()).collect())
}

/// One list for each row: a level of 0 starts a row, 1 continues it.
fn lists<'a>(
    group: &mut Group<'_>,
    rows: &'a [StoredTask],
    items: impl Fn(&'a StoredTask) -> Vec<&'a str>,
) -> Result<(), ParquetError> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let items = items(row);
        if items.is_empty() {
            defined.push(0);
            repeated.push(0);
        }
        for (place, item) in items.into_iter().enumerate() {
            values.push(ByteArray::from(item));
            defined.push(1);
            repeated.push(i16::from(place > 0));
        }
    }
    write::<ByteArrayType>(group, &values, Some(&defined), Some(&repeated))
}

fn required(
    group: &mut Group<'_>,
    values: impl Iterator<Item = ByteArray>,
) -> Result<(), ParquetError> {
    write::<ByteArrayType>(group, &values.collect::<Vec<_>>(), None, None)
}

fn optional<T: DataType>(
    group: &mut Group<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.collect();
    let defined: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    write::<T>(group, &values, Some(&defined), None)
}

/// Fills the next column of the schema, which has exactly those that are written.
fn write<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    defined: Option<&[i16]>,
    repeated: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let next = group.next_column()?;
    let mut column =
        next.ok_or_else(|| ParquetError::General("the schema has no more columns".into()))?;
    column.typed::<T>().write_batch(values, defined, repeated)?;
    column.close()
}
