//! A last look: the whole graphs with their passes, against eager.
//!
//! Pieces are timed alone, on one graph. In the graphs a piece may read what is laid out differently, be smaller, or
//! leave caches in another state, so what paid alone may cost here. Then passes are taken out again, until no graph is
//! slower than eager.

use crate::emit::PassText;
use crate::explain::WholeGraph;
use crate::graph_family::{GraphFamily, TypedGraph};
use crate::select::Made;
use crate::solve::{SolveError, Solver, write_folder};
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, Evaluation, check, evaluate};
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// No graph may be slower than this.
const SLOWER: f64 = 0.97;
/// From here on a slow result may be noise, and is looked at twice.
const MAYBE_NOISE: f64 = 0.8;
/// The mean speed-up from which on kernels are kept: what is nearer to 1 may be noise.
const GAINS: f64 = 1.01;
/// Graphs of a task that are timed.
const MOST_GRAPHS: usize = 4;
/// Calls of each side of a graph that takes long: what is slower by much shows at once.
const LEAST_CALLS: usize = 4;
/// After so long nothing more is tried, and what touches a slow graph goes.
const PATIENCE: Duration = Duration::from_millis(2500);

/// How one graph did.
pub(crate) struct Outcome {
    graph: String,
    /// One where no pass applies, zero where a result is wrong.
    pub(crate) speedup: f64,
    /// Whether it is slower than eager beyond the noise, or wrong.
    pub(crate) slow: bool,
    /// The passes that apply.
    applied: BTreeSet<String>,
}

impl Solver<'_> {
    /// Times the graphs with their passes, and keeps the passes with which none is slower than eager.
    pub(crate) fn look_at_whole_graphs(
        &mut self,
        families: &[GraphFamily],
    ) -> Result<(), SolveError> {
        let started = Instant::now();
        let graphs = chosen(families);
        self.serve_the_rest(families)?;
        let mut outcomes = self.race_all(&graphs)?;
        loop {
            let blamed = self.blamed(&outcomes);
            if blamed.is_empty() {
                break;
            }
            let mut best = (worth(&outcomes), None);
            for stem in blamed.iter().filter(|_| blamed.len() > 1) {
                if started.elapsed() > PATIENCE {
                    break;
                }
                let mut passes = self.texts();
                passes.retain(|pass| pass.stem != *stem);
                let worth = worth(&self.race(&graphs, &passes)?);
                if worth > best.0 {
                    best = (worth, Some(stem.clone()));
                }
            }
            // Where leaving out one does not help, all go that touch a slow graph.
            let gone = best.1.map_or(blamed, |stem| BTreeSet::from([stem]));
            self.set_aside(&gone, "a whole graph is slower with it")?;
            self.serve_the_rest(families)?;
            outcomes = self.race_all(&graphs)?;
        }
        let kernels = self.kernels();
        if !kernels.is_empty() && worth(&outcomes) < GAINS.ln() {
            let mut replaceable = true;
            for (number, family) in families.iter().enumerate() {
                replaceable = replaceable && self.passthrough(number, family)?.is_some();
            }
            if replaceable {
                self.set_aside(&kernels, "the whole graphs gain nothing by it")?;
                self.serve_the_rest(families)?;
                outcomes.clear();
            }
        }
        self.explanation.wins = Some(!self.kernels().is_empty() && worth(&outcomes) >= GAINS.ln());
        let whole = |o: Outcome| WholeGraph { graph: o.graph, speedup: o.speedup };
        self.explanation.whole_graphs = outcomes.into_iter().map(whole).collect();
        Ok(())
    }

    /// Makes sure that every graph is right on everything that is asked, not only those that were timed on one draw.
    pub(crate) fn verify(&mut self, families: &[GraphFamily]) -> Result<(), SolveError> {
        while let Some((wrong, reason)) = self.wrong(families)? {
            self.drop_all(&wrong, &reason)?;
            self.serve_the_rest(families)?;
        }
        Ok(())
    }

    /// The passes that apply to a graph which is wrong with them.
    fn wrong(
        &self,
        families: &[GraphFamily],
    ) -> Result<Option<(BTreeSet<String>, String)>, SolveError> {
        // Views were looked at when they were written, in the graphs of their own family.
        let thorough = self.passes.iter().any(|pass| !pass.text.is_passthrough());
        if families.len() == 1 && !thorough {
            return Ok(None);
        }
        let options = EvaluateOptions { draws: 2, thorough, ..EvaluateOptions::default() };
        let Some(candidate) = self.candidate(&self.texts())? else { return Ok(None) };
        for member in families.iter().flat_map(|family| &family.members) {
            let Ok(files) = self.sample.graph_files(&member.path) else { continue };
            let evaluation = check(self.engine, &files, &candidate, &options);
            let verdict = &evaluation.judged.verdict;
            use VerdictKind::{Correct, NoMatch, ReferenceFail};
            let applied = applied(&evaluation);
            if !matches!(verdict.kind, Correct | NoMatch | ReferenceFail) && !applied.is_empty() {
                return Ok(Some((applied, verdict.to_string())));
            }
        }
        Ok(None)
    }

    /// Takes passes out; where a graph has no view to hand back, the best of them may come in again.
    fn set_aside(&mut self, stems: &BTreeSet<String>, reason: &str) -> Result<(), SolveError> {
        for stem in stems {
            let written = self.passes.iter().position(|pass| pass.stem == *stem);
            let explained = self.explanation.passes.iter().position(|pass| pass.name == *stem);
            if let (Some(written), Some(explained)) = (written, explained) {
                let written = self.passes.remove(written);
                let explanation = self.explanation.passes.remove(explained);
                self.spares.push(Made { written, explanation, measured: None });
            }
            self.drop_written(stem, reason)?;
        }
        Ok(())
    }

    fn drop_all(&mut self, stems: &BTreeSet<String>, reason: &str) -> Result<(), SolveError> {
        for stem in stems {
            self.passes.retain(|pass| pass.stem != *stem);
            self.forget_passthrough(stem);
            self.drop_written(stem, reason)?;
            self.take_apart(stem);
        }
        Ok(())
    }

    /// The passes with a kernel, other than those that are there because nothing else is.
    fn kernels(&self) -> BTreeSet<String> {
        let kernels =
            self.passes.iter().filter(|pass| !pass.text.is_passthrough() && !pass.last_resort);
        kernels.map(|pass| pass.stem.clone()).collect()
    }

    /// The kernels that apply to slow graphs.
    fn blamed(&self, outcomes: &[Outcome]) -> BTreeSet<String> {
        let slow = outcomes.iter().filter(|outcome| outcome.slow);
        let applied: BTreeSet<&String> = slow.flat_map(|outcome| &outcome.applied).collect();
        self.kernels().into_iter().filter(|stem| applied.contains(stem)).collect()
    }

    pub(crate) fn texts(&self) -> Vec<&PassText> {
        self.passes.iter().map(|pass| &pass.text).collect()
    }

    /// Races the graphs with the passes as they are; passthroughs alone leave nothing to find out.
    fn race_all(&self, graphs: &[&TypedGraph]) -> Result<Vec<Outcome>, SolveError> {
        match self.texts().iter().all(|pass| pass.is_passthrough()) {
            true => Ok(Vec::new()),
            false => self.race(graphs, &self.texts()),
        }
    }

    /// Races graphs with passes; those that eager itself does not run are left out.
    pub(crate) fn race(
        &self,
        graphs: &[&TypedGraph],
        passes: &[&PassText],
    ) -> Result<Vec<Outcome>, SolveError> {
        let Some(candidate) = &self.candidate(passes)? else { return Ok(Vec::new()) };
        let mut outcomes = Vec::new();
        for member in graphs {
            let graph = member.path.clone();
            let Ok(files) = self.sample.graph_files(&graph) else { continue };
            let timed = |seconds: f64| {
                let options = whole_graph(seconds);
                evaluate(self.engine, &files, Subject::Passes(candidate), &options)
            };
            let mut evaluation = timed(self.options.seconds);
            if speedup(&evaluation).is_some_and(|s| (MAYBE_NOISE..SLOWER).contains(&s)) {
                evaluation = timed(self.options.seconds * 3.0);
            }
            if let Some(speedup) = speedup(&evaluation) {
                let certain = evaluation.interval.is_none_or(|interval| interval.high < 1.0);
                let slow = speedup < SLOWER && certain;
                outcomes.push(Outcome { graph, speedup, slow, applied: applied(&evaluation) });
            }
        }
        Ok(outcomes)
    }

    pub(crate) fn candidate(&self, passes: &[&PassText]) -> Result<Option<Candidate>, SolveError> {
        if passes.is_empty() {
            return Ok(None);
        }
        write_folder(self.folder, passes)?;
        Ok(Candidate::load(self.folder, None, true).ok())
    }
}

