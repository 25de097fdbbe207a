//! The interface for machines: every answer is as its description says, to the last key.

mod support;

use passnet_web::bundle::AgentSummary;
use passnet_web::server::OPENAPI;
use passnet_web::site::add_run;
use passnet_web::store::{Entry, Rejudged};
use serde_json::Value;
use std::collections::BTreeSet;
use support::passes::{pass_run, repository, tasks};
use support::schema::mistakes;
use support::{Answer, Board, Room, ask, eager_run, open_handed, runs};

fn description() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

/// A board on which every kind of thing happened.
struct Busy {
    board: Board,
    /// The run of an agent, one that superseded another and was judged again, and one with passes.
    agent: Entry,
    better: Entry,
    passes: Entry,
    /// Where the tasks lie.
    _room: Room,
    /// The bundle of the better one.
    sent: Vec<u8>,
}

fn busy() -> Busy {
    let names = ["one", "two"];
    let room = Room::new();
    let board = Board::start_with(open_handed(), tasks(&room, &names), |_| {});
    let key = board.room.key("key");
    let mut draft = board.room.draft("agent", &eager_run(1.25));
    draft.manifest.agent = Some(AgentSummary {
        model: "a model".into(),
        tasks: 12,
        attempts: 12,
        steps: 40,
        input_tokens: 1000,
        output_tokens: 100,
        cost: Some(0.25),
        seconds: 60.0,
    });
    assert_eq!(board.submit(&draft.pack(Some(&key)).unwrap()).status, 202);
    assert_eq!(board.submit(&board.room.bundle("old", 1.1)).status, 202);
    board.settle();
    let find = |name: &str| {
        board.store().all_entries().unwrap().into_iter().find(|entry| entry.name == name).unwrap()
    };
    let question = format!("?replaces={}", find("old").id);
    let sent = board.room.bundle("better", 1.4);
    assert_eq!(board.submit_as(&sent, board.token.reveal(), &question).status, 202);
    let mut events = eager_run(1.5);
    if let passnet_bench::run::Event::Graph(graph) = &mut events[1] {
        graph.evaluation.judged.speedup = Some(99.0);
    }
    let forged = board.room.draft("forged", &events).pack(Some(&key)).unwrap();
    assert_eq!(board.submit(&forged).status, 202);
    board.settle();
    add_run(board.store(), &board.room.run("mixed", &runs::mixed()), "owner").unwrap();
    // The pattern of the second is one that the dataset has too.
    let folder = pass_run(&board.room, "passes", &names, |task, pass| match task {
        "two" => pass.replace(".permute(0, 3, 1, 2)", ""),
        _ => pass,
    });
    let passes = add_run(board.store(), &folder, "owner").unwrap();
    let passes = board.store().entry(&passes).unwrap().unwrap();
    board.store().import_dataset(&repository().join("bench/set/evaluation.pnds")).unwrap();
    let better = find("better");
    let again = |position, verdict: Option<&str>, agrees| Rejudged {
        position,
        task: "task_00".into(),
        graph: format!("graphs/{position}"),
        claimed_verdict: "correct".into(),
        claimed_speedup: Some(1.4),
        verdict: verdict.map(Into::into),
        speedup: verdict.map(|_| 1.3),
        agrees,
        text: "seen".into(),
        place: "a test".into(),
        time: 1,
    };
    let found = [
        again(0, Some("correct"), Some(true)),
        again(1, Some("accuracy"), Some(false)),
        again(2, None, None),
    ];
    board.store().note_rejudged(&better, &found).unwrap();
    let (agent, better) = (find("agent"), find("better"));
    Busy { board, agent, better, passes, sent, _room: room }
}

/// Holds an answer against what is described for its address and status.
fn hold(described: &Value, method: &str, path: &str, answer: &Answer) {
    let responses = &described["paths"][path][method]["responses"];
    let status = answer.status.to_string();
    let response = responses.get(&status).unwrap_or_else(|| panic!("{method} {path}: {status}"));
    let response = match response.get("$ref").and_then(Value::as_str) {
        Some(name) => described.pointer(name.trim_start_matches('#')).unwrap(),
        None => response,
    };
    let kind = answer.header("content-type").unwrap();
    let content = response["content"].get(kind).unwrap_or_else(|| panic!("{path}: {kind}"));
    if kind == "application/json" {
        let found = mistakes(described, &content["schema"], &answer.json());
        assert!(found.is_empty(), "{method} {path}: {found:#?}");
    }
}

