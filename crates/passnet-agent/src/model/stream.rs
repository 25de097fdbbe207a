//! A stream of events that is watched: one that stalls is given up long before the call's own limit.
//!
//! The time until the first word may be long, because models think; between two words it may not. Signs of life without
//! words (comments, pings) are no words.

use super::sse::{Event, Events};
use super::{ErrorKind, ModelError};
use serde_json::Value;
use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Events that are read ahead.
const AHEAD: usize = 64;
/// The thread that reads does little else.
const STACK_BYTES: usize = 256 << 10;

/// Events as they arrive.
#[derive(Debug)]
pub(super) struct Stream {
    events: Receiver<std::io::Result<Event>>,
    /// When the next word must have come.
    until: Instant,
    stall: Duration,
    has_begun: bool,
}

impl Stream {
    /// Reads in a thread of its own, which ends with the stream, or with the read after the last that anybody waits for.
    pub(super) fn watch(
        mut events: Events<impl BufRead + Send + 'static>,
        first: Duration,
        stall: Duration,
    ) -> std::io::Result<Stream> {
        let (sender, receiver) = sync_channel(AHEAD);
        let read = move || {
            while let Some(event) = events.next_event().transpose() {
                let is_over = event.is_err();
                if sender.send(event).is_err() || is_over {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("stream".into()).stack_size(STACK_BYTES).spawn(read)?;
        let until = Instant::now() + first;
        Ok(Stream { events: receiver, until, stall, has_begun: false })
    }

    /// The next event as JSON, with its name; `None` at the end. `[DONE]` is null.
    pub(super) fn next_json(&mut self) -> Result<Option<(Event, Value)>, ModelError> {
        let left = self.until.saturating_duration_since(Instant::now());
        let event = match self.events.recv_timeout(left) {
            Ok(event) => event.map_err(|error| ModelError::broken(&error))?,
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => return Err(self.stalled()),
        };
        let value = match event.data.trim() {
            "[DONE]" => Value::Null,
            text => serde_json::from_str(text).map_err(|error| {
                ModelError::new(ErrorKind::Malformed, format!("an event is no JSON: {error}"))
            })?,
        };
        let is_ping = value.get("type").and_then(Value::as_str) == Some("ping");
        if !is_ping {
            self.has_begun = true;
            self.until = Instant::now() + self.stall;
        }
        Ok(Some((event, value)))
    }

    fn stalled(&self) -> ModelError {
        let text = match self.has_begun {
            true => format!("the stream stalled: no word in {} s", self.stall.as_secs_f64()),
            false => "the stream began, but no word came".to_string(),
        };
        ModelError::new(ErrorKind::Timeout, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Read};
    use std::sync::mpsc::{Sender, channel};

    /// Bytes that somebody sends; a read waits for them.
    struct Pipe(Receiver<Vec<u8>>);

    impl Read for Pipe {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let bytes = self.0.recv().unwrap_or_default();
            buffer[..bytes.len()].copy_from_slice(&bytes);
            Ok(bytes.len())
        }
    }

    fn stream(first: Duration, stall: Duration) -> (Sender<Vec<u8>>, Stream) {
        let (sender, receiver) = channel();
        let events = Events::new(BufReader::new(Pipe(receiver)));
        (sender, Stream::watch(events, first, stall).unwrap())
    }

    const LONG: Duration = Duration::from_secs(1000);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn a_stream_that_stalls_after_a_word_has_a_limit_of_its_own() {
        let (sender, mut stream) = stream(LONG, SHORT);
        sender.send(b"data: {\"a\": 1}\n\n".to_vec()).unwrap();
        assert_eq!(stream.next_json().unwrap().unwrap().1["a"], 1);
        let error = stream.next_json().unwrap_err();
        assert!(error.message.contains("stalled") && error.is_worth_another_try(), "{error}");
    }

    #[test]
    fn signs_of_life_are_no_words() {
        let (sender, mut stream) = stream(SHORT, LONG);
        let ping = b": comment\n\ndata: {\"type\": \"ping\"}\n\n";
        sender.send(ping.to_vec()).unwrap();
        let error = loop {
            match stream.next_json() {
                Ok(Some((_, value))) => assert_eq!(value["type"], "ping"),
                Ok(None) => panic!("the stream goes on"),
                Err(error) => break error,
            }
        };
        assert!(error.message.contains("no word came"), "{error}");
    }

    #[test]
    fn a_stream_ends_with_its_reader() {
        let (sender, mut stream) = stream(LONG, LONG);
        sender.send(b"data: [DONE]\n\n".to_vec()).unwrap();
        drop(sender);
        assert!(stream.next_json().unwrap().unwrap().1.is_null());
        assert!(stream.next_json().unwrap().is_none());
    }
}
