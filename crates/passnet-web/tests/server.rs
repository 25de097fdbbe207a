//! The server: pages, the interface for machines, submissions, and those who mean harm.

mod support;

use passnet_bench::run::Event;
use passnet_web::Error;
use passnet_web::rejudge::{Answer as Judged, Job, Rejudger};
use passnet_web::server::ServerLimits;
use passnet_web::tasks::TaskIndex;
use passnet_web::watch::WatchedPlan;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use support::{Board, ask, ask_bytes, check_page, eager_run, open_handed, runs, submit_to};

#[test]
fn a_submission_goes_all_the_way() {
    let board = Board::start(open_handed());
    let bundle = board.room.bundle("first", 1.25);
    let answer = board.submit(&bundle);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let id = answer.json()["id"].as_i64().unwrap();
    board.settle();
    let submission = board.json(&format!("/api/v1/submissions/{id}"));
    assert_eq!(submission["state"], "done", "{submission}");
    let entry = submission["entry"].as_str().unwrap().to_string();
    let run = board.json(&format!("/api/v1/runs/{entry}"));
    assert_eq!((&run["run"]["author"], &run["run"]["state"]), (&"alice".into(), &"listed".into()));
    assert_eq!(run["run"]["rank"], 1);
    assert_eq!(run["run"]["badge"], "verified");
    // Sent again, it is known again.
    let again = board.submit(&bundle);
    assert_eq!((again.status, &again.json()["id"]), (200, &id.into()));
    // The file comes back as it was sent.
    let digest = submission["digest"].as_str().unwrap();
    assert_eq!(board.get(&format!("/api/v1/bundles/{digest}")).body, bundle);
    // A better one takes its place, and both stay visible.
    let better = board.room.bundle("second", 1.5);
    let answer = board.submit_as(&better, board.token.reveal(), &format!("?replaces={entry}"));
    assert_eq!(answer.status, 202, "{}", answer.text());
    board.settle();
    let old = board.json(&format!("/api/v1/runs/{entry}"));
    assert_eq!(old["run"]["state"], "superseded");
    let new = old["run"]["replaced_by"].as_str().unwrap().to_string();
    let withdrawn = ask(
        board.address(),
        &format!(
            "POST /api/v1/runs/{new}/withdraw HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n",
            board.token.reveal()
        ),
    );
    assert_eq!(withdrawn.status, 200, "{}", withdrawn.text());
    let page = board.get(&format!("/run/{new}/")).text();
    assert!(page.contains("withdrawn"));
    let listed = board.get(&format!("/board/{}/", old["run"]["board"].as_str().unwrap())).text();
    assert!(listed.contains("withdrawn") && listed.contains("superseded"));
}

#[test]
fn every_page_is_well_formed_and_guarded() {
    let board = Board::start(open_handed());
    for (name, speedup) in [("one", 1.25), ("two", 0.8)] {
        assert_eq!(board.submit(&board.room.bundle(name, speedup)).status, 202);
    }
    board.settle();
    let paths = board.pages();
    assert!(paths.len() > 30);
    for path in paths {
        let answer = board.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check_page(&answer.text(), &path);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("set-cookie"), None);
    }
    for path in [
        "/nothing/",
        "/run/0/",
        "/board/x/",
        "/compare/a/b/",
        "/run/../../etc/passwd/",
        "/dataset/graph/9/",
    ] {
        let answer = board.get(path);
        assert_eq!(answer.status, 404, "{path}");
        check_page(&answer.text(), path);
    }
    assert_eq!(board.get("/dataset").status, 303);
    assert_eq!(board.get("/healthz").text(), "ok\n");
    assert!(board.get("/metrics").text().contains("passnet_entries 2"));
}

