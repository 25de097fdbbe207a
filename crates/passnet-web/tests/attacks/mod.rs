//! Bundles, requests and addresses of those who mean harm.

use super::support::{Board, HOSTILE, eager_run};
use passnet_bench::candidate::Rewrites;
use passnet_bench::run::{Event, GraphEvent, RunStore};
use passnet_bench::tolerance::Ladder;
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_web::bundle::{AttemptRef, BlobRef, Draft, Manifest};
use ring::signature::{Ed25519KeyPair, KeyPair};

/// What somebody does, and of what kind it is.
pub struct Attack {
    pub class: &'static str,
    pub name: String,
    pub with: With,
}

pub enum With {
    /// A file, sent with a good token; refused at once or by the worker.
    Bundle(Vec<u8>),
    /// The same with this token and this question.
    Submission { bundle: Vec<u8>, token: String, question: String },
    /// Bytes on a connection. What is answered, if anything, is no success.
    Bytes(Vec<u8>),
    /// An address whose page is as well-formed as any.
    Address(String),
}

/// All that is tried, class by class.
#[derive(Default)]
pub struct Attacks(pub Vec<Attack>);

impl Attacks {
    pub fn all(forger: &Forger<'_>) -> Attacks {
        let mut attacks = Attacks::default();
        bombs(forger, &mut attacks);
        traversal(forger, &mut attacks);
        forgeries(forger, &mut attacks);
        strangers(forger, &mut attacks);
        torn(forger, &mut attacks);
        broken(&mut attacks);
        questions(forger.board, &mut attacks);
        attacks
    }

    pub fn add(&mut self, class: &'static str, name: impl Into<String>, with: With) {
        self.0.push(Attack { class, name: name.into(), with });
    }

    pub fn bundle(&mut self, class: &'static str, name: impl Into<String>, bytes: Vec<u8>) {
        self.add(class, name, With::Bundle(bytes));
    }
}

/// Writes files that no honest program writes, with the author's own key.
pub struct Forger<'a> {
    board: &'a Board,
    pair: Ed25519KeyPair,
    /// What an honest bundle that nobody sent yet is made from.
    pub honest: Draft,
}

impl<'a> Forger<'a> {
    pub fn new(board: &'a Board) -> Forger<'a> {
        let text = std::fs::read_to_string(board.room.path("key")).unwrap();
        let seed = blake3::Hash::from_hex(text.split_whitespace().nth(1).unwrap()).unwrap();
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_bytes()).unwrap();
        let honest = board.room.draft("honest", &eager_run(1.3));
        Forger { board, pair, honest }
    }

    pub fn draft(&self, name: &str, change: impl Fn(&mut Event)) -> Draft {
        let mut events = eager_run(1.5);
        events.iter_mut().for_each(change);
        self.board.room.draft(name, &events)
    }

    pub fn packed(&self, draft: Draft) -> Vec<u8> {
        draft.pack(Some(&self.board.room.key("key"))).unwrap()
    }

    /// A whole run that was invented, and signed as it is.
    pub fn run(&self, name: &str, change: impl Fn(&mut Event)) -> Vec<u8> {
        self.packed(self.draft(name, change))
    }

    pub fn graphs(&self, name: &str, change: impl Fn(&mut GraphEvent)) -> Vec<u8> {
        self.run(name, |event| {
            if let Event::Graph(graph) = event {
                change(graph);
            }
        })
    }

    /// A file with this text for a manifest and these frames, whatever they say.
    pub fn file(&self, manifest: &[u8], frames: &[Vec<u8>]) -> Vec<u8> {
        let signed = [DOMAIN, blake3::hash(manifest).as_bytes()].concat();
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let mut file = [MAGIC, &length(manifest), manifest, &[1]].concat();
        file.extend(self.pair.public_key().as_ref());
        file.extend(self.pair.sign(&signed).as_ref());
        for frame in frames {
            file.extend(length(frame));
            file.extend(frame);
        }
        file
    }

    /// An honest manifest in which one thing is another.
    pub fn manifest(&self, change: impl Fn(&mut Manifest)) -> Vec<u8> {
        let (digest, events) = self.honest.blobs.first_key_value().unwrap();
        let mut manifest = self.honest.manifest.clone();
        manifest.blobs = vec![BlobRef { digest: digest.clone(), size: events.len() as u64 }];
        change(&mut manifest);
        self.file(&manifest.to_bytes(), &[zstd::bulk::compress(events, 1).unwrap()])
    }
}

