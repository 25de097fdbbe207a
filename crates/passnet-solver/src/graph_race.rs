//! Graphs with passes, raced against eager.

use crate::emit::PassText;
use crate::graph_family::TypedGraph;
use crate::solver::{Solver, load};
use passnet_bench::evaluate::{EvaluateOptions, Evaluation, evaluate};
use passnet_bench::subject::Subject;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use std::collections::BTreeSet;

/// No graph may be slower than this.
const SLOWER: f64 = 0.97;
/// From here on a slow result may be noise, and is looked at twice.
const MAYBE_NOISE: f64 = 0.8;
/// Calls of each side of a graph that takes long: what is slower by much shows at once.
const LEAST_CALLS: usize = 4;

/// How one graph did.
pub(crate) struct GraphRace {
    pub(crate) graph: String,
    /// One where no pass applies, zero where a result is wrong.
    pub(crate) speedup: f64,
    /// Whether it is slower than eager beyond the noise, or wrong.
    pub(crate) is_slow: bool,
    /// The passes that apply.
    pub(crate) applied: BTreeSet<String>,
}

impl Solver<'_> {
    /// Races graphs with passes; those that eager itself does not run are left out.
    pub(crate) fn race(&self, graphs: &[&TypedGraph], passes: &[&PassText]) -> Vec<GraphRace> {
        let Ok(candidate) = &load(passes) else { return Vec::new() };
        let mut races = Vec::new();
        for member in graphs {
            let graph = member.path.clone();
            let Ok(files) = self.sample.graph_files(&graph) else { continue };
            let timed = |seconds: f64| {
                let options = timing_options(seconds);
                evaluate(self.engine, &files, Subject::Passes(candidate), &options)
            };
            let mut evaluation = timed(self.options.seconds);
            if speedup(&evaluation).is_some_and(|s| (MAYBE_NOISE..SLOWER).contains(&s)) {
                evaluation = timed(self.options.seconds * 3.0);
            }
            if let Some(speedup) = speedup(&evaluation) {
                let certain = evaluation.interval.is_none_or(|interval| interval.high < 1.0);
                let is_slow = speedup < SLOWER && certain;
                races.push(GraphRace { graph, speedup, is_slow, applied: applied(&evaluation) });
            }
        }
        races
    }
}

/// Right on the draws that an evaluation times, for inputs that are never in the caches cost more; timed shortly, with many
/// calls of a graph that is done in microseconds.
fn timing_options(seconds: f64) -> EvaluateOptions {
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

pub(crate) fn applied(evaluation: &Evaluation) -> BTreeSet<String> {
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
pub(crate) fn worth(races: &[GraphRace]) -> f64 {
    let worth = |race: &GraphRace| {
        let log = race.speedup.max(1e-3).ln();
        if race.is_slow { 3.0 * log } else { log }
    };
    races.iter().map(worth).sum::<f64>() / races.len().max(1) as f64
}
