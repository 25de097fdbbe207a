//! Parquet tables, written column by column.
//!
//! Only the format's own writer is used, without Arrow: tables are small in columns and written once. A table gets its name
//! when it is complete, so that an interrupted export leaves none that looks whole.

use super::ExportError;
use parquet::basic::{Compression, ZstdLevel};
pub use parquet::data_type::Int64Type;
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
pub use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fmt;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;

/// A table being written, under another name until it is complete.
pub struct Table {
    file: PathBuf,
    partial: PathBuf,
    writer: SerializedFileWriter<File>,
}

impl Table {
    pub fn create(file: PathBuf, schema: &str) -> Result<Self, ExportError> {
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

    pub fn group(
        &mut self,
        write: impl FnOnce(&mut RowGroup<'_>) -> Result<(), ParquetError>,
    ) -> Result<(), ExportError> {
        let written = self.writer.next_row_group().and_then(|mut group| {
            write(&mut group)?;
            group.close().map(|_| ())
        });
        written.map_err(|error| ExportError::write(&self.partial, error))
    }

    pub fn close(self) -> Result<(), ExportError> {
        self.writer.close().map_err(|error| ExportError::write(&self.partial, error))?;
        fs::rename(&self.partial, &self.file).map_err(|error| ExportError::write(&self.file, error))
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Rows that are written together.
pub type RowGroup<'a> = SerializedRowGroupWriter<'a, File>;

/// A column that holds one list of texts for each row: a level of 0 starts a row, 1 continues it.
pub fn lists<'a>(
    group: &mut RowGroup<'_>,
    rows: impl Iterator<Item = impl Iterator<Item = &'a str>>,
) -> Result<(), ParquetError> {
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        let before = values.len();
        for item in row {
            repeated.push(i16::from(values.len() > before));
            values.push(ByteArray::from(item));
            defined.push(1);
        }
        if values.len() == before {
            defined.push(0);
            repeated.push(0);
        }
    }
    write::<ByteArrayType>(group, &values, Some(&defined), Some(&repeated))
}

/// A column of texts.
pub fn strings<'a>(
    group: &mut RowGroup<'_>,
    values: impl Iterator<Item = &'a str>,
) -> Result<(), ParquetError> {
    required::<ByteArrayType>(group, values.map(ByteArray::from))
}

/// A column in which every row has a value.
pub fn required<T: DataType>(
    group: &mut RowGroup<'_>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    write::<T>(group, &values.collect::<Vec<_>>(), None, None)
}

pub(super) fn optional<T: DataType>(
    group: &mut RowGroup<'_>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<T::T>> = values.collect();
    let defined: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = values.into_iter().flatten().collect();
    write::<T>(group, &values, Some(&defined), None)
}

/// Fills the next column of the schema, which has exactly those that are written.
fn write<T: DataType>(
    group: &mut RowGroup<'_>,
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
