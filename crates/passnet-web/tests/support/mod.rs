//! Runs, bundles and a plain client, for tests of the leaderboard.

#![allow(dead_code, reason = "no file of tests needs all of it")]

#[path = "../../../passnet-bench/tests/markup/mod.rs"]
pub mod markup;
pub mod passes;
#[path = "../../../passnet-bench/tests/runs/mod.rs"]
pub mod runs;
pub mod schema;

pub use markup::elements;
use passnet_bench::run::{Event, GraphEvent, RunStore};
use passnet_web::bundle::{Bundle, Draft, Limits, MakeOptions, SigningKey, draft_of_run};
use passnet_web::server::{Server, ServerLimits, State};
use passnet_web::store::{Store, Token};
use passnet_web::tasks::TaskIndex;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Texts that want to be more than text.
pub const HOSTILE: [&str; 8] = [
    "\"><script>alert(1)</script>",
    "</code></pre></main></body></html><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "&lt;b&gt; <!-- ]]> <![CDATA[ http://evil.example/x.js",
    "\u{202e}\u{0}\u{1b}[31m\r\n",
    "<a href=javascript:alert(1)>\u{2028}",
    "{{7*7}} ${7*7} <%= 7*7 %>",
    "[x](javascript:alert(1)) <svg/onload=alert(1)>",
];

/// Eager against itself: a run without passes, which holds on every machine.
pub fn eager_events(graphs: Vec<GraphEvent>) -> Vec<Event> {
    let mut events = runs::finished(graphs);
    for event in &mut events {
        match event {
            Event::Start(start) => start.compiler = "eager".into(),
            Event::Graph(graph) => graph.evaluation.rewrites.clear(),
            Event::End { .. } => {}
        }
    }
    events
}

/// Twelve tasks of two graphs that all have about this speed-up.
pub fn eager_run(speedup: f64) -> Vec<Event> {
    eager_events(runs::twelve_tasks(|task, graph| {
        speedup * (1.0 + 0.01 * (task as f64 - 5.5) + 0.002 * graph as f64)
    }))
}

/// Writes a run as its store would.
pub fn write_run(folder: &Path, events: &[Event]) {
    let mut store = RunStore::open(folder).unwrap();
    events.iter().for_each(|event| store.append(event).unwrap());
}

/// A folder for everything a test needs.
pub struct Room {
    pub folder: TempDir,
}

impl Room {
    pub fn new() -> Room {
        Room { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn key(&self, name: &str) -> SigningKey {
        let path = self.path(name);
        match path.exists() {
            true => SigningKey::read(&path).unwrap(),
            false => SigningKey::create(&path).unwrap(),
        }
    }

    /// A run folder with these events.
    pub fn run(&self, name: &str, events: &[Event]) -> PathBuf {
        let folder = self.path(name);
        write_run(&folder, events);
        folder
    }

    /// What a bundle of these events would hold.
    pub fn draft(&self, name: &str, events: &[Event]) -> Draft {
        let folder = self.run(name, events);
        let options = MakeOptions { name: Some(name.into()), trajectories: false };
        draft_of_run(&folder, &options).unwrap()
    }

    /// An honest, signed bundle.
    pub fn bundle(&self, name: &str, speedup: f64) -> Vec<u8> {
        self.draft(name, &eager_run(speedup)).pack(Some(&self.key("key"))).unwrap()
    }
}

pub fn parsed(bytes: Vec<u8>) -> Bundle {
    Bundle::parse(bytes, &Limits::default()).unwrap()
}

/// As many requests as a test likes.
pub fn open_handed() -> ServerLimits {
    ServerLimits { requests_per_second: 0.0, submissions_per_hour: 0.0, ..ServerLimits::default() }
}

/// A server with an author whose key is `key` and who may submit.
pub struct Board {
    pub room: Room,
    pub server: Option<Server>,
    pub token: Token,
}

impl Board {
    pub fn start(limits: ServerLimits) -> Board {
        Board::start_with(limits, TaskIndex::default(), |_| {})
    }

    pub fn start_with(
        limits: ServerLimits,
        tasks: TaskIndex,
        change: impl FnOnce(&mut State),
    ) -> Board {
        let room = Room::new();
        let store = Store::open(&room.path("store")).unwrap();
        store.add_author("alice", &room.key("key").public_key()).unwrap();
        let token = store.add_token("alice").unwrap();
        let mut state = State::new(store, tasks, limits, Box::new(|_| {}));
        change(&mut state);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::start(listener, state).unwrap();
        Board { room, server: Some(server), token }
    }

    pub fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    pub fn address(&self) -> SocketAddr {
        self.server().address()
    }

    pub fn store(&self) -> &Store {
        &self.server().state().store
    }

    pub fn get(&self, path: &str) -> Answer {
        ask(self.address(), &format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    }

    /// The addresses of every page of its runs.
    pub fn pages(&self) -> Vec<String> {
        let entries = self.store().all_entries().unwrap();
        let mut paths: Vec<String> =
            ["/", "/dataset/", "/reference/", "/submissions/"].map(Into::into).to_vec();
        for entry in &entries {
            let detail = self.store().detail(entry).unwrap();
            paths.push(format!("/board/{}/", entry.board()));
            paths.push(format!("/run/{}/", entry.id));
            for (part, count) in [("task", detail.tasks.len()), ("attempt", detail.attempts.len())]
            {
                paths.extend((0..count).map(|index| format!("/run/{}/{part}/{index}/", entry.id)));
            }
            for other in &entries {
                paths.push(format!("/compare/{}/{}/", entry.id, other.id));
            }
        }
        let all: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
        paths.push(format!("/matrix/{}/", all.join("/")));
        paths
    }

    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    /// Asks for something to be done, with the author's token.
    pub fn post(&self, path: &str) -> Answer {
        let token = self.token.reveal();
        ask(
            self.address(),
            &format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
                 content-length: 0\r\nconnection: close\r\n\r\n"
            ),
        )
    }

    pub fn submit(&self, bundle: &[u8]) -> Answer {
        self.submit_as(bundle, self.token.reveal(), "")
    }

    pub fn submit_as(&self, bundle: &[u8], token: &str, question: &str) -> Answer {
        submit_to(self.address(), bundle, token, question)
    }

    /// The statuses of twelve clients that send the same bundle at the same time.
    pub fn submit_at_once(&self, bundle: &[u8]) -> Vec<u16> {
        let (address, token) = (self.address(), self.token.reveal().to_string());
        std::thread::scope(|scope| {
            let send = || submit_to(address, bundle, &token, "").status;
            let threads: Vec<_> = (0..12).map(|_| scope.spawn(send)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    /// Waits until nothing is queued or being judged again.
    pub fn settle(&self) {
        for _ in 0..600 {
            let counts = self.store().count_submissions().unwrap();
            if counts
                .iter()
                .filter(|(state, _)| ["queued", "accepted"].contains(&state.name()))
                .all(|(_, n)| *n == 0)
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the worker does not come to an end");
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

pub fn submit_to(address: SocketAddr, bundle: &[u8], token: &str, question: &str) -> Answer {
    let head = format!(
        "POST /api/v1/submissions{question} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/octet-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        bundle.len()
    );
    ask_bytes(address, &[head.as_bytes(), bundle].concat())
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub fn ask(address: SocketAddr, request: &str) -> Answer {
    ask_bytes(address, request.as_bytes())
}

/// Status 0 where the server said nothing.
pub fn ask_bytes(address: SocketAddr, request: &[u8]) -> Answer {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return Answer { status: 0, head: String::new(), body: Vec::new() };
    };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A server that has heard enough may close before everything is sent.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(split) = split else {
        return Answer { status: 0, head: String::new(), body: bytes };
    };
    let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let body = bytes[split + 4..].to_vec();
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { dechunked(&body) } else { body };
    Answer { status, head, body }
}

fn dechunked(mut body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = body.windows(2).position(|window| window == b"\r\n") {
        let size = std::str::from_utf8(&body[..end]).unwrap_or("0");
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 {
            break;
        }
        out.extend(&body[end + 2..end + 2 + size]);
        body = &body[end + 2 + size + 2..];
    }
    out
}

/// Whether a page is well-formed and holds nothing but what this program writes.
pub fn check_page(page: &str, what: &str) {
    let mut scripts = 0;
    for (name, attributes) in elements(page) {
        assert!(
            !["img", "iframe", "object", "embed", "link", "base"].contains(&name.as_str()),
            "{what}: {name}"
        );
        scripts += usize::from(name == "script");
        for (key, value) in attributes {
            assert!(!key.starts_with("on"), "{what}: {key}");
            assert_ne!(key, "style", "{what}: the policy forbids it");
            assert!(key != "src" && key != "srcdoc", "{what}: {key}");
            let is_link = ["href", "action"].contains(&key.as_str());
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "./?=&;#_%-~".contains(c);
            assert!(!is_link || value.chars().all(is_plain), "{what}: {value}");
        }
    }
    assert_eq!(scripts, 1, "{what}: one script, our own");
    assert!(page.len() < 300_000, "{what}: {} bytes", page.len());
}
