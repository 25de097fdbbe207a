//! A last look: the whole graphs with their passes, against eager.
//!
//! Pieces are timed alone, on one graph. In the graphs a piece may read what is laid out differently, be smaller, or
//! leave caches in another state, so what paid alone may cost here. Then passes are taken out again, until no graph is
//! slower than eager.

use crate::explain::WholeGraph;
use crate::graph_family::{GraphFamily, TypedGraph};
use crate::graph_race::{GraphRace, applied, worth};
use crate::solver::{Solver, load};
use passnet_bench::evaluate::{EvaluateOptions, check};
use passnet_bench::verdict::VerdictKind;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The mean speed-up from which on kernels are kept: what is nearer to 1 may be noise.
pub(crate) const GAINS: f64 = 1.01;
/// Graphs of a task that are timed.
const MOST_GRAPHS: usize = 4;
/// After so long nothing more is tried, and what touches a slow graph goes.
const PATIENCE: Duration = Duration::from_millis(2500);

/// What racing the whole graphs showed.
pub(crate) struct WholeGraphs {
    /// Whether any pass beats leaving the graph alone.
    pub(crate) wins: bool,
    /// The mean of the logarithms of speed-ups, those of slow graphs counted more.
    pub(crate) worth: f64,
    pub(crate) graphs: Vec<WholeGraph>,
}

impl Solver<'_> {
    /// Times the graphs with their passes, and keeps the passes with which none is slower than eager.
    pub(crate) fn race_whole_graphs(&mut self, families: &[GraphFamily]) -> WholeGraphs {
        let started = Instant::now();
        let graphs = chosen(families);
        self.serve_the_rest(families);
        let mut races = self.race_all(&graphs);
        loop {
            let blamed = self.blamed(&races);
            if blamed.is_empty() {
                break;
            }
            let mut best = (worth(&races), None);
            for stem in blamed.iter().filter(|_| blamed.len() > 1) {
                if started.elapsed() > PATIENCE {
                    break;
                }
                let mut passes = self.portfolio.texts();
                passes.retain(|pass| pass.stem != *stem);
                let worth = worth(&self.race(&graphs, &passes));
                if worth > best.0 {
                    best = (worth, Some(stem.clone()));
                }
            }
            // Where leaving out one does not help, all go that touch a slow graph.
            let gone = best.1.map_or(blamed, |stem| BTreeSet::from([stem]));
            self.replace(&gone, "a whole graph is slower with it", families);
            races = self.race_all(&graphs);
        }
        let kernels = self.portfolio.kernels();
        if !kernels.is_empty() && worth(&races) < GAINS.ln() {
            let mut numbered = families.iter().enumerate();
            if numbered.all(|(number, family)| self.passthrough(number, family).is_some()) {
                self.replace(&kernels, "the whole graphs gain nothing by it", families);
                races.clear();
            }
        }
        let wins = !self.portfolio.kernels().is_empty() && worth(&races) >= GAINS.ln();
        let whole = |race: GraphRace| WholeGraph { graph: race.graph, speedup: race.speedup };
        WholeGraphs { wins, worth: worth(&races), graphs: races.into_iter().map(whole).collect() }
    }

    /// Makes sure that every graph is right on everything that is asked, not only those that were timed on one draw.
    pub(crate) fn verify(&mut self, families: &[GraphFamily]) {
        while let Some((wrong, reason)) = self.wrong(families) {
            for stem in &wrong {
                self.forget_passthrough(stem);
                self.portfolio.drop_pass(stem, &reason);
            }
            self.serve_the_rest(families);
        }
    }

    /// The passes that apply to a graph which is wrong with them.
    fn wrong(&self, families: &[GraphFamily]) -> Option<(BTreeSet<String>, String)> {
        // Views were looked at when they were written, in the graphs of their own family.
        let thorough = self.portfolio.passes.iter().any(|pass| !pass.text.is_passthrough());
        if families.len() == 1 && !thorough {
            return None;
        }
        let options = EvaluateOptions { draws: 2, thorough, ..EvaluateOptions::default() };
        let candidate = load(&self.portfolio.texts()).ok()?;
        for member in families.iter().flat_map(GraphFamily::recorded) {
            let Ok(files) = self.sample.graph_files(&member.path) else { continue };
            let evaluation = check(self.engine, &files, &candidate, &options);
            let verdict = &evaluation.judged.verdict;
            use VerdictKind::{Correct, NoMatch, ReferenceFail};
            let applied = applied(&evaluation);
            if !matches!(verdict.kind, Correct | NoMatch | ReferenceFail) && !applied.is_empty() {
                return Some((applied, verdict.to_string()));
            }
        }
        None
    }

    /// Sets passes aside, and serves the graphs that have none any more.
    fn replace(&mut self, stems: &BTreeSet<String>, reason: &str, families: &[GraphFamily]) {
        stems.iter().for_each(|stem| self.portfolio.set_aside(stem, reason));
        self.serve_the_rest(families);
    }

    /// The kernels that apply to slow graphs.
    fn blamed(&self, races: &[GraphRace]) -> BTreeSet<String> {
        let slow = races.iter().filter(|race| race.is_slow);
        let applied: BTreeSet<&String> = slow.flat_map(|race| &race.applied).collect();
        self.portfolio.kernels().into_iter().filter(|stem| applied.contains(stem)).collect()
    }

    /// Races the graphs with the passes as they are; passthroughs alone leave nothing to find out.
    fn race_all(&self, graphs: &[&TypedGraph]) -> Vec<GraphRace> {
        let passes = self.portfolio.texts();
        match passes.iter().all(|pass| pass.is_passthrough()) {
            true => Vec::new(),
            false => self.race(graphs, &passes),
        }
    }
}

/// The graphs that are timed: of every family one in turn, until there are enough.
fn chosen(families: &[GraphFamily]) -> Vec<&TypedGraph> {
    let most = families.iter().map(|family| family.recorded().len()).max().unwrap_or(0);
    let members =
        (0..most).flat_map(|at| families.iter().filter_map(move |f| f.recorded().get(at)));
    members.take(MOST_GRAPHS.max(families.len())).collect()
}
