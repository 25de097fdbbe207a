//! Does a bundle hold? Whatever can be found again is found again: digests, the signature, the chain of events, scores
//! from raw samples, passes from their texts.

use super::envelope::{Bundle, Limits};
use super::make::{EVENTS, claims};
use super::passes::{PassFiles, pass_files};
use crate::Error;
use passnet_bench::candidate::Candidate;
use passnet_bench::report::{GraphRecord, RunRecord, printable};
use passnet_bench::run::{self, Event};
use passnet_bench::subject::Subject;
use passnet_bench::verdict::Verdict;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_graph::{FileName, Graph};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Of each kind, so many things that do not hold are named.
const NAMED: usize = 5;
/// Scores are sums in an order that is fixed; only the last digit may differ between processors.
const ROUNDING: f64 = 1e-9;
/// More timed calls of one graph than any run makes.
const MAX_CALLS: usize = 100_000;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// What was found.
    pub text: String,
}

/// What is known of a bundle.
#[derive(Debug)]
pub struct Verified {
    /// Without a folder: its texts are blobs of the bundle.
    pub run: RunRecord,
    /// All that was looked at.
    pub checks: Vec<Check>,
}

impl Verified {
    /// Whether everything holds.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }

    /// What does not hold.
    pub fn reasons(&self) -> Vec<String> {
        let failed = self.checks.iter().filter(|check| !check.passed);
        failed.map(|check| format!("{}: {}", check.name, check.text)).collect()
    }
}

/// Writes a bundle's run as the folder that it was made from.
pub fn unpack(bundle: &Bundle, folder: &Path) -> Result<(), Error> {
    let events = folder.join(EVENTS);
    std::fs::write(&events, bundle.blob(&bundle.manifest.events)?).map_err(Error::at(&events))?;
    for blob in &bundle.manifest.blobs {
        let below = folder.join("objects").join(&blob.digest[..2]);
        std::fs::create_dir_all(&below).map_err(Error::at(&below))?;
        let path = below.join(&blob.digest[2..]);
        std::fs::write(&path, bundle.blob(&blob.digest)?).map_err(Error::at(&path))?;
    }
    Ok(())
}

/// Looks at everything that can be found again without running a pass. An error is a bundle that cannot even be read.
pub fn verify(bundle: &Bundle) -> Result<Verified, Error> {
    let folder = tempfile::tempdir().map_err(|error| Error::lacking(error.to_string()))?;
    unpack(bundle, folder.path())?;
    let run = RunRecord::read(folder.path())?;
    let run = RunRecord { name: bundle.manifest.name.clone(), ..run };
    let checks = vec![
        signature(bundle),
        chain(&run, folder.path()),
        stowaways(bundle, &run),
        samples(&run),
        scores(bundle, &run),
        passes(&run, folder.path()),
    ];
    Ok(Verified { run: RunRecord { folder: None, ..run }, checks })
}

fn check(name: &'static str, problems: Vec<String>, well: impl FnOnce() -> String) -> Check {
    if problems.is_empty() {
        return Check { name, passed: true, text: well() };
    }
    let more = problems.len().saturating_sub(NAMED);
    let mut text = problems[..problems.len().min(NAMED)].join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    Check { name, passed: false, text }
}

fn signature(bundle: &Bundle) -> Check {
    match bundle.check_signature() {
        Ok(found) => check("signature", Vec::new(), || format!("signed by {}", found.public_key())),
        Err(error) => check("signature", vec![error.message], String::new),
    }
}

fn chain(run: &RunRecord, folder: &Path) -> Check {
    let mut problems = Vec::new();
    let seal = &run.seal;
    if seal.unsealed > 0 {
        problems.push(format!("{} lines are not sealed", seal.unsealed));
    }
    if !seal.broken.is_empty() {
        problems.push(format!("the seals of lines {:?} do not fit", seal.broken));
    }
    match run::read(folder) {
        Ok(events) => problems.extend(order(&events)),
        Err(error) => problems.push(error.to_string()),
    }
    if !run.is_complete {
        problems.push("the run was stopped before its end".into());
    }
    check("chain of events", problems, || format!("{} lines, each sealed", seal.sealed))
}

/// A run begins, judges graphs, and ends; what follows an end begins again.
fn order(events: &[Event]) -> Option<String> {
    let mut is_open = false;
    for event in events {
        match event {
            Event::Start(_) => is_open = true,
            Event::Graph(_) | Event::End { .. } if !is_open => {
                return Some("a result stands before the beginning of its run".into());
            }
            Event::Graph(_) => {}
            Event::End { .. } => is_open = false,
        }
    }
    None
}

/// Every blob has its use, and every text that a result names is there.
fn stowaways(bundle: &Bundle, run: &RunRecord) -> Check {
    let manifest = &bundle.manifest;
    let mut named: BTreeSet<&str> = BTreeSet::from([manifest.events.as_str()]);
    named.extend(manifest.attempts.iter().map(|attempt| attempt.trajectory.as_str()));
    let artefacts = run.graphs.iter().flat_map(|graph| &graph.event.artefacts);
    named.extend(artefacts.map(|(_, digest)| digest.as_str()));
    let there: BTreeSet<&str> = manifest.blobs.iter().map(|blob| blob.digest.as_str()).collect();
    let missing = named.difference(&there).map(|it| format!("{} is missing", printable(it)));
    let unused = there.difference(&named).map(|it| format!("nothing names the blob {it}"));
    let problems = missing.chain(unused).collect();
    check("content", problems, || format!("{} blobs, each what its digest says", there.len()))
}

