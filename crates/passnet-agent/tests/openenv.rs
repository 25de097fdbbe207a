//! The environment server as clients of OpenEnv and of the Model Context Protocol see it, with plain HTTP and WebSocket; the
//! clients themselves are tried where they are installed.

mod support;

use passnet_agent::prompt::Prompts;
use passnet_agent::secrets::Secret;
use passnet_agent::server::{Server, ServerLimits};
use passnet_agent::task::Task;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use support::tasks::{MANIFEST, PASS, bundled, small_task};

fn start(tasks: Vec<Arc<Task>>, limits: ServerLimits, token: Option<&str>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let token = token.map(Secret::new);
    Server::start(listener, tasks, support::evaluator(), &Prompts::built_in(), limits, token)
        .unwrap()
}

fn small(folder: &Path) -> Server {
    start(vec![small_task(folder, "task")], ServerLimits::default(), None)
}

/// A request with its own connection: status, headers and body.
fn send(
    server: &Server,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String, Value) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}",
        server.address()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, head.to_string(), serde_json::from_str(body).unwrap_or(Value::Null))
}

fn get(server: &Server, path: &str) -> (u16, Value) {
    let (status, _, body) = send(server, "GET", path, "", "");
    (status, body)
}

fn post(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let (status, _, body) = send(server, "POST", path, "", &body.to_string());
    (status, body)
}

fn rpc(server: &Server, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let (status, answer) = post(server, "/mcp", &body);
    assert_eq!((status, &answer["id"]), (200, &json!(7)), "{answer}");
    answer
}

/// A WebSocket of our own, which can also be ill-mannered.
struct Socket(TcpStream);

impl Socket {
    fn open(server: &Server, path: &str) -> Socket {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.address()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        // The answer to this key in RFC 6455.
        assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
        Socket(stream)
    }

    fn frame(&mut self, first: u8, payload: &[u8]) {
        let mask = [7, 99, 200, 13];
        let mut bytes = vec![first];
        match payload.len() {
            short if short < 126 => bytes.push(0x80 | short as u8),
            long => {
                bytes.push(0x80 | 127);
                bytes.extend((long as u64).to_be_bytes());
            }
        }
        bytes.extend(mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        // A server that has refused need not read the rest.
        let _ = self.0.write_all(&bytes);
    }

    /// The next frame: its first byte and what it holds; `None` when the connection is closed.
    fn read(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).ok()?;
        let length = match head[1] {
            126 => {
                let mut bytes = [0; 2];
                self.0.read_exact(&mut bytes).ok()?;
                u16::from_be_bytes(bytes) as usize
            }
            127 => {
                let mut bytes = [0; 8];
                self.0.read_exact(&mut bytes).ok()?;
                u64::from_be_bytes(bytes) as usize
            }
            short => short as usize,
        };
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).ok()?;
        Some((head[0], payload))
    }

    fn ask(&mut self, message: &Value) -> Value {
        self.frame(0x81, message.to_string().as_bytes());
        let (kind, payload) = self.read().unwrap();
        assert_eq!(kind, 0x81);
        serde_json::from_slice(&payload).unwrap()
    }

    fn tell(&mut self, kind: &str, data: Value) -> Value {
        let answer = self.ask(&json!({ "type": kind, "data": data }));
        assert_ne!(answer["type"], "error", "{answer}");
        answer["data"].clone()
    }

    /// Why the server closes.
    fn end(&mut self) -> u16 {
        let (kind, payload) = self.read().unwrap();
        assert_eq!(kind, 0x88);
        u16::from_be_bytes([payload[0], payload[1]])
    }
}

fn create(path: &str, text: &str) -> Value {
    json!({ "name": "create", "arguments": { "path": path, "file_text": text } })
}

/// Both files of a right solution.
fn solution() -> Value {
    json!([create(MANIFEST, "[\"fuse\"]"), create("fuse.py", PASS)])
}

