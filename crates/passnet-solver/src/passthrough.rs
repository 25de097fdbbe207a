//! What a task gets where nothing wins: a pass that costs nothing.
//!
//! Views and operations without effect are free in eager. A pass that hands back the same view leaves the graph as fast
//! as it was, or a little faster where it stands for several of them. Only a graph without any gets the kernel that loses
//! least.

use crate::analysis::groups::{copied_view, free_pieces, smallest};
use crate::emit::{self, Choice};
use crate::explain;
use crate::graph_family::{GraphFamily, TypedGraph};
use crate::graph_race::worth;
use crate::portfolio::{Pass, outline};
use crate::solver::Solver;
use std::time::{Duration, Instant};

/// Views of a family that are tried.
const MOST_VIEWS: usize = 6;
/// Views are raced only in graphs that run and are checked in this time.
const QUICK: Duration = Duration::from_millis(400);
/// Kernels that are raced where a graph has no view, and on how many graphs.
const MOST_KERNELS: usize = 6;
const MOST_GRAPHS: usize = 3;
/// Pieces of one node that are tried where nothing wins.
const MOST_SMALLEST: usize = 5;

impl Solver<'_> {
    /// Gives every graph family that no pass applies to a pass, for a graph without one scores nothing.
    pub(crate) fn serve_the_rest(&mut self, families: &[GraphFamily]) {
        for (number, family) in families.iter().enumerate() {
            if self.serves(family, &self.portfolio.texts()) {
                continue;
            }
            match self.passthrough(number, family) {
                Some(pass) => self.portfolio.add(pass),
                None => self.add_last_resort(number, family),
            }
        }
        self.portfolio.order();
    }

    /// A pass that hands back what eager hands back, if the family has such an operation.
    pub(crate) fn passthrough(&mut self, number: usize, family: &GraphFamily) -> Option<Pass> {
        if let Some(known) = self.passthroughs.get(&number) {
            return known.clone();
        }
        let graphs: Vec<&TypedGraph> = family.recorded().iter().take(MOST_GRAPHS).collect();
        let mut found: Option<(f64, Pass)> = None;
        for (nodes, piece) in free_pieces(family, MOST_VIEWS) {
            let operations = nodes.iter().filter_map(|node| family.graph().call(*node)?.op());
            let words: Vec<_> = operations.map(|op| op.name().trim_matches('_')).collect();
            let base = format!("neutral_{}", words[..words.len().min(2)].join("_"));
            let stem = self.portfolio.new_stem(base);
            let started = Instant::now();
            let text = emit::passthrough(&piece, stem.clone())
                .ok()
                .filter(|text| self.serves(family, &[text]) && self.is_right_with(family, &[text]));
            let Some(text) = text else {
                self.portfolio.free_stem(&stem);
                continue;
            };
            // The engine may do a view together with its neighbours, as long as nobody stands between.
            let quick = self.options.tune && started.elapsed() < QUICK;
            let races = if quick { self.race(&graphs, &[&text]) } else { Vec::new() };
            let worth = worth(&races);
            if found.as_ref().is_none_or(|(known, _)| worth > *known) {
                let pass = Pass {
                    text,
                    operations: 0,
                    outline: String::new(),
                    choice: Choice::default(),
                    last_resort: false,
                    explanation: explain::passthrough_pass(&stem, family, &nodes, &piece),
                    measured: None,
                };
                found = Some((worth, pass));
            }
            if !races.iter().any(|race| race.is_slow) {
                break;
            }
        }
        let found = found.map(|(_, pass)| pass);
        self.passthroughs.insert(number, found.clone());
        found
    }

    /// A passthrough that proved wrong does not come back: whoever drops passes until all is right must come to an end.
    pub(crate) fn forget_passthrough(&mut self, stem: &str) {
        for known in self.passthroughs.values_mut() {
            if known.as_ref().is_some_and(|pass| pass.stem() == stem) {
                *known = None;
            }
        }
    }

    /// The kernel with which the family's graphs lose least, out of those that were put aside and the smallest there are.
    fn add_last_resort(&mut self, number: usize, family: &GraphFamily) {
        if self.smallest_tried.insert(number) {
            let mut least = smallest(family, MOST_SMALLEST);
            if least.is_empty() {
                least.extend(copied_view(family));
            }
            for group in least {
                let is_new = self.portfolio.is_new(&outline(&group));
                if let Some(pass) = self.make(family, &group).filter(|_| is_new) {
                    self.portfolio.add_spare(pass, "slower than eager");
                }
            }
        }
        let graphs: Vec<&TypedGraph> = family.recorded().iter().take(MOST_GRAPHS).collect();
        self.portfolio.spares.sort_by(|a, b| a.loss().total_cmp(&b.loss()));
        let mut best: Option<(f64, usize)> = None;
        let mut raced = 0;
        for (spare, pass) in self.portfolio.spares.iter().enumerate() {
            let mut passes = self.portfolio.texts();
            passes.push(&pass.text);
            if raced == MOST_KERNELS || !self.serves(family, &passes) {
                continue;
            }
            let worth = if self.options.tune {
                let races = self.race(&graphs, &passes);
                // A wrong one is no resort at all.
                if races.iter().any(|race| race.speedup == 0.0) {
                    continue;
                }
                worth(&races)
            } else if self.is_right_with(family, &passes) {
                0.0
            } else {
                continue;
            };
            raced += 1;
            if best.is_none_or(|(known, _)| worth > known) {
                best = Some((worth, spare));
            }
        }
        if let Some((_, spare)) = best {
            self.portfolio.use_spare(spare);
        }
    }
}
