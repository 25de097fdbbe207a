//! The environment server: episodes over HTTP, their limits, and the client in `python/examples`.

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
use std::time::Duration;
use support::tasks::{MANIFEST, PASS, bundled, small_task};

fn start(tasks: Vec<Arc<Task>>, limits: ServerLimits, token: Option<&str>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let token = token.map(Secret::new);
    Server::start(listener, tasks, support::evaluator(), &Prompts::built_in(), limits, token)
        .unwrap()
}

/// Sends bytes and reads until the server closes; status and body.
fn raw(server: &Server, bytes: &[u8]) -> (u16, Value) {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    // A server that has refused a request need not read the rest of it.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

fn send(server: &Server, method: &str, path: &str, headers: &str, body: &str) -> (u16, Value) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}",
        server.address()
    );
    raw(server, request.as_bytes())
}

fn post(server: &Server, path: &str, body: Value) -> (u16, Value) {
    send(server, "POST", path, "", &body.to_string())
}

fn reset(server: &Server) -> String {
    let (status, body) = post(server, "/v1/reset", json!({ "task": "task" }));
    assert_eq!(status, 200, "{body}");
    body["episode"].as_str().unwrap().to_string()
}

#[test]
fn an_episode_from_reset_to_score() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(vec![small_task(folder.path(), "task")], ServerLimits::default(), None);
    assert_eq!(send(&server, "GET", "/v1/health", "", "").1["ok"], true);
    assert_eq!(
        send(&server, "GET", "/v1/tasks", "", "").1["tasks"],
        json!([{ "task": "task", "graphs": 2 }])
    );
    let (_, begun) = post(&server, "/v1/reset", json!({ "task": "task" }));
    assert_eq!(begun["messages"][1]["role"], "user");
    assert_eq!(begun["tools"].as_array().unwrap().len(), 9);
    assert_eq!(begun["engine"]["engine"], "native");
    let episode = begun["episode"].as_str().unwrap();
    let (_, step) = post(
        &server,
        "/v1/step",
        json!({ "episode": episode, "calls": [
        { "name": "create", "arguments": { "path": MANIFEST, "file_text": "[\"fuse\"]" } },
        { "name": "create", "arguments": { "path": "fuse.py", "file_text": PASS } },
        { "name": "match" },
    ] }),
    );
    assert_eq!((step["reward"].as_f64(), &step["done"]), (Some(0.0), &json!(false)), "{step}");
    assert_eq!(
        (step["tier"].as_str(), step["tiered_reward"].as_f64()),
        (Some("matches"), Some(0.3))
    );
    assert_eq!(step["results"].as_array().unwrap().len(), 3);
    let text = "Now the score.\n```json\n{\"tool\": \"evaluate\"}\n```";
    let (_, step) = post(&server, "/v1/step", json!({ "episode": episode, "text": text }));
    let best = step["best"].as_f64().unwrap();
    assert!((step["reward"].as_f64().unwrap() - (best / 0.1).ln()).abs() < 1e-9, "{step}");
    assert_eq!(step["results"][0]["assessment"]["graphs"][0]["verdict"], "correct");
    assert_eq!(step["tier"], "right");
    let tiered = step["tiered_reward"].as_f64().unwrap() - step["reward"].as_f64().unwrap();
    assert!((tiered - 0.7).abs() < 1e-9, "what was earned once is not earned again");
    let (_, score) = post(&server, "/v1/score", json!({ "episode": episode }));
    assert_eq!((score["score"].as_f64(), &score["correct"]), (Some(best), &json!(true)));
    assert_eq!(score["files"]["fuse.py"], PASS);
    assert_eq!(score["engine"], begun["engine"], "rewards say where they come from");
    let (_, step) =
        post(&server, "/v1/step", json!({ "episode": episode, "calls": [{ "name": "submit" }] }));
    assert_eq!(step["done"], true);
    assert_eq!(post(&server, "/v1/step", json!({ "episode": episode, "calls": [] })).0, 409);
    assert_eq!(post(&server, "/v1/close", json!({ "episode": episode })).0, 200);
    assert_eq!(post(&server, "/v1/score", json!({ "episode": episode })).0, 404);
    assert_eq!(server.open_episodes(), 0);
}

