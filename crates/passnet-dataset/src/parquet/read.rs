//! Tables, read a column of a group of rows at a time. A table comes from anywhere: every length is bounded before memory is
//! taken for it, and what does not fit together is an error that names the file and the column.

use super::thrift::{self, Fields};
use super::*;
use passnet_graph::Diagnostic;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const MOST_FOOTER_BYTES: u64 = 64 << 20;
/// Of one column of a group of rows, packed and unpacked.
const MOST_CHUNK_BYTES: usize = 1 << 30;
const MOST_ROWS: usize = 1 << 24;
/// Groups inside groups.
const DEEPEST: usize = 16;

/// A table that is open for reading.
#[derive(Debug)]
pub struct Reader {
    name: String,
    file: File,
    length: u64,
    columns: Vec<Stored>,
    groups: Vec<Fields>,
}

/// A column as the file has it.
#[derive(Debug)]
struct Stored {
    /// The name of the field of the table that it belongs to.
    top: String,
    physical: i64,
    most_defined: u16,
    most_repeated: u16,
}

/// A column of a group of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cells {
    /// Texts or bytes.
    Texts(Vec<Option<Vec<u8>>>),
    /// Whole numbers of either width.
    Numbers(Vec<Option<i64>>),
    /// A list of texts in each row.
    Lists(Vec<Vec<Vec<u8>>>),
}

/// Values of a column without their rows.
enum Values {
    Texts(Vec<Vec<u8>>),
    Numbers(Vec<i64>),
}

impl Reader {
    /// Reads what the table says of itself; its rows are read on demand.
    pub fn open(path: &Path) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        let fail = |message: String| Diagnostic::file(name.as_str(), message);
        let unread = |error: std::io::Error| fail(format!("cannot be read: {error}"));
        let mut file = File::open(path).map_err(unread)?;
        let length = file.metadata().map_err(unread)?.len();
        let no_table = || fail("is no Parquet table".into());
        let mut tail = [0; 8];
        file.seek(SeekFrom::Start(length.saturating_sub(8))).map_err(unread)?;
        file.read_exact(&mut tail).map_err(|_| no_table())?;
        if &tail[4..] != MAGIC {
            return Err(no_table());
        }
        let size = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        let start = (length - 8).checked_sub(size).filter(|_| size <= MOST_FOOTER_BYTES);
        let start =
            start.ok_or_else(|| fail("the table's footer has no possible length".into()))?;
        let mut footer = vec![0; usize::try_from(size).unwrap_or(0)];
        file.seek(SeekFrom::Start(start)).map_err(unread)?;
        file.read_exact(&mut footer).map_err(unread)?;
        let damaged = || fail("the table's footer cannot be read".into());
        let (footer, _) = thrift::read(&footer).ok_or_else(damaged)?;
        let schema = footer.structures(2);
        let columns = columns(&schema).ok_or_else(damaged)?;
        let groups: Vec<Fields> = footer.structures(4).into_iter().cloned().collect();
        Ok(Self { name, file, length: start, columns, groups })
    }

    /// How many groups of rows there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is a column of this name.
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|stored| stored.top == column)
    }

    /// A column of a group of rows.
    pub fn column(&mut self, group: usize, column: &str) -> Result<Cells, Diagnostic> {
        let name = self.name.clone();
        let fail = |why: &str| {
            let message = format!("column `{}`: {why}", column.escape_debug());
            Diagnostic::file(name.as_str(), message)
        };
        let place = self.columns.iter().position(|stored| stored.top == column);
        let place = place.ok_or_else(|| fail("the table does not have it"))?;
        let rows = self.groups.get(group).and_then(|group| group.number(3));
        let rows = rows.and_then(|rows| usize::try_from(rows).ok()).filter(|r| *r <= MOST_ROWS);
        let rows = rows.ok_or_else(|| fail("the group has no possible number of rows"))?;
        let chunk =
            self.groups[group].structures(1).get(place).and_then(|chunk| chunk.structure(3));
        let chunk = chunk.ok_or_else(|| fail("it is not described"))?;
        let codec = chunk.number(4).unwrap_or(-1);
        let starts = [9, 11].map(|id| chunk.number(id).and_then(|start| u64::try_from(start).ok()));
        let start = starts.into_iter().flatten().filter(|start| *start > 0).min();
        let size = chunk.number(7).and_then(|size| usize::try_from(size).ok());
        let (Some(start), Some(size)) = (start, size) else {
            return Err(fail("its place is not given"));
        };
        let end = start.checked_add(size as u64).filter(|end| *end <= self.length);
        if size > MOST_CHUNK_BYTES || end.is_none() {
            return Err(fail("it would lie beyond the table's end"));
        }
        let mut bytes = vec![0; size];
        let read =
            self.file.seek(SeekFrom::Start(start)).and_then(|_| self.file.read_exact(&mut bytes));
        read.map_err(|error| fail(&format!("cannot be read: {error}")))?;
        let stored = &self.columns[place];
        Chunk { stored, codec, rows, bytes: &bytes, place: 0, dictionary: None, unpacked: 0 }
            .read()
            .map_err(fail)
    }

    /// A column of texts in which every row has a value.
    pub fn texts(&mut self, group: usize, column: &str) -> Result<Vec<String>, Diagnostic> {
        let cells = self.column(group, column)?;
        let Cells::Texts(cells) = cells else {
            return Err(self.wrong(group, column, 0, "a text is expected"));
        };
        let text = |(row, cell): (usize, Option<Vec<u8>>)| {
            let bytes =
                cell.ok_or_else(|| self.wrong(group, column, row, "the text is missing"))?;
            String::from_utf8(bytes)
                .map_err(|_| self.wrong(group, column, row, "the text is not UTF-8"))
        };
        cells.into_iter().enumerate().map(text).collect()
    }

    /// A column with a list of texts for each row.
    pub fn lists(&mut self, group: usize, column: &str) -> Result<Vec<Vec<String>>, Diagnostic> {
        let Cells::Lists(rows) = self.column(group, column)? else {
            return Err(self.wrong(group, column, 0, "a list of texts is expected"));
        };
        let texts = |(row, texts): (usize, Vec<Vec<u8>>)| {
            let texts: Result<Vec<String>, _> = texts.into_iter().map(String::from_utf8).collect();
            texts.map_err(|_| self.wrong(group, column, row, "a text of the list is not UTF-8"))
        };
        rows.into_iter().enumerate().map(texts).collect()
    }

    fn wrong(&self, group: usize, column: &str, row: usize, why: &str) -> Diagnostic {
        let message = format!("column `{column}`, row {} of group {}: {why}", row + 1, group + 1);
        Diagnostic::file(self.name.as_str(), message)
    }
}