#[test]
fn a_session_over_a_websocket() {
    let folder = tempfile::tempdir().unwrap();
    let server = small(folder.path());
    let mut socket = Socket::open(&server, "/ws");
    assert_eq!(socket.tell("state", json!({}))["step_count"], 0);
    let listed = socket.tell("step", json!({ "type": "list_tools" }));
    assert_eq!(listed["observation"]["tools"].as_array().unwrap().len(), 9);
    let begun = socket.tell("reset", json!({ "task": "task", "episode_id": "mine" }));
    assert_eq!((&begun["reward"], &begun["done"]), (&Value::Null, &json!(false)));
    assert_eq!(begun["observation"]["messages"][1]["role"], "user");
    assert_eq!(begun["metadata"]["engine"]["engine"], "native");
    let step = socket.tell("step", json!({ "calls": solution() }));
    assert_eq!(step["reward"], 0.0);
    let text = "Does it match?\n```json\n{\"tool\": \"match\"}\n```";
    let step = socket.tell("step", json!({ "text": text, "metadata": {} }));
    assert_eq!((&step["reward"], &step["observation"]["tier"]), (&json!(0.3), &json!("matches")));
    // A reply that was only a call, taken apart by the client.
    let step = socket.tell("step", json!({ "tool": "check" }));
    assert_eq!(step["observation"]["tier"], "right", "{step}");
    assert!(step["observation"]["text"].as_str().is_some_and(|text| !text.is_empty()));
    let step = socket
        .tell("step", json!({ "type": "call_tool", "tool_name": "evaluate", "arguments": {} }));
    assert_eq!(step["observation"]["tool_name"], "evaluate");
    assert_eq!(step["observation"]["result"], step["observation"]["text"]);
    let best = step["observation"]["best"].as_f64().unwrap();
    assert!((step["reward"].as_f64().unwrap() - (best / 0.1).ln()).abs() < 1e-9, "{step}");
    let state = socket.tell("state", json!({}));
    assert_eq!((&state["episode_id"], &state["step_count"]), (&json!("mine"), &json!(4)));
    assert_eq!(socket.tell("step", json!({ "tool": "submit" }))["done"], true);
    let over = socket.ask(&json!({ "type": "step", "data": { "tool": "check" } }));
    assert_eq!(
        (&over["type"], &over["data"]["code"]),
        (&json!("error"), &json!("EXECUTION_ERROR"))
    );
    let again = socket.tell("reset", json!({ "seed": 5, "reward": "score", "calls": "native" }));
    assert_eq!(again["observation"]["functions"].as_array().unwrap().len(), 9);
    socket.tell("step", json!({ "calls": solution() }));
    assert_eq!(
        socket.tell("step", json!({ "tool": "match" }))["reward"],
        0.0,
        "only the score counts"
    );
    assert_eq!(server.open_episodes(), 1, "a reset forgets the episode before");
    socket.frame(0x81, br#"{"type":"close"}"#);
    assert_eq!(socket.end(), 1000);
    socket.frame(0x88, &1000_u16.to_be_bytes());
    assert_eq!(socket.read(), None, "nothing is said after good-bye");
    assert_eq!(server.open_episodes(), 0, "an episode ends with its session");
}

#[test]
fn requests_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let server = small(folder.path());
    assert_eq!(get(&server, "/health").1["status"], "healthy");
    assert_eq!(get(&server, "/metadata").1["name"], "passnet");
    let schema = get(&server, "/schema").1;
    for kind in ["action", "observation", "reset_observation", "state"] {
        assert_eq!(schema[kind]["type"], "object", "{kind}");
    }
    assert_eq!(schema["action"]["required"], json!(["text"]));
    assert!(get(&server, "/openapi.json").1["paths"]["/reset"].is_object());
    assert_eq!(get(&server, "/state").1["episode_id"], Value::Null);
    let (_, _, begun) = send(&server, "POST", "/reset", "", "");
    let episode = begun["metadata"]["episode_id"].as_str().unwrap();
    let act = |action: Value| json!({ "episode_id": episode, "action": action });
    assert_eq!(post(&server, "/step", &act(json!({ "calls": solution() }))).0, 200);
    let (_, step) = post(&server, "/step", &act(json!({ "text": "{\"tool\": \"match\"}" })));
    assert_eq!((&step["reward"], &step["done"]), (&json!(0.3), &json!(false)));
    let (_, state) = get(&server, &format!("/state?episode_id={episode}"));
    assert_eq!((&state["step_count"], &state["done"]), (&json!(2), &json!(false)));
    for (path, body, status) in [
        ("/step", json!({ "action": { "text": "" } }), 422),
        ("/step", json!({ "episode_id": episode }), 422),
        ("/step", act(json!("evaluate")), 422),
        ("/step", act(json!({ "metadata": {} })), 422),
        ("/step", act(json!({ "type": "call_tool" })), 422),
        ("/step", json!({ "episode_id": "0", "action": { "text": "" } }), 404),
        ("/reset", json!({ "task": "../task" }), 404),
        ("/reset", json!({ "task": 5 }), 400),
        ("/reset", json!({ "seed": -1 }), 400),
        ("/reset", json!({ "reward": "all" }), 400),
        ("/reset", json!({ "episode_id": "x".repeat(300) }), 400),
    ] {
        let (found, answer) = post(&server, path, &body);
        assert_eq!(found, status, "{path} {body}");
        assert!(answer["error"].is_string());
    }
    assert_eq!(get(&server, "/mcp").0, 405);
    assert_eq!(server.open_episodes(), 1, "refused resets open nothing");
}

