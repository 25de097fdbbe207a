//! One task: read, group, write, measure, keep what pays.

use crate::analysis::Piece;
use crate::analysis::groups::{Group, groups};
use crate::emit::{Choice, Draft, PassText, SHARED, pass_files};
use crate::explain::{self, Dropped, Explanation, Rates};
use crate::graph_family::{GraphFamily, TypedGraph, families};
use crate::passthrough::Passthrough;
use crate::select::Made;
use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, check};
use passnet_bench::sample::Sample;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::Engine;
use passnet_graph::GraphFiles;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The order in which passes apply.
const MANIFEST: &str = "sorted_output_pass_rule_names.json";
/// What was done and why.
pub const EXPLANATION: &str = "explain.json";
/// A solution is found again only if it was made by the same rules.
const RULES: &str = "14";

#[derive(Debug, Clone, PartialEq)]
pub struct SolveOptions {
    /// Whether to measure; without, every group becomes a pass with the usual choice.
    pub tune: bool,
    /// Seconds of timing for one choice.
    pub seconds: f64,
    /// Passes of one task.
    pub most_passes: usize,
    /// Whether the passes are for a GPU, wherever they are written: what a graph makes in the host's memory is out of reach.
    pub for_gpu: bool,
}

impl Default for SolveOptions {
    fn default() -> Self {
        SolveOptions { tune: true, seconds: 0.04, most_passes: 100, for_gpu: false }
    }
}

/// Why a task could not be worked on.
#[derive(Debug)]
pub enum SolveError {
    Io {
        path: PathBuf,
        error: std::io::Error,
    },
    /// The task has no graph that can be read.
    NoGraph {
        task: String,
        reasons: Vec<String>,
    },
    /// No piece of any graph has a kernel form.
    NothingToFuse {
        task: String,
        reasons: Vec<String>,
    },
    /// The machine failed while something was measured, so that nothing is known; another try may succeed.
    Machine {
        task: String,
        reason: String,
    },
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
    let mut typed = Vec::new();
    let mut hasher = blake3::Hasher::new();
    let place = engine.identity().digest();
    hasher.update(format!("{RULES} {place} {options:?}").as_bytes());
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
            Ok(graph) => typed.push(graph),
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
    let mut solver = Solver {
        engine,
        sample,
        rates,
        folder,
        options,
        passes: Vec::new(),
        spares: Vec::new(),
        joined: BTreeMap::new(),
        parts: BTreeMap::new(),
        smallest_tried: BTreeSet::new(),
        stems: BTreeSet::new(),
        outlines: BTreeSet::new(),
        places: BTreeMap::new(),
        passthroughs: BTreeMap::new(),
        explanation: Explanation {
            key,
            task: sample.name.clone(),
            passes: Vec::new(),
            dropped: Vec::new(),
            left: Vec::new(),
            unreadable,
            wins: None,
            outcome: String::new(),
            whole_graphs: Vec::new(),
            seconds: 0.0,
        },
    };
    let mut all = families(typed);
    if options.for_gpu || !engine.computes_on_host() {
        all.iter_mut().for_each(GraphFamily::run_on_gpu);
    }
    let grouped: Vec<_> = all.iter().map(groups).collect();
    for (number, (family, (groups, left))) in all.iter().zip(&grouped).enumerate() {
        solver.explanation.left.extend(explain::left(family, left));
        for group in groups {
            *solver.places.entry((outline(group), number)).or_insert(0) += 1;
        }
        solver.select(number, family, groups)?;
    }
    solver.check(&all)?;
    if options.tune {
        solver.look_at_whole_graphs(&all)?;
        solver.verify(&all)?;
    } else {
        solver.serve_the_rest(&all)?;
    }
    solver.finish(started)
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

/// Writes passes and their order; what else lies in the folder is not touched.
pub(crate) fn write_folder(folder: &Path, passes: &[&PassText]) -> Result<(), SolveError> {
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |error| SolveError::Io { path, error }
    };
    std::fs::create_dir_all(folder).map_err(io(folder))?;
    for (stem, text) in pass_files(passes) {
        let path = folder.join(format!("{stem}.py"));
        std::fs::write(&path, text).map_err(io(&path))?;
    }
    let stems: Vec<&str> = passes.iter().map(|pass| pass.stem.as_str()).collect();
    let path = folder.join(MANIFEST);
    let list = serde_json::to_string(&stems).unwrap_or_default();
    std::fs::write(&path, format!("{list}\n")).map_err(io(&path))
}

