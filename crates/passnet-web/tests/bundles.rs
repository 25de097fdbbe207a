//! Bundles: honest ones hold, whatever is changed in them is noticed.

mod support;

use passnet_bench::report::RunRecord;
use passnet_bench::run::{Event, RunStore};
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_web::bundle::{Bundle, Draft, Limits, SigningKey, verify};
use support::{Room, eager_events, eager_run, parsed, runs};

#[test]
fn an_honest_bundle_holds_and_is_the_same_every_time() {
    let room = Room::new();
    let bytes = room.bundle("honest", 1.25);
    let bundle = parsed(bytes.clone());
    let found = verify(&bundle).unwrap();
    assert!(found.holds(), "{:?}", found.reasons());
    assert_eq!(found.run.graphs.len(), 24);
    assert_eq!(bundle.check_signature().unwrap().public_key(), room.key("key").public_key());
    let again = room.draft("honest", &[]);
    assert_eq!(again.pack(Some(&room.key("key"))).unwrap(), bytes);
    let record = RunRecord::read(&room.path("honest")).unwrap();
    assert_eq!(record.graphs.len(), found.run.graphs.len());
}

#[test]
fn another_name_or_key_is_another_file() {
    let room = Room::new();
    let one = parsed(room.draft("one", &eager_run(1.0)).pack(Some(&room.key("key"))).unwrap());
    let two = parsed(room.draft("one", &[]).pack(Some(&room.key("other"))).unwrap());
    assert_eq!(one.digest(), two.digest(), "the content is the same");
    assert_ne!(one.bytes(), two.bytes());
    let mut renamed = room.draft("one", &[]);
    renamed.manifest.name = "another".into();
    assert_ne!(parsed(renamed.pack(None).unwrap()).digest(), one.digest());
}

