//! What a task gets where nothing wins: a pass that costs nothing.
//!
//! Views and operations without effect are free in eager. A pass that hands back the same view leaves the graph as fast
//! as it was, or a little faster where it stands for several of them. Only a graph without any gets the kernel that loses
//! least.

use crate::analysis::groups::{copied_view, free_pieces, smallest};
use crate::emit::{Choice, PassText, passthrough};
use crate::explain::{self, PassExplanation};
use crate::graph_family::{GraphFamily, TypedGraph};
use crate::solve::{SolveError, Solver, Written, outline};
use crate::whole_graph::worth;
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

/// The passthrough of a family.
#[derive(Clone)]
pub(crate) struct Passthrough {
    text: PassText,
    explanation: PassExplanation,
}

impl Solver<'_> {
    /// Gives every family that no pass applies to a pass, for a graph without one scores nothing.
    pub(crate) fn serve_the_rest(&mut self, families: &[GraphFamily]) -> Result<(), SolveError> {
        for (number, family) in families.iter().enumerate() {
            if self.serves(family, &self.texts())? {
                continue;
            }
            if let Some(neutral) = self.passthrough(number, family)? {
                self.explanation.passes.push(neutral.explanation);
                self.passes.push(Written {
                    choice: Choice::default(),
                    stem: neutral.text.stem.clone(),
                    text: neutral.text,
                    operations: 0,
                    outline: String::new(),
                    last_resort: false,
                });
            } else {
                self.add_last_resort(number, family)?;
            }
        }
        self.passes.sort_by_key(|pass| std::cmp::Reverse(pass.operations));
        Ok(())
    }

    /// A pass that hands back what eager hands back, if the family has such an operation.
    pub(crate) fn passthrough(
        &mut self,
        number: usize,
        family: &GraphFamily,
    ) -> Result<Option<Passthrough>, SolveError> {
        if let Some(known) = self.passthroughs.get(&number) {
            return Ok(known.clone());
        }
        let graphs: Vec<&TypedGraph> = family.members.iter().take(MOST_GRAPHS).collect();
        let mut found: Option<(f64, Passthrough)> = None;
        for (nodes, piece) in free_pieces(family, MOST_VIEWS) {
            let operations = nodes.iter().filter_map(|node| family.graph().call(*node)?.op());
            let words: Vec<_> = operations.map(|op| op.name().trim_matches('_')).collect();
            let stem = self.stem(format!("neutral_{}", words[..words.len().min(2)].join("_")));
            let started = Instant::now();
            let Ok(text) = passthrough(&piece, stem.clone()) else {
                self.stems.remove(&stem);
                continue;
            };
            if !self.serves(family, &[&text])? || !self.is_right_with(family, &[&text])? {
                self.stems.remove(&stem);
                self.remove(&stem)?;
                continue;
            }
            let explanation = explain::passthrough_pass(&stem, family, &nodes, &piece);
            let neutral = Passthrough { text, explanation };
            // The engine may do a view together with its neighbours, as long as nobody stands between.
            let quick = self.options.tune && started.elapsed() < QUICK;
            let outcomes = if quick { self.race(&graphs, &[&neutral.text])? } else { Vec::new() };
            self.remove(&stem)?;
            let worth = worth(&outcomes);
            if found.as_ref().is_none_or(|(known, _)| worth > *known) {
                found = Some((worth, neutral));
            }
            if !outcomes.iter().any(|outcome| outcome.slow) {
                break;
            }
        }
        let found = found.map(|(_, neutral)| neutral);
        self.passthroughs.insert(number, found.clone());
        Ok(found)
    }

    /// A passthrough that proved wrong does not come back: whoever drops passes until all is right must come to an end.
    pub(crate) fn forget_passthrough(&mut self, stem: &str) {
        for known in self.passthroughs.values_mut() {
            if known.as_ref().is_some_and(|neutral| neutral.text.stem == stem) {
                *known = None;
            }
        }
    }

    /// The kernel with which the family's graphs lose least, out of those that were put aside and the smallest there are.
    fn add_last_resort(&mut self, number: usize, family: &GraphFamily) -> Result<(), SolveError> {
        if self.smallest_tried.insert(number) {
            let mut least = smallest(family, MOST_SMALLEST);
            if least.is_empty() {
                least.extend(copied_view(family));
            }
            for group in least {
                let is_new = self.outlines.insert(outline(&group));
                if let Some(made) = self.make(family, &group)?.filter(|_| is_new) {
                    self.drop_pass(&made.written.stem, "slower than eager");
                    self.spares.push(made);
                }
            }
        }
        let graphs: Vec<&TypedGraph> = family.members.iter().take(MOST_GRAPHS).collect();
        self.spares.sort_by(|a, b| a.loss().total_cmp(&b.loss()));
        let mut best: Option<(f64, usize)> = None;
        let mut raced = 0;
        for (spare, made) in self.spares.iter().enumerate() {
            let mut passes = self.texts();
            passes.push(&made.written.text);
            if raced == MOST_KERNELS || !self.serves(family, &passes)? {
                continue;
            }
            let worth = if self.options.tune {
                let outcomes = self.race(&graphs, &passes)?;
                // A wrong one is no resort at all.
                if outcomes.iter().any(|outcome| outcome.speedup == 0.0) {
                    continue;
                }
                worth(&outcomes)
            } else if self.is_right_with(family, &passes)? {
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
            let mut made = self.spares.remove(spare);
            made.written.last_resort = true;
            self.explanation.dropped.retain(|dropped| dropped.name != made.written.stem);
            self.add(made);
        }
        Ok(())
    }

    /// Whether some pass applies to every graph of a family.
    fn serves(&self, family: &GraphFamily, passes: &[&PassText]) -> Result<bool, SolveError> {
        let Some(candidate) = self.candidate(passes)? else { return Ok(false) };
        let served = |member: &TypedGraph| {
            candidate
                .rewrite(&member.graph)
                .is_ok_and(|rewritten| rewritten.rewrites.iter().any(|r| r.count > 0))
        };
        Ok(family.members.iter().all(served))
    }

    fn is_right_with(
        &self,
        family: &GraphFamily,
        passes: &[&PassText],
    ) -> Result<bool, SolveError> {
        let candidate = self.candidate(passes)?;
        Ok(candidate.is_some_and(|candidate| self.is_right(&candidate, family)))
    }
}
