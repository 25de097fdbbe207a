//! One task: read, group, write, measure, keep what pays.

use crate::analysis::groups::groups;
use crate::emit::{MANIFEST, SHARED, solution_files};
use crate::explain::{self, Explanation, LeftNode, Rates};
use crate::graph_family::{GraphFamily, TypedGraph, families};
use crate::measuring::Measuring;
use crate::portfolio::{Pass, Portfolio, outline};
use crate::solver::{Solver, load};
use crate::whole_graph::{GAINS, WholeGraphs};
use passnet_bench::candidate::Candidate;
use passnet_bench::sample::Sample;
use passnet_engine::Engine;
use passnet_graph::ops::Class;
use passnet_graph::{Call, GraphFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use crate::options::SolveOptions;

/// What was done and why.
pub const EXPLANATION: &str = "explain.json";
/// A solution is found again only if it was made by the same rules.
const RULES: &str = "25";

/// Why a task could not be worked on.
#[derive(Debug)]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum SolveError {
    /// A file cannot be read or written.
    Io { path: PathBuf, error: std::io::Error },
    /// The task has no graph that can be read.
    NoGraph { task: String, reasons: Vec<String> },
    /// No piece of any graph has a kernel form.
    NothingToFuse { task: String, reasons: Vec<String> },
    /// The machine failed while something was measured, so that nothing is known; another try may succeed.
    Machine { task: String, reason: String },
}

impl fmt::Display for SolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SolveError::Io { path, error } => write!(f, "{}: {error}", path.display()),
            SolveError::NoGraph { task, reasons } => {
                write!(f, "{task}: no graph can be read: {}", reasons.join("; "))
            }
            SolveError::NothingToFuse { task, reasons } => {
                write!(f, "{task}: nothing to fuse: {}", reasons.join("; "))
            }
            SolveError::Machine { task, reason } => write!(f, "{task}: not tried: {reason}"),
        }
    }
}

impl std::error::Error for SolveError {}

/// Writes a pass folder for a task. A folder that already holds the solution of the same task, found by the same program
/// in the same place, is left as it is.
pub fn solve(
    engine: &dyn Engine,
    rates: &Rates,
    sample: &Sample,
    folder: &Path,
    options: &SolveOptions,
) -> Result<Explanation, SolveError> {
    let faults = engine.faults();
    let solved = attempt(engine, rates, sample, folder, options);
    match engine.faults().since(&faults) {
        None => solved,
        Some(reason) => {
            // What was chosen by measurements that failed is no solution, and must not be found again as one.
            let path = folder.join(EXPLANATION);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(SolveError::Io { path, error })
                }
                _ => Err(SolveError::Machine {
                    task: sample.name.clone(),
                    reason: reason.to_string(),
                }),
            }
        }
    }
}

fn attempt(
    engine: &dyn Engine,
    rates: &Rates,
    sample: &Sample,
    folder: &Path,
    options: &SolveOptions,
) -> Result<Explanation, SolveError> {
    let started = Instant::now();
    let mut unreadable = Vec::new();
    let (mut typed, mut resized) = (Vec::new(), Vec::new());
    let mut hasher = blake3::Hasher::new();
    let place = engine.identity().digest();
    // Where times are kept changes nothing.
    let choices = SolveOptions { measurements: None, ..options.clone() };
    hasher.update(format!("{RULES} {place} {choices:?}").as_bytes());
    for graph in &sample.graphs {
        let files = match sample.graph_files(graph) {
            Ok(files) => files,
            Err(error) => {
                unreadable.push(error.to_string());
                continue;
            }
        };
        digest(&mut hasher, &files);
        match TypedGraph::read(&files) {
            Ok(graph) => {
                resized.extend(TypedGraph::at_other_sizes(&files));
                typed.push(graph);
            }
            Err(errors) => unreadable.extend(errors.iter().map(ToString::to_string)),
        }
    }
    let key = hasher.finalize().to_hex().to_string();
    if let Some(known) = known(folder, &key) {
        return Ok(known);
    }
    if typed.is_empty() {
        return Err(SolveError::NoGraph { task: sample.name.clone(), reasons: unreadable });
    }
    let measuring = Measuring::new(engine, options);
    let place = (engine, rates, sample, options);
    let tidy = |graphs: &[TypedGraph]| graphs.iter().map(TypedGraph::without_unneeded).collect();
    let found = Found::best(place, &measuring, families(tidy(&typed), tidy(&resized)));
    let Found { portfolio: Portfolio { passes, dropped, .. }, left, whole_graphs } = found;
    let (wins, whole_graphs) =
        whole_graphs.map_or((None, Vec::new()), |found| (Some(found.wins), found.graphs));
    let explanation = Explanation {
        key,
        task: sample.name.clone(),
        passes: passes.iter().map(|pass| pass.explanation.clone()).collect(),
        dropped,
        left,
        unreadable,
        wins,
        outcome: outcome(wins, &passes).into(),
        whole_graphs,
        seconds: started.elapsed().as_secs_f64(),
    };
    write(folder, &passes, explanation)
}

