//! Frames between the engine and its worker: a fixed head, a JSON object, then raw bytes (see `frames.py`).

use serde_json::{Map, Value as Json};
use std::fs::File;
use std::io::{self, Read, Seek, Write};

const MAGIC: [u8; 4] = *b"PNW1";
/// The raw bytes do not follow: they lie at the beginning of the shared memory.
const MAGIC_SHARED: [u8; 4] = *b"PNA1";
/// Changes whenever the meaning of a message does.
pub(super) const VERSION: u32 = 4;
/// It grows no larger, for it never shrinks; more bytes go through the pipe.
const MAX_SHARED: u64 = 256 << 20;
const MAX_JSON: u32 = 64 << 20;
const MAX_BYTES: u64 = 16 << 30;
/// Raw bytes are read in pieces, so that a lying head cannot take memory that never comes.
const PIECE: u64 = 64 << 20;

/// One message.
#[derive(Debug)]
pub struct Frame {
    /// What is asked or answered.
    pub message: Map<String, Json>,
    /// Elements of tensors that go with it.
    pub bytes: Vec<u8>,
}

/// Writes a frame, its raw bytes in several parts.
pub fn write(into: &mut impl Write, message: &Json, parts: &[impl AsRef<[u8]>]) -> io::Result<()> {
    write_with(into, message, parts, None)
}

/// Writes a frame, its raw bytes into the shared memory where there is one.
pub(super) fn write_with(
    into: &mut impl Write,
    message: &Json,
    parts: &[impl AsRef<[u8]>],
    shared: Option<&File>,
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "the message is too long");
    let json = u32::try_from(text.len()).ok().filter(|n| *n <= MAX_JSON).ok_or_else(too_long)?;
    let bytes: u64 = parts.iter().map(|part| part.as_ref().len() as u64).sum();
    let shared = shared.filter(|_| (1..=MAX_SHARED).contains(&bytes));
    if let Some(mut shared) = shared {
        shared.rewind()?;
        parts.iter().try_for_each(|part| shared.write_all(part.as_ref()))?;
    }
    into.write_all(if shared.is_some() { &MAGIC_SHARED } else { &MAGIC })?;
    into.write_all(&json.to_le_bytes())?;
    into.write_all(&bytes.to_le_bytes())?;
    into.write_all(&text)?;
    if shared.is_none() {
        parts.iter().try_for_each(|part| into.write_all(part.as_ref()))?;
    }
    into.flush()
}

/// A frame of the worker, whose raw bytes may lie in the shared memory.
pub(super) fn read_with(from: &mut impl Read, shared: Option<&File>) -> io::Result<Frame> {
    read_frame(from, MAX_BYTES, shared)
}

/// A frame with so many raw bytes at most, all of which come through the pipe.
pub fn read_up_to(from: &mut impl Read, most: u64) -> io::Result<Frame> {
    read_frame(from, most, None)
}

fn read_frame(from: &mut impl Read, most: u64, shared: Option<&File>) -> io::Result<Frame> {
    let mut head = [0; 16];
    from.read_exact(&mut head)?;
    let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_string());
    let (magic, rest) = head.split_at(4);
    let (json, bytes) = rest.split_at(4);
    let shared = match (magic, shared) {
        (magic, _) if magic == MAGIC => None,
        (magic, Some(shared)) if magic == MAGIC_SHARED => Some(shared),
        _ => return Err(broken("a frame begins with other bytes than it must")),
    };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
    let (json, bytes) = (number(json), number(bytes));
    if json > u64::from(MAX_JSON) || bytes > most {
        return Err(broken("a frame is longer than frames may be"));
    }
    let text = take(from, json)?;
    let message = match serde_json::from_slice(&text) {
        Ok(Json::Object(message)) => message,
        Ok(_) => return Err(broken("a frame holds no object")),
        Err(error) => return Err(broken(&format!("a frame holds no JSON: {error}"))),
    };
    let bytes = match shared {
        None => take(from, bytes)?,
        Some(mut shared) => {
            shared.rewind()?;
            take(&mut shared, bytes).map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => {
                    broken("the bytes of a frame are not in the shared memory")
                }
                _ => error,
            })?
        }
    };
    Ok(Frame { message, bytes })
}

fn take(from: &mut impl Read, count: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count.min(PIECE) as usize);
    let mut left = count;
    while left > 0 {
        let piece = left.min(PIECE);
        if from.take(piece).read_to_end(&mut bytes)? as u64 != piece {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= piece;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(from: &mut impl Read) -> io::Result<Frame> {
        read_up_to(from, MAX_BYTES)
    }

    #[test]
    fn a_frame_comes_back_as_it_went() {
        let shared = tempfile::tempfile().unwrap();
        for shared in [None, Some(&shared)] {
            for content in ["abc", "a"] {
                let mut pipe = Vec::new();
                let parts = [content.as_bytes(), b"de"];
                write_with(&mut pipe, &json!({"call": "run"}), &parts, shared).unwrap();
                let frame = read_with(&mut pipe.as_slice(), shared).unwrap();
                assert_eq!(Json::Object(frame.message), json!({"call": "run"}));
                assert_eq!(frame.bytes, format!("{content}de").into_bytes());
            }
        }
    }

    #[test]
    fn bytes_in_an_area_that_is_not_there_or_too_short_are_an_error() {
        let shared = tempfile::tempfile().unwrap();
        let mut pipe = Vec::new();
        write_with(&mut pipe, &json!({}), &[b"abc"], Some(&shared)).unwrap();
        assert!(read(&mut pipe.as_slice()).is_err());
        shared.set_len(2).unwrap();
        assert!(read_with(&mut pipe.as_slice(), Some(&shared)).is_err());
    }

    proptest! {
        /// Whatever comes down a pipe is a frame or an error: no panic, no memory that never came.
        #[test]
        fn any_bytes_are_a_frame_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            magic in any::<bool>(),
        ) {
            let mut pipe = if magic { MAGIC.to_vec() } else { Vec::new() };
            pipe.extend(bytes);
            let _ = read(&mut pipe.as_slice());
        }

        #[test]
        fn a_damaged_frame_is_never_read_as_another(at in 0usize..40, flip in 1u8..) {
            let mut pipe = Vec::new();
            let message = json!({"outputs": [1, 2, 3]});
            write(&mut pipe, &message, &[b"12345678"]).unwrap();
            let at = at % 16;
            pipe[at] ^= flip;
            if let Ok(frame) = read(&mut pipe.as_slice()) {
                prop_assert!(frame.bytes.len() < 8, "only a shorter payload can pass: {frame:?}");
            }
        }
    }
}
