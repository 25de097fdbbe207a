//! One graph through all stages: rewrite, prepare, verify, check, time, judge.
//!
//! The reference's question (are the outputs close on one draw of inputs?) decides the ladder. What it never asks
//! (other draws, extreme values, poisoned memory, repeated runs, what happens to the inputs, what the kernels touch)
//! decides whether that ladder may be believed.

mod case;
mod oracle;
mod race;
mod stress;
mod tensors;
mod verification;

pub use oracle::Accuracy;
pub use verification::{Check, CheckOutcome, OutputSummary};

use crate::candidate::{Candidate, Rewrites};
use crate::score::JudgedGraph;
use crate::stats::{Decision, RatioInterval};
use crate::timing::{TimingOptions, Timings};
use crate::tolerance::Ladder;
use crate::verdict::{Evidence, Verdict, VerdictKind};
use case::Case;
use passnet_engine::{Engine, EngineError, ErrorKind};
use passnet_graph::{Diagnostic, GraphFiles, read};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// How to evaluate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluateOptions {
    pub timing: TimingOptions,
    /// Seed of the first draw of inputs.
    pub seed: u64,
    /// Further draws; timing goes round all of them.
    pub draws: usize,
    /// Whether to try extreme inputs and watch the kernels.
    pub thorough: bool,
    /// Relative difference below which nothing is called faster or slower on this machine.
    pub noise_floor: f64,
    /// Bytes that one run may hold.
    pub memory_limit: usize,
    /// Seconds that the kernels of passes may take in one call.
    pub call_seconds: f64,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            timing: TimingOptions::default(),
            seed: passnet_engine::native::inputs::DEFAULT_SEED,
            draws: 3,
            thorough: true,
            noise_floor: 0.0,
            memory_limit: 8 << 30,
            call_seconds: 20.0,
        }
    }
}

/// What an evaluation of one graph found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    #[serde(flatten)]
    pub judged: JudgedGraph,
    /// Where the speed-up lies with 99 % confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<RatioInterval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Milliseconds of each timed call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub eager_ms: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidate_ms: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<Rewrites>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What was noticed but changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Evidence>,
    /// Type of the first float input, and the operations, for scores by group.
    pub dtype: String,
    pub operations: Vec<String>,
    /// Seconds spent in timed and warm-up calls, and in all.
    pub measured_seconds: f64,
    pub seconds: f64,
}

impl Evaluation {
    fn new(graph: &str) -> Self {
        Evaluation {
            judged: JudgedGraph {
                graph: graph.to_string(),
                verdict: Verdict::new(VerdictKind::ReferenceFail),
                ladder: Ladder::NONE,
                speedup: None,
            },
            interval: None,
            decision: None,
            eager_ms: Vec::new(),
            candidate_ms: Vec::new(),
            rewrites: Vec::new(),
            outputs: Vec::new(),
            accuracy: None,
            checks: Vec::new(),
            remarks: Vec::new(),
            dtype: String::new(),
            operations: Vec::new(),
            measured_seconds: 0.0,
            seconds: 0.0,
        }
    }

    /// A graph that was never run.
    pub fn without_run(graph: &str, verdict: Verdict) -> Self {
        let mut evaluation = Evaluation::new(graph);
        evaluation.judged.verdict = verdict;
        evaluation
    }

    /// A graph whose files could not be read.
    pub fn unreadable(graph: &str, error: &Diagnostic) -> Self {
        Evaluation::without_run(
            graph,
            Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()),
        )
    }
}

/// Evaluates a candidate on one graph; without a candidate, eager against itself.
pub fn evaluate(
    engine: &dyn Engine,
    files: &GraphFiles,
    candidate: Option<&Candidate>,
    options: &EvaluateOptions,
) -> Evaluation {
    let started = Instant::now();
    let mut evaluation = Evaluation::new(&files.path);
    if let Err(verdict) = stages(engine, files, candidate, options, &mut evaluation) {
        evaluation.judged.verdict = *verdict;
    }
    if !evaluation.judged.verdict.kind.is_comparable() {
        evaluation.judged.ladder = Ladder::NONE;
        evaluation.judged.speedup = None;
    }
    evaluation.seconds = started.elapsed().as_secs_f64();
    evaluation
}

/// Times a graph against itself, in turns and one after the other; `None` where it does not run.
pub(crate) fn race_itself(
    engine: &dyn Engine,
    files: &GraphFiles,
    options: &EvaluateOptions,
) -> Option<[Timings; 2]> {
    let graph = read::read_folder(files).ok()?.graph;
    let case = Case::new(engine, files, &graph, None, options).ok()?;
    race::against_itself(&case, options).ok()
}

/// Fills in what each stage finds; an early verdict ends the rest.
fn stages(
    engine: &dyn Engine,
    files: &GraphFiles,
    candidate: Option<&Candidate>,
    options: &EvaluateOptions,
    evaluation: &mut Evaluation,
) -> Result<(), Box<Verdict>> {
    let folder = read::read_folder(files).map_err(|errors| {
        errors.iter().fold(Verdict::new(VerdictKind::ReferenceFail), |verdict, error| {
            verdict.because(error.to_string())
        })
    })?;
    let graph = folder.graph;
    let mut operations: Vec<String> =
        graph.calls().filter_map(|(_, call)| call.op()).map(|op| op.name().to_string()).collect();
    operations.sort();
    operations.dedup();
    evaluation.operations = operations;
    let rewritten = match candidate {
        Some(candidate) => {
            evaluation.remarks.clone_from(&candidate.remarks);
            let rewritten = candidate.rewrite(&graph)?;
            evaluation.rewrites = rewritten.rewrites;
            Some((rewritten.graph, candidate.wrappers()))
        }
        None => None,
    };
    let case = Case::new(engine, files, &graph, rewritten, options)?;
    evaluation.dtype = case.dtype();
    let verified = verification::verify(&case, evaluation)?;
    race::time(&case, verified, options, evaluation)
}

/// What went wrong on the side that is given.
fn eager_failure(error: &EngineError) -> Box<Verdict> {
    let kind = match error.kind {
        ErrorKind::Unsupported => VerdictKind::Unsupported,
        _ => VerdictKind::ReferenceFail,
    };
    failure(kind, error)
}

/// What went wrong on the side under test.
fn candidate_failure(error: &EngineError) -> Box<Verdict> {
    let kind = match error.kind {
        ErrorKind::Unsupported => VerdictKind::Unsupported,
        ErrorKind::Plan => VerdictKind::CompileFail,
        ErrorKind::Timeout => VerdictKind::Timeout,
        _ => VerdictKind::RuntimeFail,
    };
    failure(kind, error)
}

fn failure(kind: VerdictKind, error: &EngineError) -> Box<Verdict> {
    let evidence = match error.node.is_empty() {
        true => Evidence::Message { text: error.to_string() },
        false => Evidence::Node { node: error.node.clone(), message: error.message.clone() },
    };
    Box::new(Verdict::new(kind).with(evidence))
}