#[test]
fn rankings_sort_filter_and_turn_pages_without_a_script() {
    let board = Board::start(open_handed());
    for (name, speedup) in [("b_fast", 1.5), ("a_slow", 0.7), ("c_middle", 1.1)] {
        assert_eq!(board.submit(&board.room.bundle(name, speedup)).status, 202);
    }
    board.settle();
    let key = board.store().boards().unwrap()[0].key.clone();
    let order = |question: &str| {
        let page = board.get(&format!("/board/{key}/{question}")).text();
        let table =
            page.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap().to_string();
        let mut names: Vec<(usize, &str)> =
            ["b_fast", "a_slow", "c_middle", "eager (by definition)"]
                .into_iter()
                .filter_map(|name| Some((table.find(name)?, name)))
                .collect();
        names.sort_unstable();
        names.into_iter().map(|(_, name)| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(order(""), ["b_fast", "c_middle", "eager (by definition)", "a_slow"]);
    assert_eq!(order("?sort=name&direction=up"), ["a_slow", "b_fast", "c_middle"]);
    assert_eq!(order("?sort=as&direction=up"), ["a_slow", "c_middle", "b_fast"]);
    assert_eq!(order("?q=slow"), ["a_slow"]);
    assert_eq!(order("?q=%25"), [""; 0]);
    assert_eq!(order("?state=withdrawn&sort=date"), [""; 0]);
    assert_eq!(order("?page=99"), [""; 0]);
    let ids: Vec<String> =
        board.store().all_entries().unwrap().into_iter().map(|entry| entry.id).collect();
    let page = board.get(&format!("/board/{key}/")).text();
    for id in &ids {
        assert!(page.contains(&format!("name=\"run\" value=\"{id}\"")), "a box for {id}");
    }
    let chosen = board.get(&format!("/matrix/?run={}&run={}&run={}", ids[1], ids[0], ids[2]));
    let address = format!("/matrix/{}/{}/{}/", ids[1], ids[0], ids[2]);
    assert_eq!((chosen.status, chosen.header("location")), (303, Some(address.as_str())));
    let matrix = board.get(&address).text();
    check_page(&matrix, "matrix");
    let [fast, slow, middle] =
        ["b_fast</a>", "a_slow</a>", "c_middle</a>"].map(|name| matrix.find(name).unwrap());
    assert!(slow < fast && fast < middle, "in the order in which they were named");
    assert!(matrix.contains("2 better") && matrix.contains("class=\"f differs\""), "{matrix}");
    assert_eq!(matrix.matches("<th scope=\"row\">task_").count(), 12);
    for wrong in ["/matrix/", "/matrix/?run=a", "/matrix/?run=a&run=a", "/matrix/?run=a/b&run=.."] {
        let answer = board.get(wrong);
        assert_eq!(answer.status, 400, "{wrong}");
        check_page(&answer.text(), wrong);
    }
    assert_eq!(board.get("/matrix/0/1/").status, 404);
    let moved = board.get("/compare/?one=aa&two=bb");
    assert_eq!((moved.status, moved.header("location")), (303, Some("/compare/aa/bb/")));
    assert_eq!(board.get("/compare/?one=%2f%2fevil.example&two=b").status, 400);
}

#[test]
fn nobody_submits_without_being_allowed_to() {
    let board = Board::start(open_handed());
    let honest = board.room.bundle("honest", 1.25);
    let stranger = board.room.key("stranger");
    let foreign = board.room.draft("honest", &[]).pack(Some(&stranger)).unwrap();
    let unsigned = board.room.draft("honest", &[]).pack(None).unwrap();
    let token = board.token.reveal();
    for (what, status, answer) in [
        ("no token", 401, board.submit_as(&honest, "", "")),
        ("wrong token", 401, board.submit_as(&honest, "passnet_00", "")),
        (
            "a token with a letter changed",
            401,
            board.submit_as(&honest, &token.replace('a', "b"), ""),
        ),
        ("another key", 403, board.submit_as(&foreign, token, "")),
        ("no signature", 400, board.submit_as(&unsigned, token, "")),
        ("nothing", 400, board.submit_as(b"", token, "")),
        ("no bundle", 400, board.submit_as(b"hello", token, "")),
        ("half of one", 400, board.submit_as(&honest[..honest.len() / 2], token, "")),
        ("one and more", 400, board.submit_as(&[&honest[..], b"x"].concat(), token, "")),
        ("replaces nothing", 400, board.submit_as(&honest, token, "?replaces=0123456789abcdef")),
        ("replaces a path", 400, board.submit_as(&honest, token, "?replaces=../../x")),
    ] {
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        let error = answer.json();
        assert!(!error["error"].as_str().unwrap().is_empty(), "{what}");
        assert!(!answer.text().contains(token), "{what}: no token comes back");
    }
    assert!(board.store().submissions(10).unwrap().is_empty());
    board.store().revoke_tokens("alice").unwrap();
    assert_eq!(board.submit(&honest).status, 401);
}

#[test]
fn what_does_not_hold_is_refused_with_reasons_and_not_kept() {
    let board = Board::start(open_handed());
    let key = board.room.key("key");
    let mut events = eager_run(1.5);
    if let Event::Graph(graph) = &mut events[1] {
        graph.evaluation.judged.speedup = Some(99.0);
    }
    let bundle = board.room.draft("forged", &events).pack(Some(&key)).unwrap();
    let answer = board.submit(&bundle);
    assert_eq!(answer.status, 202);
    board.settle();
    let submission = board.json("/api/v1/submissions/1");
    assert_eq!(submission["state"], "refused");
    assert!(submission["reasons"][0].as_str().unwrap().contains("speed-up"), "{submission}");
    assert!(board.store().all_entries().unwrap().is_empty());
    assert!(board.store().bundle(submission["digest"].as_str().unwrap()).unwrap().is_none());
    check_page(&board.get("/submissions/").text(), "submissions");
    // The same file again is the same refusal.
    assert_eq!(board.submit(&bundle).json()["state"], "refused");
}

#[test]
fn a_bundle_of_somebody_else_is_not_taken_over() {
    let board = Board::start(open_handed());
    let bundle = board.room.bundle("mine", 1.25);
    assert_eq!(board.submit(&bundle).status, 202);
    board.store().add_author("mallory", &board.room.key("key").public_key()).unwrap();
    let token = board.store().add_token("mallory").unwrap();
    assert_eq!(board.submit_as(&bundle, token.reveal(), "").status, 409);
    board.settle();
    let entry = board.store().all_entries().unwrap()[0].clone();
    assert_eq!(entry.author, "alice");
    let other = board.room.bundle("theirs", 1.3);
    let question = format!("?replaces={}", entry.id);
    assert_eq!(board.submit_as(&other, token.reveal(), &question).status, 400);
    let request = format!(
        "POST /api/v1/runs/{}/withdraw HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: 0\r\nconnection: close\r\n\r\n",
        entry.id,
        token.reveal()
    );
    assert_eq!(ask(board.address(), &request).status, 400);
    assert_eq!(board.store().entry(&entry.id).unwrap().unwrap().state.name(), "listed");
}

#[test]
fn the_same_bundle_at_once_is_one_submission() {
    let board = Board::start(open_handed());
    let bundle = board.room.bundle("one", 1.25);
    let statuses = board.submit_at_once(&bundle);
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 202].contains(status)), "{statuses:?}");
    board.settle();
    assert_eq!(board.store().all_entries().unwrap().len(), 1);
}