/// The columns of a schema, which lists every field before those inside it.
fn columns(schema: &[&Fields]) -> Option<Vec<Stored>> {
    let mut found = Vec::new();
    let mut place = 1;
    let fields = schema.first()?.number(5)?;
    for _ in 0..fields {
        let top = schema.get(place)?.text(4)?.to_string();
        descend(schema, &mut place, &top, (0, 0), 0, &mut found)?;
    }
    Some(found)
}

fn descend(
    schema: &[&Fields],
    place: &mut usize,
    top: &str,
    (mut defined, mut repeated): (u16, u16),
    depth: usize,
    found: &mut Vec<Stored>,
) -> Option<()> {
    let field = schema.get(*place)?;
    *place += 1;
    let repetition = field.number(3)?;
    defined += u16::from(repetition != REQUIRED);
    repeated += u16::from(repetition == REPEATED);
    match field.number(5).filter(|count| *count > 0) {
        None => found.push(Stored {
            top: top.into(),
            physical: field.number(1)?,
            most_defined: defined,
            most_repeated: repeated,
        }),
        Some(_) if depth >= DEEPEST => return None,
        Some(count) => {
            for _ in 0..count {
                descend(schema, place, top, (defined, repeated), depth + 1, found)?;
            }
        }
    }
    Some(())
}

/// The pages of a column in a group of rows.
struct Chunk<'a> {
    stored: &'a Stored,
    codec: i64,
    rows: usize,
    bytes: &'a [u8],
    place: usize,
    dictionary: Option<Values>,
    unpacked: usize,
}

/// A page without its header.
struct Page {
    body: Vec<u8>,
    repeated: Vec<u32>,
    defined: Vec<u32>,
    encoding: i64,
}

const DAMAGED: &str = "it is damaged";

