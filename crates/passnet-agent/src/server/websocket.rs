//! As much of WebSocket (RFC 6455) as an environment needs: text messages, with limits on their size and their time.
//!
//! Clients ask every few seconds whether somebody is there, also while a step is judged for minutes. So one thread reads and
//! answers such questions, and another one works.

use super::http::{self, Failure, IDLE, MAX_BODY_BYTES, PATIENCE};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The protocol's own constant, which a server mixes into the client's key to show that it speaks the protocol.
const MIXED_IN: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Messages that wait while one is worked on.
const MAX_WAITING: usize = 4;
const MAX_CONTROL_BYTES: u64 = 125;
/// How long a client may take to read the last words.
const GOODBYE: Duration = Duration::from_secs(2);

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

/// Why a connection ends, as the protocol numbers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Normal = 1000,
    Protocol = 1002,
    NotText = 1003,
    NotUtf8 = 1007,
    TooMany = 1008,
    TooLarge = 1009,
}

/// What a frame is, and what it holds.
struct Frame {
    is_last: bool,
    kind: u8,
    payload: Vec<u8>,
}

/// Agrees to speak, then gives every text message to `work` and sends what it answers, until either side has enough.
pub(super) fn serve(
    reader: &mut BufReader<TcpStream>,
    key: &str,
    mut work: impl FnMut(&str) -> Option<String> + Send,
) -> Result<(), Failure> {
    let gone = |_| Failure::bad("the client has gone");
    let mut stream = reader.get_ref().try_clone().map_err(gone)?;
    let accepted =
        STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{MIXED_IN}").as_bytes()));
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: {accepted}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).map_err(gone)?;
    // Nothing is said after good-bye.
    let stream = Mutex::new((stream, false));
    let send = |kind: u8, payload: &[u8]| {
        let mut held = stream.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, is_closed) = &mut *held;
        let was_closed = std::mem::replace(is_closed, *is_closed || kind == CLOSE);
        !was_closed && stream.write_all(&frame(kind, payload)).is_ok()
    };
    let (sender, messages) = sync_channel::<String>(MAX_WAITING);
    std::thread::scope(|scope| {
        let send = &send;
        scope.spawn(move || {
            for message in messages {
                let is_sent = match work(&message) {
                    Some(answer) => send(TEXT, answer.as_bytes()),
                    None => {
                        send(CLOSE, &(End::Normal as u16).to_be_bytes());
                        false
                    }
                };
                if !is_sent {
                    break;
                }
            }
        });
        let end = read_all(
            reader,
            |payload| send(PONG, payload),
            |message| match sender.try_send(message) {
                Ok(()) => Ok(()),
                Err(TrySendError::Full(_)) => Err(End::TooMany),
                // The worker has said good-bye.
                Err(TrySendError::Disconnected(_)) => Err(End::Normal),
            },
        );
        // What is under way is finished, and nobody waits for the answer.
        drop(sender);
        send(CLOSE, &(end as u16).to_be_bytes());
    });
    Ok(())
}

/// Closes, once the client has had the time to read the last words.
pub(super) fn part(reader: &mut BufReader<TcpStream>) {
    // It may be closed already.
    let _ = reader.get_ref().shutdown(Shutdown::Write);
    http::drain(reader, GOODBYE);
}

/// Reads until the connection ends, and says why.
fn read_all(
    reader: &mut BufReader<TcpStream>,
    pong: impl Fn(&[u8]) -> bool,
    take: impl Fn(String) -> Result<(), End>,
) -> End {
    // A message in pieces, and until when all of it must be there.
    let mut begun: Option<(Vec<u8>, Instant)> = None;
    loop {
        if !http::waits_for_more(reader, IDLE) {
            return End::Normal;
        }
        let deadline =
            begun.as_ref().map_or_else(|| Instant::now() + PATIENCE, |(_, until)| *until);
        let held = begun.as_ref().map_or(0, |(text, _)| text.len());
        let frame = match read_frame(reader, deadline, held) {
            Ok(frame) => frame,
            Err(end) => return end,
        };
        let (mut text, until) = match (frame.kind, begun.take()) {
            (PING, before) => {
                begun = before;
                match pong(&frame.payload) {
                    true => continue,
                    false => return End::Normal,
                }
            }
            (PONG, before) => {
                begun = before;
                continue;
            }
            (CLOSE, _) => return End::Normal,
            (TEXT, None) => (Vec::new(), deadline),
            (CONTINUATION, Some(before)) => before,
            (BINARY, _) => return End::NotText,
            _ => return End::Protocol,
        };
        text.extend_from_slice(&frame.payload);
        if !frame.is_last {
            begun = Some((text, until));
            continue;
        }
        let Ok(text) = String::from_utf8(text) else { return End::NotUtf8 };
        if let Err(end) = take(text) {
            return end;
        }
    }
}

/// One frame of a client, unmasked. `held` bytes of its message are there already.
fn read_frame(
    reader: &mut BufReader<TcpStream>,
    deadline: Instant,
    held: usize,
) -> Result<Frame, End> {
    let mut read =
        |bytes: &mut [u8]| http::read_exact(reader, bytes, deadline).map_err(|_| End::Normal);
    let mut head = [0; 2];
    read(&mut head)?;
    let (is_last, reserved, kind) = (head[0] & 0x80 != 0, head[0] & 0x70, head[0] & 0x0f);
    let (is_masked, short) = (head[1] & 0x80 != 0, u64::from(head[1] & 0x7f));
    // Clients mask, and nothing was agreed on that would use the reserved bits.
    if !is_masked || reserved != 0 {
        return Err(End::Protocol);
    }
    let length = match short {
        126 => {
            let mut bytes = [0; 2];
            read(&mut bytes)?;
            u64::from(u16::from_be_bytes(bytes))
        }
        127 => {
            let mut bytes = [0; 8];
            read(&mut bytes)?;
            u64::from_be_bytes(bytes)
        }
        short => short,
    };
    let is_control = kind >= CLOSE;
    if is_control && (length > MAX_CONTROL_BYTES || !is_last) {
        return Err(End::Protocol);
    }
    let room = if is_control { MAX_BODY_BYTES } else { MAX_BODY_BYTES - held };
    let length = usize::try_from(length).ok().filter(|length| *length <= room);
    let length = length.ok_or(End::TooLarge)?;
    let mut mask = [0; 4];
    read(&mut mask)?;
    let mut payload = vec![0; length];
    read(&mut payload)?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Ok(Frame { is_last, kind, payload })
}

/// A frame of ours, which is never in pieces and never masked.
fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80 | kind];
    let length = payload.len();
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short), _) if short < 126 => bytes.push(short),
        (_, Ok(middle)) => {
            bytes.push(126);
            bytes.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}