pub(crate) struct Written {
    pub(crate) stem: String,
    pub(crate) text: PassText,
    pub(crate) operations: usize,
    pub(crate) outline: String,
    pub(crate) choice: Choice,
    /// Whether it is slower than eager, and there because the graph would be left without a pass.
    pub(crate) last_resort: bool,
}

pub(crate) struct Solver<'s> {
    pub(crate) engine: &'s dyn Engine,
    pub(crate) sample: &'s Sample,
    pub(crate) rates: &'s Rates,
    pub(crate) folder: &'s Path,
    pub(crate) options: &'s SolveOptions,
    pub(crate) passes: Vec<Written>,
    /// Passes that do not pay.
    pub(crate) spares: Vec<Made>,
    /// Passes whose kernels share a launch in another pass, by outline; and the outlines of each such pass, by its name.
    pub(crate) joined: BTreeMap<String, Made>,
    pub(crate) parts: BTreeMap<String, Vec<String>>,
    /// Forms whose smallest pieces were tried.
    pub(crate) smallest_tried: BTreeSet<usize>,
    pub(crate) stems: BTreeSet<String>,
    /// Patterns that are written already.
    pub(crate) outlines: BTreeSet<String>,
    /// In how many places of each family a pattern was found to fit, by pattern and family.
    pub(crate) places: BTreeMap<(String, usize), usize>,
    /// The passthrough of each family, where it was looked for.
    pub(crate) passthroughs: BTreeMap<usize, Option<Passthrough>>,
    pub(crate) explanation: Explanation,
}