#[test]
fn those_who_ask_too_much_are_slowed_down() {
    let limits = ServerLimits {
        requests_per_second: 2.0,
        submissions_per_hour: 1.0,
        bundle_bytes: 100_000,
        connections_per_address: 4,
        ..ServerLimits::default()
    };
    let board = Board::start(limits);
    let large = vec![0; 200_000];
    assert_eq!(board.submit(&large).status, 413);
    let bundle = board.room.bundle("one", 1.25);
    assert_eq!(board.submit(&bundle).status, 429, "one an hour");
    let statuses: Vec<u16> = (0..30).map(|_| board.get("/reference/").status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    let refused = statuses.iter().position(|status| *status == 429).unwrap();
    assert!(refused >= 10, "a burst is allowed: {statuses:?}");
    // More connections of one address than it may have are closed at once.
    let held: Vec<TcpStream> =
        (0..4).map(|_| TcpStream::connect(board.address()).unwrap()).collect();
    std::thread::sleep(Duration::from_millis(200));
    let mut one_more = TcpStream::connect(board.address()).unwrap();
    one_more.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(one_more.read(&mut [0; 1]).unwrap_or(0), 0, "closed");
    drop(held);
}

#[test]
fn slow_and_broken_clients_do_not_stop_the_others() {
    let board = Board::start(open_handed());
    let mut slow: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(board.address()).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-slow: ").unwrap();
            stream
        })
        .collect();
    let began = Instant::now();
    assert_eq!(board.get("/").status, 200);
    assert!(began.elapsed() < Duration::from_secs(5));
    slow.iter_mut().for_each(|stream| {
        let _ = stream.write_all(b"x");
    });
    for request in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n",
        b"POST /api/v1/submissions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\nzz\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"DELETE /run/x/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
        b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(board.address()).unwrap();
        let _ = stream.write_all(request);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = stream.read_to_end(&mut answer);
    }
    let many: String =
        (0..500).map(|index| format!("x-{index}: {}\r\n", "y".repeat(200))).collect();
    let answer = ask(board.address(), &format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n"));
    assert!([0, 400, 431].contains(&answer.status), "{}", answer.status);
    let long = format!("/?q={}", "x".repeat(5000));
    assert_eq!(board.get(&long).status, 414);
    let token = board.token.reveal();
    let torn = format!(
        "POST /api/v1/submissions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 1000\r\n\r\nhalf"
    );
    let mut stream = TcpStream::connect(board.address()).unwrap();
    stream.write_all(torn.as_bytes()).unwrap();
    drop(stream);
    assert_eq!(board.get("/").status, 200);
    assert!(board.store().submissions(5).unwrap().is_empty());
    assert_eq!(
        ask_bytes(board.address(), b"HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            .status,
        200
    );
}

/// Judges as it is told.
#[derive(Debug)]
struct Told(passnet_bench::verdict::VerdictKind);

impl Rejudger for Told {
    fn judge(&self, job: &Job) -> Result<Judged, Error> {
        assert!(job.graph.iter().any(|(name, _)| name == "model.py"));
        let (verdict, place) = (Some(self.0), "a test".to_string());
        Ok(Judged { verdict, speedup: Some(1.0), high: Some(1.1), text: "seen".into(), place })
    }

    fn watch(&self, _: &passnet_web::watch::Job) -> Result<Vec<WatchedPlan>, Error> {
        Ok(Vec::new())
    }
}

/// Tasks that are those of [`eager_run`], and events that name their models.
fn known_tasks(room: &std::path::Path) -> (TaskIndex, Vec<Event>) {
    let mut events = eager_run(1.2);
    for event in &mut events {
        let Event::Graph(graph) = event else { continue };
        let model = format!("# {} {}\n", graph.sample, graph.evaluation.judged.graph);
        let sample = room.join(&graph.sample);
        let folder = sample.join(&graph.evaluation.judged.graph);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("model.py"), &model).unwrap();
        std::fs::write(sample.join("graph_list.txt"), "graphs/0\ngraphs/1\n").unwrap();
        let digest = blake3::hash(model.as_bytes()).to_hex().to_string();
        graph.artefacts = vec![("model.py".into(), digest)];
    }
    (TaskIndex::read(&[room.to_path_buf()]).unwrap(), events)
}

