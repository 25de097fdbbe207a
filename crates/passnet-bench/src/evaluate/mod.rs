//! One graph through all stages: rewrite, prepare, verify, check, time, judge.
//!
//! The reference's question (are the outputs close on one draw of inputs?) decides the ladder. What it never asks
//! (other draws, extreme values, poisoned memory, repeated runs, what happens to the inputs, what the kernels touch)
//! decides whether that ladder may be believed. Every level that scores has passed all of it.
//!
//! Each stage returns what it found. An early verdict ends the evaluation; [`Evaluation`] is put together at the end.

mod case;
mod check;
mod contents;
mod draws;
mod evaluation;
mod extremes;
mod failure;
mod findings;
mod named;
mod options;
mod oracle;
mod other_shapes;
mod overhead;
mod pair;
mod places;
mod race;
mod stress;
mod tensors;
mod verification;
mod watch;

pub use check::{Check, CheckAnswer};
pub use evaluation::{CallCosts, Evaluation};
pub use options::EvaluateOptions;
pub use oracle::Accuracy;
pub use overhead::Overhead;
pub use pair::OutputSummary;

use crate::candidate::{Candidate, Rewrites, Rewritten};
use crate::roofline::Work;
use crate::score::JudgedGraph;
use crate::secret::Secret;
use crate::subject::Subject;
use crate::timing::Timings;
use crate::tolerance::Ladder;
use crate::verdict::{Verdict, VerdictKind};
use case::{Case, Drawn, Sides};
use failure::harness_failure;
use other_shapes::try_other_shapes;
use passnet_engine::Engine;
use passnet_graph::{GraphFiles, GraphFolder, read};
use std::time::Instant;
use verification::{KernelChecks, Verification};

/// Evaluates a subject on one graph.
pub fn evaluate(
    engine: &dyn Engine,
    files: &GraphFiles,
    subject: Subject<&Candidate>,
    options: &EvaluateOptions,
) -> Evaluation {
    run_stages(engine, files, subject, options, true)
}

/// As [`evaluate`] with everything but the timing: a verdict in milliseconds, and no speed-up.
pub fn check(
    engine: &dyn Engine,
    files: &GraphFiles,
    candidate: &Candidate,
    options: &EvaluateOptions,
) -> Evaluation {
    run_stages(engine, files, Subject::Passes(candidate), options, false)
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
    let sides = Sides::prepare(engine, &graph, Subject::Eager).ok()?;
    race::against_itself(&Case::new(sides, drawn, options, secret), options).ok()
}

/// What a stage found; the verdict with which it ended the evaluation, or nothing where an earlier stage did.
type Found<T> = Result<T, Option<Box<Verdict>>>;

/// The next stage, where the evaluation goes on.
fn after<'a, T, U>(
    found: &'a Found<T>,
    next: impl FnOnce(&'a T) -> Result<U, Box<Verdict>>,
) -> Found<U> {
    found.as_ref().map_err(|_| None).and_then(|found| next(found).map_err(Some))
}

fn ending<T>(found: &Found<T>) -> Option<&Verdict> {
    found.as_ref().err()?.as_deref()
}

fn run_stages(
    engine: &dyn Engine,
    files: &GraphFiles,
    subject: Subject<&Candidate>,
    options: &EvaluateOptions,
    is_timed: bool,
) -> Evaluation {
    let started = Instant::now();
    let faults = engine.faults();
    let reading = Reading::of(files).map_err(Some);
    let rewriting = after(&reading, |reading| {
        Rewriting::of(&reading.folder, subject, graph_secret(files, options))
    });
    let preparation = after(&rewriting, |rewriting| {
        let case = rewriting.prepare(engine, files, options)?;
        Ok(Preparation { rewriting, case, seconds: started.elapsed().as_secs_f64() })
    });
    let verification = after(&preparation, |preparation| {
        Ok((&preparation.case, preparation.verify(engine, options)?))
    });
    let race = after(&verification, |(case, verified)| {
        let is_timed = is_timed && verified.allows_timing();
        is_timed.then(|| race::time(case, options, verified.findings.ladder)).transpose()
    });

    let ended = ending(&reading)
        .or(ending(&rewriting))
        .or(ending(&preparation))
        .or(ending(&verification))
        .or(ending(&race))
        .cloned();
    let race = race.ok().flatten();
    let Verification { findings, overhead, tier, tuned } =
        verification.map(|(_, found)| found).unwrap_or_default();
    let verdict = ended.or(findings.verdict).unwrap_or_else(|| Verdict::new(VerdictKind::Correct));
    let is_comparable = verdict.kind.is_comparable();
    let ladder = race.as_ref().map_or(findings.ladder, |race| race.ladder);
    let race = race.unwrap_or_default();
    let (dtype, prepare) =
        preparation.map(|found| (found.case.dtype(), found.seconds)).unwrap_or_default();
    let (rewrites, left_out, secret) = rewriting.map(Rewriting::into_parts).unwrap_or_default();
    let remarks = subject.passes().filter(|_| reading.is_ok()).map(|it| it.remarks.clone());
    let (operations, work) =
        reading.map(|found| (found.operations, found.work)).unwrap_or_default();
    let milliseconds = |seconds: &[f64]| seconds.iter().map(|s| s * 1e3).collect();
    Evaluation {
        judged: JudgedGraph {
            graph: files.path.clone(),
            verdict,
            ladder: if is_comparable { ladder } else { Ladder::NONE },
            speedup: race.interval.filter(|_| is_comparable).map(|interval| interval.ratio),
        },
        not_judged: engine.faults().since(&faults).map(str::to_string),
        tier,
        interval: race.interval,
        decision: race.interval.map(|interval| interval.decide(options.noise_floor)),
        eager_ms: milliseconds(&race.timings.eager),
        candidate_ms: milliseconds(&race.timings.candidate),
        eager_costs: race.eager_costs,
        candidate_costs: race.candidate_costs,
        work,
        roofline_ms: None,
        rewrites,
        left_out,
        tuned,
        outputs: findings.outputs,
        accuracy: findings.accuracy,
        checks: findings.checks,
        remarks: remarks.into_iter().flatten().chain(findings.remarks).collect(),
        secret,
        dtype,
        operations,
        overhead: Overhead { prepare, around_calls: race.overhead, ..overhead },
        measured_seconds: race.measured_seconds,
        seconds: started.elapsed().as_secs_f64(),
    }
}

