//! As much of HTTP/1.1 as an environment needs, with limits on all of it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_BODY_BYTES: usize = 4 << 20;
const MAX_HEADERS: usize = 64;
/// How long a connection may be silent between two requests.
const IDLE: Duration = Duration::from_secs(300);
/// How long one request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Request {
    pub method: String,
    pub path: String,
    pub host: Option<String>,
    pub authorization: Option<String>,
    pub has_origin: bool,
    pub keep_alive: bool,
    pub body: Vec<u8>,
}

/// A request that is not answered with 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub status: u16,
    pub message: String,
}

impl Failure {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Self {
        Failure { status, message: message.into() }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Failure::new(400, message)
    }

    pub(super) fn busy(message: impl Into<String>) -> Self {
        Failure::new(503, message)
    }

    pub(super) fn body(&self) -> Value {
        json!({ "error": self.message })
    }
}

/// The next request; `None` when the other side has gone or was silent for too long.
pub(super) fn read(reader: &mut BufReader<TcpStream>) -> Result<Option<Request>, Failure> {
    let wait = |reader: &BufReader<TcpStream>, time: Duration| {
        reader.get_ref().set_read_timeout(Some(time.max(Duration::from_millis(1)))).is_ok()
    };
    if !wait(reader, IDLE) || !matches!(reader.fill_buf(), Ok(bytes) if !bytes.is_empty()) {
        return Ok(None);
    }
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !wait(reader, left) {
            return Err(Failure::new(408, "the request takes too long"));
        }
        let Ok(bytes) = reader.fill_buf() else {
            return Err(Failure::new(408, "the request takes too long"));
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        let before = head.len();
        head.extend_from_slice(bytes);
        // The end may lie across two pieces.
        let from = before.saturating_sub(3);
        let end =
            head[from..].windows(4).position(|four| four == b"\r\n\r\n").map(|at| from + at + 4);
        match end {
            Some(end) => {
                reader.consume(end - before);
                head.truncate(end);
                break;
            }
            None => reader.consume(head.len() - before),
        }
        if head.len() > MAX_HEAD_BYTES {
            return Err(Failure::new(431, "the head of the request is too large"));
        }
    }
    let (mut request, length) = parse(&head)?;
    let mut body = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !wait(reader, left) {
            return Err(Failure::new(408, "the request takes too long"));
        }
        match reader.read(&mut body[filled..]) {
            Ok(0) | Err(_) => return Err(Failure::bad("the body ends too early")),
            Ok(read) => filled += read,
        }
    }
    request.body = body;
    Ok(Some(request))
}

/// The head, and the length of the body.
fn parse(head: &[u8]) -> Result<(Request, usize), Failure> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    parsed.parse(head).map_err(|error| Failure::bad(format!("not a request: {error}")))?;
    let value = |name: &str| {
        let found = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| String::from_utf8_lossy(header.value).trim().to_string())
    };
    if value("transfer-encoding").is_some() {
        return Err(Failure::new(501, "send the body in one piece, with `content-length`"));
    }
    let length = match value("content-length") {
        Some(text) => text.parse().map_err(|_| Failure::bad("`content-length` is no number"))?,
        None => 0,
    };
    if length > MAX_BODY_BYTES {
        return Err(Failure::new(413, format!("the body may have {MAX_BODY_BYTES} bytes")));
    }
    let says_close = value("connection").is_some_and(|text| text.eq_ignore_ascii_case("close"));
    let request = Request {
        method: parsed.method.unwrap_or("").to_string(),
        path: parsed.path.unwrap_or("").split('?').next().unwrap_or("").to_string(),
        host: value("host"),
        authorization: value("authorization"),
        has_origin: value("origin").is_some(),
        keep_alive: parsed.version == Some(1) && !says_close,
        body: Vec::new(),
    };
    Ok((request, length))
}

pub(super) fn write(
    stream: &mut TcpStream,
    status: u16,
    body: &Value,
    keep_alive: bool,
) -> std::io::Result<()> {
    let body = body.to_string();
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let retry = if status == 503 { "retry-after: 1\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{retry}connection: {connection}\r\n\r\n",
        if status == 200 { "OK" } else { "Error" },
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}