#[test]
fn tools_over_the_model_context_protocol() {
    let folder = tempfile::tempdir().unwrap();
    let server = small(folder.path());
    let tools = rpc(&server, "tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap();
    assert_eq!(tools[0]["inputSchema"]["type"], "object");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for reserved in ["reset", "step", "state", "close"] {
        assert!(!names.contains(&reserved), "OpenEnv keeps {reserved} for itself");
    }
    assert_eq!(rpc(&server, "tools/call", json!({ "name": "match" }))["error"]["code"], -32602);
    let session = rpc(&server, "openenv/session/create", json!({}));
    let session = session["result"]["session_id"].as_str().unwrap();
    let call = |name: &str, arguments: Value| {
        let params = json!({ "session_id": session, "name": name, "arguments": arguments });
        rpc(&server, "tools/call", params)
    };
    assert_eq!(call("match", json!({}))["error"]["code"], -32600, "there is no episode yet");
    // The same session over a WebSocket, which gives it an episode.
    let mut socket = Socket::open(&server, &format!("/ws?session_id={session}"));
    socket.tell("reset", json!({ "task": "task" }));
    for (path, text) in [(MANIFEST, "[\"fuse\"]"), ("fuse.py", PASS)] {
        let made = call("create", json!({ "path": path, "file_text": text }));
        assert_eq!(made["result"]["isError"], false, "{made}");
    }
    let matched = socket.tell(
        "mcp",
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "match", "arguments": {} } }),
    );
    assert_eq!(matched["result"]["structuredContent"]["tier"], "matches", "{matched}");
    assert_eq!(matched["result"]["content"][0]["type"], "text");
    assert_eq!(call("wish", json!({}))["result"]["isError"], true);
    assert_eq!(socket.tell("state", json!({}))["step_count"], 4);
    let close = json!({ "session_id": session });
    assert_eq!(rpc(&server, "openenv/session/close", close.clone())["result"]["closed"], true);
    assert_eq!(rpc(&server, "openenv/session/close", close)["error"]["code"], -32602);
    assert_eq!(server.open_episodes(), 0);
    let mut socket = Socket::open(&server, "/mcp");
    let pong = socket.ask(&json!({ "jsonrpc": "2.0", "id": "a", "method": "ping" }));
    assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": "a", "result": {} }));
    assert_eq!(socket.ask(&json!({ "id": 1 }))["error"]["code"], -32600);
    let begin = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": "2025-03-26" } });
    let (_, head, begun) = send(&server, "POST", "/mcp?task=task", "", &begin.to_string());
    assert_eq!(begun["result"]["protocolVersion"], "2025-03-26");
    assert!(begun["result"]["instructions"].as_str().unwrap().contains("def forward"), "{begun}");
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    let header = format!("mcp-session-id: {id}\r\n");
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(send(&server, "POST", "/mcp", &header, &ready).0, 202);
    let view = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "view", "arguments": { "path": "pass_dir" } } });
    let (_, _, seen) = send(&server, "POST", "/mcp", &header, &view.to_string());
    assert_eq!(seen["result"]["isError"], false, "{seen}");
    assert_eq!(send(&server, "DELETE", "/mcp", &header, "").0, 200);
    assert_eq!(send(&server, "DELETE", "/mcp", &header, "").0, 404);
    assert_eq!(server.open_episodes(), 0);
}

