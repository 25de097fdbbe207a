//! Thrift's compact protocol, in which Parquet writes its headers: structures of numbered fields.

use std::collections::BTreeMap;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Structures inside structures; Parquet has seven.
const DEEPEST: usize = 16;

/// A structure being written.
#[derive(Debug, Default)]
pub(super) struct Structure {
    bytes: Vec<u8>,
    last: i16,
}

impl Structure {
    fn field(&mut self, id: i16, kind: u8) {
        match id - self.last {
            step @ 1..=15 => self.bytes.push((step as u8) << 4 | kind),
            _ => {
                self.bytes.push(kind);
                varint(&mut self.bytes, zigzag(i64::from(id)));
            }
        }
        self.last = id;
    }

    pub(super) fn i32(mut self, id: i16, value: i64) -> Self {
        self.field(id, I32);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub(super) fn i64(mut self, id: i16, value: i64) -> Self {
        self.field(id, I64);
        varint(&mut self.bytes, zigzag(value));
        self
    }

    pub(super) fn text(mut self, id: i16, value: &str) -> Self {
        self.field(id, BINARY);
        binary(&mut self.bytes, value);
        self
    }

    pub(super) fn structure(mut self, id: i16, value: Structure) -> Self {
        self.field(id, STRUCT);
        self.bytes.extend(value.finish());
        self
    }

    pub(super) fn i32s(mut self, id: i16, values: &[i64]) -> Self {
        self.list(id, I32, values.len());
        values.iter().for_each(|value| varint(&mut self.bytes, zigzag(*value)));
        self
    }

    pub(super) fn texts(mut self, id: i16, values: &[String]) -> Self {
        self.list(id, BINARY, values.len());
        values.iter().for_each(|value| binary(&mut self.bytes, value));
        self
    }

    pub(super) fn structures(mut self, id: i16, values: Vec<Structure>) -> Self {
        self.list(id, STRUCT, values.len());
        values.into_iter().for_each(|value| self.bytes.extend(value.finish()));
        self
    }

    fn list(&mut self, id: i16, kind: u8, length: usize) {
        self.field(id, LIST);
        match length {
            0..=14 => self.bytes.push((length as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, length as u64);
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn binary(bytes: &mut Vec<u8>, text: &str) {
    varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// A structure that was read: its fields by number.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fields(BTreeMap<i16, Value>);

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(i64),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Structure(Fields),
    /// A type that Parquet's headers have nothing in that is asked for here.
    Other,
}

impl Fields {
    pub(super) fn number(&self, id: i16) -> Option<i64> {
        match self.0.get(&id)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn text(&self, id: i16) -> Option<&str> {
        match self.0.get(&id)? {
            Value::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    pub(super) fn structure(&self, id: i16) -> Option<&Fields> {
        match self.0.get(&id)? {
            Value::Structure(fields) => Some(fields),
            _ => None,
        }
    }

    /// The structures of a list; those of a field that is not there are none.
    pub(super) fn structures(&self, id: i16) -> Vec<&Fields> {
        let Some(Value::List(values)) = self.0.get(&id) else { return Vec::new() };
        let mut found = Vec::new();
        for value in values {
            if let Value::Structure(fields) = value {
                found.push(fields);
            }
        }
        found
    }
}

/// Reads a structure from the beginning of `bytes` and says how long it is; `None` where it is none.
pub(super) fn read(bytes: &[u8]) -> Option<(Fields, usize)> {
    let mut input = Input { bytes, place: 0 };
    let fields = input.structure(0)?;
    Some((fields, input.place))
}

struct Input<'a> {
    bytes: &'a [u8],
    place: usize,
}

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.place)?;
        self.place += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        read_varint(self.bytes, &mut self.place)
    }

    fn number(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let end = self.place.checked_add(length)?;
        let bytes = self.bytes.get(self.place..end)?.to_vec();
        self.place = end;
        Some(bytes)
    }

    fn structure(&mut self, depth: usize) -> Option<Fields> {
        let mut fields = Fields::default();
        let mut last = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(fields);
            }
            last = match head >> 4 {
                0 => i16::try_from(self.number()?).ok()?,
                step => last.checked_add(i16::from(step))?,
            };
            let value = match head & 0x0f {
                TRUE => Value::Number(1),
                FALSE => Value::Number(0),
                kind => self.value(kind, depth)?,
            };
            fields.0.insert(last, value);
        }
    }

    fn value(&mut self, kind: u8, depth: usize) -> Option<Value> {
        Some(match kind {
            // A truth value in a list has a byte of its own.
            TRUE | FALSE | 3 => Value::Number(i64::from(self.byte()? == TRUE)),
            4..=6 => Value::Number(self.number()?),
            7 => {
                self.take(8)?;
                Value::Other
            }
            BINARY => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            LIST | 10 => {
                let head = self.byte()?;
                let length = match head >> 4 {
                    15 => self.varint()?,
                    length => u64::from(length),
                };
                // Every value takes a byte at least, so the file's own length bounds the list.
                if depth >= DEEPEST || length > self.bytes.len() as u64 {
                    return None;
                }
                let values = (0..length).map(|_| self.value(head & 0x0f, depth + 1));
                Value::List(values.collect::<Option<_>>()?)
            }
            STRUCT if depth < DEEPEST => Value::Structure(self.structure(depth + 1)?),
            _ => return None,
        })
    }
}

/// A number of seven bits a byte, the low ones first.
pub(super) fn read_varint(bytes: &[u8], place: &mut usize) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*place)?;
        *place += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
