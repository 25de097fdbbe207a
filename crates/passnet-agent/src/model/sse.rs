//! Server-sent events: the lines in which both protocols stream their replies.

use std::io::{BufRead, Error, ErrorKind, Read};

/// One line longer than this ends the stream.
const MAX_LINE_BYTES: u64 = 8 << 20;
/// A whole stream may not be longer: framing adds to what a reply says, but not without end.
const MAX_STREAM_BYTES: u64 = 256 << 20;

/// One event: its name where the stream gives one, and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Empty where the stream gives none.
    pub name: String,
    /// Its lines, joined.
    pub data: String,
}

/// Reads events one by one.
#[derive(Debug)]
pub struct Events<R> {
    reader: R,
    left: u64,
}

impl<R: BufRead> Events<R> {
    /// Reads nothing yet; a stream that is too long is an error later.
    pub fn new(reader: R) -> Self {
        Events { reader, left: MAX_STREAM_BYTES }
    }

    /// The next event; `None` at the end of the stream. An event the stream breaks off in is left out.
    pub fn next_event(&mut self) -> std::io::Result<Option<Event>> {
        let mut name = String::new();
        let mut data: Option<String> = None;
        while let Some(line) = self.line()? {
            if line.is_empty() {
                match data.take() {
                    Some(data) => return Ok(Some(Event { name, data })),
                    None => name.clear(),
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => name = value.to_string(),
                "data" => match &mut data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    None => data = Some(value.to_string()),
                },
                // Comments (an empty field name), ids and retry times are of no use here.
                _ => {}
            }
        }
        Ok(None)
    }

    /// A whole line without its end; `None` at the end of the stream, also in the middle of a line.
    fn line(&mut self) -> std::io::Result<Option<String>> {
        let mut line = Vec::new();
        let limit = MAX_LINE_BYTES.min(self.left);
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut line)? as u64;
        self.left -= read;
        if line.pop() != Some(b'\n') {
            return match read == limit {
                true => Err(Error::new(ErrorKind::InvalidData, "an endless event stream")),
                false => Ok(None),
            };
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8]) -> Vec<(String, String)> {
        let mut events = Events::new(text);
        let mut found = Vec::new();
        while let Some(event) = events.next_event().unwrap() {
            found.push((event.name, event.data));
        }
        found
    }

    #[test]
    fn events_end_at_blank_lines_and_comments_are_skipped() {
        let text =
            b": hello\n\nevent: ping\ndata: {}\n\ndata:one\ndata: two\r\n\r\nid: 7\ndata: x\n\n";
        let found = all(text);
        let expected = [("ping", "{}"), ("", "one\ntwo"), ("", "x")];
        assert_eq!(found, expected.map(|(a, b)| (a.to_string(), b.to_string())));
    }

    #[test]
    fn a_torn_event_is_left_out() {
        for cut in ["data: a\n\ndata: b", "data: a\n\ndata: b\n", "data: a\n\nda"] {
            assert_eq!(all(cut.as_bytes()), [(String::new(), "a".to_string())]);
        }
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        let endless = std::io::BufReader::new(std::io::repeat(b'x'));
        let error = Events::new(endless).next_event().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
}
