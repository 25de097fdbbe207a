//! What is under test: the passes of a folder, checked, traced and ready to rewrite graphs.

use crate::signature::{Signature, modules, signatures};
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_engine::native::Wrappers;
use passnet_graph::{Diagnostic, Graph, GraphFiles};
use passnet_pass::explain::{self, Explanation, NamedGraph};
use passnet_pass::load::{Bindings, Folder, LoadOptions, PassSet, Program, load, load_folder};
use passnet_pass::matcher::MatchOptions;
use passnet_pass::rewrite::{self, RunOptions, Stop};
use passnet_pass::rules::{self, Severity};
use passnet_pass::trace::{Dialect, Pass, trace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A pass set that can be applied.
#[derive(Debug)]
pub struct Candidate {
    set: PassSet,
    passes: Vec<Pass>,
    wrappers: Wrappers,
    /// What was noticed but does not stop an evaluation.
    pub remarks: Vec<Evidence>,
    /// All files the passes can reach, by name.
    pub sources: Vec<(String, String)>,
}

/// What one pass did to a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewrites {
    /// By the name of its file.
    pub pass: String,
    /// How often it replaced something that the graph's results need.
    pub count: usize,
}

/// A rewritten graph.
#[derive(Debug)]
pub struct Rewritten {
    /// What is run in eager's place.
    pub graph: Graph,
    /// In the order of the passes.
    pub rewrites: Vec<Rewrites>,
    /// Calls of the original that nothing needs, by name: eager runs them, the rewritten graph does without.
    pub left_out: Vec<String>,
}

impl Candidate {
    /// Loads a pass folder. The verdict, where there is one, holds for every graph: nothing can be evaluated.
    pub fn load(
        folder: &Path,
        input_passes: Option<&Path>,
        with_rules: bool,
    ) -> Result<Candidate, Box<Verdict>> {
        if !folder.exists() {
            let text = format!("there is no pass folder {}", folder.display());
            return Err(Box::new(Verdict::new(VerdictKind::CompileFail).because(text)));
        }
        Candidate::of(load(folder, &options(input_passes)), folder, with_rules)
    }

    /// As [`load`](Self::load), from texts by the names of their files; nothing is written to disk.
    pub fn from_files(
        files: BTreeMap<String, String>,
        input_passes: Option<&Path>,
        with_rules: bool,
    ) -> Result<Candidate, Box<Verdict>> {
        let folder = Folder::Memory(files);
        let shown = folder.path().to_path_buf();
        Candidate::of(load_folder(folder, &options(input_passes)), &shown, with_rules)
    }

    fn of(set: PassSet, folder: &Path, with_rules: bool) -> Result<Candidate, Box<Verdict>> {
        let bindings = Bindings::of(&set.program);
        let mut failures: Vec<Evidence> = set.errors.iter().map(located).collect();
        let mut refusals = Vec::new();
        let mut remarks: Vec<Evidence> = set.notes.iter().map(located).collect();
        let mut passes = Vec::new();
        for file in &set.passes {
            let traced = trace(&set.program, &bindings, file, Dialect::Plain);
            if with_rules {
                for finding in rules::check(&set.program, &bindings, file, traced.as_ref().ok()) {
                    let evidence = Evidence::Rule {
                        rule: finding.rule.into(),
                        file: finding.file,
                        line: finding.line,
                        message: finding.message,
                    };
                    match finding.severity {
                        Severity::Refuse => refusals.push(evidence),
                        Severity::Warn | Severity::Note => remarks.push(evidence),
                    }
                }
            }
            match traced {
                Ok(pass) => passes.push(pass),
                Err(errors) => failures.extend(errors.iter().map(located)),
            }
        }
        if !refusals.is_empty() {
            let verdict = Verdict { kind: VerdictKind::Integrity, evidence: refusals };
            return Err(Box::new(verdict));
        }
        let mut wrappers = Wrappers::default();
        passes.retain(|pass| match modules(&set.program, pass.wrapper.module) {
            Ok(files) => {
                wrappers.add(&pass.name, files);
                true
            }
            Err(error) => {
                failures.push(located(&error));
                false
            }
        });
        if passes.is_empty() {
            if failures.is_empty() {
                let text = format!("{} lists no pass", folder.display());
                failures.push(Evidence::Message { text });
            }
            let verdict = Verdict { kind: VerdictKind::CompileFail, evidence: failures };
            return Err(Box::new(verdict));
        }
        remarks.extend(failures);
        let sources = set.program.ids().map(|id| {
            let module = set.program.module(id);
            (format!("{}.py", module.name.replace('.', "/")), module.source.text().to_string())
        });
        let sources = sources.collect();
        Ok(Candidate { passes, wrappers, remarks, sources, set })
    }

    /// The host functions that rewritten graphs call.
    pub fn wrappers(&self) -> &Wrappers {
        &self.wrappers
    }

    /// The passes in the order in which they apply.
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// The signatures with which the passes would be called in a graph. A pass that does not apply to it has none.
    pub fn signatures(&self, files: &GraphFiles) -> Vec<Signature> {
        let of_pass = |pass| signatures(self.program(), pass, files);
        self.passes.iter().flat_map(of_pass).flatten().collect()
    }

    /// The files of the passes.
    pub fn program(&self) -> &Program {
        &self.set.program
    }

    /// Each pass on its own against a graph: where it matches, or what keeps it from matching and what to change.
    pub fn explain(&self, graph: NamedGraph<'_>) -> Vec<Explanation> {
        let options = MatchOptions::default();
        let explained = |pass| explain::explain(&self.set.program, pass, graph, &options);
        self.passes.iter().map(explained).collect()
    }

    /// Applies the passes in order; the verdict says why nothing changed.
    pub fn rewrite(&self, graph: &Graph) -> Result<Rewritten, Box<Verdict>> {
        let report = rewrite::run(&self.set.program, &self.passes, graph, &RunOptions::default())
            .map_err(|error| {
            Verdict::new(VerdictKind::CompileFail).because(error.to_string())
        })?;
        let rewrites: Vec<Rewrites> = report
            .applied
            .iter()
            .map(|applied| Rewrites { pass: applied.pass.clone(), count: applied.needed })
            .collect();
        if rewrites.iter().all(|rewrites| rewrites.count == 0) {
            let mut verdict = Verdict::new(VerdictKind::NoMatch);
            for (pass, applied) in self.passes.iter().zip(&report.applied) {
                let reason = match &applied.miss {
                    Some(miss) => explain::brief(pass, graph, miss),
                    None if applied.patches.is_empty() => "it does not match".to_string(),
                    None => "it matches only what no output of the graph needs".to_string(),
                };
                verdict = verdict.because(format!("pass `{}`: {reason}", pass.name));
            }
            return Err(Box::new(verdict));
        }
        let endless = report.applied.iter().find(|applied| applied.stop != Stop::Saturated);
        if let Some(applied) = endless {
            let text = format!("pass `{}` does not come to an end on this graph", applied.pass);
            return Err(Box::new(Verdict::new(VerdictKind::CompileFail).because(text)));
        }
        let left_out = report.left_out.iter().map(ToString::to_string).collect();
        Ok(Rewritten { graph: report.graph, rewrites, left_out })
    }
}

fn options(input_passes: Option<&Path>) -> LoadOptions {
    LoadOptions { input_dir: input_passes.map(Path::to_path_buf), ..LoadOptions::default() }
}

fn located(error: &Diagnostic) -> Evidence {
    Evidence::Message { text: error.to_string() }
}