#[test]
fn every_answer_is_as_described() {
    let busy = busy();
    let (board, described) = (&busy.board, description());
    let mut asked = BTreeSet::new();
    let mut get = |path: &str, parts: &[(&str, &str)], question: &str, status: u16| {
        let filled =
            parts.iter().fold(path.to_string(), |path, (name, part)| path.replace(name, part));
        let answer = board.get(&format!("/api/v1{filled}{question}"));
        assert_eq!(answer.status, status, "{filled}{question}: {}", answer.text());
        hold(&described, "get", path, &answer);
        asked.insert(format!("get {path}"));
        answer.json()
    };
    for entry in [&busy.agent, &busy.better, &busy.passes] {
        let id = [("{id}", entry.id.as_str())];
        get("/boards/{key}", &[("{key}", &entry.board())], "", 200);
        get("/runs/{id}", &id, "", 200);
        get("/runs/{id}/graphs", &id, "", 200);
        get("/runs/{id}/rejudged", &id, "", 200);
    }
    let key = busy.better.board();
    let ranking = get("/boards/{key}", &[("{key}", &key)], "?sort=name&direction=up", 200);
    assert_eq!(ranking["entries"].as_array().unwrap().len(), 3, "superseded ones stay visible");
    get("/boards/{key}", &[("{key}", "x")], "", 404);
    get("/runs/{id}", &[("{id}", "0")], "", 404);
    let (agent, better, passes) = (&busy.agent.id, &busy.better.id, &busy.passes.id);
    for (one, two) in [(agent, better), (better, agent), (agent, passes)] {
        get("/compare/{one}/{two}", &[("{one}", one), ("{two}", two)], "", 200);
    }
    let all = format!("{better},{agent},{passes}");
    let matrix = get("/matrix/{runs}", &[("{runs}", &all)], "", 200);
    assert_eq!(matrix["runs"][2]["run"], "passes");
    get("/matrix/{runs}", &[("{runs}", better)], "", 400);
    get("/matrix/{runs}", &[("{runs}", &format!("{better},0"))], "", 404);
    let path = "/runs/{id}/tasks/{task}/passes";
    for (task, what) in [("0", "plans"), ("1", "matches")] {
        let told = get(path, &[("{id}", passes), ("{task}", task)], "", 200);
        let found = told["sets"][0]["passes"][0][what].as_array().unwrap();
        assert!(!found.is_empty(), "{what}: {told}");
    }
    get(path, &[("{id}", passes), ("{task}", "9")], "", 404);
    for (path, question) in [
        ("/openapi.json", ""),
        ("/boards", ""),
        ("/dataset", ""),
        ("/dataset", "?op=relu&page=2"),
        ("/dataset/operations", ""),
        ("/reference", ""),
    ] {
        get(path, &[], question, 200);
    }
    let submissions = get("/submissions", &[], "", 200);
    for submission in submissions["submissions"].as_array().unwrap() {
        get("/submissions/{id}", &[("{id}", &submission["id"].to_string())], "", 200);
    }
    get("/submissions/{id}", &[("{id}", "x")], "", 404);
    let digest = &busy.better.digest;
    let file = board.get(&format!("/api/v1/bundles/{digest}"));
    hold(&described, "get", "/bundles/{digest}", &file);
    asked.insert("get /bundles/{digest}".into());
    let path = "/runs/{id}/withdraw";
    let withdrawn = board.post(&format!("/api/v1/runs/{agent}/withdraw"));
    assert_eq!(withdrawn.status, 200);
    for (path, answer) in [
        (path, withdrawn),
        (path, board.post("/api/v1/runs/0/withdraw")),
        ("/submissions", board.submit(&board.room.bundle("new", 1.2))),
        ("/submissions", board.submit(&busy.sent)),
        ("/submissions", board.submit(b"no bundle")),
        ("/submissions", board.submit_as(b"", "wrong", "")),
    ] {
        hold(&described, "post", path, &answer);
        asked.insert(format!("post {path}"));
    }
    let paths = described["paths"].as_object().unwrap();
    let all: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    assert_eq!(asked, all, "everything that is described was asked");
    assert_eq!(board.get("/api/v1/nothing").status, 404);
    let change = "PUT /api/v1/boards HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    assert_eq!(ask(board.address(), change).status, 405);
}

#[test]
fn the_description_leaves_nothing_open() {
    let described = description();
    assert_eq!(described["info"]["version"].as_str().unwrap().split('.').next(), Some("1"));
    let schemas = described["components"]["schemas"].as_object().unwrap();
    let text = described["paths"].to_string() + &described["components"].to_string();
    for (name, schema) in schemas {
        assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "{name} is used");
        assert!(schema["description"].is_string(), "{name} says what it is");
        if schema["type"] == "object" && schema.get("additionalProperties").is_none() {
            let required = schema["required"].as_array().unwrap();
            assert!(!required.is_empty(), "{name} always has something");
            let properties = schema["properties"].as_object().unwrap();
            assert!(required.iter().all(|key| properties.contains_key(key.as_str().unwrap())));
        }
    }
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, about) in methods.as_object().unwrap() {
            for (status, response) in about["responses"].as_object().unwrap() {
                let schema = &response["content"]["application/json"]["schema"];
                let is_named = response.get("$ref").is_some() || schema.get("$ref").is_some();
                assert!(is_named || path.starts_with("/bundles"), "{method} {path} {status}");
            }
        }
    }
}

#[test]
fn the_check_itself_notices_what_is_wrong() {
    let described = description();
    let schema = &described["components"]["schemas"]["Submission"];
    let right = serde_json::json!({
        "id": 1, "digest": "d", "author": "a", "received": 1, "state": "done", "reasons": [], "entry": "e"
    });
    assert_eq!(mistakes(&described, schema, &right), [""; 0]);
    for (key, value) in [
        ("id", "1".into()),
        ("state", "lost".into()),
        ("reasons", Value::Null),
        ("reasons", serde_json::json!([1])),
        ("new", 1.into()),
        ("entry", Value::Null),
    ] {
        let mut wrong = right.clone();
        wrong[key] = value;
        assert_eq!(mistakes(&described, schema, &wrong).len(), 1, "{key}");
    }
    let mut lacking = right.clone();
    lacking.as_object_mut().unwrap().remove("digest");
    assert_eq!(mistakes(&described, schema, &lacking).len(), 1);
}