#[test]
fn keys_are_private_files_and_are_not_overwritten() {
    let room = Room::new();
    let key = room.key("mine");
    assert!(SigningKey::create(&room.path("mine")).is_err());
    assert_eq!(SigningKey::read(&room.path("mine")).unwrap().public_key(), key.public_key());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(room.path("mine")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let text = std::fs::read_to_string(room.path("mine")).unwrap();
    let seed = text.split_whitespace().nth(1).unwrap();
    assert!(!format!("{key:?}").contains(seed));
    std::fs::write(room.path("bad"), "passnet-key-1 zz").unwrap();
    let error = SigningKey::read(&room.path("bad")).unwrap_err();
    assert!(error.hint.is_some(), "{error}");
}

/// Changes the text of the events and seals nothing again.
fn with_events(room: &Room, change: impl Fn(String) -> String) -> Draft {
    let mut draft = room.draft("changed", &eager_run(1.5));
    let events = draft.blobs.remove(&draft.manifest.events).unwrap();
    let changed = change(String::from_utf8(events).unwrap());
    draft.manifest.events = draft.add(changed.into_bytes());
    draft
}

/// A run whose author rewrote it whole: sealed, and wrong.
fn forged(room: &Room, name: &str, change: impl Fn(&mut Event)) -> Draft {
    let mut events = eager_run(1.5);
    events.iter_mut().for_each(change);
    room.draft(name, &events)
}

fn on_graphs(change: impl Fn(&mut passnet_bench::run::GraphEvent)) -> impl Fn(&mut Event) {
    move |event| {
        if let Event::Graph(graph) = event {
            change(graph);
        }
    }
}

/// What is wrong with a bundle whose draft could be packed.
fn refusal(draft: Draft, key: &SigningKey) -> String {
    let bytes = draft.pack(Some(key)).unwrap();
    match Bundle::parse(bytes, &Limits::default()).and_then(|bundle| verify(&bundle)) {
        Err(error) => error.message,
        Ok(found) => {
            assert!(!found.holds(), "it was believed");
            found.reasons().join("; ")
        }
    }
}

#[test]
fn what_was_changed_in_the_events_is_noticed() {
    let room = Room::new();
    let key = room.key("key");
    let cases: [(&str, Draft); 14] = [
        ("seals", with_events(&room, |text| text.replacen("1.0,", "0.5,", 1))),
        (
            "seals",
            with_events(&room, |text| {
                let lines: Vec<&str> = text.lines().collect();
                [&lines[..3], &lines[4..], &[""]].concat().join("\n")
            }),
        ),
        (
            "not sealed",
            with_events(&room, |text| {
                let unsealed =
                    text.lines().map(|line| format!("{{{}", &line[line.find(",").unwrap() + 1..]));
                unsealed.collect::<Vec<_>>().join("\n") + "\n"
            }),
        ),
        (
            "stopped",
            with_events(&room, |text| {
                let lines: Vec<&str> = text.lines().collect();
                lines[..lines.len() - 1].join("\n") + "\n"
            }),
        ),
        ("event", with_events(&room, |text| text + "{\"event\":\"graph\"}\n")),
        ("no results", with_events(&room, |_| String::new())),
        (
            "speed-up",
            forged(
                &room,
                "speedup",
                on_graphs(|graph| {
                    graph.evaluation.judged.speedup = Some(9.0);
                }),
            ),
        ),
        (
            "interval",
            forged(&room, "interval", on_graphs(|graph| graph.evaluation.interval = None)),
        ),
        ("clock", forged(&room, "zero", on_graphs(|graph| graph.evaluation.eager_ms[0] = 0.0))),
        (
            "calls",
            forged(
                &room,
                "uneven",
                on_graphs(|graph| {
                    graph.evaluation.eager_ms.push(1.0);
                }),
            ),
        ),
        (
            "timed calls",
            forged(
                &room,
                "few",
                on_graphs(|graph| {
                    graph.evaluation.eager_ms.clear();
                    graph.evaluation.candidate_ms.clear();
                }),
            ),
        ),
        (
            "not right",
            forged(
                &room,
                "ladder",
                on_graphs(|graph| {
                    graph.evaluation.judged.ladder = passnet_bench::tolerance::Ladder::NONE;
                }),
            ),
        ),
        (
            "no passes",
            forged(
                &room,
                "passes",
                on_graphs(|graph| {
                    graph.evaluation.rewrites =
                        vec![passnet_bench::candidate::Rewrites { pass: "x".into(), count: 1 }];
                }),
            ),
        ),
        ("no pass", {
            let mut events = eager_run(1.5);
            if let Event::Start(start) = &mut events[0] {
                start.compiler = "pass".into();
            }
            room.draft("compiler", &events)
        }),
    ];
    for (word, draft) in cases {
        let said = refusal(draft, &key);
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn claims_and_content_must_agree() {
    let room = Room::new();
    let key = room.key("key");
    let draft = || room.draft("claims", &[]);
    room.draft("claims", &eager_run(1.5));
    let mut cases: Vec<(&str, Draft)> = Vec::new();
    for change in [
        (|draft| draft.manifest.claims.aggregated *= 1.01) as fn(&mut Draft),
        |draft| draft.manifest.claims.correct += 1,
        |draft| draft.manifest.claims.graphs -= 1,
        |draft| draft.manifest.claims.tasks = 0,
    ] {
        let mut changed = draft();
        change(&mut changed);
        cases.push(("claimed", changed));
    }
    let mut stowaway = draft();
    stowaway.add(b"a stowaway".to_vec());
    cases.push(("nothing names", stowaway));
    let mut nameless = draft();
    nameless.manifest.name = String::new();
    cases.push(("name", nameless));
    let mut long = draft();
    long.manifest.name = "x".repeat(201);
    cases.push(("name", long));
    let mut other = draft();
    other.manifest.events = "0".repeat(64);
    cases.push(("does not list", other));
    let mut format = draft();
    format.manifest.format = 2;
    cases.push(("format 2", format));
    for (word, draft) in cases {
        let said = refusal(draft, &key);
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn artefacts_that_are_missing_or_outside_are_noticed() {
    let room = Room::new();
    for (name, digest) in [("model.py", "0".repeat(64)), ("../../x.py", "../../etc/passwd".into())]
    {
        let mut events = eager_run(1.5);
        if let Event::Graph(graph) = &mut events[1] {
            graph.artefacts = vec![(name.into(), digest)];
        }
        let folder = room.path(&format!("artefacts {}", name.len()));
        support::write_run(&folder, &events);
        let made = passnet_web::bundle::draft_of_run(&folder, &Default::default());
        assert!(made.is_err(), "{name}");
    }
}

#[test]
fn every_torn_or_flipped_file_is_refused() {
    let room = Room::new();
    let honest = room.bundle("honest", 1.1);
    for cut in (0..honest.len()).step_by(97).chain([honest.len() - 1]) {
        assert!(!is_believed(honest[..cut].to_vec()), "cut at {cut}");
    }
    for at in (0..honest.len()).step_by(211) {
        let mut flipped = honest.clone();
        flipped[at] ^= 0x41;
        assert!(!is_believed(flipped), "flipped at {at}");
    }
    let mut longer = honest.clone();
    longer.push(0);
    assert!(!is_believed(longer));
    assert!(is_believed(honest));
}

fn is_believed(bytes: Vec<u8>) -> bool {
    Bundle::parse(bytes, &Limits::default())
        .and_then(|bundle| verify(&bundle))
        .is_ok_and(|found| found.holds())
}

#[test]
fn a_signature_of_something_else_is_none() {
    let room = Room::new();
    let (one, two) = (room.bundle("one", 1.1), room.bundle("two", 1.9));
    // The signature of one in the place of that of two.
    let place =
        |file: &[u8]| 17 + 4 + u32::from_le_bytes(file[17..21].try_into().unwrap()) as usize;
    let mut replayed = two.clone();
    let (from, to) = (place(&one), place(&two));
    replayed[to..to + 97].copy_from_slice(&one[from..from + 97]);
    let bundle = parsed(replayed);
    assert!(bundle.check_signature().is_err());
    let found = verify(&bundle).unwrap();
    assert!(found.reasons().iter().any(|reason| reason.contains("signature")), "{found:?}");
    let unsigned = parsed(room.draft("one", &[]).pack(None).unwrap());
    assert!(unsigned.check_signature().is_err());
}

#[test]
fn bombs_do_not_go_off() {
    let room = Room::new();
    let zeros = vec![0u8; 32 << 20];
    let mut draft = room.draft("bomb", &eager_run(1.0));
    draft.add(zeros);
    let bytes = draft.pack(Some(&room.key("key"))).unwrap();
    assert!(bytes.len() < 1 << 20, "it is small: {}", bytes.len());
    let small = Limits { blob_bytes: 16 << 20, ..Limits::default() };
    assert!(Bundle::parse(bytes.clone(), &small).is_err());
    let small = Limits { total_bytes: 16 << 20, ..Limits::default() };
    assert!(Bundle::parse(bytes.clone(), &small).is_err());
    let small = Limits { blobs: 1, ..Limits::default() };
    assert!(Bundle::parse(bytes.clone(), &small).is_err());
    let small = Limits { file_bytes: 100, ..Limits::default() };
    assert!(Bundle::parse(bytes, &small).is_err());
    // One that unpacks to more than it says.
    let mut liar = room.draft("bomb", &[]);
    let digest = liar.manifest.events.clone();
    liar.blobs.insert(digest, vec![0; 1 << 20]);
    let bundle = Bundle::parse(liar.pack(None).unwrap(), &Limits::default()).unwrap();
    let error = bundle.blob(&bundle.manifest.events).unwrap_err();
    assert!(error.message.contains("digest"), "{error}");
}

#[test]
fn a_run_that_failed_everywhere_is_a_bundle_too() {
    let room = Room::new();
    let graphs = vec![
        runs::failed("a", "graphs/0", Verdict::new(VerdictKind::ReferenceFail).because("eager")),
        runs::ran("a", "graphs/1", 1.2, -6),
    ];
    let bytes = room.draft("half", &eager_events(graphs)).pack(Some(&room.key("key"))).unwrap();
    let found = verify(&parsed(bytes)).unwrap();
    assert!(found.holds(), "{:?}", found.reasons());
    // A folder without results is none.
    RunStore::open(&room.path("empty")).unwrap();
    assert!(passnet_web::bundle::draft_of_run(&room.path("empty"), &Default::default()).is_err());
}