/// Raw samples are numbers that a clock could have given.
fn samples(run: &RunRecord) -> Check {
    let mut problems = Vec::new();
    let mut calls = 0;
    for graph in &run.graphs {
        let evaluation = &graph.event.evaluation;
        let (eager, candidate) = (&evaluation.eager_ms, &evaluation.candidate_ms);
        calls += eager.len() + candidate.len();
        let all = || eager.iter().chain(candidate);
        let name = || printable(&graph.name().to_string());
        if eager.len() != candidate.len() || eager.len() > MAX_CALLS {
            let (one, two) = (eager.len(), candidate.len());
            problems.push(format!("{}: {one} calls of eager, {two} of the candidate", name()));
        } else if !all().all(|time| time.is_finite() && *time > 0.0) {
            problems.push(format!("{}: a call took no time that a clock could show", name()));
        }
        if graph.is_right() && eager.len() < least_calls(run) {
            problems.push(format!("{}: only {} timed calls", name(), eager.len()));
        }
    }
    check("samples", problems, || format!("{calls} timed calls"))
}

fn least_calls(run: &RunRecord) -> usize {
    run.start.as_ref().map_or(1, |start| start.options.timing.least)
}

/// Speed-ups follow from the samples, and the claimed score from the speed-ups.
fn scores(bundle: &Bundle, run: &RunRecord) -> Check {
    let is_seal = |doubt: &&passnet_bench::report::Doubt| run.seal.broken.contains(&doubt.line);
    let doubts = run.doubts.iter().filter(|doubt| !is_seal(doubt));
    let mut problems: Vec<String> = doubts.map(|doubt| printable(&doubt.to_string())).collect();
    let claimed = &bundle.manifest.claims;
    let Some(found) = claims(run) else {
        return check("scores", vec!["the run has no results".into()], String::new);
    };
    let is_same = (claimed.tasks, claimed.graphs, claimed.correct)
        == (found.tasks, found.graphs, found.correct)
        && (claimed.aggregated - found.aggregated).abs() <= ROUNDING * found.aggregated.abs();
    if !is_same {
        problems.push(format!(
            "claimed are AS {} and {} of {} graphs of {} tasks, the samples give AS {} and {} of {} of {}",
            claimed.aggregated,
            claimed.correct,
            claimed.graphs,
            claimed.tasks,
            found.aggregated,
            found.correct,
            found.graphs,
            found.tasks
        ));
    }
    check("scores", problems, || {
        format!("AS {:.4}, {} of {} graphs right", found.aggregated, found.correct, found.graphs)
    })
}

/// Every pass is read again: the rules let it through, and it rewrites each graph as the run says.
fn passes(run: &RunRecord, folder: &Path) -> Check {
    let start = run.start.as_ref();
    let compiler = start.map_or("", |start| start.compiler.as_str());
    if Subject::is_baseline(compiler) {
        let rewritten =
            run.graphs.iter().filter(|graph| !graph.event.evaluation.rewrites.is_empty());
        let problems = rewritten.map(|graph| format!("{}: {compiler} has no passes", graph.name()));
        return check("passes", problems.collect(), || format!("none: {compiler} against eager"));
    }
    let rules = start.is_none_or(|start| start.rules != Some(false));
    let mut problems = Vec::new();
    if !rules {
        problems.push("the run was made without the integrity rules".to_string());
    }
    let text = |digest: &str| run::read_object(folder, digest, Limits::default().blob_bytes);
    let mut sets: BTreeMap<PassFiles, Vec<&GraphRecord>> = BTreeMap::new();
    for graph in &run.graphs {
        if graph.event.evaluation.judged.verdict.kind.is_comparable() {
            sets.entry(pass_files(graph)).or_default().push(graph);
        }
    }
    let count = sets.len();
    for (files, graphs) in sets {
        let name = printable(&graphs[0].name().to_string());
        if files.is_empty() {
            problems.push(format!("{name}: called right, but the bundle has no pass for it"));
            continue;
        }
        match files.load(rules, text) {
            Err(error) => problems.push(format!("{name}: {error}")),
            Ok(Err(verdict)) => problems.push(format!("{name}: {}", shown(&verdict))),
            Ok(Ok(candidate)) => {
                problems.extend(graphs.iter().filter_map(|graph| rewrite(&candidate, graph, text)));
            }
        }
    }
    check("passes", problems, || format!("{count} sets of passes read and applied again"))
}

fn shown(verdict: &Verdict) -> String {
    printable(&verdict.to_string())
}

/// What is wrong with a claimed rewrite.
fn rewrite(
    candidate: &Candidate,
    graph: &GraphRecord,
    text: impl Fn(&str) -> Option<Vec<u8>>,
) -> Option<String> {
    let name = printable(&graph.name().to_string());
    let model = graph.artefact(FileName::Model.as_str()).and_then(text);
    let Some(model) = model.and_then(|bytes| parse_model(bytes).ok()) else {
        return Some(format!("{name}: its model is missing or cannot be read"));
    };
    let claimed = &graph.event.evaluation.rewrites;
    match candidate.rewrite(&model) {
        Err(verdict) => Some(format!("{name}: {}", shown(&verdict))),
        Ok(done) if done.rewrites != *claimed => {
            Some(format!("{name}: the passes rewrite other places than the run says"))
        }
        Ok(_) => None,
    }
}

/// A model's text as a graph.
pub(crate) fn parse_model(bytes: Vec<u8>) -> Result<Graph, Error> {
    let source = Source::from_bytes(FileName::Model.as_str(), bytes)
        .map_err(|error| Error::input(error.to_string()))?;
    read_model(&source).map_err(|error| Error::input(error.to_string()))
}