/// What solving the families of a task came to.
struct Found {
    portfolio: Portfolio,
    left: Vec<LeftNode>,
    /// Where that was measured.
    whole_graphs: Option<WholeGraphs>,
}

/// Where a task is solved, and how.
type Place<'s> = (&'s dyn Engine, &'s Rates, &'s Sample, &'s SolveOptions);

/// Families that know where they run, and which products are tried there unmeasured.
fn ready(place: Place<'_>, mut families: Vec<GraphFamily>) -> Vec<GraphFamily> {
    let (engine, rates, _, options) = place;
    if options.for_gpu || !engine.computes_on_host() {
        let run = |family: &mut GraphFamily| family.run_on_gpu(rates.multiprocessors);
        families.iter_mut().for_each(run);
        if !options.tune {
            // While these are read, a library would have launched its product, and nothing else.
            let most = rates.bytes_per_second * rates.seconds_per_launch / 2.0;
            families.iter_mut().for_each(|family| family.try_products(most));
        }
    }
    families
}

impl Found {
    /// With kernels for narrow products where those are worth it.
    fn best(place: Place<'_>, measuring: &Measuring, families: Vec<GraphFamily>) -> Found {
        let (_, _, _, options) = place;
        let mut families = ready(place, families);
        let found = Found::of(place, measuring, &families);
        // A library's product is hard to beat, so that kernels with one must be measured.
        let can_measure = options.tune && !measuring.is_over();
        if can_measure && families.iter().any(GraphFamily::has_products_to_try) {
            families.iter_mut().for_each(|family| family.try_products(f64::INFINITY));
            let with_products = Found::of(place, measuring, &families);
            if with_products.worth() > found.worth() + GAINS.ln() {
                return with_products;
            }
        }
        found
    }

    fn of(place: Place<'_>, measuring: &Measuring, families: &[GraphFamily]) -> Found {
        let (_, _, _, options) = place;
        let mut solver = Solver::new(place, measuring);
        let mut left = Vec::new();
        for (number, family) in families.iter().enumerate() {
            let (groups, others) = groups(family, options.most_operations);
            left.extend(explain::left(family, &others));
            for group in &groups {
                solver.portfolio.count_place(&outline(group), number);
            }
            solver.select(number, family, &groups);
        }
        solver.check(families);
        let mut whole_graphs = None;
        if options.tune {
            whole_graphs = Some(solver.race_whole_graphs(families));
            solver.verify(families);
        } else {
            solver.serve_the_rest(families);
        }
        Found { portfolio: solver.portfolio, left, whole_graphs }
    }

    /// What the whole graphs gain.
    fn worth(&self) -> f64 {
        self.whole_graphs.as_ref().map_or(0.0, |found| found.worth)
    }
}

const WRONG_ELSEWHERE: &str = "its pattern also matches where it is wrong";

/// Whether a pass computes a product, which is made for the few rows that it was written for.
fn multiplies(candidate: &Candidate, stem: &str) -> bool {
    let mut passes = candidate.passes().iter().filter(|pass| pass.name == stem);
    let is_product = |call: &Call| call.op().is_some_and(|op| op.class() == Class::Contraction);
    passes.any(|pass| pass.pattern.graph.calls().any(|(_, call)| is_product(call)))
}

/// What the solution is worth, in words.
fn outcome(wins: Option<bool>, passes: &[Pass]) -> &'static str {
    match wins {
        None => "not measured",
        Some(true) => "the kernels win",
        Some(false) if passes.iter().all(|pass| pass.text.is_passthrough()) => {
            "nothing wins: the passes are neutral, they hand back the views that eager hands back"
        }
        Some(false) => {
            "nothing wins: these kernels lose least, and the graphs hold no view to hand back"
        }
    }
}

