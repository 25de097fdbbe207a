//! Graphs judged again here: what a bundle claims, held against what this machine sees.
//!
//! A job holds everything as text and is done by a process of its own, in a sandbox: the passes are somebody else's.

use crate::Error;
use crate::bundle::{Bundle, pass_files};
use crate::store::{Rejudged, ResultRow, now};
use crate::tasks::TaskIndex;
use crate::watch::{self, WatchedPlan};
use passnet_bench::bench::Bench;
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::report::RunRecord;
use passnet_bench::sample::Sample;
use passnet_bench::secret::Secret;
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::Engine;
use passnet_engine::native::NativeEngine;
use passnet_engine::sandbox::{self, Ending, Sandbox};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the one graph of a job's sample.
const GRAPH: &str = "graph";
const PASSES: &str = "pass_dir";
/// Seconds of timing for a graph.
const TIMING_SECONDS: f64 = 0.3;
/// Bytes that one run of a graph may hold.
const MEMORY: usize = 2 << 30;
/// Seconds that kernels may take in one call.
const CALL_SECONDS: f64 = 10.0;
/// A claimed speed-up may lie so far above what is seen here before it is called another.
const SPEED_MARGIN: f64 = 1.5;

/// One graph to be judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Files of the graph, by name.
    pub graph: Vec<(String, String)>,
    /// Files of the passes, by name.
    pub passes: Vec<(String, String)>,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// `None` where the machine kept it from being judged.
    pub verdict: Option<VerdictKind>,
    /// Over eager, here.
    pub speedup: Option<f64>,
    /// The upper end of its interval.
    pub high: Option<f64>,
    /// Evidence, or why it was not judged.
    pub text: String,
    /// Where it was judged.
    pub place: String,
}

/// Judges one graph in this process.
pub fn judge(job: &Job) -> Result<Answer, Error> {
    let folder = tempfile::tempdir().map_err(|error| Error::lacking(error.to_string()))?;
    let write = |below: PathBuf, files: &[(String, String)]| -> Result<(), Error> {
        for (name, text) in files {
            let path = below.join(name);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent).map_err(Error::at(parent))?;
            }
            std::fs::write(&path, text).map_err(Error::at(&path))?;
        }
        Ok(())
    };
    let list = folder.path().join("graph_list.txt");
    std::fs::write(&list, format!("{GRAPH}\n")).map_err(Error::at(&list))?;
    write(folder.path().join(GRAPH), &job.graph)?;
    write(folder.path().join(PASSES), &job.passes)?;
    let sample = Sample::read(folder.path()).map_err(|error| Error::input(error.to_string()))?;
    let timing = TimingOptions { seconds: TIMING_SECONDS, ..TimingOptions::default() };
    let options = EvaluateOptions {
        timing,
        memory_limit: MEMORY,
        call_seconds: CALL_SECONDS,
        ..EvaluateOptions::default()
    };
    let bench = Bench::new(&NativeEngine, Subject::PASSES, options, true);
    let judged = bench.sample(&sample, &sample.pass_folder(), None)?;
    let place = NativeEngine.identity().describe();
    let inside = format!("{}/", folder.path().display());
    let Some(event) = judged.events.first() else {
        let reason = judged.not_judged.first().map(|lost| lost.reason.clone());
        let text = reason.unwrap_or_else(|| "it was not judged".into());
        return Ok(Answer { verdict: None, speedup: None, high: None, text, place });
    };
    let verdict = &event.evaluation.judged.verdict;
    let evidence = verdict.evidence.first().map(ToString::to_string).unwrap_or_default();
    Ok(Answer {
        verdict: Some(verdict.kind),
        speedup: event.evaluation.judged.speedup,
        high: event.evaluation.interval.map(|interval| interval.high),
        text: evidence.replace(&inside, ""),
        place,
    })
}

/// What a process can be asked to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request<J, W> {
    Judge(J),
    Watch(W),
}

/// The process of a job: a job as JSON in, an answer as JSON out.
pub fn work(input: &[u8]) -> Result<Vec<u8>, Error> {
    let request: Request<Job, watch::Job> = serde_json::from_slice(input)
        .map_err(|error| Error::input(format!("not a job: {error}")))?;
    let written = match request {
        Request::Judge(job) => serde_json::to_vec(&judge(&job)?),
        Request::Watch(job) => serde_json::to_vec(&watch::watch(&job)?),
    };
    written.map_err(|error| Error::input(error.to_string()))
}

/// Who does jobs.
pub trait Rejudger: fmt::Debug + Send + Sync {
    /// Judges one graph; an error says that this machine could not.
    fn judge(&self, job: &Job) -> Result<Answer, Error>;

    /// Runs kernels under watch.
    fn watch(&self, job: &watch::Job) -> Result<Vec<WatchedPlan>, Error>;
}

/// Jobs in a process of their own that sees nothing but itself.
#[derive(Debug)]
pub struct Sandboxed {
    sandbox: Sandbox,
    program: PathBuf,
    /// What makes the program do a job.
    arguments: Vec<String>,
    limits: sandbox::Limits,
}

impl Sandboxed {
    /// `program` reads a job and writes its answer when called with `arguments`.
    pub fn new(program: &Path, arguments: &[&str]) -> Result<Sandboxed, Error> {
        let sandbox = Sandbox::strongest()
            .map_err(|refusal| Error::lacking(refusal.to_string()).with_hint(refusal.hint))?;
        Ok(Sandboxed {
            sandbox,
            program: program.to_path_buf(),
            arguments: arguments.iter().map(|word| (*word).to_string()).collect(),
            limits: sandbox::Limits {
                time: Duration::from_secs(180),
                memory: 6 << 30,
                processes: 64,
                output: 1 << 20,
                ..sandbox::Limits::default()
            },
        })
    }
}

