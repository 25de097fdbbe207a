//! The driver as it is, with workers that only pretend: what one driver can hold.
//!
//!     cargo run --release -p passnet-cluster --example simulate -- --units 1000000 --nodes 1000
//!
//! Messages go through pipes of the system as they do with a real bridge, every unit has an input and a result of its own,
//! and every result is in the journal, on the disk, before it counts. `--seconds S` is how long a unit takes a worker
//! (0: the driver is all there is to wait for); one in `--deaths N` kills its worker.

use passnet_cluster::{
    Answer, Aside, Bridge, FromBridge, Hello, Input, Job, Journal, JournalEvent, Limits, News,
    Reply, ToBridge, drive, frame,
};
use passnet_engine::Identity;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::convert::Infallible;
use std::io::{BufReader, BufWriter, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// About as much as a small task and its result are.
const INPUT_BYTES: usize = 4096;
const RESULT_BYTES: usize = 8192;

struct Plan {
    units: u64,
    nodes: u64,
    seconds: f64,
    deaths: u64,
}

struct Simulated {
    journal: Journal,
    next: u64,
    units: u64,
    done: u64,
    aside: u64,
}

impl Job for Simulated {
    type Unit = u64;
    type Error = Infallible;

    fn next(&mut self) -> Option<u64> {
        self.next += u64::from(self.next <= self.units);
        Some(self.next).filter(|unit| *unit <= self.units)
    }

    fn is_over(&self) -> bool {
        self.next >= self.units
    }

    fn total(&self) -> (Option<u64>, u64) {
        (Some(self.units), 0)
    }

    fn input(&mut self, unit: &u64) -> Result<Input, Infallible> {
        let mut bytes = vec![0; INPUT_BYTES];
        bytes[..8].copy_from_slice(&unit.to_le_bytes());
        Ok(Input::new(bytes, Value::Null))
    }

    fn admit(&mut self, _: &Hello) -> Result<(), String> {
        Ok(())
    }

    fn accept(
        &mut self,
        unit: &u64,
        answer: &Answer<'_>,
    ) -> Result<Result<(), String>, Infallible> {
        assert_eq!(answer.files.len(), RESULT_BYTES);
        self.done += 1;
        self.journal.note(JournalEvent::Unit {
            unit: format!("unit {unit}"),
            input: answer.input.into(),
            node: answer.node.into(),
            seconds: answer.reply.seconds,
            waited: None,
            words: Value::Null,
        });
        Ok(Ok(()))
    }

    fn commit(&mut self) -> Result<(), Infallible> {
        if let Err(error) = self.journal.commit() {
            panic!("{error}");
        }
        Ok(())
    }

    fn set_aside(&mut self, _: Aside<u64>) -> Result<(), Infallible> {
        self.aside += 1;
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn news(&mut self, _: News<'_>) {}
}

/// A cluster that only pretends: every node has a worker, and a unit takes it so long.
struct Pretended {
    out: BufWriter<PipeWriter>,
    plan: Plan,
    /// When which worker answers which unit.
    due: BinaryHeap<Reverse<(Instant, u64, u64)>>,
    next_worker: u64,
}

impl Pretended {
    fn say(&mut self, message: &FromBridge, payload: &[u8]) {
        frame::write(&mut self.out, message, payload).expect("the driver listens");
    }

    fn ready(&mut self, node: u64) {
        let worker = self.next_worker;
        self.next_worker += 1;
        let hello = Hello {
            program: String::new(),
            build: String::new(),
            class: String::new(),
            identity: Value::Null,
            noise: Some(0.01),
        };
        self.say(&FromBridge::Ready { worker, node: format!("node {node}"), hello }, b"");
    }

    fn run(mut self, from: PipeReader) {
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            let mut from = BufReader::with_capacity(1 << 16, from);
            while let Ok(Some((message, _))) = frame::read::<ToBridge>(&mut from) {
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        (0..self.plan.nodes).for_each(|node| self.ready(node));
        loop {
            self.answer_due();
            let wait = self.due.peek().map_or(Duration::from_secs(1), |Reverse((due, ..))| {
                due.saturating_duration_since(Instant::now())
            });
            match heard.recv_timeout(wait) {
                Ok(ToBridge::Start { worker, unit, .. }) => {
                    let due = Instant::now() + Duration::from_secs_f64(self.plan.seconds);
                    self.due.push(Reverse((due, worker, unit)));
                }
                Ok(ToBridge::Stop) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn answer_due(&mut self) {
        let now = Instant::now();
        while self.due.peek().is_some_and(|Reverse((due, ..))| *due <= now) {
            let Some(Reverse((_, worker, unit))) = self.due.pop() else { return };
            if self.plan.deaths > 0 && unit.is_multiple_of(self.plan.deaths) {
                self.say(
                    &FromBridge::Died { worker, reason: "it was to die".into(), by_node: false },
                    b"",
                );
                self.ready(worker % self.plan.nodes);
                continue;
            }
            let reply =
                Reply { fault: None, words: Value::Null, seconds: self.plan.seconds, waited: None };
            self.say(&FromBridge::Done { worker, unit, reply }, &[7; RESULT_BYTES]);
        }
    }
}

/// The most memory that this process ever held, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

/// A number that an option names.
fn option(name: &str, otherwise: f64) -> f64 {
    let mut words = std::env::args().skip_while(|word| word != name);
    words.nth(1).and_then(|word| word.parse().ok()).unwrap_or(otherwise)
}

fn main() -> std::io::Result<()> {
    let plan = Plan {
        units: option("--units", 100_000.0) as u64,
        nodes: option("--nodes", 1000.0) as u64,
        seconds: option("--seconds", 0.0),
        deaths: option("--deaths", 0.0) as u64,
    };
    let folder = tempfile::tempdir()?;
    let journal = Journal::open(folder.path()).map_err(std::io::Error::other)?;
    let mut job = Simulated { journal, next: 0, units: plan.units, done: 0, aside: 0 };
    let ((from_us, to_them), (from_them, to_us)) = (std::io::pipe()?, std::io::pipe()?);
    let pretended =
        Pretended { out: BufWriter::new(to_us), due: BinaryHeap::new(), next_worker: 0, plan };
    let (units, nodes) = (pretended.plan.units, pretended.plan.nodes);
    let (seconds, deaths) = (pretended.plan.seconds, pretended.plan.deaths);
    let before = peak_mib();
    let bridge = Bridge::new(to_them, from_them)?;
    let begun = Instant::now();
    let cluster = std::thread::spawn(move || pretended.run(from_us));
    let Ok(driven) = drive(&mut job, bridge, Limits::default());
    let took = begun.elapsed().as_secs_f64();
    cluster.join().ok();
    let journal = std::fs::metadata(folder.path().join("cluster.jsonl"))?.len();
    let mut out = std::io::stdout();
    writeln!(out, "{}", Identity::here("simulated").describe())?;
    writeln!(
        out,
        "{units} units of {seconds} s, {nodes} nodes, one in {deaths} kills its worker: {} done, {} set aside, {:?}",
        job.done, job.aside, driven.end
    )?;
    writeln!(
        out,
        "{took:.1} s, {:.0} units/s, {:.3} ms a unit, {:.1} MB/s through the driver, peak memory {} MiB ({before} before), \
         journal {} MiB",
        units as f64 / took,
        1e3 * took / units as f64,
        units as f64 * (INPUT_BYTES + RESULT_BYTES) as f64 / took / 1e6,
        peak_mib(),
        journal >> 20
    )
}
