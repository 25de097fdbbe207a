//! What a kernel command works on: a wrapper with its inputs, from a file's own header or from a match in a graph.

use super::Inputs;
use crate::error::CommandError;
use crate::output::warn_located;
use crate::paths::for_each_graph;
use passnet_bench::signature::{Signature, modules, signatures_on};
use passnet_graph::{Device, Diagnostic, GraphFiles};
use passnet_kernel::fixture::{Fixture, Header, Input};
use passnet_pass::load::{Bindings, LoadOptions, PassSet, Program, load};
use passnet_pass::trace::{Dialect, Pass, trace};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};

/// A wrapper and one signature of inputs.
pub struct Case {
    pub pass: String,
    /// The graph it was matched in.
    pub graph: Option<String>,
    /// How many places of that graph have this signature.
    pub sites: usize,
    pub fixture: Fixture,
}

impl Case {
    /// For people.
    pub fn title(&self) -> String {
        match &self.graph {
            Some(graph) if self.sites > 1 => {
                format!("{} in {graph} ({} places)", self.pass, self.sites)
            }
            Some(graph) => format!("{} in {graph}", self.pass),
            None => self.pass.clone(),
        }
    }

    /// The fields that begin every JSON line.
    pub fn json(&self) -> Json {
        let mut value = json!({ "pass": self.pass });
        if let Some(graph) = &self.graph {
            value["graph"] = graph.as_str().into();
            value["sites"] = self.sites.into();
        }
        value
    }
}

/// Cases, and whether something could not become one; the reason has gone to stderr.
pub struct Cases {
    pub cases: Vec<Case>,
    pub failed: bool,
}

impl Inputs {
    pub fn cases(&self) -> Result<Cases, CommandError> {
        let mut cases = Vec::new();
        let mut failed = false;
        if self.graphs.is_empty() {
            for path in &self.passes {
                match described(path, self.device.into(), &mut cases) {
                    Ok(()) => {}
                    Err(errors) if self.passes.len() == 1 => {
                        return Err(CommandError::Located(errors));
                    }
                    Err(errors) => failed |= report(&errors),
                }
            }
            return Ok(Cases { cases, failed });
        }
        let mut passes = Vec::new();
        let sets: Vec<PassSet> =
            self.passes.iter().map(|path| load(path, &LoadOptions::default())).collect();
        for set in &sets {
            failed |= report(&set.errors);
            let bindings = Bindings::of(&set.program);
            for file in &set.passes {
                match trace(&set.program, &bindings, file, Dialect::Plain) {
                    Ok(pass) => passes.push((&set.program, pass)),
                    Err(errors) => failed |= report(&errors),
                }
            }
        }
        if passes.is_empty() {
            return Err(CommandError::input("no pass to work with"));
        }
        for_each_graph(
            &self.graphs,
            |files| {
                passes
                    .iter()
                    .map(|(program, pass)| matched(self.device.into(), program, pass, files))
                    .collect()
            },
            |_, results: Vec<Result<Vec<Case>, Vec<Diagnostic>>>| {
                for result in results {
                    match result {
                        Ok(found) => cases.extend(found),
                        Err(errors) => failed |= report(&errors),
                    }
                }
                Ok(())
            },
        )?;
        Ok(Cases { cases, failed })
    }
}

/// Says what is wrong; whether there was anything.
fn report(errors: &[Diagnostic]) -> bool {
    warn_located(errors);
    !errors.is_empty()
}

/// A folder that is no pass: the kernel files in it, in the order of their names.
fn described_files(
    folder: &Path,
    device: Device,
    cases: &mut Vec<Case>,
) -> Result<(), Vec<Diagnostic>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let is_kernel = |p: &PathBuf| p.is_file() && p.extension().is_some_and(|e| e == "py");
    let mut files: Vec<PathBuf> = entries.filter(is_kernel).collect();
    files.sort();
    if files.is_empty() {
        return Err(vec![Diagnostic::file(folder.display().to_string(), "no pass in this folder")]);
    }
    let mut errors = Vec::new();
    for file in &files {
        errors.extend(described(file, device, cases).err().into_iter().flatten());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Files that describe their inputs themselves, with the helper files they import.
fn described(path: &Path, device: Device, cases: &mut Vec<Case>) -> Result<(), Vec<Diagnostic>> {
    let set = load(path, &LoadOptions::default());
    if set.passes.is_empty() && set.errors.is_empty() {
        return described_files(path, device, cases);
    }
    let mut errors = set.errors;
    for file in &set.passes {
        let source = &set.program.module(file.module).source;
        let fixture = Header::parse(source).and_then(|mut header| {
            if header.inputs.is_empty() && header.wrapper.is_none() {
                return Err(Diagnostic::file(source.path(), "no inputs to plan for").with_hint(
                    "name a graph with `--graph`, or describe them in comments: `# input: x float32 [64, 100]`",
                ));
            }
            for input in &mut header.inputs {
                if let Input::Tensor { spec, .. } = input {
                    spec.device = device;
                }
            }
            Fixture::of(header, modules(&set.program, file.module)?)
        });
        match fixture {
            Ok(fixture) => {
                let pass = source.path().to_string();
                cases.push(Case { pass, graph: None, sites: 1, fixture });
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// The signatures with which a pass would be called in a graph.
fn matched(
    device: Device,
    program: &Program,
    pass: &Pass,
    files: &GraphFiles,
) -> Result<Vec<Case>, Vec<Diagnostic>> {
    let case = |found: Signature| Case {
        pass: pass.name.clone(),
        graph: Some(files.path.clone()),
        sites: found.sites,
        fixture: found.fixture,
    };
    Ok(signatures_on(device, program, pass, files)?.into_iter().map(case).collect())
}