impl Sandboxed {
    fn ask<T: DeserializeOwned>(&self, request: &Request<&Job, &watch::Job>) -> Result<T, Error> {
        let input = serde_json::to_vec(request).map_err(|error| Error::input(error.to_string()))?;
        let finished = self
            .sandbox
            .run(&sandbox::Job {
                program: self.program.clone(),
                arguments: self.arguments.iter().map(Into::into).collect(),
                environment: Vec::new(),
                readable: vec![self.program.clone()],
                devices: None,
                input,
                limits: self.limits,
            })
            .map_err(|refusal| Error::lacking(refusal.to_string()))?;
        match finished.ending {
            Ending::Exit(0) => serde_json::from_slice(&finished.output).map_err(|error| {
                Error::lacking(format!("the judging process said nothing: {error}"))
            }),
            other => Err(Error::lacking(format!("the judging process {other}"))),
        }
    }
}

impl Rejudger for Sandboxed {
    fn judge(&self, job: &Job) -> Result<Answer, Error> {
        self.ask(&Request::Judge(job))
    }

    fn watch(&self, job: &watch::Job) -> Result<Vec<WatchedPlan>, Error> {
        self.ask(&Request::Watch(job))
    }
}

/// A random part of the graphs that an entry calls right and this site has itself.
pub fn draw<'a>(results: &'a [ResultRow], tasks: &TaskIndex, most: usize) -> Vec<&'a ResultRow> {
    let is_known = |row: &&ResultRow| {
        let model = row.model.as_deref().unwrap_or_default();
        row.verdict == VerdictKind::Correct.name()
            && tasks.graph(&row.task_name, &row.graph, model).is_some()
    };
    let mut known: Vec<&ResultRow> = results.iter().filter(is_known).collect();
    // Nobody knows beforehand which ones.
    let mut dice = Secret::random().dice("graphs to be judged again");
    let count = most.min(known.len());
    for place in 0..count {
        let other = place + dice.below(known.len() - place);
        known.swap(place, other);
    }
    known.truncate(count);
    known
}

/// Judges one graph of an entry again. `is_like` says whether this machine is of the entry's device class.
pub fn again(
    rejudger: &dyn Rejudger,
    tasks: &TaskIndex,
    bundle: &Bundle,
    run: &RunRecord,
    row: &ResultRow,
    is_like: bool,
) -> Rejudged {
    let answer = job(tasks, bundle, run, row).and_then(|job| rejudger.judge(&job));
    let mut found = Rejudged {
        position: row.position,
        task: row.task_name.clone(),
        graph: row.graph.clone(),
        claimed_verdict: row.verdict.clone(),
        claimed_speedup: row.speedup,
        verdict: None,
        speedup: None,
        agrees: None,
        text: String::new(),
        place: String::new(),
        time: now(),
    };
    match answer {
        Err(error) => found.text = error.message,
        Ok(answer) => {
            (found.agrees, found.text) = agreement(row, &answer, is_like);
            found.verdict = answer.verdict.map(|kind| kind.name().to_string());
            found.speedup = answer.speedup;
            found.place = answer.place;
        }
    }
    found
}

/// Whether what was claimed and what was seen agree, and a remark.
fn agreement(row: &ResultRow, answer: &Answer, is_like: bool) -> (Option<bool>, String) {
    let text = answer.text.clone();
    match answer.verdict {
        Some(VerdictKind::Correct) => match (is_like, row.low, answer.high) {
            (true, Some(claimed), Some(seen)) if claimed > seen * SPEED_MARGIN => {
                let text = format!("claimed is at least {claimed:.3}, seen at most {seen:.3}");
                (Some(false), text)
            }
            _ => (Some(true), text),
        },
        // Nothing that could be held against the claim.
        None
        | Some(
            VerdictKind::Unsupported
            | VerdictKind::Timeout
            | VerdictKind::Unstable
            | VerdictKind::ReferenceFail,
        ) => (None, text),
        Some(_) => (Some(false), text),
    }
}

fn job(tasks: &TaskIndex, bundle: &Bundle, run: &RunRecord, row: &ResultRow) -> Result<Job, Error> {
    let model = row.model.as_deref().unwrap_or_default();
    let files = tasks
        .graph(&row.task_name, &row.graph, model)
        .ok_or_else(|| Error::input("this site does not have the graph"))?;
    let text = |bytes: &[u8]| {
        String::from_utf8(bytes.to_vec()).map_err(|_| Error::input("a file is no text"))
    };
    let mut job = Job::default();
    for (name, bytes) in &files.files {
        job.graph.push((name.as_str().to_string(), text(bytes)?));
    }
    let position = usize::try_from(row.position).unwrap_or(usize::MAX);
    let record = run.graphs.get(position).ok_or_else(|| Error::input("no such result"))?;
    let passes = pass_files(record);
    for (name, bytes) in passes.texts(|digest| bundle.blob(digest).ok())? {
        job.passes.push((name, text(&bytes)?));
    }
    Ok(job)
}

/// Whether this machine may hold its own timings against those of an entry.
pub fn is_like_here(run: &RunRecord) -> bool {
    let here = NativeEngine.identity();
    let places = run.conditions();
    let is_unlike = |place: &&passnet_bench::report::Conditions| {
        place.identity.differences(&here).iter().any(|difference| difference.separates)
    };
    !places.is_empty() && !places.iter().any(is_unlike)
}
