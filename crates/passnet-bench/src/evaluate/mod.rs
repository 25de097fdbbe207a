//! One graph through all stages: rewrite, prepare, verify, check, time, judge.
//!
//! The reference's question (are the outputs close on one draw of inputs?) decides the ladder. What it never asks
//! (other draws, extreme values, poisoned memory, repeated runs, what happens to the inputs, what the kernels touch)
//! decides whether that ladder may be believed.

mod case;
mod draws;
mod extremes;
mod oracle;
mod other_shapes;
mod pair;
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
use crate::stats::{Decision, RatioInterval, median};
use crate::timing::{TimingOptions, Timings};
use crate::tolerance::Ladder;
use crate::verdict::{Evidence, Verdict, VerdictKind};
use case::{Case, Sides, UnderTest, draw_all};
use other_shapes::try_other_shapes;
use passnet_engine::{Costs, Engine, EngineError, ErrorKind, GraphCompiler, Tier};
use passnet_graph::{Diagnostic, GraphFiles, GraphFolder, read};
use serde::{Deserialize, Serialize};
use std::time::Instant;
use verification::passed;

/// What is said of a graph whose passes ran in the compatibility tier.
const UNTIMED: &str = "compatibility tier: ran in a sandboxed PyTorch, compared by the trusted side; kernels not \
    watched, not timed, not scored";

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
    /// The least of tiers that passes may run in; the engine knows how.
    #[serde(default, skip_serializing_if = "Tier::is_plan")]
    pub tier: Tier,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            timing: TimingOptions::default(),
            seed: passnet_engine::native::inputs::DEFAULT_SEED,
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
            outputs: Vec::new(),
            accuracy: None,
            checks: Vec::new(),
            remarks: Vec::new(),
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
    if let Err(verdict) = stages(engine, files, subject, options, is_timed, &mut evaluation) {
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
    let draws = draw_all(files, &graph, options).ok()?;
    let case = Case::new(Sides::prepare(engine, &graph, UnderTest::Eager).ok()?, draws, options);
    race::against_itself(&case, options).ok()
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
    let (draws, sides) = rayon::join(
        || draw_all(files, graph, options),
        || Sides::prepare(engine, graph, under_test),
    );
    let draws = draws?;
    let case = Case::new(sides?, draws, options);
    evaluation.spent.prepare = started.elapsed().as_secs_f64();
    evaluation.dtype = case.dtype();
    let beside = match subject {
        Subject::Passes(candidate) if options.thorough => Some(|| {
            let shapes = || try_other_shapes(engine, &folder, candidate, options, &case.draws[0]);
            let watched = || watch::watch_kernels(&case);
            rayon::join(|| case.beside_others(shapes), || case.beside_others(watched))
        }),
        _ => None,
    };
    let verified = verification::verify(&case, evaluation, beside);
    evaluation.tier = case.candidate.tier();
    let (verified, beside) = verified?;
    if evaluation.tier == Tier::Compat {
        // A process that keeps running between calls may keep results, too: its speed means nothing.
        evaluation.remarks.push(Evidence::Message { text: UNTIMED.into() });
        return Ok(());
    }
    if let Some((shapes, watched)) = beside {
        evaluation.remarks.extend(watched?);
        evaluation.checks.push(passed("kernels stay inside their memory, without races"));
        if evaluation.judged.verdict.kind == VerdictKind::Correct {
            evaluation.checks.extend(shapes.checks);
            if let Some(verdict) = shapes.wrong {
                evaluation.judged.verdict = verdict;
                evaluation.judged.ladder = Ladder::NONE;
            }
        }
    }
    if is_timed {
        race::time(&case, verified, options, evaluation)?;
    }
    Ok(())
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