const MAGIC: &[u8] = b"passnet-bundle-1\n";
const DOMAIN: &[u8] = b"passnet bundle 1\0";

/// Small files that want to become large ones.
fn bombs(forger: &Forger<'_>, attacks: &mut Attacks) {
    const CLASS: &str = "bomb";
    let zeros = |mebibytes: usize| zstd::bulk::compress(&vec![0; mebibytes << 20], 1).unwrap();
    let mut draft = forger.draft("stowed", |_| {});
    draft.add(vec![0; 32 << 20]);
    attacks.bundle(CLASS, "32 MiB of zeros that nothing names", forger.packed(draft));
    let sizes =
        [("of 1 TiB", 1 << 40), ("of all bytes there are", u64::MAX), ("of 129 MiB", 129 << 20)];
    for (name, size) in sizes {
        let file = forger.manifest(|manifest| manifest.blobs[0].size = size);
        attacks.bundle(CLASS, format!("a blob {name}"), file);
    }
    let many = |sizes: &[u64]| {
        forger.manifest(|manifest| {
            for (index, size) in sizes.iter().enumerate() {
                let digest = blake3::hash(&index.to_le_bytes()).to_hex().to_string();
                manifest.blobs.push(BlobRef { digest, size: *size });
            }
            manifest.blobs.sort_by(|a, b| a.digest.cmp(&b.digest));
        })
    };
    attacks.bundle(CLASS, "three blobs of 100 MiB", many(&[100 << 20; 3]));
    attacks.bundle(CLASS, "sizes whose sum is small again", many(&[u64::MAX; 2]));
    attacks.bundle(CLASS, "fifty thousand blobs and more", many(&[0; 50_000]));
    let mut liar = forger.draft("liar", |_| {});
    let digest = liar.manifest.events.clone();
    let size = liar.blobs[&digest].len() as u64;
    liar.manifest.blobs = vec![BlobRef { digest, size }];
    let manifest = liar.manifest.to_bytes();
    attacks.bundle(
        CLASS,
        "a frame of 64 MiB for a small blob",
        forger.file(&manifest, &[zeros(64)]),
    );
    attacks.bundle(CLASS, "a frame that is none", forger.file(&manifest, &[vec![7; 100]]));
    let nested = zstd::bulk::compress(&zeros(32), 1).unwrap();
    attacks.bundle(CLASS, "a frame in a frame", forger.file(&manifest, &[nested]));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    attacks.bundle(CLASS, "a manifest of brackets", forger.file(deep.as_bytes(), &[]));
    let mut lines = forger.draft("brackets", |_| {});
    lines.blobs.clear();
    lines.manifest.events = lines.add(format!("{deep}\n").into_bytes());
    attacks.bundle(CLASS, "events of brackets", forger.packed(lines));
    let mut endless = [MAGIC, &u32::MAX.to_le_bytes()].concat();
    endless.resize(4096, b'{');
    attacks.bundle(CLASS, "a manifest of 4 GiB", endless);
}

/// Names and digests that lead elsewhere.
fn traversal(forger: &Forger<'_>, attacks: &mut Attacks) {
    const CLASS: &str = "traversal";
    for digest in ["../../../../etc/passwd", "/etc/passwd", "..", "aa/../../bb", ""] {
        let file = forger.manifest(|manifest| {
            manifest.blobs[0].digest = digest.into();
            manifest.events = digest.into();
        });
        attacks.bundle(CLASS, format!("a blob called `{digest}`"), file);
    }
    // A pass whose file lies elsewhere: called right, so that it is written and read again.
    for name in
        ["../../../tmp/owned.py", "/tmp/owned.py", "a/../../owned.py", ".profile", "owned\0.py"]
    {
        let folder = forger.board.room.path(&format!("outside {}", name.len()));
        let mut store = RunStore::open(&folder).unwrap();
        let text = store.keep(b"def pattern(x):\n    return x\n").unwrap();
        for mut event in eager_run(1.5) {
            match &mut event {
                Event::Start(start) => start.compiler = "pass".into(),
                Event::Graph(graph) => {
                    graph.artefacts = vec![(name.into(), text.clone())];
                    graph.evaluation.rewrites = vec![Rewrites { pass: "owned".into(), count: 1 }];
                }
                Event::End { .. } => {}
            }
            store.append(&event).unwrap();
        }
        if let Ok(draft) = passnet_web::bundle::draft_of_run(&folder, &Default::default()) {
            attacks.bundle(CLASS, format!("a pass called `{name}`"), forger.packed(draft));
        }
    }
    let own = |path: &str| With::Address(path.to_string());
    for path in [
        "/run/../../../etc/passwd/",
        "/run/%2e%2e%2f%2e%2e%2fetc/",
        "/dataset/operation/..%2f..%2f/",
        "/matrix/../../etc/",
        "/api/v1/bundles/..%2f..%2fetc%2fpasswd",
    ] {
        attacks.add(CLASS, format!("the address {path}"), own(path));
    }
}