/// A graph as it was read.
struct Reading {
    folder: GraphFolder,
    /// Each operation once, by name.
    operations: Vec<String>,
    work: Option<Work>,
}

impl Reading {
    fn of(files: &GraphFiles) -> Result<Reading, Box<Verdict>> {
        let folder = read::read_folder(files).map_err(|errors| {
            let verdict = Verdict::new(VerdictKind::ReferenceFail);
            errors.iter().fold(verdict, |verdict, error| verdict.because(error.to_string()))
        })?;
        let calls = folder.graph.calls();
        let mut operations: Vec<String> =
            calls.filter_map(|(_, call)| call.op()).map(|op| op.name().to_string()).collect();
        operations.sort();
        operations.dedup();
        Ok(Reading { operations, work: Work::of(&folder), folder })
    }
}

/// A graph with its subject, rewritten where passes are.
struct Rewriting<'a> {
    folder: &'a GraphFolder,
    subject: Subject<(&'a Candidate, Rewritten)>,
    secret: Secret,
}

impl<'a> Rewriting<'a> {
    fn of(
        folder: &'a GraphFolder,
        subject: Subject<&'a Candidate>,
        secret: Secret,
    ) -> Result<Self, Box<Verdict>> {
        let subject =
            subject.try_map(|it| it.rewrite(&folder.graph).map(|rewritten| (it, rewritten)))?;
        Ok(Rewriting { folder, subject, secret })
    }

    /// What an evaluation says of it.
    fn into_parts(self) -> (Vec<Rewrites>, Vec<String>, Option<Secret>) {
        let done = self.subject.passes().map(|(_, done)| (done.rewrites, done.left_out));
        let (rewrites, left_out) = done.unwrap_or_default();
        (rewrites, left_out, Some(self.secret))
    }

    /// Draws inputs and prepares both sides at the same time.
    fn prepare(
        &self,
        engine: &dyn Engine,
        files: &GraphFiles,
        options: &EvaluateOptions,
    ) -> Result<Case, Box<Verdict>> {
        let graph = &self.folder.graph;
        let subject = self
            .subject
            .as_ref()
            .map(|(candidate, rewritten)| (&rewritten.graph, candidate.wrappers()));
        let (drawn, sides) = rayon::join(
            || Drawn::new(files, graph, options, &self.secret),
            || Sides::prepare(engine, graph, subject),
        );
        let drawn = drawn?;
        Ok(Case::new(sides?, drawn, options, self.secret.clone()))
    }
}

/// Both sides, ready to be called.
struct Preparation<'a> {
    rewriting: &'a Rewriting<'a>,
    case: Case,
    seconds: f64,
}

impl Preparation<'_> {
    fn verify(
        &self,
        engine: &dyn Engine,
        options: &EvaluateOptions,
    ) -> Result<Verification, Box<Verdict>> {
        let case = &self.case;
        let candidate = self.rewriting.subject.as_ref().passes().map(|(candidate, _)| *candidate);
        let checked = candidate.filter(|_| options.thorough);
        let watched_first = match checked.is_some() && !case.sides.candidate.stops_endless_kernels()
        {
            // What cannot be watched may still run in another tier.
            true => watch::watch_kernels(case).map(Some).or_else(|verdict| match verdict.kind {
                VerdictKind::RuntimeFail => Err(verdict),
                _ => Ok(None),
            })?,
            false => None,
        };
        if candidate.is_some_and(|candidate| candidate.wrappers().have_tuned_kernels()) {
            // Configurations are timed while nothing else runs; what fails here fails again where it is judged.
            let inputs = case::copies(&case.draws[0]).map_err(harness_failure)?;
            let _ = case.run_candidate(inputs);
        }
        let kernel_checks = checked.map(|candidate| {
            move || {
                let shapes =
                    || try_other_shapes(engine, self.rewriting.folder, candidate, options, case);
                let watched = || watched_first.map_or_else(|| watch::watch_kernels(case), Ok);
                let (other_shapes, watched) =
                    rayon::join(|| case.beside_others(shapes), || case.beside_others(watched));
                KernelChecks { other_shapes, watched }
            }
        });
        Ok(verification::verify(case, kernel_checks))
    }
}

/// The secret of one graph: those of other graphs cannot be computed from it.
fn graph_secret(files: &GraphFiles, options: &EvaluateOptions) -> Secret {
    options.replayed.clone().unwrap_or_else(|| options.secret.of(&files.path))
}
