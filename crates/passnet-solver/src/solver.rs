//! A task at work: what it is measured with, and its passes so far.

use crate::emit::{PassText, solution_files};
use crate::explain::Rates;
use crate::graph_family::{GraphFamily, TypedGraph};
use crate::measuring::Measuring;
use crate::options::SolveOptions;
use crate::portfolio::{Pass, Portfolio};
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, check};
use passnet_bench::sample::Sample;
use passnet_bench::verdict::{Verdict, VerdictKind};
use passnet_engine::Engine;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Solver<'s> {
    pub(crate) engine: &'s dyn Engine,
    pub(crate) sample: &'s Sample,
    pub(crate) rates: &'s Rates,
    pub(crate) options: &'s SolveOptions,
    pub(crate) measuring: &'s Measuring,
    pub(crate) portfolio: Portfolio,
    /// The passthrough of each graph family, where it was looked for.
    pub(crate) passthroughs: BTreeMap<usize, Option<Pass>>,
    /// Graph families whose smallest pieces were tried.
    pub(crate) smallest_tried: BTreeSet<usize>,
}

impl Solver<'_> {
    /// How many multiprocessors the GPU has that the passes are for; nothing where they are for the host.
    pub(crate) fn multiprocessors(&self) -> Option<usize> {
        let is_for_host = self.engine.computes_on_host() && !self.options.for_gpu;
        (!is_for_host).then_some(self.rates.multiprocessors)
    }

    /// Whether some pass applies to every graph of a family.
    pub(crate) fn serves(&self, family: &GraphFamily, passes: &[&PassText]) -> bool {
        let Ok(candidate) = load(passes) else { return false };
        let served = |member: &TypedGraph| {
            candidate
                .rewrite(&member.graph)
                .is_ok_and(|rewritten| rewritten.rewrites.iter().any(|r| r.count > 0))
        };
        family.recorded().iter().all(served)
    }

    /// Whether the graphs of a family are right with these passes.
    pub(crate) fn is_right_with(&self, family: &GraphFamily, passes: &[&PassText]) -> bool {
        load(passes).is_ok_and(|candidate| self.is_right(&candidate, family))
    }

    /// Runs the graphs of a family: a pass that matches where it was not made for must be right there too.
    pub(crate) fn is_right(&self, candidate: &Candidate, family: &GraphFamily) -> bool {
        let options = EvaluateOptions { draws: 0, thorough: false, ..EvaluateOptions::default() };
        family.recorded().iter().all(|member| {
            let Ok(files) = self.sample.graph_files(&member.path) else { return false };
            let evaluation = check(self.engine, &files, candidate, &options);
            // What eager itself does not run cannot be judged.
            use VerdictKind::{Correct, ReferenceFail};
            matches!(evaluation.judged.verdict.kind, Correct | ReferenceFail)
        })
    }
}

/// Passes as they are judged; the verdict says why they cannot be.
pub(crate) fn load(passes: &[&PassText]) -> Result<Candidate, Box<Verdict>> {
    Candidate::from_files(solution_files(passes), None, true)
}