/// Numbers that no clock gave, and other inventions.
fn forgeries(forger: &Forger<'_>, attacks: &mut Attacks) {
    const CLASS: &str = "forged samples";
    type Change = fn(&mut GraphEvent);
    let changes: [(&str, Change); 13] = [
        ("a better speed-up", |graph| graph.evaluation.judged.speedup = Some(9.0)),
        ("no interval", |graph| graph.evaluation.interval = None),
        ("a better interval", |graph| {
            graph.evaluation.interval.as_mut().unwrap().low = 1.49;
        }),
        ("another decision", |graph| {
            graph.evaluation.decision = Some(passnet_bench::stats::Decision::Slower);
        }),
        ("no time at all", |graph| graph.evaluation.candidate_ms[0] = 0.0),
        ("negative time", |graph| graph.evaluation.candidate_ms[0] = -1.0),
        ("slower eager", |graph| graph.evaluation.eager_ms.iter_mut().for_each(|ms| *ms *= 2.0)),
        ("more calls of eager", |graph| graph.evaluation.eager_ms.push(1.0)),
        ("no calls", |graph| {
            graph.evaluation.eager_ms.clear();
            graph.evaluation.candidate_ms.clear();
        }),
        ("one call", |graph| {
            graph.evaluation.eager_ms.truncate(1);
            graph.evaluation.candidate_ms.truncate(1);
        }),
        ("right at no level", |graph| graph.evaluation.judged.ladder = Ladder::NONE),
        ("passes of a compiler", |graph| {
            graph.evaluation.rewrites = vec![Rewrites { pass: "x".into(), count: 1 }];
        }),
        ("a failure that was right", |graph| {
            graph.evaluation.judged.verdict = Verdict::new(VerdictKind::Timeout);
        }),
    ];
    for (name, change) in changes {
        attacks.bundle(CLASS, name, forger.graphs(name, change));
    }
    let as_passes = |event: &mut Event| {
        if let Event::Start(start) = event {
            start.compiler = "pass".into();
        }
    };
    attacks.bundle(CLASS, "right without a pass", forger.run("no pass", as_passes));
    type Lines = fn(Vec<&str>) -> Vec<String>;
    let texts: [(&str, Lines); 7] = [
        ("a changed line", |lines| {
            lines.iter().map(|line| line.replacen("1.0,", "0.5,", 1)).collect()
        }),
        ("a line that is gone", |lines| {
            [&lines[..3], &lines[4..]].concat().iter().map(ToString::to_string).collect()
        }),
        ("a line twice", |lines| {
            [&lines[..3], &lines[2..]].concat().iter().map(ToString::to_string).collect()
        }),
        ("lines in another order", |mut lines| {
            lines.swap(2, 3);
            lines.iter().map(ToString::to_string).collect()
        }),
        ("no end", |lines| lines[..lines.len() - 1].iter().map(ToString::to_string).collect()),
        ("no beginning", |lines| lines[1..].iter().map(ToString::to_string).collect()),
        ("nothing", |_| Vec::new()),
    ];
    for (name, change) in texts {
        let mut draft = forger.draft(name, |_| {});
        let events = draft.blobs.remove(&draft.manifest.events).unwrap();
        let events = String::from_utf8(events).unwrap();
        let changed: String =
            change(events.lines().collect()).iter().map(|line| format!("{line}\n")).collect();
        draft.manifest.events = draft.add(changed.into_bytes());
        attacks.bundle("forged events", name, forger.packed(draft));
    }
    type Claim = fn(&mut Manifest);
    let claims: [(&str, Claim); 9] = [
        ("a better score", |manifest| manifest.claims.aggregated *= 1.01),
        ("a score without end", |manifest| manifest.claims.aggregated = f64::INFINITY),
        ("more right graphs", |manifest| manifest.claims.correct += 1),
        ("fewer graphs", |manifest| manifest.claims.graphs -= 1),
        ("no name", |manifest| manifest.name.clear()),
        ("a name of a thousand letters", |manifest| manifest.name = "n".repeat(1000)),
        ("another format", |manifest| manifest.format = 2),
        ("events that are not there", |manifest| manifest.events = "0".repeat(64)),
        ("a trajectory that is not there", |manifest| {
            let trajectory = "0".repeat(64);
            manifest.attempts = vec![AttemptRef { task: "t".into(), attempt: 0, trajectory }];
        }),
    ];
    for (name, change) in claims {
        attacks.bundle("false claims", name, forger.manifest(change));
    }
}

