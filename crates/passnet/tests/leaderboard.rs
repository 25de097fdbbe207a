//! The leaderboard's commands as people use them, and a server that is killed while bundles arrive.

#[path = "../../passnet-web/tests/support/mod.rs"]
mod support;

use passnet_web::store::Store;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{Room, ask, eager_run, submit_to};

fn passnet(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_passnet"))
        .current_dir(folder)
        .args(arguments)
        .env_remove("PASSNET_TOKEN")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let (code, out, err) = passnet(folder, &[arguments, &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&out).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A server of the folder `board`, and where it listens.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start(folder: &Path) -> Running {
        Running::start_with(folder, &[])
    }

    fn start_with(folder: &Path, more: &[&str]) -> Running {
        let mut child = Command::new(env!("CARGO_BIN_EXE_passnet"))
            .current_dir(folder)
            .args([
                "serve",
                "--store",
                "board",
                "--listen",
                "127.0.0.1:0",
                "--rate",
                "0",
                "--submissions",
                "0",
                "--json",
            ])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        Running { child, address: said["address"].as_str().unwrap().parse().unwrap() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_becomes_a_bundle_an_entry_and_a_site() {
    let room = Room::new();
    let here = room.folder.path();
    room.run("run", &eager_run(1.25));
    let key = json(here, &["bundle", "key", "my.key"])["public_key"].as_str().unwrap().to_string();
    assert_eq!(json(here, &["bundle", "key", "my.key"])["public_key"], key.as_str());
    let made = json(here, &["bundle", "run", "--out", "run.bundle", "--key", "my.key"]);
    assert_eq!(made["claims"]["graphs"], 24);
    let found = json(here, &["bundle", "verify", "run.bundle"]);
    assert_eq!((&found["holds"], &found["digest"]), (&true.into(), &made["digest"]));
    let site = json(here, &["site", "run", "--out", "site"]);
    assert!(here.join("site/index.html").is_file() && site["runs"] == 1, "{site}");
    json(here, &["leaderboard", "add", "run", "--store", "board", "--author", "me"]);
    json(here, &["leaderboard", "author", "alice", "--public-key", &key, "--store", "board"]);
    let listed = json(here, &["leaderboard", "list", "--store", "board"]);
    assert_eq!(listed["entries"][0]["author"], "me");
    assert_eq!(listed["authors"][0]["tokens"], 1);
    assert_eq!(json(here, &["leaderboard", "revoke", "alice", "--store", "board"])["revoked"], 1);
    let id = listed["entries"][0]["id"].as_str().unwrap();
    let gone = json(here, &["leaderboard", "withdraw", id, "--store", "board"]);
    assert_eq!(gone["entries"][0]["state"], "withdrawn");
    json(here, &["leaderboard", "backup", "copy.sqlite", "--store", "board"]);
    assert_eq!(json(here, &["leaderboard", "check", "--store", "board"])["whole"], true);
}

#[test]
fn what_is_wrong_is_said_with_a_hint() {
    let room = Room::new();
    let here = room.folder.path();
    room.run("run", &eager_run(1.25));
    std::fs::write(room.path("text"), "no bundle").unwrap();
    let (code, ..) = passnet(here, &["bundle", "key", "my.key"]);
    assert_eq!(code, 0);
    let (code, ..) = passnet(here, &["bundle", "run", "--out", "b", "--key", "my.key"]);
    assert_eq!(code, 0);
    for (arguments, wanted, word) in [
        (&["bundle", "run", "--out", "x", "--key", "no.key"][..], 2, "bundle key"),
        (&["bundle", "nowhere", "--out", "x", "--key", "my.key"], 2, "no run here"),
        (&["bundle", "verify", "text"], 2, "not a bundle"),
        (&["bundle", "verify", "nothing"], 2, "nothing"),
        (&["site", "nowhere", "--out", "site"], 2, "no run here"),
        (&["site", "run", "--out", "."], 2, "not empty"),
        (&["leaderboard", "list", "--store", "nowhere"], 2, "no leaderboard here"),
        (
            &["leaderboard", "author", "a", "--public-key", "zz", "--store", "board"],
            2,
            "64 hexadecimal",
        ),
        (&["leaderboard", "withdraw", "zz", "--store", "board"], 2, "no entry"),
        (&["submit", "b", "--to", "http://127.0.0.1:1"], 2, "PASSNET_TOKEN"),
        (&["serve", "--store", "text"], 2, "text"),
    ] {
        let (code, out, err) = passnet(here, arguments);
        assert_eq!(code, wanted, "{arguments:?}: {err}");
        assert!(
            out.is_empty() && err.starts_with("error: ") && err.contains(word),
            "{arguments:?}: {err}"
        );
    }
}

#[test]
fn a_bundle_travels_through_the_command_line() {
    let room = Room::new();
    let here = room.folder.path();
    room.run("run", &eager_run(1.25));
    let key = json(here, &["bundle", "key", "my.key"])["public_key"].as_str().unwrap().to_string();
    json(here, &["bundle", "run", "--out", "run.bundle", "--key", "my.key"]);
    let author =
        json(here, &["leaderboard", "author", "alice", "--public-key", &key, "--store", "board"]);
    let token = author["token"].as_str().unwrap();
    let server = Running::start(here);
    let submit = |token: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_passnet"))
            .current_dir(here)
            .args(["submit", "run.bundle", "--json", "--to", &format!("http://{}", server.address)])
            .env("PASSNET_TOKEN", token)
            .output()
            .unwrap();
        (output.status.code().unwrap(), serde_json::from_slice::<Value>(&output.stdout).unwrap())
    };
    let (code, said) = submit(token);
    assert_eq!((code, &said["status"]), (0, &202.into()), "{said}");
    let (code, said) = submit("passnet_wrong");
    assert_eq!((code, &said["status"]), (1, &401.into()), "{said}");
}

/// Sends bundles until all are there; a dead server is asked again later. What was said to be kept goes into `kept`.
fn send_all(
    address: &Mutex<Option<SocketAddr>>,
    bundles: &[Vec<u8>],
    token: &str,
    kept: &Mutex<Vec<i64>>,
    until: Instant,
) {
    for bundle in bundles {
        loop {
            assert!(Instant::now() < until, "the bundles do not get through");
            let Some(address) = *address.lock().unwrap() else {
                std::thread::sleep(Duration::from_millis(5));
                continue;
            };
            let answer = submit_to(address, bundle, token, "");
            if [200, 202].contains(&answer.status)
                && let Ok(said) = serde_json::from_slice::<Value>(&answer.body)
            {
                kept.lock().unwrap().push(said["id"].as_i64().unwrap());
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn a_killed_server_loses_nothing_and_doubles_nothing() {
    const SENDERS: usize = 3;
    const EACH: usize = 8;
    const KILLS: usize = 6;
    let room = Room::new();
    let here = room.folder.path();
    let key = room.key("key");
    let store = Store::open(&room.path("board")).unwrap();
    store.add_author("alice", &key.public_key()).unwrap();
    let token = store.add_token("alice").unwrap();
    drop(store);
    let bundles: Vec<Vec<u8>> = (0..SENDERS * EACH)
        .map(|index| room.bundle(&format!("run {index}"), 1.0 + index as f64 / 100.0))
        .collect();
    let until = Instant::now() + Duration::from_secs(120);
    let address = Mutex::new(None);
    let (kept, is_done) = (Mutex::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let senders: Vec<_> = bundles
            .chunks(EACH)
            .map(|part| scope.spawn(|| send_all(&address, part, token.reveal(), &kept, until)))
            .collect();
        let killer = scope.spawn(|| {
            for round in 0.. {
                let mut server = Running::start(here);
                *address.lock().unwrap() = Some(server.address);
                let begun = Instant::now();
                let life = Duration::from_millis(30 + 25 * round);
                while begun.elapsed() < life || round as usize >= KILLS {
                    if is_done.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                *address.lock().unwrap() = None;
                // SIGKILL, in the middle of whatever it does.
                server.child.kill().unwrap();
                server.child.wait().unwrap();
            }
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
        killer.join().unwrap();
    });
    let server = Running::start(here);
    let store = Store::open(&room.path("board")).unwrap();
    while store.all_entries().unwrap().len() < bundles.len() {
        assert!(Instant::now() < until, "{:?}", store.count_submissions());
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(server);
    let submissions = store.submissions(1000).unwrap();
    assert_eq!(submissions.len(), bundles.len(), "none doubled");
    let known: std::collections::BTreeSet<i64> = submissions.iter().map(|one| one.id).collect();
    let kept = kept.into_inner().unwrap();
    assert!(kept.len() == bundles.len() && kept.iter().all(|id| known.contains(id)), "none lost");
    let entries = store.all_entries().unwrap();
    assert_eq!(entries.len(), bundles.len());
    assert!(store.is_whole().unwrap());
}

#[test]
#[ignore = "needs a sandbox; tools/full-check runs it"]
fn a_server_watches_the_kernels_of_its_entries() {
    let room = Room::new();
    let here = room.folder.path();
    let (task, passes) = ("bench/tasks/layer_scale_add", "bench/passes");
    let (task, passes) = (repository().join(task), repository().join(passes));
    let (task, passes) = (task.to_str().unwrap(), passes.to_str().unwrap());
    let timing = ["--quick", "--trials", "10", "--warmup", "1", "--seconds", "0.02"];
    let bench = ["bench", task, "--passes", passes, "--out", "run"];
    let (code, _, err) = passnet(here, &[&bench[..], &timing].concat());
    assert_eq!(code, 0, "{err}");
    let added = json(here, &["leaderboard", "add", "run", "--store", "board"]);
    let id = added["entries"][0]["id"].as_str().unwrap();
    let server = Running::start_with(here, &["--tasks", task]);
    let address = format!("/api/v1/runs/{id}/tasks/0/passes");
    let request = format!("GET {address} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    for _ in 0..1200 {
        let told = ask(server.address, &request).json();
        let set = &told["sets"][0];
        assert!(set.get("not_watched").is_none(), "{told}");
        let plans = set["passes"][0]["plans"].as_array().unwrap();
        assert!(!plans.is_empty(), "{told}");
        if plans.iter().all(|plan| plan["watched"].as_array().is_some_and(Vec::is_empty)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the kernels were not watched");
}
