//! A provider whose replies are scripted, in both protocols, with everything that goes wrong on real ones.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One reply.
#[derive(Debug, Clone)]
pub enum Shape {
    /// Words, nothing else.
    Say(String),
    /// Calls with arguments as the model would write them.
    Calls(Vec<(String, String)>),
    /// A declined request.
    Refuse(String),
    /// Words cut by the provider's limit.
    Cut(String),
    /// A status, headers and a page.
    Status(u16, Vec<(String, String)>, String),
    /// The stream breaks off in the middle.
    Torn,
    /// The connection is closed without a word.
    HangUp,
    /// Nothing comes for so long.
    Silence(Duration),
    /// The right status and no JSON.
    Garbage,
    /// A reply in one piece although a stream was asked for.
    Whole(String),
    /// An error event in the middle of a stream.
    ErrorEvent(String, String),
    /// So many bytes of arguments in one call.
    Flood(usize),
}

/// One call.
pub fn call(name: &str, arguments: Value) -> (String, String) {
    (name.to_string(), arguments.to_string())
}

pub fn create(path: &str, text: &str) -> (String, String) {
    call("create", json!({ "path": path, "file_text": text }))
}

/// How a script sees a request: what it is about, and how far the conversation is.
#[derive(Debug)]
pub struct Asked<'a> {
    pub body: &'a Value,
    pub headers: &'a str,
    /// Replies of the model that the conversation holds.
    pub replies: usize,
    /// Requests this provider has seen before, over all conversations.
    pub before: usize,
    /// The text of the first message of the user.
    pub prompt: String,
}

type Script = dyn Fn(&Asked<'_>) -> Shape + Send + Sync;

/// A provider on loopback that answers until the process ends.
#[derive(Clone)]
pub struct Provider {
    pub address: String,
    pub requests: Arc<AtomicUsize>,
}

impl Provider {
    pub fn start(script: impl Fn(&Asked<'_>) -> Shape + Send + Sync + 'static) -> Provider {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (script, counter): (Arc<Script>, _) = (Arc::new(script), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (script, counter) = (script.clone(), counter.clone());
                let serve = move || serve(stream, &*script, &counter);
                std::thread::Builder::new().stack_size(256 << 10).spawn(serve).unwrap();
            }
        });
        Provider { address, requests }
    }

    /// The base URL under which the chat-completions protocol is spoken.
    pub fn openai(&self) -> String {
        format!("{}/v1", self.address)
    }

    pub fn anthropic(&self) -> String {
        self.address.clone()
    }

    pub fn seen(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, script: &Script, counter: &AtomicUsize) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    while let Some((head, body)) = request(&mut stream, &mut buffer) {
        let before = counter.fetch_add(1, Ordering::SeqCst);
        let messages = body["messages"].as_array().cloned().unwrap_or_default();
        let of =
            |role: &str| messages.iter().filter(|m| m["role"] == role).cloned().collect::<Vec<_>>();
        let prompt = of("user").first().map(|m| m["content"].to_string()).unwrap_or_default();
        let replies = of("assistant").len();
        let asked = Asked { body: &body, headers: &head, replies, before, prompt };
        let is_openai = head.starts_with("POST /v1/chat/completions");
        let answer = match script(&asked) {
            Shape::HangUp => return,
            Shape::Silence(time) => {
                std::thread::sleep(time);
                return;
            }
            Shape::Status(status, headers, page) => {
                let headers: String =
                    headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
                let length = page.len();
                format!(
                    "HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\n{headers}\r\n{page}"
                )
            }
            Shape::Garbage => whole("<html>this is a login page</html>"),
            Shape::Whole(text) if is_openai => whole(&openai_whole(&text)),
            Shape::Whole(text) => whole(&anthropic_whole(&text)),
            shape if is_openai => stream_of(&openai(&shape), matches!(shape, Shape::Torn)),
            shape => stream_of(&anthropic(&shape), matches!(shape, Shape::Torn)),
        };
        let is_last = answer.contains("connection: close");
        if stream.write_all(answer.as_bytes()).is_err() || is_last {
            return;
        }
    }
}

/// Head and body of the next request.
fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, Value)> {
    let mut chunk = [0; 16 << 10];
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
                })
                .unwrap_or(0);
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap();
                buffer.drain(..end + 4 + length);
                return Some((head, body));
            }
        }
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(read) => buffer.extend_from_slice(&chunk[..read]),
        }
    }
}

fn whole(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Server-sent events; a torn stream ends in the middle and closes.
fn stream_of(events: &str, is_torn: bool) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    match is_torn {
        true => format!("{head}connection: close\r\n\r\n{}", &events[..events.len() / 2]),
        false => format!("{head}content-length: {}\r\n\r\n{events}", events.len()),
    }
}