#[test]
fn bad_requests_are_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(vec![small_task(folder.path(), "task")], ServerLimits::default(), None);
    let episode = reset(&server);
    for (path, body, status) in [
        ("/v1/reset", json!({ "task": "../task" }), 404),
        ("/v1/reset", json!({}), 400),
        ("/v1/reset", json!({ "task": "task", "calls": "odd" }), 400),
        ("/v1/step", json!({ "episode": "none", "calls": [] }), 404),
        ("/v1/step", json!({ "episode": episode }), 400),
        ("/v1/step", json!({ "episode": episode, "calls": [{}] }), 400),
        ("/v1/step", json!({ "episode": episode, "calls": "x", "text": "y" }), 400),
        ("/v1/nothing", json!({}), 404),
    ] {
        let (found, answer) = post(&server, path, body.clone());
        assert_eq!(found, status, "{path} {body}");
        assert!(answer["error"].is_string());
    }
    assert_eq!(send(&server, "POST", "/v1/reset", "", "{nonsense").0, 400);
    assert_eq!(send(&server, "GET", "/v1/reset", "", "").0, 404);
    let host = server.address().to_string();
    for (request, status) in [
        ("nonsense\r\n\r\n".to_string(), 400),
        (
            format!("POST /v1/reset HTTP/1.1\r\nhost: {host}\r\ncontent-length: 99999999\r\n\r\n"),
            413,
        ),
        (format!("POST /v1/reset HTTP/1.1\r\nhost: {host}\r\ncontent-length: -1\r\n\r\n"), 400),
        (
            format!(
                "POST /v1/reset HTTP/1.1\r\nhost: {host}\r\ntransfer-encoding: chunked\r\n\r\n"
            ),
            501,
        ),
        (
            format!("GET /v1/health HTTP/1.1\r\nhost: {host}\r\nx: {}\r\n\r\n", "y".repeat(40_000)),
            431,
        ),
        (
            "GET /v1/health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n"
                .to_string(),
            403,
        ),
        (
            format!(
                "GET /v1/health HTTP/1.1\r\nhost: {host}\r\norigin: http://evil.example\r\nconnection: close\r\n\r\n"
            ),
            403,
        ),
    ] {
        assert_eq!(raw(&server, request.as_bytes()).0, status, "{request}");
    }
}

#[test]
fn steps_episodes_connections_and_strangers_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let task = small_task(folder.path(), "task");
    let limits = ServerLimits {
        steps: 2,
        episodes: 3,
        idle: Duration::from_secs(1000),
        ..ServerLimits::default()
    };
    let server = start(vec![task.clone()], limits, Some("open-sesame"));
    let ask = |path: &str, body: Value| {
        send(&server, "POST", path, "authorization: Bearer open-sesame\r\n", &body.to_string())
    };
    assert_eq!(post(&server, "/v1/reset", json!({ "task": "task" })).0, 401);
    let open: Vec<String> = (0..3)
        .map(|_| {
            ask("/v1/reset", json!({ "task": "task" })).1["episode"].as_str().unwrap().to_string()
        })
        .collect();
    assert_eq!(ask("/v1/reset", json!({ "task": "task" })).0, 503);
    assert_eq!(ask("/v1/close", json!({ "episode": open[1] })).0, 200);
    assert_eq!(ask("/v1/reset", json!({ "task": "task" })).0, 200);
    let idle = json!({ "episode": open[0], "text": "hm" });
    assert_eq!(ask("/v1/step", idle.clone()).1["steps_remaining"], 1);
    assert_eq!(ask("/v1/step", idle.clone()).1["done"], true);
    assert_eq!(ask("/v1/step", idle).0, 409);
    drop(server);
    let server =
        start(vec![task.clone()], ServerLimits { connections: 2, ..ServerLimits::default() }, None);
    let held: Vec<TcpStream> =
        (0..2).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    // The acceptor sees connections in order.
    assert_eq!(send(&server, "GET", "/v1/health", "", "").0, 503);
    drop(held);
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let refused = Server::start(
        listener,
        vec![task],
        support::evaluator(),
        &Prompts::built_in(),
        ServerLimits::default(),
        None,
    );
    assert!(refused.is_err(), "an open address without a token");
}

#[test]
fn many_episodes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(vec![small_task(folder.path(), "task")], ServerLimits::default(), None);
    std::thread::scope(|scope| {
        for number in 0..40 {
            let server = &server;
            scope.spawn(move || {
                let episode = reset(server);
                let pass = format!("# {}\n{PASS}", number % 4);
                for (calls, done) in [
                    (json!([{ "name": "create", "arguments": { "path": MANIFEST, "file_text": "[\"fuse\"]" } },
                            { "name": "create", "arguments": { "path": "fuse.py", "file_text": pass } }]), false),
                    (json!([{ "name": "evaluate" }]), false),
                    (json!([{ "name": "submit" }]), true),
                ] {
                    let (status, step) = post(server, "/v1/step", json!({ "episode": episode, "calls": calls }));
                    assert_eq!((status, &step["done"]), (200, &json!(done)), "{step}");
                }
                let (_, score) = post(server, "/v1/score", json!({ "episode": episode }));
                assert_eq!((&score["correct"], &score["steps"]), (&json!(true), &json!(3)));
            });
        }
    });
    assert_eq!(server.open_episodes(), 40);
}

#[test]
#[ignore = "needs python3; tools/full-check runs it"]
fn the_python_client_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let task = Arc::new(Task::read(&bundled("geglu_tanh")).unwrap());
    let server = start(vec![task], ServerLimits::default(), None);
    let output = Command::new("python3")
        .arg(root.join("python/examples/environment_client.py"))
        .arg(format!("http://{}", server.address()))
        .args(["--task", "geglu_tanh", "--passes"])
        .arg(root.join("bench/passes"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("correct: True"), "{text}");
    assert_eq!(server.open_episodes(), 0, "the client closes its episode");
}