impl Solver<'_> {
    pub(crate) fn drop_pass(&mut self, name: &str, reason: &str) {
        let dropped = Dropped { name: name.to_string(), reason: reason.to_string() };
        self.explanation.dropped.push(dropped);
    }

    pub(crate) fn remove(&self, stem: &str) -> Result<(), SolveError> {
        let path = self.folder.join(format!("{stem}.py"));
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(SolveError::Io { path, error }),
        }
    }

    /// Larger patterns first, so that no smaller one takes a part of them.
    pub(crate) fn order(&mut self) {
        self.passes.sort_by_key(|pass| std::cmp::Reverse(pass.operations));
    }

    /// Every pass must apply somewhere, and be right wherever it does.
    pub(crate) fn check(&mut self, families: &[GraphFamily]) -> Result<(), SolveError> {
        self.order();
        while !self.passes.is_empty() {
            self.write()?;
            let candidate = match Candidate::load(self.folder, None, true) {
                Ok(candidate) => candidate,
                Err(verdict) => {
                    // One that the rules refuse or the reader cannot read: tell which by leaving one out at a time.
                    let Some(pass) = self.passes.pop() else { break };
                    self.drop_written(&pass.stem, &verdict.to_string())?;
                    continue;
                }
            };
            let mut counts: BTreeMap<String, usize> = BTreeMap::new();
            let mut elsewhere: Option<String> = None;
            let mut right: BTreeSet<usize> = BTreeSet::new();
            for (number, family) in families.iter().enumerate() {
                for member in &family.members {
                    let Ok(rewritten) = candidate.rewrite(&member.graph) else { continue };
                    for rewrites in rewritten.rewrites {
                        if rewrites.count > self.expected(&rewrites.pass, number)
                            && !right.contains(&number)
                        {
                            match self.is_right(&candidate, family) {
                                true => {
                                    right.insert(number);
                                }
                                false => elsewhere = Some(rewrites.pass.clone()),
                            }
                        }
                        *counts.entry(rewrites.pass).or_insert(0) += rewrites.count;
                    }
                }
            }
            if let Some(stem) = elsewhere {
                self.passes.retain(|pass| pass.stem != stem);
                self.drop_written(&stem, "its pattern also matches where it is wrong")?;
                self.take_apart(&stem);
                continue;
            }
            let idle = |pass: &Written| counts.get(&pass.stem).copied().unwrap_or(0) == 0;
            let Some(at) = self.passes.iter().position(idle) else { break };
            let pass = self.passes.remove(at);
            self.drop_written(&pass.stem, "it applies nowhere once the others have")?;
            self.take_apart(&pass.stem);
        }
        self.passes.truncate(self.options.most_passes);
        Ok(())
    }

    /// Runs the graphs of a family: a pass that matches where it was not made for must be right there too.
    pub(crate) fn is_right(&self, candidate: &Candidate, family: &GraphFamily) -> bool {
        let options = EvaluateOptions { draws: 0, thorough: false, ..EvaluateOptions::default() };
        family.members.iter().all(|member| {
            let Ok(files) = self.sample.graph_files(&member.path) else { return false };
            let evaluation = check(self.engine, &files, candidate, &options);
            // What eager itself does not run cannot be judged.
            use VerdictKind::{Correct, ReferenceFail};
            matches!(evaluation.judged.verdict.kind, Correct | ReferenceFail)
        })
    }

    /// In how many places of a family a pass was made for.
    fn expected(&self, stem: &str, family: usize) -> usize {
        let pass = self.passes.iter().find(|pass| pass.stem == stem);
        pass.and_then(|pass| self.places.get(&(pass.outline.clone(), family))).copied().unwrap_or(0)
    }

    pub(crate) fn drop_written(&mut self, stem: &str, reason: &str) -> Result<(), SolveError> {
        self.drop_pass(stem, reason);
        self.explanation.passes.retain(|pass| pass.name != stem);
        self.remove(stem)
    }

    fn write(&self) -> Result<(), SolveError> {
        let passes: Vec<&PassText> = self.passes.iter().map(|pass| &pass.text).collect();
        write_folder(self.folder, &passes)
    }

    /// What the solution is worth, in words.
    fn outcome(&self) -> &'static str {
        let neutral = |pass: &Written| pass.text.is_passthrough();
        match self.explanation.wins {
            None => "not measured",
            Some(true) => "the kernels win",
            Some(false) if self.passes.iter().all(neutral) => {
                "nothing wins: the passes are neutral, they hand back the views that eager hands back"
            }
            Some(false) => {
                "nothing wins: these kernels lose least, and the graphs hold no view to hand back"
            }
        }
    }

    fn finish(mut self, started: Instant) -> Result<Explanation, SolveError> {
        for dropped in self.explanation.dropped.clone() {
            if !self.passes.iter().any(|pass| pass.stem == dropped.name) {
                self.remove(&dropped.name)?;
            }
        }
        if self.passes.is_empty() {
            let left =
                self.explanation.left.iter().map(|l| format!("{}: {}", l.operation, l.reason));
            let dropped =
                self.explanation.dropped.iter().map(|d| format!("{}: {}", d.name, d.reason));
            let mut reasons: BTreeSet<String> = left.chain(dropped).collect();
            if reasons.is_empty() {
                reasons.insert("all it computes is left to the framework's libraries".into());
            }
            self.remove(SHARED)?;
            // Whatever was tried leaves nothing behind; a folder with other things in it stays.
            let _ = std::fs::remove_file(self.folder.join(MANIFEST));
            let _ = std::fs::remove_dir(self.folder);
            return Err(SolveError::NothingToFuse {
                task: self.explanation.task,
                reasons: reasons.into_iter().collect(),
            });
        }
        if self.passes.len() == 1 {
            self.remove(SHARED)?;
        }
        self.write()?;
        let place = |name: &str| self.passes.iter().position(|pass| pass.stem == name);
        self.explanation.passes.sort_by_key(|pass| place(&pass.name));
        self.explanation.outcome = self.outcome().into();
        self.explanation.seconds = started.elapsed().as_secs_f64();
        let path = self.folder.join(EXPLANATION);
        let text = serde_json::to_string_pretty(&self.explanation).unwrap_or_default();
        std::fs::write(&path, format!("{text}\n"))
            .map_err(|error| SolveError::Io { path: path.clone(), error })?;
        Ok(self.explanation)
    }
}

/// A pattern and its kernel without names: where one is right, an equal one is.
pub(crate) fn outline(group: &Group) -> String {
    let kernel = Draft::new(group, "pass".into()).and_then(|draft| draft.write(Choice::default()));
    outline_of(&group.piece, kernel.ok().as_ref())
}

pub(crate) fn outline_of(piece: &Piece, kernel: Option<&PassText>) -> String {
    let graph = &piece.graph;
    let mut text = format!("{}:{:?}", graph.placeholder_count(), graph.outputs);
    for (_, call) in graph.calls() {
        text.push_str(&format!("|{} {:?} {:?}", call.target, call.args, call.kwargs));
    }
    text + &kernel.map_or(String::new(), |kernel| kernel.without_names(piece))
}