/// Right on the draws that an evaluation times, for inputs that are never in the caches cost more; timed shortly, with many
/// calls of a graph that is done in microseconds.
fn whole_graph(seconds: f64) -> EvaluateOptions {
    let timing = TimingOptions {
        warmup: 3,
        trials: 60,
        max_trials: 60,
        seconds,
        least: LEAST_CALLS,
        ..TimingOptions::default()
    };
    EvaluateOptions { timing, thorough: false, ..EvaluateOptions::default() }
}

fn applied(evaluation: &Evaluation) -> BTreeSet<String> {
    let applied = evaluation.rewrites.iter().filter(|rewrites| rewrites.count > 0);
    applied.map(|rewrites| rewrites.pass.clone()).collect()
}

fn speedup(evaluation: &Evaluation) -> Option<f64> {
    match evaluation.judged.verdict.kind {
        VerdictKind::Correct => evaluation.judged.speedup,
        VerdictKind::ReferenceFail => None,
        VerdictKind::NoMatch => Some(1.0),
        _ => Some(0.0),
    }
}

/// The logarithm of the mean speed-up, in which slow graphs count three times: a small gain elsewhere does not excuse them.
pub(crate) fn worth(outcomes: &[Outcome]) -> f64 {
    let worth = |outcome: &Outcome| {
        let log = outcome.speedup.max(1e-3).ln();
        if outcome.slow { 3.0 * log } else { log }
    };
    outcomes.iter().map(worth).sum::<f64>() / outcomes.len().max(1) as f64
}

/// The graphs that are timed: of every family one in turn, until there are enough.
fn chosen(families: &[GraphFamily]) -> Vec<&TypedGraph> {
    let most = families.iter().map(GraphFamily::count).max().unwrap_or(0);
    let members = (0..most).flat_map(|at| families.iter().filter_map(move |f| f.members.get(at)));
    members.take(MOST_GRAPHS.max(families.len())).collect()
}
