//! The driver's end of a bridge: a thread that listens, and what it hears.

use crate::frame;
use crate::message::{FromBridge, ToBridge};
use std::io::{BufReader, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Messages that wait for the driver; a bridge that has more waits itself.
pub(crate) const MOST_WAITING: usize = 4096;

/// What arrives at a driver.
#[derive(Debug)]
pub enum Incoming {
    /// A message with the bytes that belong to it.
    Bridge(FromBridge, Vec<u8>),
    /// The bridge says nothing any more.
    Closed(String),
    /// There may be new units.
    Wake,
}

/// The two ends of a bridge.
pub struct Bridge {
    to: Box<dyn Write + Send>,
    pub(crate) from: Receiver<Incoming>,
    wake: SyncSender<Incoming>,
}

impl std::fmt::Debug for Bridge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bridge").finish_non_exhaustive()
    }
}

impl Bridge {
    /// Begins to listen.
    pub fn new(
        to: impl Write + Send + 'static,
        from: impl Read + Send + 'static,
    ) -> std::io::Result<Bridge> {
        let (wake, incoming) = sync_channel(MOST_WAITING);
        let tell = wake.clone();
        std::thread::Builder::new().name("bridge".into()).spawn(move || {
            let mut from = BufReader::with_capacity(1 << 16, from);
            loop {
                let message = match frame::read(&mut from) {
                    Ok(Some((message, payload))) => Incoming::Bridge(message, payload),
                    Ok(None) => Incoming::Closed("it ended".into()),
                    Err(error) => Incoming::Closed(error.to_string()),
                };
                let is_last = matches!(message, Incoming::Closed(_));
                // A driver that has ended listens no more.
                if tell.send(message).is_err() || is_last {
                    return;
                }
            }
        })?;
        Ok(Bridge { to: Box::new(to), from: incoming, wake })
    }

    /// For whoever brings units while the driver waits.
    pub fn waker(&self) -> SyncSender<Incoming> {
        self.wake.clone()
    }

    pub(crate) fn send(&mut self, message: &ToBridge, payload: &[u8]) {
        // Where the bridge is gone, its other end says so.
        let _ = frame::write(&mut self.to, message, payload);
    }
}
