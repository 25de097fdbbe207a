//! Tables, written column by column. A table gets its name when it is complete, so that an interrupted export leaves none
//! that looks whole.

use super::thrift::Structure;
use super::*;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Values of a page take so many bytes at most, unless a single one is longer: what a reader holds at once.
const PAGE_BYTES: usize = 4 << 20;
/// How strongly pages are compressed.
const LEVEL: i32 = 6;

/// A table being written, under another name until it is complete.
#[derive(Debug)]
pub struct Table {
    file: PathBuf,
    partial: PathBuf,
    out: BufWriter<File>,
    written: u64,
    fields: Vec<Field>,
    columns: Vec<Leaf>,
    groups: Vec<(Structure, u64)>,
}

/// A column as it is stored.
#[derive(Debug, Clone)]
struct Leaf {
    path: Vec<String>,
    values: Type,
    optional: bool,
    listed: bool,
}

impl Table {
    /// Begins a table with these fields.
    pub fn create(file: &Path, fields: Vec<Field>) -> io::Result<Self> {
        let mut partial = file.as_os_str().to_owned();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let mut out = BufWriter::new(File::create(&partial)?);
        out.write_all(MAGIC)?;
        let mut columns = Vec::new();
        fields.iter().for_each(|field| leaves(field, &mut Vec::new(), false, &mut columns));
        let written = MAGIC.len() as u64;
        Ok(Self { file: file.to_owned(), partial, out, written, fields, columns, groups: vec![] })
    }

    /// Bytes written so far.
    pub fn size(&self) -> u64 {
        self.written
    }

    /// Writes rows: `fill` gives every column, in the order of the fields.
    pub fn group(
        &mut self,
        fill: impl FnOnce(&mut RowGroup<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut group = RowGroup { table: self, chunks: Vec::new(), rows: None, bytes: 0 };
        fill(&mut group)?;
        let RowGroup { chunks, rows, bytes, .. } = group;
        if chunks.len() != self.columns.len() {
            return Err(io::Error::other("not every column of the table was written"));
        }
        let rows = rows.unwrap_or(0);
        let group = Structure::default().structures(1, chunks).i64(2, bytes).i64(3, rows as i64);
        self.groups.push((group, rows));
        Ok(())
    }

    /// Ends the table and gives it its name.
    pub fn close(mut self) -> io::Result<()> {
        let rows: u64 = self.groups.iter().map(|(_, rows)| rows).sum();
        let root = Structure::default().text(4, "schema").i32(5, self.fields.len() as i64);
        let mut schema = vec![root];
        self.fields.iter().for_each(|field| elements(field, &mut schema));
        let footer = Structure::default()
            .i32(1, 1)
            .structures(2, schema)
            .i64(3, rows as i64)
            .structures(4, self.groups.into_iter().map(|(group, _)| group).collect())
            .text(6, concat!("passnet ", env!("CARGO_PKG_VERSION")))
            .finish();
        let length = u32::try_from(footer.len()).map_err(io::Error::other)?;
        self.out.write_all(&footer)?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(MAGIC)?;
        self.out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&self.partial, &self.file)
    }
}

fn leaves(field: &Field, above: &mut Vec<String>, listed: bool, found: &mut Vec<Leaf>) {
    match field {
        Field::Column { name, values, optional } => {
            let path = above.iter().chain([name]).cloned().collect();
            found.push(Leaf { path, values: *values, optional: *optional, listed });
        }
        Field::Group { name, fields } => {
            above.push(name.clone());
            fields.iter().for_each(|field| leaves(field, above, listed, found));
            above.pop();
        }
        Field::List { name, element } => {
            above.extend([name.clone(), LIST.into()]);
            leaves(element, above, true, found);
            above.truncate(above.len() - 2);
        }
    }
}

