//! As much of HTTP/1.1 as an environment needs, with limits on all of it.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const MAX_HEAD_BYTES: usize = 16 << 10;
pub(super) const MAX_BODY_BYTES: usize = 4 << 20;
const MAX_HEADERS: usize = 64;
/// How long a connection may be silent between two requests.
pub(super) const IDLE: Duration = Duration::from_secs(300);
/// How long one request may take to arrive, and an answer to be taken.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub host: Option<String>,
    pub authorization: Option<String>,
    pub has_origin: bool,
    pub keep_alive: bool,
    /// The key of a client that would rather speak WebSocket.
    pub websocket_key: Option<String>,
    /// A session of the Model Context Protocol.
    pub mcp_session: Option<String>,
    pub body: Vec<u8>,
}

impl Request {
    /// A value of the query; none of those we know needs escapes.
    pub(super) fn query(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    }

    pub(super) fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::bad(format!("the body is no JSON: {error}")))
    }
}

/// What is answered.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub body: Option<Value>,
    pub mcp_session: Option<String>,
}

impl From<Value> for Answer {
    fn from(body: Value) -> Self {
        Answer { status: 200, body: Some(body), mcp_session: None }
    }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Self {
        Answer { status: failure.status, body: Some(failure.body()), mcp_session: None }
    }
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

/// A read that waits no longer than this.
fn wait(reader: &BufReader<TcpStream>, time: Duration) -> bool {
    reader.get_ref().set_read_timeout(Some(time.max(Duration::from_millis(1)))).is_ok()
}

/// Whether anything more comes within the time.
pub(super) fn waits_for_more(reader: &mut BufReader<TcpStream>, time: Duration) -> bool {
    wait(reader, time) && matches!(reader.fill_buf(), Ok(bytes) if !bytes.is_empty())
}

/// Reads what still comes and throws it away, within limits: a connection that is closed with unread bytes in it is torn
/// down, and the last words may not arrive.
pub(super) fn drain(reader: &mut BufReader<TcpStream>, time: Duration) {
    let deadline = Instant::now() + time;
    let mut left = 2 * MAX_BODY_BYTES;
    let mut bytes = vec![0; 64 << 10];
    while left > 0 && wait(reader, deadline.saturating_duration_since(Instant::now())) {
        match reader.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(read) => left = left.saturating_sub(read),
        }
        if Instant::now() >= deadline {
            return;
        }
    }
}

/// Fills all of it before the deadline.
pub(super) fn read_exact(
    reader: &mut BufReader<TcpStream>,
    bytes: &mut [u8],
    deadline: Instant,
) -> Result<(), Failure> {
    let mut filled = 0;
    while filled < bytes.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !wait(reader, left) {
            return Err(Failure::new(408, "the request takes too long"));
        }
        match reader.read(&mut bytes[filled..]) {
            Ok(0) | Err(_) => return Err(Failure::bad("the body ends too early")),
            Ok(read) => filled += read,
        }
    }
    Ok(())
}

/// The next request; `None` when the other side has gone or was silent for too long.
pub(super) fn read(reader: &mut BufReader<TcpStream>) -> Result<Option<Request>, Failure> {
    if !waits_for_more(reader, IDLE) {
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
    request.body = vec![0; length];
    read_exact(reader, &mut request.body, deadline)?;
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
    let says_upgrade = value("upgrade").is_some_and(|text| text.eq_ignore_ascii_case("websocket"));
    let address = parsed.path.unwrap_or("");
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let request = Request {
        method: parsed.method.unwrap_or("").to_string(),
        path: path.to_string(),
        query: query.to_string(),
        host: value("host"),
        authorization: value("authorization"),
        has_origin: value("origin").is_some(),
        keep_alive: parsed.version == Some(1) && !says_close,
        websocket_key: value("sec-websocket-key").filter(|_| says_upgrade),
        mcp_session: value("mcp-session-id"),
        body: Vec::new(),
    };
    Ok((request, length))
}

pub(super) fn write(
    stream: &mut TcpStream,
    answer: &Answer,
    keep_alive: bool,
) -> std::io::Result<()> {
    let body = answer.body.as_ref().map(Value::to_string).unwrap_or_default();
    let connection = if keep_alive { "keep-alive" } else { "close" };
    let retry = if answer.status == 503 { "retry-after: 1\r\n" } else { "" };
    let session = match &answer.mcp_session {
        Some(session) => format!("mcp-session-id: {session}\r\n"),
        None => String::new(),
    };
    let head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{retry}{session}connection: {connection}\r\n\r\n",
        answer.status,
        if answer.status < 300 { "OK" } else { "Error" },
        body.len()
    );
    stream.write_all((head + &body).as_bytes())
}
