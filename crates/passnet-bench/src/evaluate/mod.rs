//! One graph through all stages: rewrite, prepare, verify, check, time, judge.
//!
//! The reference's question (are the outputs close on one draw of inputs?) decides the ladder. What it never asks
//! (other draws, extreme values, poisoned memory, repeated runs, what happens to the inputs, what the kernels touch)
//! decides whether that ladder may be believed. Every level that scores has passed all of it.

mod case;
mod contents;
mod draws;
mod extremes;
mod named;
mod oracle;
mod other_shapes;
mod pair;
mod places;
mod race;
mod spent;
mod stress;
mod tensors;
mod verification;
mod watch;

pub use oracle::Accuracy;
pub use spent::Spent;
pub use verification::{Check, CheckOutcome, OutputSummary};

use crate::candidate::{Candidate, Rewrites};
use crate::roofline::Work;
use crate::score::JudgedGraph;
use crate::secret::Secret;
use crate::stats::{Decision, RatioInterval, median};
use crate::timing::{TimingOptions, Timings};
use crate::tolerance::Ladder;
use crate::verdict::{Evidence, Verdict, VerdictKind};
use case::{Case, Drawn, Sides, UnderTest};
use other_shapes::try_other_shapes;
use passnet_engine::{Costs, Engine, EngineError, ErrorKind, GraphCompiler, Tier, TunedKernel};
use passnet_graph::{Diagnostic, GraphFiles, GraphFolder, read};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use verification::passed;

/// What is said of a graph whose passes ran in the compatibility tier.
const UNTIMED: &str = "compatibility tier: ran in a sandboxed PyTorch, compared by the trusted side; kernels not \
    watched, not timed, not scored";

/// How to evaluate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvaluateOptions {
    pub timing: TimingOptions,
    /// Where draws, places of extreme values and contents of timed calls come from. Results do not depend on it, so it
    /// is no part of what is stored before a graph is judged.
    #[serde(skip, default = "Secret::random")]
    pub secret: Secret,
    /// The recorded secret of a graph, to draw for it once more as it was drawn then.
    #[serde(skip)]
    pub replayed: Option<Secret>,
    /// Draws of inputs beyond the first.
    pub draws: usize,
    /// Whether to try extreme inputs and watch the kernels.
    pub thorough: bool,
    /// Relative difference below which nothing is called faster or slower on this machine.
    pub noise_floor: f64,
    /// Bytes that one run may hold.
    pub memory_limit: usize,
    /// Seconds that the kernels of passes may take in one call.
    pub call_seconds: f64,
    /// The least of tiers that passes may run in; the engine knows how.
    #[serde(default, skip_serializing_if = "Tier::is_plan")]
    pub tier: Tier,
}

/// Two are equal where they ask the same of a pass: whatever the secret, the verdict is the same.
impl PartialEq for EvaluateOptions {
    fn eq(&self, other: &Self) -> bool {
        let EvaluateOptions {
            timing,
            secret: _,
            replayed: _,
            draws,
            thorough,
            noise_floor,
            memory_limit,
            call_seconds,
            tier,
        } = self;
        *timing == other.timing
            && *draws == other.draws
            && *thorough == other.thorough
            && *noise_floor == other.noise_floor
            && *memory_limit == other.memory_limit
            && *call_seconds == other.call_seconds
            && *tier == other.tier
    }
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            timing: TimingOptions::default(),
            secret: Secret::random(),
            replayed: None,
            draws: 2,
            thorough: true,
            noise_floor: 0.0,
            memory_limit: 8 << 30,
            call_seconds: 20.0,
            tier: Tier::Plan,
        }
    }
}

/// What an evaluation of one graph found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    #[serde(flatten)]
    pub judged: JudgedGraph,
    /// Why nothing of this is a judgement: the machine failed, neither the graph nor the pass. Never stored.
    #[serde(skip)]
    pub not_judged: Option<String>,
    /// How the code of passes ran. Only plans are timed and scored.
    #[serde(default, skip_serializing_if = "Tier::is_plan")]
    pub tier: Tier,
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
    /// What one call costs the host and the device, where the engine can tell.
    #[serde(default, skip_serializing_if = "CallCosts::are_unknown")]
    pub eager_costs: CallCosts,
    #[serde(default, skip_serializing_if = "CallCosts::are_unknown")]
    pub candidate_costs: CallCosts,
    /// What the graph has to do at the least, and the milliseconds that takes on the engine's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<Rewrites>,
    /// With which configurations the kernels of `@triton.autotune` ran, and the times that decided it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tuned: Vec<TunedKernel>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputSummary>,
    /// How far both sides are from the float64 result; not asked where they are equal in every bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What was noticed but changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Evidence>,
    /// What draws, places and contents came from; `None` where nothing was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Type of the first float input, and the operations, for scores by group.
    pub dtype: String,
    pub operations: Vec<String>,
    /// Seconds of the harness itself, by stage.
    #[serde(default)]
    pub spent: Spent,
    /// Seconds spent in timed and warm-up calls, and in all.
    pub measured_seconds: f64,
    pub seconds: f64,
}

