//! `passnet bench --against`: results beside those of compilers, which are measured once in each place and kept.

use super::BenchArgs;
use crate::cache::cache_folder;
use crate::error::CommandError;
use passnet_bench::bench::{Bench, Judged};
use passnet_bench::run::{GraphEvent, GraphId, RunStore};
use passnet_bench::sample::Sample;
use passnet_bench::score::{Parameters, Score, ScoredGraph, Scoring, geometric_mean};
use passnet_bench::subject::Subject;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::GraphCompiler;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Digits of an identity's digest that name its folder.
const SHOWN: usize = 16;

/// A compiler on the graphs that were judged, and how what is under test does beside it.
#[derive(Debug, Serialize)]
pub(super) struct Against {
    pub(super) compiler: &'static str,
    /// Where its results are kept, for `passnet report`.
    pub(super) run: PathBuf,
    pub(super) graphs: usize,
    /// Of these, measured by an earlier command.
    pub(super) kept: usize,
    pub(super) correct: usize,
    #[serde(rename = "as")]
    pub(super) aggregated: Option<f64>,
    /// Over eager, of its right graphs.
    pub(super) speedup: Option<f64>,
    /// Speed-up of what is under test over its own, of graphs where both are right.
    pub(super) ratio: Option<f64>,
    pub(super) faster: usize,
    pub(super) both: usize,
}

/// Measures what is missing of every baseline, and compares.
pub(super) fn measure(
    args: &BenchArgs,
    benches: &[Bench<'_>],
    work: &[(&Sample, &Path)],
    judged: &Judged,
) -> Result<Vec<Against>, CommandError> {
    let root = args.baselines.clone().unwrap_or_else(|| cache_folder().join("baselines"));
    let identity = benches[0].engine.identity();
    let place = root.join(&identity.digest()[..SHOWN]);
    let mut all = Vec::new();
    for compiler in args.baselines() {
        let run = place.join(compiler.name());
        let baseline: Vec<Bench<'_>> = benches.iter().map(|bench| of(bench, compiler)).collect();
        let store = RunStore::open(&run)?;
        let known = kept(&run)?;
        let found = super::judge(&baseline, work, Some(store))?;
        all.push(compare(compiler, run, &known, &found, judged));
    }
    Ok(all)
}

/// The same evaluation of another compiler.
fn of<'a>(bench: &Bench<'a>, compiler: GraphCompiler) -> Bench<'a> {
    Bench::new(bench.engine, Subject::Compiled(compiler), bench.options.clone(), bench.rules)
}

/// The keys of results that are there already.
fn kept(run: &Path) -> Result<BTreeSet<String>, CommandError> {
    let events = passnet_bench::run::read(run)?;
    let key = |event| match event {
        passnet_bench::run::Event::Graph(graph) => Some(graph.key),
        _ => None,
    };
    Ok(events.into_iter().filter_map(key).collect())
}

fn compare(
    compiler: GraphCompiler,
    run: PathBuf,
    known: &BTreeSet<String>,
    found: &Judged,
    judged: &Judged,
) -> Against {
    let ours: BTreeMap<GraphId, f64> =
        judged.events.iter().filter_map(|event| Some((event.id(), right(event)?))).collect();
    let theirs: Vec<(GraphId, f64)> =
        found.events.iter().filter_map(|event| Some((event.id(), right(event)?))).collect();
    let ratios: Vec<f64> =
        theirs.iter().filter_map(|(place, speedup)| Some(ours.get(place)? / speedup)).collect();
    let scored: Vec<ScoredGraph> =
        found.events.iter().map(|e| e.evaluation.judged.scored(Scoring::Strict)).collect();
    Against {
        compiler: compiler.name(),
        run,
        graphs: found.events.len(),
        kept: found.events.iter().filter(|event| known.contains(&event.key)).count(),
        correct: theirs.len(),
        aggregated: Score::of(&scored, Parameters::default()).map(|score| score.aggregated),
        speedup: geometric_mean(theirs.iter().map(|(_, speedup)| *speedup)),
        ratio: geometric_mean(ratios.iter().copied()),
        faster: ratios.iter().filter(|ratio| **ratio > 1.0).count(),
        both: ratios.len(),
    }
}

/// The speed-up of a graph that is right.
fn right(event: &GraphEvent) -> Option<f64> {
    let judged = &event.evaluation.judged;
    judged.speedup.filter(|_| judged.verdict.kind == VerdictKind::Correct)
}