/// Signatures, keys and tokens of others, and none.
fn strangers(forger: &Forger<'_>, attacks: &mut Attacks) {
    let (board, token) = (forger.board, forger.board.token.reveal().to_string());
    let honest = forger.packed(forger.honest.clone());
    let place = |file: &[u8]| 21 + u32::from_le_bytes(file[17..21].try_into().unwrap()) as usize;
    // It is on the board already.
    let known = forger.packed(board.room.draft("known", &[]));
    let mut replayed = honest.clone();
    let (from, to) = (place(&known), place(&honest));
    replayed[to..to + 97].copy_from_slice(&known[from..from + 97]);
    attacks.bundle("replayed signature", "of another bundle", replayed);
    let mut swapped = known.clone();
    swapped[place(&known) + 97] ^= 1;
    attacks.bundle("replayed signature", "over other blobs", swapped);
    let mut named = known.clone();
    let at = named.windows(5).position(|window| window == b"known").unwrap();
    named[at..at + 5].copy_from_slice(b"knowN");
    attacks.bundle("replayed signature", "over another name", named);
    let mut zeroed = honest.clone();
    zeroed[to + 1..to + 97].fill(0);
    attacks.bundle("replayed signature", "a key and a signature of zeros", zeroed);
    let other = |key: &str| {
        let key = board.room.key(key);
        forger.honest.clone().pack(Some(&key)).unwrap()
    };
    attacks.bundle("other key", "a stranger's", other("stranger"));
    let mut grafted = honest.clone();
    grafted[to + 1..to + 33].copy_from_slice(&other("stranger")[to + 1..to + 33]);
    attacks.bundle("other key", "the author's signature under a stranger's key", grafted);
    let unsigned = forger.honest.clone().pack(None).unwrap();
    attacks.bundle("other key", "none", unsigned);
    board.store().add_author("mallory", &board.room.key("stranger").public_key()).unwrap();
    let mallory = board.store().add_token("mallory").unwrap().reveal().to_string();
    let entry = board.store().all_entries().unwrap()[0].id.clone();
    let (rest, last) = token.split_at(token.len() - 1);
    let changed = format!("{rest}{}", if last == "0" { "1" } else { "0" });
    for (name, bundle, token, question) in [
        (
            "an author's bundle with another author's token",
            honest.clone(),
            mallory.clone(),
            String::new(),
        ),
        (
            "a bundle that replaces another author's",
            other("stranger"),
            mallory,
            format!("?replaces={entry}"),
        ),
        ("no token", honest.clone(), String::new(), String::new()),
        ("a token with a letter changed", honest.clone(), changed, String::new()),
        ("a token of another kind", honest.clone(), "passnet_00".into(), String::new()),
        ("a token in the address", honest.clone(), String::new(), format!("?token={token}")),
        ("a bundle that replaces nothing", honest, token, "?replaces=0123456789abcdef".into()),
    ] {
        attacks.add("other token", name, With::Submission { bundle, token, question });
    }
}

