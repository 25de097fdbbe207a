//! With what a pass calls its wrapper in a graph: one set of shapes and values, and the launch plan that follows.

use passnet_graph::infer::{Inference, Scalar, Value, infer, inputs_from};
use passnet_graph::syntax::Source;
use passnet_graph::{Arg, Device, Diagnostic, GraphFiles, GraphFolder, NodeId, read};
use passnet_kernel::fixture::{Filling, Fixture, Header, Input};
use passnet_kernel::plan::{ArgValue, LaunchPlan, Step, TensorSpec, View};
use passnet_kernel::{Const, ModuleSet};
use passnet_pass::explain::brief;
use passnet_pass::load::{ModuleId, Program};
use passnet_pass::matcher::{MatchOptions, Pattern, TargetGraph, find};
use passnet_pass::rewrite::{Patch, apply};
use passnet_pass::trace::Pass;

/// One signature of a wrapper.
#[derive(Debug)]
pub struct Signature {
    /// How many places of the graph have it.
    pub sites: usize,
    /// The wrapper with inputs of these shapes, and its plan.
    pub fixture: Fixture,
}

/// The files of a pass, the one that defines the wrapper first.
pub fn modules(program: &Program, first: ModuleId) -> Result<ModuleSet, Diagnostic> {
    let files = program.reachable(first).into_iter().map(|id| {
        let module = program.module(id);
        let stem = module.name.rsplit('.').next().unwrap_or(&module.name);
        (stem.to_string(), Source::new(module.source.path(), module.source.text()))
    });
    ModuleSet::new(files.collect())
}

/// The signatures with which a pass would be called in a graph, on [`TensorSpec::DEVICE`] as evaluations call it.
pub fn signatures(
    program: &Program,
    pass: &Pass,
    files: &GraphFiles,
) -> Result<Vec<Signature>, Vec<Diagnostic>> {
    signatures_on(TensorSpec::DEVICE, program, pass, files)
}

/// As [`signatures`], with arguments that appear to be on a device.
pub fn signatures_on(
    device: Device,
    program: &Program,
    pass: &Pass,
    files: &GraphFiles,
) -> Result<Vec<Signature>, Vec<Diagnostic>> {
    let mut folder = read::read_folder(files)?;
    let fail = |message: String| vec![Diagnostic::file(&files.path, message)];
    let pattern = Pattern::new(&pass.pattern.graph);
    let matches = |graph| find(&pattern, &TargetGraph::new(graph), &MatchOptions::default());
    let mut found = matches(&folder.graph);
    if found.miss.is_some() {
        // What nothing needs may stand in its way: a graph that passes change does without it.
        let (needed, _) = folder.graph.without_unneeded();
        let alone = matches(&needed);
        if alone.miss.is_none() {
            (folder.graph, found) = (needed, alone);
        }
    }
    if let Some(miss) = &found.miss {
        let reason = brief(pass, &folder.graph, miss);
        return Err(fail(format!("pass `{}` does not match: {reason}", pass.name)));
    }
    let mut signatures: Vec<Signature> = Vec::new();
    for site in &found.matches {
        let patch = Patch::new(program, pass, &folder.graph, site)
            .map_err(|error| fail(error.to_string()))?;
        let mut inputs = arguments(&folder, &patch).map_err(&fail)?;
        for input in &mut inputs {
            if let Input::Tensor { spec, .. } = input {
                spec.device = device;
            }
        }
        let is_same = |known: &&mut Signature| known.fixture.header.inputs == inputs;
        if let Some(known) = signatures.iter_mut().find(is_same) {
            known.sites += 1;
            continue;
        }
        let header =
            Header { wrapper: Some(pass.wrapper.function.clone()), inputs, ..Header::default() };
        let modules = modules(program, pass.wrapper.module).map_err(|error| vec![error])?;
        let fixture = Fixture::of(header, modules).map_err(|error| vec![error])?;
        signatures.push(Signature { sites: 1, fixture });
    }
    Ok(signatures)
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
            let mut spec =
                TensorSpec::contiguous(&tensor.sizes(), tensor.dtype, TensorSpec::DEVICE);
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

/// What a plan does, step by step, in words: launches with their grids and arguments, copies, fills, what it returns.
pub fn step_lines(plan: &LaunchPlan) -> Vec<String> {
    let mut lines: Vec<String> = plan.steps.iter().map(|step| step_line(plan, step)).collect();
    let returns: Vec<String> = plan.returns.iter().map(|view| view_text(plan, view)).collect();
    lines.push(format!("return {}", returns.join(", ")));
    lines
}

fn step_line(plan: &LaunchPlan, step: &Step) -> String {
    match step {
        Step::Launch(launch) => {
            let args = launch.args.iter().map(|arg| match &arg.value {
                ArgValue::Buffer(view) => format!("{}={}", arg.name, view_text(plan, view)),
                ArgValue::Int { value, .. } => format!("{}={value}", arg.name),
                ArgValue::Float(value) => format!("{}={value:?}", arg.name),
                ArgValue::Const(value) => format!("{}: constexpr={value}", arg.name),
            });
            let args: Vec<String> = args.collect();
            let [x, y, z] = launch.grid;
            let (kernel, warps) = (&launch.kernel, launch.num_warps);
            format!("launch {kernel}[{x}, {y}, {z}]({}) num_warps={warps}", args.join(", "))
        }
        Step::Copy { from, to, .. } => {
            format!("copy {} to {}", view_text(plan, from), view_text(plan, to))
        }
        Step::Fill { view, value, .. } => format!("fill {} with {value}", view_text(plan, view)),
    }
}

fn view_text(plan: &LaunchPlan, view: &View) -> String {
    let name = plan.buffers.get(view.buffer).map_or("?", |b| b.name.as_str());
    let offset = if view.offset == 0 { String::new() } else { format!("+{}", view.offset) };
    format!("{name}{offset}{:?}/{:?}", view.shape, view.stride)
}