/// Milliseconds of one call, taken apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CallCosts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ms: Option<f64>,
    /// The device again, its cache emptied before every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ms: Option<f64>,
}

impl CallCosts {
    fn are_unknown(&self) -> bool {
        *self == CallCosts::default()
    }
}

impl From<Costs> for CallCosts {
    fn from(costs: Costs) -> Self {
        let milliseconds = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
        CallCosts {
            host_ms: milliseconds(costs.host),
            device_ms: milliseconds(costs.device),
            cold_ms: milliseconds(costs.cold),
        }
    }
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
            not_judged: None,
            tier: Tier::Plan,
            interval: None,
            decision: None,
            eager_ms: Vec::new(),
            candidate_ms: Vec::new(),
            eager_costs: CallCosts::default(),
            candidate_costs: CallCosts::default(),
            work: None,
            roofline_ms: None,
            rewrites: Vec::new(),
            tuned: Vec::new(),
            outputs: Vec::new(),
            accuracy: None,
            checks: Vec::new(),
            remarks: Vec::new(),
            secret: None,
            dtype: String::new(),
            operations: Vec::new(),
            spent: Spent::default(),
            measured_seconds: 0.0,
            seconds: 0.0,
        }
    }

    /// Which share of what its device can do the candidate reaches: the least time there can be, as a share of the
    /// device's, or of the whole call's where the engine cannot tell them apart.
    pub fn roofline_share(&self) -> Option<f64> {
        let took = self.candidate_costs.device_ms.or_else(|| median(&self.candidate_ms))?;
        Some(self.roofline_ms? / took)
    }

    /// A graph that was never run.
    pub fn without_run(graph: &str, verdict: Verdict) -> Self {
        let mut evaluation = Evaluation::new(graph);
        evaluation.judged.verdict = verdict;
        evaluation
    }

    /// A graph that nobody came to.
    pub(crate) fn not_begun(graph: &str, reason: &str) -> Self {
        Evaluation { not_judged: Some(reason.into()), ..Evaluation::new(graph) }
    }

    /// A graph whose files could not be read.
    pub fn unreadable(graph: &str, error: &Diagnostic) -> Self {
        Evaluation::without_run(
            graph,
            Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()),
        )
    }
}

/// What is held against eager.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// Eager itself: whatever differs is noise.
    Eager,
    /// The graph as a compiler makes it.
    Compiled(GraphCompiler),
    Passes(&'a Candidate),
}

impl<'a> From<Option<&'a Candidate>> for Subject<'a> {
    fn from(candidate: Option<&'a Candidate>) -> Self {
        candidate.map_or(Subject::Eager, Subject::Passes)
    }
}

/// Evaluates a subject, or the passes of a candidate, on one graph.
pub fn evaluate<'a>(
    engine: &dyn Engine,
    files: &GraphFiles,
    subject: impl Into<Subject<'a>>,
    options: &EvaluateOptions,
) -> Evaluation {
    staged(engine, files, subject.into(), options, true)
}

/// As [`evaluate`] with everything but the timing: a verdict in milliseconds, and no speed-up.
pub fn check(
    engine: &dyn Engine,
    files: &GraphFiles,
    candidate: &Candidate,
    options: &EvaluateOptions,
) -> Evaluation {
    staged(engine, files, Subject::Passes(candidate), options, false)
}

fn staged(
    engine: &dyn Engine,
    files: &GraphFiles,
    subject: Subject<'_>,
    options: &EvaluateOptions,
    is_timed: bool,
) -> Evaluation {
    let started = Instant::now();
    let mut evaluation = Evaluation::new(&files.path);
    let faults = engine.faults();
    if let Err(verdict) = stages(engine, files, subject, options, is_timed, &mut evaluation) {
        evaluation.judged.verdict = *verdict;
    }
    if !evaluation.judged.verdict.kind.is_comparable() {
        evaluation.judged.ladder = Ladder::NONE;
        evaluation.judged.speedup = None;
    }
    evaluation.not_judged = engine.faults().since(&faults).map(str::to_string);
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
    let secret = graph_secret(files, options);
    let drawn = Drawn::new(files, &graph, options, &secret).ok()?;
    let sides = Sides::prepare(engine, &graph, UnderTest::Eager).ok()?;
    race::against_itself(&Case::new(sides, drawn, options, secret), options).ok()
}

