//! What a kernel command works on: a wrapper with its inputs, from a file's own header or from a match in a graph.

use super::Inputs;
use crate::error::CommandError;
use crate::output::warn;
use crate::paths::for_each_graph;
use passnet_graph::infer::{Inference, Scalar, Value, infer, inputs_from};
use passnet_graph::syntax::Source;
use passnet_graph::{Arg, Device, Diagnostic, GraphFiles, GraphFolder, NodeId, read};
use passnet_kernel::fixture::{Filling, Fixture, Header, Input};
use passnet_kernel::plan::TensorSpec;
use passnet_kernel::{Const, ModuleSet};
use passnet_pass::explain::brief;
use passnet_pass::load::{Bindings, LoadOptions, ModuleId, PassSet, Program, load};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, find};
use passnet_pass::rewrite::{Patch, apply};
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
                match described(path, &mut cases) {
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
            |files| passes.iter().map(|(program, pass)| matched(program, pass, files)).collect(),
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
    errors.iter().for_each(|error| warn(&crate::error::render_diagnostic(error)));
    !errors.is_empty()
}

/// The files of a pass, the one that defines the wrapper first.
fn modules(program: &Program, first: ModuleId) -> Result<ModuleSet, Diagnostic> {
    let files = program.reachable(first).into_iter().map(|id| {
        let module = program.module(id);
        let stem = module.name.rsplit('.').next().unwrap_or(&module.name);
        (stem.to_string(), Source::new(module.source.path(), module.source.text()))
    });
    ModuleSet::new(files.collect())
}

/// A folder that is no pass: the kernel files in it, in the order of their names.
fn described_files(folder: &Path, cases: &mut Vec<Case>) -> Result<(), Vec<Diagnostic>> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let is_kernel = |p: &PathBuf| p.is_file() && p.extension().is_some_and(|e| e == "py");
    let mut files: Vec<PathBuf> = entries.filter(is_kernel).collect();
    files.sort();
    if files.is_empty() {
        return Err(vec![Diagnostic::file(folder.display().to_string(), "no pass in this folder")]);
    }
    let mut errors = Vec::new();
    for file in &files {
        errors.extend(described(file, cases).err().into_iter().flatten());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Files that describe their inputs themselves, with the helper files they import.
fn described(path: &Path, cases: &mut Vec<Case>) -> Result<(), Vec<Diagnostic>> {
    let set = load(path, &LoadOptions::default());
    if set.passes.is_empty() && set.errors.is_empty() {
        return described_files(path, cases);
    }
    let mut errors = set.errors;
    for file in &set.passes {
        let source = &set.program.module(file.module).source;
        let fixture = Header::parse(source).and_then(|header| {
            if header.inputs.is_empty() && header.wrapper.is_none() {
                return Err(Diagnostic::file(source.path(), "no inputs to plan for").with_hint(
                    "name a graph with `--graph`, or describe them in comments: `# input: x float32 [64, 100]`",
                ));
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
    program: &Program,
    pass: &Pass,
    files: &GraphFiles,
) -> Result<Vec<Case>, Vec<Diagnostic>> {
    let folder = read::read_folder(files)?;
    let fail = |message: String| vec![Diagnostic::file(&files.path, message)];
    let pattern = Pattern::new(&pass.pattern.graph);
    let found = find(&pattern, &TargetGraph::new(&folder.graph), &MatchOptions::default());
    if let Some(miss) = &found.miss {
        let reason = brief(pass, &folder.graph, miss);
        return Err(fail(format!("pass `{}` does not match: {reason}", pass.name)));
    }
    let mut cases: Vec<Case> = Vec::new();
    for site in &found.matches {
        let patch = Patch::new(program, pass, &folder.graph, site)
            .map_err(|error| fail(error.to_string()))?;
        let inputs = arguments(&folder, &patch).map_err(&fail)?;
        if let Some(known) = cases.iter_mut().find(|case| case.fixture.header.inputs == inputs) {
            known.sites += 1;
            continue;
        }
        let header =
            Header { wrapper: Some(pass.wrapper.function.clone()), inputs, ..Header::default() };
        let modules = modules(program, pass.wrapper.module).map_err(|error| vec![error])?;
        let fixture = Fixture::of(header, modules).map_err(|error| vec![error])?;
        let graph = Some(files.path.clone());
        cases.push(Case { pass: pass.name.clone(), graph, sites: 1, fixture });
    }
    Ok(cases)
}

/// What the wrapper is called with: the graph is rewritten and inferred up to the call.
fn arguments(folder: &GraphFolder, patch: &Patch) -> Result<Vec<Input>, String> {
    let graph = apply(&folder.graph, patch).map_err(|error| error.to_string())?;
    let call = graph
        .calls()
        .find(|(_, call)| call.target.replacement().is_some())
        .map(|(_, call)| call)
        .ok_or("the rewritten graph has no replaced node")?;
    let types = infer(&graph, &inputs_from(folder));
    let name = |id: NodeId| graph.node(id).name.to_string();
    call.args.iter().map(|arg| argument(arg, &types, &name)).collect()
}

fn argument(
    arg: &Arg,
    types: &Inference,
    name: &dyn Fn(NodeId) -> String,
) -> Result<Input, String> {
    let Arg::Node(id) = arg else { return literal(arg, types, name).map(Input::Value) };
    match types.value(*id) {
        Value::Tensor(tensor) => {
            let mut spec = TensorSpec::contiguous(&tensor.sizes(), tensor.dtype, Device::CPU);
            spec.stride = tensor.strides.to_vec();
            // Small integers are valid indices of most things.
            let filling =
                if tensor.dtype.is_float() { Filling::Normal } else { Filling::Int(0, 2) };
            Ok(Input::Tensor { name: name(*id), spec, filling })
        }
        value => known(value).map(Input::Value).ok_or_else(|| match value {
            Value::Unknown(reason) => format!("the type of `{}` is not known: {reason}", name(*id)),
            other => {
                format!("`{}` is a {}, which a wrapper cannot take", name(*id), other.type_name())
            }
        }),
    }
}

/// A value without elements as a constant.
fn known(value: &Value) -> Option<Const> {
    Some(match value {
        Value::None => Const::None,
        Value::Str(text) => Const::Str(text.to_string()),
        Value::Scalar(Scalar::Bool(Some(b))) => Const::Bool(*b),
        Value::Scalar(Scalar::Int(Some(dim))) => Const::Int(dim.size),
        Value::Scalar(Scalar::Float(Some(x))) => Const::Float(*x),
        Value::Sequence(items) => Const::Tuple(items.iter().map(known).collect::<Option<_>>()?),
        _ => return None,
    })
}

fn literal(arg: &Arg, types: &Inference, name: &dyn Fn(NodeId) -> String) -> Result<Const, String> {
    Ok(match arg {
        Arg::None => Const::None,
        Arg::Bool(b) => Const::Bool(*b),
        Arg::Int(i) => Const::Int(*i),
        Arg::Float(x) => Const::Float(*x),
        Arg::Str(text) => Const::Str(text.to_string()),
        Arg::Tuple(items) | Arg::List(items) => Const::Tuple(
            items.iter().map(|item| literal(item, types, name)).collect::<Result<_, _>>()?,
        ),
        Arg::Node(id) => known(types.value(*id))
            .ok_or_else(|| format!("`{}` inside a list is not a number", name(*id)))?,
        Arg::Dtype(_) | Arg::Device(_) | Arg::Ellipsis | Arg::Slice(_) | Arg::Constant(_) => {
            return Err("a literal of this kind cannot be an argument of a wrapper".into());
        }
    })
}