impl Chunk<'_> {
    fn read(mut self) -> Result<Cells, &'static str> {
        let (mut cells, mut rows) = (Cells::empty(self.stored)?, 0);
        while self.place < self.bytes.len() && rows < self.rows {
            let Some(page) = self.page()? else { continue };
            let most = u32::from(self.stored.most_defined);
            let count = page.defined.iter().filter(|level| **level == most).count();
            let values = self.values(&page.body, page.encoding, count)?;
            let starts = page.repeated.iter().map(|level| *level == 0);
            rows += page.repeated.iter().filter(|level| **level == 0).count();
            let there = page.defined.iter().map(|level| *level == most);
            cells.extend(values, starts.zip(there))?;
        }
        match rows == self.rows {
            true => Ok(cells),
            false => Err("it has another number of rows than its group"),
        }
    }

    /// The next page, if it is one of values.
    fn page(&mut self) -> Result<Option<Page>, &'static str> {
        let (header, length) = thrift::read(&self.bytes[self.place..]).ok_or(DAMAGED)?;
        self.place += length;
        let number = |fields: &Fields, id| {
            fields.number(id).and_then(|number| usize::try_from(number).ok()).ok_or(DAMAGED)
        };
        let (size, packed) = (number(&header, 2)?, number(&header, 3)?);
        let end = self.place.checked_add(packed).filter(|end| *end <= self.bytes.len());
        let raw = &self.bytes[self.place..end.ok_or(DAMAGED)?];
        self.place += packed;
        self.unpacked = self.unpacked.saturating_add(size);
        if self.unpacked > MOST_CHUNK_BYTES {
            return Err("it is too large");
        }
        match (header.number(1).unwrap_or(-1), header.structure(5), header.structure(8)) {
            (DICTIONARY_PAGE, ..) => {
                let fields = header.structure(7).ok_or(DAMAGED)?;
                let body = self.unpack(raw, size)?;
                self.dictionary = Some(self.plain(&body, number(fields, 1)?)?);
                Ok(None)
            }
            (DATA_PAGE, Some(fields), _) => {
                let count = number(fields, 1)?;
                let mut body = self.unpack(raw, size)?;
                let repeated = self.prefixed(&mut body, self.stored.most_repeated, count)?;
                let defined = self.prefixed(&mut body, self.stored.most_defined, count)?;
                let encoding = fields.number(2).ok_or(DAMAGED)?;
                Ok(Some(Page { body, repeated, defined, encoding }))
            }
            (DATA_PAGE_V2, _, Some(fields)) => {
                let count = checked(number(fields, 1)?)?;
                let (defined, repeated) = (number(fields, 5)?, number(fields, 6)?);
                let levels = repeated.checked_add(defined).filter(|end| *end <= raw.len());
                let levels = levels.filter(|end| *end <= size).ok_or(DAMAGED)?;
                let body = match fields.number(7) {
                    Some(0) => raw[levels..].to_vec(),
                    _ => self.unpack(&raw[levels..], size - levels)?,
                };
                let read =
                    |bytes, most| levels::read(bytes, levels::bits(most), count).ok_or(DAMAGED);
                Ok(Some(Page {
                    body,
                    repeated: read(&raw[..repeated], self.stored.most_repeated)?,
                    defined: read(&raw[repeated..levels], self.stored.most_defined)?,
                    encoding: fields.number(4).ok_or(DAMAGED)?,
                }))
            }
            _ => Ok(None),
        }
    }

    fn unpack(&self, raw: &[u8], size: usize) -> Result<Vec<u8>, &'static str> {
        let body = match self.codec {
            UNCOMPRESSED => raw.to_vec(),
            SNAPPY => snappy::unpack(raw, size).ok_or(DAMAGED)?,
            ZSTD => zstd::bulk::decompress(raw, size).map_err(|_| DAMAGED)?,
            _ => return Err("it is compressed in another way than by zstd or snappy"),
        };
        if body.len() == size { Ok(body) } else { Err(DAMAGED) }
    }

    /// Takes levels with their length in front off the beginning of a page.
    fn prefixed(
        &self,
        body: &mut Vec<u8>,
        most: u16,
        count: usize,
    ) -> Result<Vec<u32>, &'static str> {
        let count = checked(count)?;
        if most == 0 {
            return Ok(vec![0; count]);
        }
        let length = body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize);
        let end = length.and_then(|length| length.checked_add(4)).ok_or(DAMAGED)?;
        let levels = body.get(4..end).ok_or(DAMAGED)?;
        let levels = levels::read(levels, levels::bits(most), count).ok_or(DAMAGED)?;
        body.drain(..end);
        Ok(levels)
    }

    fn values(&self, body: &[u8], encoding: i64, count: usize) -> Result<Values, &'static str> {
        match (encoding, &self.dictionary) {
            (PLAIN, _) => self.plain(body, count),
            (PLAIN_DICTIONARY | RLE_DICTIONARY, Some(dictionary)) => {
                let (width, places) = body.split_first().ok_or(DAMAGED)?;
                let places = levels::read(places, u32::from(*width), count).ok_or(DAMAGED)?;
                let mut total = 0usize;
                let mut text = |texts: &[Vec<u8>], place: u32| {
                    let text = texts.get(place as usize).ok_or(DAMAGED)?;
                    total = total.saturating_add(text.len());
                    if total > MOST_CHUNK_BYTES { Err("it is too large") } else { Ok(text.clone()) }
                };
                let places = places.into_iter();
                match dictionary {
                    Values::Texts(texts) => {
                        places.map(|p| text(texts, p)).collect::<Result<_, _>>().map(Values::Texts)
                    }
                    Values::Numbers(numbers) => places
                        .map(|place| numbers.get(place as usize).copied().ok_or(DAMAGED))
                        .collect::<Result<_, _>>()
                        .map(Values::Numbers),
                }
            }
            _ => Err("its values are neither plain nor in a dictionary"),
        }
    }

    fn plain(&self, body: &[u8], count: usize) -> Result<Values, &'static str> {
        let size = match self.stored.physical {
            1 => 4,
            2 => 8,
            _ => {
                let mut rest = body;
                let mut texts = Vec::new();
                for _ in 0..count {
                    let (length, after) = rest.split_first_chunk().ok_or(DAMAGED)?;
                    let length = u32::from_le_bytes(*length) as usize;
                    let (text, after) = after.split_at_checked(length).ok_or(DAMAGED)?;
                    texts.push(text.to_vec());
                    rest = after;
                }
                return Ok(Values::Texts(texts));
            }
        };
        let end = count.checked_mul(size).filter(|end| *end <= body.len()).ok_or(DAMAGED)?;
        let number = |bytes: &[u8]| match *bytes {
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes)),
        };
        Ok(Values::Numbers(body[..end].chunks(size).map(number).collect()))
    }
}