/// The schema as the footer has it: each field before those inside it.
fn elements(field: &Field, found: &mut Vec<Structure>) {
    match field {
        Field::Column { name, values, optional } => {
            let repetition = if *optional { OPTIONAL } else { REQUIRED };
            let element = Structure::default().i32(1, values.physical()).i32(3, repetition);
            let element = element.text(4, name);
            found.push(match values {
                Type::Text => {
                    let string = Structure::default().structure(1, Structure::default());
                    element.i32(6, UTF8).structure(10, string)
                }
                _ => element,
            });
        }
        Field::Group { name, fields } => {
            let group = Structure::default().i32(3, REQUIRED).text(4, name);
            found.push(group.i32(5, fields.len() as i64));
            fields.iter().for_each(|field| elements(field, found));
        }
        Field::List { name, element } => {
            let outer = Structure::default().i32(3, REQUIRED).text(4, name).i32(5, 1);
            let list = Structure::default().structure(3, Structure::default());
            found.push(outer.i32(6, CONVERTED_LIST).structure(10, list));
            found.push(Structure::default().i32(3, REPEATED).text(4, LIST).i32(5, 1));
            elements(element, found);
        }
    }
}

/// Rows that are written together, column by column.
#[derive(Debug)]
pub struct RowGroup<'a> {
    table: &'a mut Table,
    chunks: Vec<Structure>,
    rows: Option<u64>,
    bytes: i64,
}

impl RowGroup<'_> {
    /// A column of texts or bytes.
    pub fn texts<T: AsRef<[u8]>>(&mut self, values: impl IntoIterator<Item = T>) -> io::Result<()> {
        self.optional_texts(values.into_iter().map(Some))
    }

    /// A column of texts or bytes that may be missing.
    pub fn optional_texts<T: AsRef<[u8]>>(
        &mut self,
        values: impl IntoIterator<Item = Option<T>>,
    ) -> io::Result<()> {
        let mut column = Column::begin(self, &[Type::Text, Type::Bytes], false)?;
        for value in values {
            column.row()?;
            column.value(value.as_ref().map(AsRef::as_ref))?;
        }
        column.end()
    }

    /// A column of whole numbers, each of which fits its type.
    pub fn numbers(&mut self, values: impl IntoIterator<Item = i64>) -> io::Result<()> {
        self.optional_numbers(values.into_iter().map(Some))
    }

    /// A column of whole numbers that may be missing.
    pub fn optional_numbers(
        &mut self,
        values: impl IntoIterator<Item = Option<i64>>,
    ) -> io::Result<()> {
        let mut column = Column::begin(self, &[Type::Int32, Type::Int64], false)?;
        for value in values {
            column.row()?;
            column.number(value)?;
        }
        column.end()
    }

    /// A column with a list of texts for each row.
    pub fn lists<T: AsRef<[u8]>>(
        &mut self,
        rows: impl IntoIterator<Item = impl IntoIterator<Item = T>>,
    ) -> io::Result<()> {
        let mut column = Column::begin(self, &[Type::Text, Type::Bytes], true)?;
        for row in rows {
            column.row()?;
            let mut is_empty = true;
            for item in row {
                column.repeated.push(u8::from(!is_empty));
                column.value(Some(item.as_ref()))?;
                is_empty = false;
            }
            if is_empty {
                column.repeated.push(0);
                column.value(None)?;
            }
        }
        column.end()
    }
}

/// A column of a group while it is written.
struct Column<'g, 't> {
    group: &'g mut RowGroup<'t>,
    leaf: Leaf,
    /// Where its first page begins.
    start: u64,
    rows: u64,
    count: u64,
    unpacked: u64,
    // Of the page that is filled:
    defined: Vec<u8>,
    repeated: Vec<u8>,
    values: Vec<u8>,
}

