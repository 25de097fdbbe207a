//! What goes through pipes: a line of JSON, and after it as many bytes as the line says.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, Error, Read, Result, Write};

/// A longer line is no message of ours.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// More than a unit's input or result may be.
const MAX_PAYLOAD_BYTES: u64 = 4 << 30;

/// The line, and the length of what follows it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Framed<T> {
    #[serde(default)]
    bytes: u64,
    #[serde(flatten)]
    message: T,
}

/// Writes one frame whole.
pub fn write(to: &mut impl Write, message: &impl Serialize, payload: &[u8]) -> Result<()> {
    let framed = Framed { bytes: payload.len() as u64, message };
    let mut line = serde_json::to_vec(&framed)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.write_all(payload)?;
    to.flush()
}

/// The next message; `None` at the end.
pub fn read<T: DeserializeOwned>(from: &mut impl BufRead) -> Result<Option<(T, Vec<u8>)>> {
    let mut line = Vec::new();
    from.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() != Some(&b'\n') {
        return Err(Error::other("a message without an end"));
    }
    let framed: Framed<T> = serde_json::from_slice(&line)?;
    if framed.bytes > MAX_PAYLOAD_BYTES {
        return Err(Error::other(format!("a message with {} bytes", framed.bytes)));
    }
    let mut payload = Vec::new();
    from.by_ref().take(framed.bytes).read_to_end(&mut payload)?;
    match payload.len() as u64 == framed.bytes {
        true => Ok(Some((framed.message, payload))),
        false => Err(Error::other("a message that was cut off")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn messages_come_out_as_they_went_in_and_damage_is_an_error() {
        let mut pipe = Vec::new();
        write(&mut pipe, &json!({"unit": 1}), b"\n{}\n").unwrap();
        write(&mut pipe, &json!({"unit": 2}), b"").unwrap();
        let mut from = &pipe[..];
        let (message, payload): (Value, _) = read(&mut from).unwrap().unwrap();
        assert_eq!((&message["unit"], &payload[..]), (&json!(1), &b"\n{}\n"[..]));
        assert_eq!(read::<Value>(&mut from).unwrap().unwrap().0["unit"], 2);
        assert!(read::<Value>(&mut from).unwrap().is_none());
        for cut in 1..24 {
            assert!(read::<Value>(&mut &pipe[..cut]).is_err(), "{cut}");
        }
        for wrong in ["!!\n", "[]\n", "{\"bytes\":99999999999}\n", "{\"bytes\":-1}\n"] {
            assert!(read::<Value>(&mut wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