#[test]
fn ill_mannered_sockets_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = small(folder.path());
    let open = || Socket::open(&server, "/ws");
    for (first, payload, end) in [
        (0x82, b"binary".to_vec(), 1003),
        (0x81, vec![0xff, 0xfe], 1007),
        (0x80, b"goes on with nothing".to_vec(), 1002),
        (0xc1, b"compressed".to_vec(), 1002),
        (0x89, vec![0; 200], 1002),
        (0x09, b"a ping in pieces".to_vec(), 1002),
        (0x83, Vec::new(), 1002),
        (0x81, vec![b' '; (4 << 20) + 1], 1009),
    ] {
        let mut socket = open();
        socket.frame(first, &payload);
        assert_eq!(socket.end(), end, "{first:#x}");
    }
    let mut socket = open();
    socket.0.write_all(&[0x81, 0x02, b'{', b'}']).unwrap();
    assert_eq!(socket.end(), 1002, "clients mask");
    let mut socket = open();
    socket.0.write_all(&[0x81, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]).unwrap();
    assert_eq!(socket.end(), 1009, "the largest length");
    let mut socket = open();
    socket.frame(0x01, &vec![b' '; 3 << 20]);
    socket.frame(0x00, &vec![b' '; 2 << 20]);
    assert_eq!(socket.end(), 1009, "pieces are added up");
    let mut socket = open();
    socket.frame(0x01, b"a");
    socket.frame(0x01, b"b");
    assert_eq!(socket.end(), 1002, "a message within a message");
    let mut socket = open();
    socket.frame(0x01, br#"{"type":"#);
    socket.frame(0x89, b"still there?");
    assert_eq!(socket.read(), Some((0x8a, b"still there?".to_vec())));
    socket.frame(0x80, br#""state"}"#);
    let (_, state) = socket.read().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&state).unwrap()["type"], "state");
    for message in ["{", "[]", "{\"type\":\"wish\"}", "{\"type\":\"step\",\"data\":3}", "null"] {
        socket.frame(0x81, message.as_bytes());
        let (_, answer) = socket.read().unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["type"], "error", "{message}");
    }
    let deep = format!("{{\"type\":\"step\",\"data\":{}", "[".repeat(100_000));
    socket.frame(0x81, deep.as_bytes());
    assert!(String::from_utf8(socket.read().unwrap().1).unwrap().contains("INVALID_JSON"));
    drop(socket);
    assert_eq!(get(&server, "/health").0, 200);
}

#[test]
fn sessions_have_limits_and_strangers_no_entry() {
    let folder = tempfile::tempdir().unwrap();
    let task = small_task(folder.path(), "task");
    let limits = ServerLimits { episodes: 2, ..ServerLimits::default() };
    let server = start(vec![task.clone()], limits, None);
    let open = || rpc(&server, "openenv/session/create", json!({}));
    assert!(open()["result"].is_object() && open()["result"].is_object());
    assert_eq!(open()["error"]["code"], -32000, "sessions are counted");
    let mut sockets: Vec<Socket> = (0..3).map(|_| Socket::open(&server, "/ws")).collect();
    let reset = json!({ "type": "reset", "data": {} });
    let answers: Vec<Value> = sockets.iter_mut().map(|socket| socket.ask(&reset)).collect();
    assert_eq!(answers[1]["type"], "observation");
    assert_eq!(answers[2]["data"]["code"], "CAPACITY_REACHED", "and so are episodes");
    let (status, _, _) = send(
        &server,
        "GET",
        "/ws?session_id=guessed",
        "upgrade: websocket\r\nsec-websocket-key: x\r\n",
        "",
    );
    assert_eq!(status, 404);
    drop(sockets);
    let server = start(vec![task], ServerLimits::default(), Some("open-sesame"));
    let upgrade = "upgrade: websocket\r\nsec-websocket-key: x\r\n";
    assert_eq!(send(&server, "GET", "/ws", upgrade, "").0, 401);
    assert_eq!(send(&server, "POST", "/reset", "", "{}").0, 401);
    let page =
        format!("{upgrade}origin: http://evil.example\r\nauthorization: Bearer open-sesame\r\n");
    assert_eq!(send(&server, "GET", "/ws", &page, "").0, 403);
}

/// Drives a server with these clients, which leave no episode behind.
fn drive(clients: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let task = Arc::new(Task::read(&bundled("geglu_tanh")).unwrap());
    let server = start(vec![task], ServerLimits::default(), None);
    let python = std::env::var("PASSNET_OPENENV_PYTHON").expect("a Python with OpenEnv");
    let output = Command::new(python)
        .arg(root.join("python/tests/drive_openenv.py"))
        .arg(format!("http://{}", server.address()))
        .arg(root.join("bench/passes/geglu_tanh"))
        .args(clients)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for client in clients {
        assert!(text.contains(&format!("{client}: ok")), "{text}");
    }
    assert_eq!(server.open_episodes(), 0, "clients close what they opened");
}

#[test]
#[ignore = "needs OpenEnv; tools/full-check runs it"]
fn the_clients_of_openenv_and_of_mcp_run() {
    drive(&[
        "openenv's own validation",
        "openenv over a WebSocket",
        "openenv over MCP",
        "an MCP client",
    ]);
}

#[test]
#[ignore = "needs OpenEnv and verifiers; tools/full-check runs it"]
fn the_client_of_verifiers_runs() {
    drive(&["verifiers"]);
}