/// Files that are cut, longer, or too large.
fn torn(forger: &Forger<'_>, attacks: &mut Attacks) {
    let honest = forger.packed(forger.honest.clone());
    for (name, at) in [
        ("in its first line", 5),
        ("in a length", 19),
        ("in its manifest", 100),
        ("before its signature", honest.len() / 2),
        ("before its last byte", honest.len() - 1),
        ("to nothing", 0),
    ] {
        attacks.bundle("truncated", format!("cut {name}"), honest[..at].to_vec());
    }
    let mut damaged = honest.clone();
    let last = damaged.len() - 5;
    damaged[last] ^= 0x41;
    attacks.bundle("truncated", "with a blob that was damaged on its way", damaged);
    attacks.bundle("truncated", "followed by more", [&honest[..], b"x"].concat());
    attacks.bundle("truncated", "twice", [&honest[..], &honest[..]].concat());
    attacks.bundle("oversized", "a body of 300 kB", vec![b'p'; 300_000]);
    let mut padded = forger.draft("padded", |_| {});
    let mut noise = 1u64;
    let random = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (noise >> 56) as u8
    });
    padded.add(random.take(300_000).collect());
    attacks.bundle("oversized", "a bundle of 300 kB", forger.packed(padded));
    let head = "POST /api/v1/submissions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ";
    let token = forger.board.token.reveal();
    for (class, name, rest) in [
        (
            "oversized",
            "a body that claims to be an exbibyte",
            "content-length: 1152921504606846976\r\n\r\nx".to_string(),
        ),
        (
            "oversized",
            "a body of many chunks",
            format!(
                "transfer-encoding: chunked\r\n\r\n{}",
                format!("10000\r\n{}\r\n", "x".repeat(65_536)).repeat(5)
            ),
        ),
        ("truncated", "half a body", "content-length: 1000\r\n\r\nhalf".into()),
        ("truncated", "half a chunk", "transfer-encoding: chunked\r\n\r\nff\r\nhalf".into()),
    ] {
        attacks.add(class, name, With::Bytes(format!("{head}{token}\r\n{rest}").into_bytes()));
    }
    let many: String =
        (0..500).map(|index| format!("x-{index}: {}\r\n", "y".repeat(200))).collect();
    let long = "x".repeat(5000);
    for (name, request) in [
        ("many headers", format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n")),
        (
            "a long address",
            format!("GET /?q={long} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        ),
        (
            "a long header",
            format!("GET / HTTP/1.1\r\nhost: x\r\ncookie: {}\r\n\r\n", "c".repeat(100_000)),
        ),
    ] {
        attacks.add("oversized", name, With::Bytes(request.into_bytes()));
    }
}

/// Requests that are none.
fn broken(attacks: &mut Attacks) {
    let requests: [(&str, &[u8]); 11] = [
        ("a handshake of TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        ("a word", b"GET"),
        ("another version", b"GET / HTTP/9.9\r\n\r\n"),
        ("a negative length", b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"),
        ("two lengths", b"POST /api/v1/submissions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 9\r\n\r\nx"),
        ("a length and chunks", b"POST /api/v1/submissions HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n"),
        ("chunks of no size", b"POST /api/v1/submissions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\nzz\r\n"),
        ("a tunnel", b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        ("a page to be deleted", b"DELETE /run/x/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"),
        ("a page to be written", b"PUT / HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        ("a form from another page", b"POST /api/v1/runs/x/withdraw HTTP/1.1\r\nhost: x\r\norigin: http://evil.example\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: 3\r\nconnection: close\r\n\r\na=b"),
    ];
    for (name, request) in requests {
        attacks.add("broken request", name, With::Bytes(request.to_vec()));
    }
}

/// Questions that want to be markup.
fn questions(board: &Board, attacks: &mut Attacks) {
    let key = board.store().boards().unwrap()[0].key.clone();
    for text in HOSTILE {
        let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for path in [
            format!("/board/{key}/?q={encoded}&sort={encoded}&page={encoded}&state={encoded}"),
            format!("/dataset/operations/?op={encoded}"),
            format!("/matrix/?run={encoded}&run=b"),
            format!("/{encoded}/"),
        ] {
            attacks.add("markup in a question", path.clone(), With::Address(path));
        }
    }
}
