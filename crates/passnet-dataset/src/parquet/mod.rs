//! Parquet tables: the part of the format that a dataset needs, written and read without other crates.
//!
//! A table has columns of texts, bytes and whole numbers, which may be missing, lie in groups, and be lists. It is written as
//! every reader of the format takes it: plain values in pages of its first version, compressed by zstd. Tables that others
//! wrote are read as well where their pages are plain or use a dictionary, and are compressed by zstd, snappy or not at all,
//! which is what pyarrow, pandas and `datasets` write.
//!
//! The crate of that name is left out because it costs more of the program's size than there is room for; the table of
//! `docs/dataset.md` has the figures.

mod levels;
mod read;
mod snappy;
mod thrift;
mod write;

pub use read::{Cells, Reader};
pub use write::{RowGroup, Table};

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Whole numbers of 32 bits.
    Int32,
    /// Whole numbers of 64 bits.
    Int64,
    /// Text, which is UTF-8.
    Text,
    /// Anything.
    Bytes,
}

impl Type {
    /// The number of the stored type: texts are bytes that are said to be UTF-8.
    fn physical(self) -> i64 {
        match self {
            Self::Int32 => 1,
            Self::Int64 => 2,
            Self::Text | Self::Bytes => BYTE_ARRAY,
        }
    }
}

/// A field of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum Field {
    /// A value in each row, or none where it is optional.
    Column { name: String, values: Type, optional: bool },
    /// Fields of a common name.
    Group { name: String, fields: Vec<Field> },
    /// A list in each row; its element is called `element`.
    List { name: String, element: Box<Field> },
}

impl Field {
    /// A column in which every row has a value.
    pub fn required(name: &str, values: Type) -> Self {
        Self::Column { name: name.into(), values, optional: false }
    }

    /// A column in which rows may have no value.
    pub fn optional(name: &str, values: Type) -> Self {
        Self::Column { name: name.into(), values, optional: true }
    }

    /// Fields of a common name.
    pub fn group(name: &str, fields: Vec<Field>) -> Self {
        Self::Group { name: name.into(), fields }
    }

    /// A list of texts in each row.
    pub fn texts(name: &str) -> Self {
        Self::list(name, Field::required(ELEMENT, Type::Text))
    }

    /// A list of groups in each row.
    pub fn groups(name: &str, fields: Vec<Field>) -> Self {
        Self::list(name, Field::group(ELEMENT, fields))
    }

    fn list(name: &str, element: Field) -> Self {
        Self::List { name: name.into(), element: Box::new(element) }
    }
}

/// What begins and ends a table.
const MAGIC: &[u8; 4] = b"PAR1";
/// What a list's element is called, and the group around it.
const ELEMENT: &str = "element";
const LIST: &str = "list";

// Numbers of the format.
const BYTE_ARRAY: i64 = 6;
const REQUIRED: i64 = 0;
const OPTIONAL: i64 = 1;
const REPEATED: i64 = 2;
const UTF8: i64 = 0;
const CONVERTED_LIST: i64 = 3;
const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
const UNCOMPRESSED: i64 = 0;
const SNAPPY: i64 = 1;
const ZSTD: i64 = 6;
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;
const DATA_PAGE_V2: i64 = 3;

#[cfg(test)]
mod tests;