fn checked(count: usize) -> Result<usize, &'static str> {
    if count <= MOST_ROWS { Ok(count) } else { Err("a page of it has too many values") }
}

impl Cells {
    fn empty(stored: &Stored) -> Result<Self, &'static str> {
        match (stored.physical, stored.most_repeated) {
            (BYTE_ARRAY, 0) => Ok(Self::Texts(Vec::new())),
            (BYTE_ARRAY, 1) => Ok(Self::Lists(Vec::new())),
            (1 | 2, 0) => Ok(Self::Numbers(Vec::new())),
            _ => Err("it holds neither texts nor whole numbers"),
        }
    }

    /// Adds what a page has: for each place whether a row starts there, and whether there is a value.
    fn extend(
        &mut self,
        values: Values,
        places: impl Iterator<Item = (bool, bool)>,
    ) -> Result<(), &'static str> {
        match (self, values) {
            (Self::Texts(cells), Values::Texts(values)) => {
                let mut values = values.into_iter();
                cells.extend(places.map(|(_, there)| if there { values.next() } else { None }));
            }
            (Self::Numbers(cells), Values::Numbers(values)) => {
                let mut values = values.into_iter();
                cells.extend(places.map(|(_, there)| if there { values.next() } else { None }));
            }
            (Self::Lists(rows), Values::Texts(values)) => {
                let mut values = values.into_iter();
                for (starts, there) in places {
                    if starts {
                        rows.push(Vec::new());
                    }
                    let row = rows.last_mut().ok_or(DAMAGED)?;
                    row.extend(if there { values.next() } else { None });
                }
            }
            _ => return Err(DAMAGED),
        }
        Ok(())
    }
}