fn digest(hasher: &mut blake3::Hasher, files: &GraphFiles) {
    for (name, bytes) in &files.files {
        hasher.update(name.as_str().as_bytes());
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
}

fn known(folder: &Path, key: &str) -> Option<Explanation> {
    let text = std::fs::read(folder.join(EXPLANATION)).ok()?;
    let explanation: Explanation = serde_json::from_slice(&text).ok()?;
    (explanation.key == key).then_some(explanation)
}

/// Writes the solution; what else lies in the folder is not touched, but for passes of an earlier solution that were not
/// kept this time.
fn write(
    folder: &Path,
    passes: &[Pass],
    explanation: Explanation,
) -> Result<Explanation, SolveError> {
    let remove = |stem: &str| {
        let path = folder.join(format!("{stem}.py"));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SolveError::Io { path, error })
            }
            _ => Ok(()),
        }
    };
    for dropped in &explanation.dropped {
        if !passes.iter().any(|pass| pass.stem() == dropped.name) {
            remove(&dropped.name)?;
        }
    }
    if passes.len() <= 1 {
        remove(SHARED)?;
    }
    if passes.is_empty() {
        let left = explanation.left.iter().map(|l| format!("{}: {}", l.operation, l.reason));
        let dropped = explanation.dropped.iter().map(|d| format!("{}: {}", d.name, d.reason));
        let mut reasons: BTreeSet<String> = left.chain(dropped).collect();
        if reasons.is_empty() {
            reasons.insert("all it computes is left to the framework's libraries".into());
        }
        // An earlier solution leaves nothing behind; a folder with other things in it stays.
        let _ = std::fs::remove_file(folder.join(MANIFEST));
        let _ = std::fs::remove_dir(folder);
        let reasons = reasons.into_iter().collect();
        return Err(SolveError::NothingToFuse { task: explanation.task, reasons });
    }
    let texts: Vec<_> = passes.iter().map(|pass| &pass.text).collect();
    let mut files = solution_files(&texts);
    let text = serde_json::to_string_pretty(&explanation).unwrap_or_default();
    files.insert(EXPLANATION.to_string(), format!("{text}\n"));
    write_files(folder, files)?;
    Ok(explanation)
}

pub(crate) fn write_files(
    folder: &Path,
    files: BTreeMap<String, String>,
) -> Result<(), SolveError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |error| SolveError::Io { path, error }
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(io(&path))?;
    }
    Ok(())
}

impl<'s> Solver<'s> {
    fn new((engine, rates, sample, options): Place<'s>, measuring: &'s Measuring) -> Solver<'s> {
        Solver {
            engine,
            sample,
            rates,
            options,
            measuring,
            portfolio: Portfolio::default(),
            passthroughs: BTreeMap::new(),
            smallest_tried: BTreeSet::new(),
        }
    }

    /// Every pass must apply somewhere, and be right wherever it does.
    fn check(&mut self, families: &[GraphFamily]) {
        let simplest_first = self.options.most_operations.is_some();
        if !simplest_first {
            self.portfolio.order();
        }
        // Before the others are looked at: a small pattern also matches where a larger one that was left out would have been.
        if let Some(most) = self.options.most_chars {
            self.portfolio.keep_what_fits(most, simplest_first);
        }
        self.portfolio.order();
        while !self.portfolio.passes.is_empty() {
            let candidate = match load(&self.portfolio.texts()) {
                Ok(candidate) => candidate,
                Err(verdict) => {
                    // One that the rules refuse or the reader cannot read: tell which by leaving one out at a time.
                    let Some(pass) = self.portfolio.passes.pop() else { break };
                    self.portfolio.note_dropped(pass.stem(), &verdict.to_string());
                    continue;
                }
            };
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            let mut elsewhere: Option<(String, &str)> = None;
            let mut right: BTreeSet<usize> = BTreeSet::new();
            for (number, family) in families.iter().enumerate() {
                for member in family.recorded() {
                    let Ok(rewritten) = candidate.rewrite(&member.graph) else { continue };
                    for rewrites in rewritten.rewrites {
                        let expected = self.portfolio.places_of(&rewrites.pass, number);
                        if rewrites.count > expected {
                            let stem = &rewrites.pass;
                            if multiplies(&candidate, stem) {
                                let why = "its pattern also matches a product of more rows";
                                elsewhere = Some((stem.clone(), why));
                            } else if !right.contains(&number) {
                                match self.is_right(&candidate, family) {
                                    true => drop(right.insert(number)),
                                    false => elsewhere = Some((stem.clone(), WRONG_ELSEWHERE)),
                                }
                            }
                        }
                        *counts.entry(rewrites.pass).or_insert(0) += rewrites.count;
                    }
                }
            }
            if let Some((stem, why)) = elsewhere {
                self.portfolio.drop_pass(&stem, why);
                continue;
            }
            let is_idle = |pass: &&Pass| counts.get(pass.stem()).copied().unwrap_or(0) == 0;
            let Some(idle) = self.portfolio.passes.iter().find(is_idle) else { break };
            let stem = idle.stem().to_string();
            self.portfolio.drop_pass(&stem, "it applies nowhere once the others have");
        }
        self.portfolio.passes.truncate(self.options.most_passes);
    }
}