#[test]
fn graphs_are_judged_again_and_disagreement_is_marked() {
    use passnet_bench::verdict::VerdictKind;
    for (kind, agreed, disagreed, badge) in [
        (VerdictKind::Correct, 5, 0, "rejudged: 5 agree"),
        (VerdictKind::Accuracy, 0, 5, "rejudged: 5 disagree"),
        (VerdictKind::Unsupported, 0, 0, "verified"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (tasks, events) = known_tasks(folder.path());
        let limits = ServerLimits { rejudged_graphs: 5, ..open_handed() };
        let board =
            Board::start_with(limits, tasks, |state| state.rejudger = Some(Box::new(Told(kind))));
        let run = board.room.run("claimed", &events);
        // The objects of the run: its models.
        for entry in walk(folder.path()) {
            let text = std::fs::read(&entry).unwrap();
            let digest = blake3::hash(&text).to_hex().to_string();
            let below = run.join("objects").join(&digest[..2]);
            std::fs::create_dir_all(&below).unwrap();
            std::fs::write(below.join(&digest[2..]), text).unwrap();
        }
        let draft = passnet_web::bundle::draft_of_run(&run, &Default::default()).unwrap();
        let bundle = draft.pack(Some(&board.room.key("key"))).unwrap();
        assert_eq!(board.submit(&bundle).status, 202);
        board.settle();
        let entry = board.store().all_entries().unwrap().remove(0);
        assert_eq!((entry.agreed, entry.disagreed), (agreed, disagreed), "{kind}");
        assert_eq!(entry.badge().text(), badge);
        let page = board.get(&format!("/run/{}/", entry.id)).text();
        assert!(page.contains("Judged again here"));
        check_page(&page, "run");
        let told = board.json(&format!("/api/v1/runs/{}/rejudged", entry.id));
        assert_eq!(told["rejudged"].as_array().unwrap().len(), 5);
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(walk(&path)),
            path if path.ends_with("model.py") => found.push(path),
            _ => {}
        }
    }
    found
}

