//! A thousand runs of 748 graphs, asked for three hundred times a second.

mod support;

use passnet_bench::report::RunRecord;
use passnet_web::bundle::{Bundle, Limits};
use passnet_web::server::{Server, ServerLimits, State};
use passnet_web::store::{Admission, Store, readied};
use passnet_web::tasks::TaskIndex;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::{Room, eager_events, runs};

const RUNS: usize = 1000;
/// Runs that really differ; the others carry other names.
const KINDS: usize = 20;
const TASKS: usize = 400;
const GRAPHS: usize = 748;
const PER_SECOND: f64 = 300.0;
const SECONDS: f64 = 20.0;
const CLIENTS: usize = 16;
const SLOWEST: Duration = Duration::from_millis(50);
const MOST_MEMORY: u64 = 1 << 30;

/// A store of a thousand runs.
fn fill(room: &Room) -> Store {
    let store = Store::open(&room.path("store")).unwrap();
    for kind in 0..KINDS {
        let speed = |index: usize| 0.7 + 0.001 * ((index * 7919 + kind * 104_729) % 1000) as f64;
        let graph = |index: usize| {
            let (task, graph) = (index % TASKS, index / TASKS);
            runs::ran(&format!("task_{task:03}"), &format!("graphs/{graph}"), speed(index), -6)
        };
        let events = eager_events((0..GRAPHS).map(graph).collect());
        let draft = room.draft(&format!("kind {kind}"), &events);
        let run = RunRecord::read(&room.path(&format!("kind {kind}"))).unwrap();
        let ready = readied(&run, None).unwrap();
        for copy in 0..RUNS / KINDS {
            let mut draft = draft.clone();
            draft.manifest.name = format!("run {kind} {copy}");
            let bundle = Bundle::parse(draft.pack(None).unwrap(), &Limits::default()).unwrap();
            let admission = Admission { author: format!("author {copy}"), ..Admission::default() };
            store.admit(&bundle, &run, &ready, &admission).unwrap();
        }
    }
    store
}

/// One request on an open connection; the bytes of its body.
fn ask(stream: &mut BufReader<TcpStream>, path: &str) -> usize {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.get_mut().write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{path}: {line}");
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).unwrap();
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    length
}

/// A page that is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ranking,
    Run,
}

/// How long one answer took, from when it was due, and its bytes.
struct Asked {
    kind: Kind,
    time: Duration,
    bytes: usize,
}

/// Asks at a steady rate, whatever the answers take.
fn storm(address: SocketAddr, paths: &[(Kind, String)]) -> Vec<Asked> {
    let all = (PER_SECOND * SECONDS) as usize;
    let next = AtomicUsize::new(0);
    let answers: Mutex<Vec<Asked>> = Mutex::default();
    let began = Instant::now() + Duration::from_millis(100);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let stream = TcpStream::connect(address).unwrap();
                stream.set_nodelay(true).unwrap();
                let mut stream = BufReader::new(stream);
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= all {
                        return;
                    }
                    let due = began + Duration::from_secs_f64(index as f64 / PER_SECOND);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let (kind, path) = &paths[(index * 7919) % paths.len()];
                    let bytes = ask(&mut stream, path);
                    let time = due.elapsed();
                    answers.lock().unwrap().push(Asked { kind: *kind, time, bytes });
                }
            });
        }
    });
    answers.into_inner().unwrap()
}

/// Times and sizes of the answers of some kinds.
struct Figures {
    answers: usize,
    median: Duration,
    at_99: Duration,
    slowest: Duration,
    largest: usize,
}

impl Figures {
    fn of(answers: &[Asked], kinds: &[Kind]) -> Figures {
        let some = || answers.iter().filter(|asked| kinds.contains(&asked.kind));
        let mut times: Vec<Duration> = some().map(|asked| asked.time).collect();
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        let largest = some().map(|asked| asked.bytes).max().unwrap();
        let (answers, median, at_99, slowest) = (times.len(), at(0.5), at(0.99), at(1.0));
        Figures { answers, median, at_99, slowest, largest }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        write!(
            f,
            "{} answers, median {:.2} ms, 99 % {:.2} ms, slowest {:.2} ms, largest page {:.1} kB",
            self.answers,
            ms(self.median),
            ms(self.at_99),
            ms(self.slowest),
            self.largest as f64 / 1e3
        )
    }
}

/// Bytes that this process held at the most, the filling of the store included.
fn most_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
}

/// Seconds of processor time that this process has taken, server and clients together: on a busy machine they say more than
/// the clock does.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold anything; what follows it are numbers.
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
    // User and system time, in the hundredths of a second of Linux.
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}

#[test]
#[ignore = "needs time; tools/full-check runs it"]
fn a_large_board_answers_quickly() {
    let room = Room::new();
    let filled = Instant::now();
    let store = fill(&room);
    let board = store.boards().unwrap().remove(0);
    assert_eq!(board.entries, RUNS as i64);
    let ids: Vec<String> = store.all_entries().unwrap().into_iter().map(|entry| entry.id).collect();
    let filled = filled.elapsed();
    let limits = ServerLimits { requests_per_second: 0.0, ..ServerLimits::default() };
    let state = State::new(store, TaskIndex::default(), limits, Box::new(|_| {}));
    let server = Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), state).unwrap();
    // As many rankings as runs: other pages of them, other orders.
    let rankings = ids.iter().enumerate().map(|(index, _)| {
        let order = ["as", "name", "date", "correct"][index % 4];
        format!("/board/{}/?page={}&sort={order}", board.key, index % 10 + 1)
    });
    let rankings = rankings.map(|path| (Kind::Ranking, path));
    let runs = ids.iter().map(|id| (Kind::Run, format!("/run/{id}/")));
    let paths: Vec<(Kind, String)> =
        rankings.zip(runs).flat_map(|(ranking, run)| [ranking, run]).collect();
    let before = processor_seconds();
    let answers = storm(server.address(), &paths);
    let each = (processor_seconds() - before) * 1e3 / answers.len() as f64;
    server.stop();
    let [rankings, runs] = [Kind::Ranking, Kind::Run].map(|kind| Figures::of(&answers, &[kind]));
    let (all, held) = (Figures::of(&answers, &[Kind::Ranking, Kind::Run]), most_memory());
    let said = format!(
        "{} runs of {GRAPHS} graphs, {PER_SECOND} requests a second for {SECONDS} s ({})\n\
         ranking pages: {rankings}\n\
         run pages:     {runs}\n\
         together:      {all}\n\
         {each:.2} ms of a processor for an answer, the client included; {} MiB held at the most; filled in {:.0} s\n",
        board.entries,
        if cfg!(debug_assertions) { "with debug assertions" } else { "release" },
        held >> 20,
        filled.as_secs_f64()
    );
    // For whoever wants the figures; a test that passes shows nothing else.
    writeln!(std::io::stdout(), "{said}").unwrap();
    let figures = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("load.txt");
    std::fs::write(figures, &said).unwrap();
    assert!(rankings.at_99 < SLOWEST && runs.at_99 < SLOWEST, "{said}");
    assert!(all.largest < 300_000 && held < MOST_MEMORY, "{said}");
}