/// Fills in what each stage finds; an early verdict ends the rest.
fn stages(
    engine: &dyn Engine,
    files: &GraphFiles,
    subject: Subject<'_>,
    options: &EvaluateOptions,
    is_timed: bool,
    evaluation: &mut Evaluation,
) -> Result<(), Box<Verdict>> {
    let started = Instant::now();
    let folder = read_graph_folder(files)?;
    let graph = &folder.graph;
    let mut operations: Vec<String> =
        graph.calls().filter_map(|(_, call)| call.op()).map(|op| op.name().to_string()).collect();
    operations.sort();
    operations.dedup();
    evaluation.operations = operations;
    evaluation.work = Work::of(&folder);
    let under_test = match subject {
        Subject::Passes(candidate) => {
            evaluation.remarks.clone_from(&candidate.remarks);
            let rewritten = candidate.rewrite(graph)?;
            evaluation.rewrites = rewritten.rewrites;
            UnderTest::Rewritten(rewritten.graph, candidate.wrappers())
        }
        Subject::Compiled(compiler) => UnderTest::Compiled(compiler),
        Subject::Eager => UnderTest::Eager,
    };
    let secret = graph_secret(files, options);
    evaluation.secret = Some(secret.clone());
    let (drawn, sides) = rayon::join(
        || Drawn::new(files, graph, options, &secret),
        || Sides::prepare(engine, graph, under_test),
    );
    let drawn = drawn?;
    let case = Case::new(sides?, drawn, options, secret);
    evaluation.spent.prepare = started.elapsed().as_secs_f64();
    evaluation.dtype = case.dtype();
    let is_watched = options.thorough && matches!(subject, Subject::Passes(_));
    let watched_first = match is_watched && !case.candidate.stops_endless_kernels() {
        // What cannot be watched may still run in another tier.
        true => watch::watch_kernels(&case).map(Some).or_else(|verdict| match verdict.kind {
            VerdictKind::RuntimeFail => Err(verdict),
            _ => Ok(None),
        })?,
        false => None,
    };
    if let Subject::Passes(candidate) = subject
        && candidate.wrappers().have_tuned_kernels()
    {
        // Configurations are timed while nothing else runs; what fails here fails again where it is judged.
        let inputs =
            case::copies(&case.draws[0]).map_err(|error| verification::no_memory(&error))?;
        let _ = case.run_candidate(inputs);
    }
    let beside = match subject {
        Subject::Passes(candidate) if options.thorough => Some(|| {
            let shapes = || try_other_shapes(engine, &folder, candidate, options, &case);
            let watched = || watched_first.map_or_else(|| watch::watch_kernels(&case), Ok);
            rayon::join(|| case.beside_others(shapes), || case.beside_others(watched))
        }),
        _ => None,
    };
    let verified = verification::verify(&case, evaluation, beside);
    evaluation.tier = case.candidate.tier();
    evaluation.tuned = case.candidate.tuned();
    let beside = verified?;
    if evaluation.tier == Tier::Compat {
        // A process that keeps running between calls may keep results, too: its speed means nothing.
        evaluation.remarks.push(Evidence::Message { text: UNTIMED.into() });
        return Ok(());
    }
    if let Some((shapes, watched)) = beside {
        evaluation.remarks.extend(watched?);
        evaluation.checks.push(passed("kernels stay inside their memory, without races"));
        if let Some(level) = verification::scoring_level(evaluation.judged.ladder)
            && let Some(verdict) = shapes.conclude(level, &mut evaluation.checks)
        {
            evaluation.judged.verdict = verdict;
            evaluation.judged.ladder = Ladder::NONE;
        }
    }
    if is_timed {
        race::time(&case, options, evaluation)?;
    }
    Ok(())
}

/// The secret of one graph: those of other graphs cannot be computed from it.
fn graph_secret(files: &GraphFiles, options: &EvaluateOptions) -> Secret {
    options.replayed.clone().unwrap_or_else(|| options.secret.of(&files.path))
}

fn read_graph_folder(files: &GraphFiles) -> Result<GraphFolder, Box<Verdict>> {
    read::read_folder(files).map_err(|errors| {
        let verdict = Verdict::new(VerdictKind::ReferenceFail);
        Box::new(errors.iter().fold(verdict, |verdict, error| verdict.because(error.to_string())))
    })
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