impl<'g, 't> Column<'g, 't> {
    fn begin(group: &'g mut RowGroup<'t>, types: &[Type], listed: bool) -> io::Result<Self> {
        let leaf = group.table.columns.get(group.chunks.len());
        let suits = |leaf: &&Leaf| types.contains(&leaf.values) && leaf.listed == listed;
        let wrong = || io::Error::other("the table's next column is of another type");
        let leaf = leaf.filter(suits).ok_or_else(wrong)?.clone();
        let start = group.table.written;
        let (defined, repeated, values) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { group, leaf, start, rows: 0, count: 0, unpacked: 0, defined, repeated, values })
    }

    /// Pages end where rows do.
    fn row(&mut self) -> io::Result<()> {
        self.rows += 1;
        if self.values.len() >= PAGE_BYTES { self.page() } else { Ok(()) }
    }

    fn value(&mut self, value: Option<&[u8]>) -> io::Result<()> {
        if let Some(value) = value {
            let length = u32::try_from(value.len()).map_err(io::Error::other)?;
            self.values.extend_from_slice(&length.to_le_bytes());
            self.values.extend_from_slice(value);
        }
        self.define(value.is_some())
    }

    fn number(&mut self, value: Option<i64>) -> io::Result<()> {
        match (value, self.leaf.values) {
            (Some(value), Type::Int32) => {
                let value = i32::try_from(value).map_err(io::Error::other)?;
                self.values.extend_from_slice(&value.to_le_bytes());
            }
            (Some(value), _) => self.values.extend_from_slice(&value.to_le_bytes()),
            (None, _) => {}
        }
        self.define(value.is_some())
    }

    fn define(&mut self, is_there: bool) -> io::Result<()> {
        if !is_there && !self.leaf.optional && !self.leaf.listed {
            return Err(io::Error::other("a row lacks a value that it must have"));
        }
        self.count += 1;
        self.defined.push(u8::from(is_there));
        Ok(())
    }

    fn page(&mut self) -> io::Result<()> {
        let mut body = Vec::with_capacity(self.values.len() + 64);
        let mut levels = |levels: &[u8]| {
            let packed = levels::write(levels);
            body.extend_from_slice(&(packed.len() as u32).to_le_bytes());
            body.extend_from_slice(&packed);
        };
        if self.leaf.listed {
            levels(&self.repeated);
        }
        if self.leaf.listed || self.leaf.optional {
            levels(&self.defined);
        }
        body.append(&mut self.values);
        let packed = zstd::bulk::compress(&body, LEVEL)?;
        let size = |bytes: &[u8]| i32::try_from(bytes.len()).map_err(io::Error::other);
        let data = Structure::default()
            .i32(1, self.defined.len() as i64)
            .i32(2, PLAIN)
            .i32(3, RLE)
            .i32(4, RLE);
        let header = Structure::default()
            .i32(1, DATA_PAGE)
            .i32(2, size(&body)?.into())
            .i32(3, size(&packed)?.into())
            .structure(5, data)
            .finish();
        let table = &mut self.group.table;
        table.out.write_all(&header)?;
        table.out.write_all(&packed)?;
        table.written += (header.len() + packed.len()) as u64;
        self.unpacked += (header.len() + body.len()) as u64;
        self.defined.clear();
        self.repeated.clear();
        Ok(())
    }

    fn end(mut self) -> io::Result<()> {
        if !self.defined.is_empty() || self.count == 0 {
            self.page()?;
        }
        let packed = self.group.table.written - self.start;
        let description = Structure::default()
            .i32(1, self.leaf.values.physical())
            .i32s(2, &[PLAIN, RLE])
            .texts(3, &self.leaf.path)
            .i32(4, ZSTD)
            .i64(5, self.count as i64)
            .i64(6, self.unpacked as i64)
            .i64(7, packed as i64)
            .i64(9, self.start as i64);
        let chunk = Structure::default().i64(2, self.start as i64).structure(3, description);
        let group = self.group;
        if group.rows.is_some_and(|rows| rows != self.rows) {
            return Err(io::Error::other("the columns of a group have different numbers of rows"));
        }
        group.rows = Some(self.rows);
        group.bytes += self.unpacked as i64;
        group.chunks.push(chunk);
        Ok(())
    }
}