#[test]
fn a_server_goes_on_where_it_was_stopped_and_backs_up_while_it_runs() {
    let mut board = Board::start(open_handed());
    for index in 0..4 {
        let bundle = board.room.bundle(&format!("run {index}"), 1.0 + f64::from(index) / 10.0);
        assert_eq!(board.submit(&bundle).status, 202);
    }
    board.server.take().unwrap().stop();
    let store = passnet_web::store::Store::open(&board.room.path("store")).unwrap();
    assert_eq!(store.submissions(10).unwrap().len(), 4);
    let limits = open_handed();
    let state =
        passnet_web::server::State::new(store, TaskIndex::default(), limits, Box::new(|_| {}));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    board.server = Some(passnet_web::server::Server::start(listener, state).unwrap());
    board.settle();
    assert_eq!(board.store().all_entries().unwrap().len(), 4);
    let copy = board.room.path("copy");
    std::fs::create_dir(&copy).unwrap();
    board.store().back_up(&copy.join("leaderboard.sqlite")).unwrap();
    assert!(board.store().back_up(&copy.join("leaderboard.sqlite")).is_err());
    let restored = passnet_web::store::Store::open(&copy).unwrap();
    assert!(restored.is_whole().unwrap());
    assert_eq!(restored.all_entries().unwrap(), board.store().all_entries().unwrap());
}

#[test]
fn nothing_secret_is_in_the_store_or_in_the_log() {
    use std::sync::{Arc, Mutex};
    let lines: Arc<Mutex<String>> = Arc::default();
    let room = support::Room::new();
    let store = passnet_web::store::Store::open(&room.path("store")).unwrap();
    store.add_author("alice", &room.key("key").public_key()).unwrap();
    let token = store.add_token("alice").unwrap();
    let sink = lines.clone();
    let log = Box::new(move |line: &Value| sink.lock().unwrap().push_str(&line.to_string()));
    let state = passnet_web::server::State::new(store, TaskIndex::default(), open_handed(), log);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = passnet_web::server::Server::start(listener, state).unwrap();
    let bundle = room.bundle("one", 1.2);
    let question = format!("?token={}", token.reveal());
    assert_eq!(submit_to(server.address(), &bundle, token.reveal(), &question).status, 202);
    assert_eq!(submit_to(server.address(), b"x", token.reveal(), "").status, 400);
    server.stop();
    let secret = token.reveal().trim_start_matches("passnet_");
    let log = lines.lock().unwrap().clone();
    assert!(log.contains("submissions") && !log.contains(secret), "{log}");
    for entry in std::fs::read_dir(room.path("store")).unwrap().flatten() {
        let bytes = std::fs::read(entry.path()).unwrap();
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{:?} holds the token", entry.path());
    }
}

#[test]
fn runs_of_unlike_devices_are_never_in_one_ranking() {
    let board = Board::start(open_handed());
    let key = board.room.key("key");
    let mut other = runs::identity();
    other.processor = "another processor".into();
    let elsewhere = runs::begun_at(other, eager_run(3.0));
    let mut rebuilt = runs::identity();
    rebuilt.build.commit = "ffff".into();
    let rebuilt = runs::begun_at(rebuilt, eager_run(1.3));
    for (name, events) in [("here", eager_run(1.2)), ("elsewhere", elsewhere), ("rebuilt", rebuilt)]
    {
        let bundle = board.room.draft(name, &events).pack(Some(&key)).unwrap();
        assert_eq!(board.submit(&bundle).status, 202);
    }
    board.settle();
    let boards = board.store().boards().unwrap();
    let sizes: Vec<i64> = boards.iter().map(|board| board.entries).collect();
    assert_eq!(sizes, [2, 1], "another commit does not separate, another processor does");
    let page = board.get(&format!("/board/{}/", boards[0].key)).text();
    assert!(page.contains("rebuilt") && !page.contains("elsewhere"));
}
