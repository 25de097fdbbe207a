//! `passnet cluster-worker`: units of a command, one after another, for a driver elsewhere.
//!
//! A node's Ray starts it. The first message brings the words of the driver's command, which are read as the driver read
//! them; the answer says who we are. Then come units. Nothing but messages goes to stdout.

use super::input::{passes_of, read_task};
use super::scratch;
use super::shared::program_digest;
use super::tasks::{PASSES, RUN};
use super::unit::{UnitWorker, bundled};
use crate::error::{CommandError, Outcome};
use crate::{Cli, Command};
use clap::Parser;
use passnet_bench::bench::Bench;
use passnet_bench::run::RunStore;
use passnet_bench::sample::Sample;
use passnet_cluster::bundle::{pack, unpack};
use passnet_cluster::{Hello, Reply, frame};
use passnet_engine::Identity;
use passnet_engine::identity::Build;
use serde::Deserialize;
use serde_json::Value;
use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

#[derive(Deserialize)]
struct Begin {
    arguments: Vec<String>,
}

#[derive(Deserialize)]
struct Unit {
    #[serde(default)]
    words: Value,
}

pub fn run() -> Result<Outcome, CommandError> {
    let mut input = BufReader::new(std::io::stdin());
    let Some((begin, _)) = frame::read::<Begin>(&mut input)? else { return Ok(Outcome::Done) };
    let mut worker = start(&begin.arguments)?;
    let identity = worker.identity();
    let hello = Hello {
        program: program_digest()?,
        build: Build::this().describe(),
        class: identity.describe(),
        identity: worker.about(),
        noise: worker.noise(),
    };
    let mut output = std::io::stdout();
    frame::write(&mut output, &hello, b"")?;
    let (tell, units) = sync_channel(1);
    std::thread::Builder::new().name("units".into()).spawn(move || {
        while let Ok(Some(unit)) = frame::read::<Unit>(&mut input) {
            if tell.send(unit).is_err() {
                return;
            }
        }
        // Nobody waits for what is under way any more: whoever asked for it is gone.
        // SAFETY: it ends the process and touches nothing of it.
        unsafe { libc::_exit(0) }
    })?;
    let mut last_end = None;
    for (unit, payload) in units {
        let mut clock = Clock::default();
        let answer = perform(&mut *worker, &unit.words, &payload, &mut clock);
        let (fault, words, files) = match answer {
            Ok((words, files)) => (None, words, files),
            Err(reason) => (Some(reason), Value::Null, Vec::new()),
        };
        let waited = between(last_end, clock.begin);
        let reply = Reply { fault, words, seconds: clock.seconds(), waited };
        last_end = clock.end;
        frame::write(&mut output, &reply, &files)?;
        output.flush()?;
    }
    Ok(Outcome::Done)
}

/// When the work on a unit began and ended; what lies between two units is what the cluster costs.
#[derive(Default)]
struct Clock {
    begin: Option<Instant>,
    end: Option<Instant>,
}

impl Clock {
    fn seconds(&self) -> f64 {
        between(self.begin, self.end).unwrap_or(0.0)
    }
}

fn between(begin: Option<Instant>, end: Option<Instant>) -> Option<f64> {
    Some((end? - begin?).as_secs_f64())
}

fn perform(
    worker: &mut dyn UnitWorker,
    words: &Value,
    payload: &[u8],
    clock: &mut Clock,
) -> Result<(Value, Vec<u8>), String> {
    let said = |error: std::io::Error| error.to_string();
    let place = scratch::folder().map_err(said)?;
    let (input, out) = (Path::new("in"), place.path().join("out"));
    std::fs::create_dir(&out).map_err(said)?;
    unpack(payload, &place.path().join(input)).map_err(said)?;
    // Paths are part of what results are known by, and of what messages say: they are the same for everybody.
    let _inside = Inside::enter(place.path()).map_err(said)?;
    clock.begin = Some(Instant::now());
    let words = worker.perform(words, input, &out);
    clock.end = Some(Instant::now());
    Ok((words?, pack(&out).map_err(said)?))
}

/// The process is in a folder for as long as this lives.
struct Inside;

impl Inside {
    fn enter(folder: &Path) -> std::io::Result<Inside> {
        std::env::set_current_dir(folder).map(|()| Inside)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // The top is always there; the next unit enters its own folder.
        let _ = std::env::set_current_dir("/");
    }
}

/// The worker of a command, from its words.
fn start(arguments: &[String]) -> Result<Box<dyn UnitWorker>, CommandError> {
    let words = std::iter::once("passnet").chain(arguments.iter().map(|word| &**word));
    let cli = Cli::try_parse_from(words).map_err(|error| {
        CommandError::input(format!("the driver's command is not known here: {error}"))
    })?;
    match cli.command {
        Command::Bench(args) => args.worker(),
        Command::Solve(args) => args.worker(),
        Command::Extract(args) => super::extract::worker(&args.capture),
        Command::Dataset(command) => match command.capture() {
            Some(capture) => super::extract::worker(capture),
            None => Err(CommandError::input("this command has no units")),
        },
        Command::Agent(command) => super::evaluator::worker(&command),
        _ => Err(CommandError::input("this command has no units")),
    }
}

/// Judges passes that come with their task.
pub struct BenchWorker {
    pub bench: Bench<'static>,
}

impl BenchWorker {
    /// Races eager against itself first.
    pub fn new(mut bench: Bench<'static>) -> Result<BenchWorker, CommandError> {
        bench.options.noise_floor = bench.measure_noise(&bundled()?);
        Ok(BenchWorker { bench })
    }

    /// Judges a task into a run of its own.
    pub fn judge(&self, sample: &Sample, passes: &Path, out: &Path) -> Result<(), String> {
        let said = |error: passnet_bench::event_log::LogError| error.to_string();
        let mut store = RunStore::scratch(&out.join(RUN)).map_err(said)?;
        store.append(&self.bench.start()).map_err(said)?;
        let judged = self.bench.sample(sample, passes, Some(&Mutex::new(store))).map_err(said)?;
        match judged.not_judged.first() {
            None => Ok(()),
            Some(lost) => Err(format!("{} was not judged: {}", lost.graph, lost.reason)),
        }
    }
}

impl UnitWorker for BenchWorker {
    fn identity(&self) -> Identity {
        self.bench.engine.identity()
    }

    fn noise(&self) -> Option<f64> {
        Some(self.bench.options.noise_floor)
    }

    fn perform(&mut self, _: &Value, input: &Path, out: &Path) -> Result<Value, String> {
        self.judge(&read_task(input)?, &passes_of(input), out)?;
        Ok(Value::Null)
    }
}

/// Where a solved task's passes go.
pub fn solved_passes(out: &Path) -> std::path::PathBuf {
    out.join(PASSES)
}

/// The task of a unit.
pub fn task_of(input: &Path) -> Result<Sample, String> {
    read_task(input)
}