/// Texts arrive in pieces, and not where words end.
fn pieces(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = (chars.len() / 7).clamp(3, 1 << 16);
    chars.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn openai_whole(text: &str) -> String {
    json!({
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 10 },
    })
    .to_string()
}

fn anthropic_whole(text: &str) -> String {
    json!({
        "type": "message", "role": "assistant", "content": [{ "type": "text", "text": text }],
        "stop_reason": "end_turn", "usage": { "input_tokens": 100, "output_tokens": 10 },
    })
    .to_string()
}

fn openai(shape: &Shape) -> String {
    let mut out = String::from(": comment\n\n");
    let mut push = |value: Value| out.push_str(&format!("data: {value}\n\n"));
    let delta = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
    let finish = match shape {
        Shape::Say(text) | Shape::Cut(text) => {
            push(delta(json!({ "role": "assistant", "content": "" })));
            pieces(text).iter().for_each(|piece| push(delta(json!({ "content": piece }))));
            if matches!(shape, Shape::Cut(_)) { "length" } else { "stop" }
        }
        Shape::Refuse(text) => {
            push(delta(json!({ "refusal": text })));
            "stop"
        }
        Shape::ErrorEvent(kind, text) => {
            push(delta(json!({ "content": "half a" })));
            push(json!({ "error": { "type": kind, "message": text } }));
            return out;
        }
        Shape::Flood(bytes) => {
            push(delta(
                json!({ "tool_calls": [{ "index": 0, "id": "c", "function": { "name": "create", "arguments": "{\"path\": \"a.py\", \"file_text\": \"" } }] }),
            ));
            let piece = "x".repeat(64 << 10);
            for _ in 0..bytes / piece.len() {
                push(delta(
                    json!({ "tool_calls": [{ "index": 0, "function": { "arguments": piece } }] }),
                ));
            }
            "tool_calls"
        }
        Shape::Calls(calls) => {
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let id = format!("id{index}");
                push(delta(
                    json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } }] }),
                ));
                for piece in pieces(arguments) {
                    push(delta(
                        json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }),
                    ));
                }
            }
            "tool_calls"
        }
        _ => {
            push(delta(json!({ "content": "this will break off before its end" })));
            "stop"
        }
    };
    push(json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }));
    push(json!({ "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 50,
        "prompt_tokens_details": { "cached_tokens": 600 } } }));
    out.push_str("data: [DONE]\n\n");
    out
}

fn anthropic(shape: &Shape) -> String {
    let mut out = String::new();
    let mut push = |value: Value| {
        out.push_str(&format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap()));
    };
    push(json!({ "type": "message_start", "message": { "usage": { "input_tokens": 400,
        "cache_read_input_tokens": 600, "cache_creation_input_tokens": 0, "output_tokens": 1 } } }));
    push(json!({ "type": "ping" }));
    let stop = match shape {
        Shape::Say(text) | Shape::Cut(text) | Shape::Refuse(text) => {
            push(
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            );
            for piece in pieces(text) {
                push(
                    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": piece } }),
                );
            }
            push(json!({ "type": "content_block_stop", "index": 0 }));
            match shape {
                Shape::Cut(_) => "max_tokens",
                Shape::Refuse(_) => "refusal",
                _ => "end_turn",
            }
        }
        Shape::ErrorEvent(kind, text) => {
            push(json!({ "type": "error", "error": { "type": kind, "message": text } }));
            return out;
        }
        Shape::Flood(bytes) => {
            push(
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "c", "name": "create", "input": {} } }),
            );
            let piece = "x".repeat(64 << 10);
            for _ in 0..bytes / piece.len() {
                push(
                    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": piece } }),
                );
            }
            "tool_use"
        }
        Shape::Calls(calls) => {
            for (index, (name, arguments)) in calls.iter().enumerate() {
                let id = format!("id{index}");
                push(
                    json!({ "type": "content_block_start", "index": index, "content_block": { "type": "tool_use", "id": id, "name": name, "input": {} } }),
                );
                for piece in pieces(arguments) {
                    push(
                        json!({ "type": "content_block_delta", "index": index, "delta": { "type": "input_json_delta", "partial_json": piece } }),
                    );
                }
                push(json!({ "type": "content_block_stop", "index": index }));
            }
            "tool_use"
        }
        _ => {
            push(
                json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "this will break off" } }),
            );
            "end_turn"
        }
    };
    push(
        json!({ "type": "message_delta", "delta": { "stop_reason": stop }, "usage": { "output_tokens": 50 } }),
    );
    push(json!({ "type": "message_stop" }));
    out
}
