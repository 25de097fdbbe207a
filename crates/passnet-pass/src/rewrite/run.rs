//! Applying a list of passes to a graph.

use super::{Patch, RewriteError, apply};
use crate::load::Program;
use crate::matcher::{Match, MatchOptions, Pattern, TargetGraph, find, find_first, matches};
use crate::trace::Pass;
use passnet_graph::{Call, Graph};
use rustc_hash::FxHashSet;

/// How passes are applied.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How their matches are looked for.
    pub matching: MatchOptions,
    /// Most patches that one pass may make.
    pub patches: usize,
    /// Most nodes that the graph may grow to, as a multiple of its size.
    pub growth: usize,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions { matching: MatchOptions::default(), patches: 10_000, growth: 4 }
    }
}

/// Why a pass was done with a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// Nothing more to match.
    Saturated,
    /// All that is left to match is what the pass produced itself: it would go on for ever.
    MatchesItself,
    /// As many patches as one pass may make.
    PatchLimit,
    /// The graph would become larger than a rewritten graph may be.
    GrowthLimit,
}

/// What one pass did.
#[derive(Debug, Clone)]
pub struct Applied {
    /// The name of the pass.
    pub pass: String,
    /// What it replaced, in order.
    pub patches: Vec<Patch>,
    /// How many of its calls the rewritten graph needs. The others were left out again: they have done nothing.
    pub needed: usize,
    /// Why it was not applied again.
    pub stop: Stop,
    /// For a pass that never matched: why.
    pub miss: Option<crate::matcher::Miss>,
}

/// A graph after all passes.
#[derive(Debug, Clone)]
pub struct Report {
    /// The rewritten graph.
    pub graph: Graph,
    /// Each pass in turn, and what it did.
    pub applied: Vec<Applied>,
    /// Calls that nothing needs, by name: a rewritten graph does without them, as that of every compiler does.
    pub left_out: Vec<Box<str>>,
}

/// Applies every pass in order, each until it matches nowhere any more. One that was changed does without what nothing needs. Where
/// that stands in a pattern's way (it reads what only the pattern should read), it is taken out beforehand. A graph that no pass
/// changed stays as it was, and so does one whose passes replaced only what nothing needs: no output would tell whether they are
/// right, and eager's unneeded work would be won by nobody's kernel.
pub fn run(
    program: &Program,
    passes: &[Pass],
    graph: &Graph,
    options: &RunOptions,
) -> Result<Report, RewriteError> {
    let (needed, unneeded) = graph.without_unneeded();
    let report = apply_all(program, passes, graph, options)?.tidied(graph, Vec::new());
    if unneeded.is_empty() {
        return Ok(report);
    }
    let alone = apply_all(program, passes, &needed, options)?.tidied(graph, unneeded);
    let is_better = alone.calls() > 0 && alone.calls() >= report.calls();
    Ok(if is_better { alone } else { report })
}

impl Report {
    /// Calls of passes that the graph needs.
    fn calls(&self) -> usize {
        self.applied.iter().map(|applied| applied.needed).sum()
    }

    /// Without what nothing needs, `before` of it left out beforehand; the original where no call of a pass is left then.
    fn tidied(mut self, original: &Graph, before: Vec<Box<str>>) -> Report {
        let (graph, left_out) = self.graph.without_unneeded();
        for applied in &mut self.applied {
            let stands =
                |call: &Call| call.target.replacement().is_some_and(|it| *it.pass == *applied.pass);
            applied.needed = graph.calls().filter(|(_, call)| stands(call)).count();
        }
        if self.calls() == 0 {
            self.graph = original.clone();
        } else {
            self.graph = graph;
            self.left_out = [before, left_out].concat();
        }
        self
    }
}

fn apply_all(
    program: &Program,
    passes: &[Pass],
    graph: &Graph,
    options: &RunOptions,
) -> Result<Report, RewriteError> {
    let mut graph = graph.clone();
    let mut applied = Vec::with_capacity(passes.len());
    for pass in passes {
        let result;
        (graph, result) = run_pass(program, pass, graph, options)?;
        applied.push(result);
    }
    Ok(Report { graph, applied, left_out: Vec::new() })
}

fn run_pass(
    program: &Program,
    pass: &Pass,
    mut graph: Graph,
    options: &RunOptions,
) -> Result<(Graph, Applied), RewriteError> {
    let pattern = Pattern::new(&pass.pattern.graph);
    let largest = (graph.nodes().len() + 16) * options.growth;
    let mut patches = Vec::new();
    // What the pass put into the graph, by name: names are unique and patches keep them.
    let mut own: FxHashSet<Box<str>> = FxHashSet::default();
    let (stop, miss) = loop {
        let Some(found) = find_first(&pattern, &TargetGraph::new(&graph), &options.matching) else {
            let never = patches.is_empty();
            let miss = never.then(|| find(&pattern, &TargetGraph::new(&graph), &options.matching));
            break (Stop::Saturated, miss.and_then(|outcome| outcome.miss));
        };
        let is_own =
            |found: &Match| found.nodes.iter().any(|id| own.contains(&graph.node(*id).name));
        let found = if is_own(&found) {
            let all = matches(&pattern, &TargetGraph::new(&graph), &options.matching);
            match all.into_iter().find(|found| !is_own(found)) {
                Some(other) => other,
                None => break (Stop::MatchesItself, None),
            }
        } else {
            found
        };
        if patches.len() >= options.patches {
            break (Stop::PatchLimit, None);
        }
        let patch = Patch::new(program, pass, &graph, &found)?;
        let names_before: FxHashSet<&str> = graph.nodes().iter().map(|n| &*n.name).collect();
        let new = apply(&graph, &patch)?;
        let added = new.nodes().iter().map(|node| &node.name);
        own.extend(added.filter(|name| !names_before.contains(&***name)).cloned());
        own.extend(patch.replaces.iter().map(|id| graph.node(*id).name.clone()));
        patches.push(patch);
        graph = new;
        if graph.nodes().len() > largest {
            break (Stop::GrowthLimit, None);
        }
    };
    Ok((graph, Applied { pass: pass.name.clone(), patches, needed: 0, stop, miss }))
}
