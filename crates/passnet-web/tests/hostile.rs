//! Those who mean harm, one after the other against one server: nothing accepted, nothing lost, nothing executed.

mod attacks;
mod support;

use attacks::{Attack, Attacks, Forger, With};
use passnet_web::server::ServerLimits;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use support::{Answer, Board, ask_bytes, check_page, open_handed, submit_to};

/// What is answered to an attack; a success is none.
fn strike(board: &Board, attack: &Attack) {
    let told = format!("{}: {}", attack.class, attack.name);
    let refused = |answer: Answer| {
        let is_kept = answer.status == 202;
        assert!(is_kept || (400..500).contains(&answer.status), "{told}: {}", answer.text());
        assert!(answer.status == 202 || answer.json()["error"].is_string(), "{told}");
        if is_kept {
            board.settle();
            let found = board.json(&format!("/api/v1/submissions/{}", answer.json()["id"]));
            assert_eq!(found["state"], "refused", "{told}: {found}");
            assert!(!found["reasons"].as_array().unwrap().is_empty(), "{told}");
        }
    };
    match &attack.with {
        With::Bundle(bytes) => refused(board.submit(bytes)),
        With::Submission { bundle, token, question } => {
            refused(submit_to(board.address(), bundle, token, question));
        }
        With::Bytes(request) => {
            let mut stream = TcpStream::connect(board.address()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            let _ = stream.write_all(request);
            let _ = stream.shutdown(Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let said = String::from_utf8_lossy(&answer);
            assert!(!said.starts_with("HTTP/1.1 2"), "{told}: {said}");
        }
        With::Address(path) => {
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            let answer = ask_bytes(board.address(), request.as_bytes());
            assert!([200, 303, 400, 404].contains(&answer.status), "{told}: {}", answer.status);
            if answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")) {
                check_page(&answer.text(), &told);
            }
            assert!(!answer.text().contains("root:"), "{told}");
        }
    }
}

/// Clients that never come to an end: half a head, half a body, and one that does not read what it asked for.
fn slow_clients(board: &Board) -> Vec<TcpStream> {
    let token = board.token.reveal();
    let halves = [
        "GET / HTTP/1.1\r\nhost: x\r\nx-slow: ".to_string(),
        format!(
            "POST /api/v1/submissions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
             content-length: 1000\r\n\r\npassnet-"
        ),
        "GET /reference/ HTTP/1.1\r\nhost: x\r\n\r\n".repeat(20),
    ];
    let open = |text: &String| {
        let mut stream = TcpStream::connect(board.address()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    halves.iter().flat_map(|text| (0..10).map(move |_| text)).map(open).collect()
}

#[test]
fn a_hundred_attacks_change_nothing() {
    let limits = ServerLimits { bundle_bytes: 200_000, ..open_handed() };
    let board = Board::start(limits);
    assert_eq!(board.submit(&board.room.bundle("known", 1.2)).status, 202);
    board.settle();
    let before = board.store().all_entries().unwrap();
    let forger = Forger::new(&board);
    let attacks = Attacks::all(&forger);
    let names: BTreeSet<(&str, &str)> =
        attacks.0.iter().map(|attack| (attack.class, attack.name.as_str())).collect();
    assert_eq!(names.len(), attacks.0.len(), "each is another one");
    // They hold their connections while everything else happens.
    let slow = slow_clients(&board);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for attack in &attacks.0 {
        *counts.entry(attack.class).or_default() += 1;
        strike(&board, attack);
    }
    assert!(attacks.0.len() >= 100, "{counts:?}");
    drop(slow);
    // Nothing accepted, nothing lost, nothing executed.
    assert_eq!(board.store().all_entries().unwrap(), before);
    assert!(board.store().is_whole().unwrap());
    assert!(!std::path::Path::new("/tmp/owned.py").exists());
    let kept = board.store().submissions(1000).unwrap();
    for submission in kept.iter().filter(|one| one.state.name() == "refused") {
        assert!(board.store().bundle(&submission.digest).unwrap().is_none(), "it is not kept");
    }
    check_page(&board.get("/submissions/").text(), "submissions");
    // And an honest bundle still gets through, whatever was sent under its manifest.
    assert_eq!(board.submit(&forger.packed(forger.honest.clone())).status, 202);
    board.settle();
    assert_eq!(board.store().all_entries().unwrap().len(), 2);
}

#[test]
fn an_attack_that_is_none_is_noticed() {
    let board = Board::start(open_handed());
    let honest = board.room.bundle("honest", 1.3);
    let attack = Attack { class: "none", name: "honest".into(), with: With::Bundle(honest) };
    let struck = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| strike(&board, &attack)));
    assert!(struck.is_err(), "a bundle that is accepted fails the check above");
}

#[test]
fn the_same_forged_bundle_at_once_is_one_refusal() {
    let board = Board::start(open_handed());
    let bundle =
        Forger::new(&board).graphs("forged", |graph| graph.evaluation.judged.speedup = Some(9.0));
    let statuses = board.submit_at_once(&bundle);
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 1, "{statuses:?}");
    board.settle();
    let kept = board.store().submissions(10).unwrap();
    assert_eq!((kept.len(), kept[0].state.name()), (1, "refused"), "{kept:?}");
    assert!(board.store().all_entries().unwrap().is_empty());
}
