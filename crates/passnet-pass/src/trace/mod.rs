//! From the syntax of `pattern` and `replacement_args` to graphs, and from `replacement_func` to a name.
//!
//! The tracer is a small interpreter. Its arguments are graph nodes; everything else (numbers, strings,
//! tuples, helper functions, loops over sizes) is evaluated as Python would. Whatever would need a tensor's
//! content, or code from outside, is an error at its line.

mod arguments;
mod builtins;
mod call;
mod classes;
mod concrete;
mod expression;
mod interpreter;
mod statement;
mod value;

use crate::load::{Bindings, ModuleId, PassFile, Program};
use interpreter::{Interpreter, Traced};
use passnet_graph::graph::CalleeKind;
use passnet_graph::graph::effects::Effects;
use passnet_graph::ops::{Class, Op};
use passnet_graph::syntax::{Ranged, TextRange, ast};
use passnet_graph::{Arg, Call, Diagnostic, Graph, NodeId};
use rustc_hash::FxHashSet;
use value::Value;

/// Whose tracer is imitated. They differ in what `x += y`, subscript writes and calls without tensors mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// What the text says: `x += y` updates in place, `torch.arange(3)` is an operation.
    #[default]
    Plain,
    /// What torch.fx records: `x += y` is an addition, `torch.arange(3)` is evaluated while tracing.
    Fx,
}

/// A traced function: its graph, and where in the source each node was written.
#[derive(Debug, Clone)]
pub struct TracedGraph {
    /// The operations as a graph.
    pub graph: Graph,
    pub(crate) origins: Vec<Origin>,
}

/// A place in a pass file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub module: ModuleId,
    /// The part of it.
    pub range: TextRange,
}

/// The function that replaces what the pattern matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrapper {
    /// The file it stands in.
    pub module: ModuleId,
    /// Its name.
    pub function: String,
}

/// A pass, traced.
#[derive(Debug, Clone)]
pub struct Pass {
    /// The name in the list of passes.
    pub name: String,
    /// The file it stands in.
    pub module: ModuleId,
    /// What is replaced.
    pub pattern: TracedGraph,
    /// `replacement_args`: its outputs are the wrapper's arguments.
    pub arguments: TracedGraph,
    /// What stands for it.
    pub wrapper: Wrapper,
    /// What is odd and yet no error.
    pub warnings: Vec<Diagnostic>,
}

/// Traces one pass; every error found is returned.
pub fn trace(
    program: &Program,
    bindings: &Bindings<'_>,
    file: &PassFile,
    dialect: Dialect,
) -> Result<Pass, Vec<Diagnostic>> {
    let tracer = PassTracer { program, bindings, module: file.module, dialect };
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    let pattern = tracer.pattern(&mut warnings).map_err(|found| errors.extend(found)).ok();
    let arguments = tracer.arguments(&mut warnings).map_err(|found| errors.push(found)).ok();
    let wrapper = tracer.wrapper().map_err(|found| errors.push(found)).ok();
    if let (Some(pattern), Some(arguments)) = (&pattern, &arguments) {
        let (wanted, given) =
            (pattern.graph.placeholder_count(), arguments.graph.placeholder_count());
        if wanted != given {
            errors.push(tracer.at_function(
                "replacement_args",
                format!("takes {given} arguments, but `pattern` takes {wanted}"),
            ));
        }
    }
    match (pattern, arguments, wrapper) {
        (Some(pattern), Some(arguments), Some(wrapper)) if errors.is_empty() => Ok(Pass {
            name: file.name.clone(),
            module: file.module,
            pattern,
            arguments,
            wrapper,
            warnings,
        }),
        _ => Err(errors),
    }
}

struct PassTracer<'a> {
    program: &'a Program,
    bindings: &'a Bindings<'a>,
    module: ModuleId,
    dialect: Dialect,
}

impl<'a> PassTracer<'a> {
    fn function(&self, name: &str) -> Result<(ModuleId, &'a ast::StmtFunctionDef), Diagnostic> {
        self.bindings.function(self.module, name).ok_or_else(|| {
            let source = &self.program.module(self.module).source;
            Diagnostic::file(source.path(), format!("no function `{name}` in this file")).with_hint(
                "a pass file defines `pattern`, `replacement_args` and `replacement_func`",
            )
        })
    }

    fn at_function(&self, name: &str, message: String) -> Diagnostic {
        match self.function(name) {
            Ok((module, function)) => self
                .program
                .module(module)
                .source
                .at(function.name.range(), format!("`{name}` {message}")),
            Err(error) => error,
        }
    }

    fn run(&self, name: &str) -> Result<Traced<'a>, Diagnostic> {
        let (module, function) = self.function(name)?;
        Interpreter::new(self.program, self.bindings, self.dialect).trace(module, function)
    }

    fn pattern(&self, warnings: &mut Vec<Diagnostic>) -> Result<TracedGraph, Vec<Diagnostic>> {
        let traced = self.run("pattern").map_err(|error| vec![error])?;
        warnings.extend(traced.warnings);
        let (module, function) = self.function("pattern").map_err(|error| vec![error])?;
        let source = &self.program.module(module).source;
        let error = |message: String| source.at(function.name.range(), message);
        let outputs = match traced.result {
            Value::Sequence { items, .. } => items,
            single => vec![single],
        };
        let mut graph = traced.graph;
        for output in &outputs {
            let arg =
                output.to_arg().map_err(|what| vec![error(format!("`pattern` returns {what}"))])?;
            graph.outputs.push(arg);
        }
        let mut errors = Vec::new();
        let mut returned = 0;
        for output in &graph.outputs {
            output.for_each_node(&mut |id| {
                returned += 1;
                if id.index() < graph.placeholder_count() {
                    let name = &graph.node(id).name;
                    errors.push(
                        error(format!("`pattern` returns its argument `{name}` unchanged"))
                            .with_hint("return only values that the pattern computes"),
                    );
                }
            });
        }
        if returned == 0 {
            errors.push(
                error("`pattern` returns no computed value".into())
                    .with_hint("return the values that the rest of the graph may use"),
            );
        }
        let pattern = drop_dead(TracedGraph { graph, origins: traced.origins }, |origin, call| {
            let source = &self.program.module(origin.module).source;
            match self.dialect {
                // Reading a size that nothing uses is common and harmless: no word about it.
                Dialect::Plain if reads_metadata(call) => {}
                Dialect::Plain => warnings.push(
                    source
                        .at(origin.range, "this value is never used and takes no part in the match")
                        .with_hint("return it if the graph uses it outside the match"),
                ),
                // torch.fx makes a node for an attribute only when it is used.
                Dialect::Fx if call.target.kind() == CalleeKind::Attribute => {}
                Dialect::Fx if interpreter::is_constant_of_module(call) => {}
                Dialect::Fx => errors
                    .push(source.at(origin.range, "torch.fx refuses a pattern with unused values")),
            }
        });
        let used = used_nodes(&pattern.graph);
        for (index, placeholder) in pattern.graph.placeholders().iter().enumerate() {
            if !used[index] {
                errors.push(
                    error(format!("argument `{}` of `pattern` is never used", placeholder.name))
                        .with_hint("nothing in a graph could be bound to it: remove it"),
                );
            }
        }
        if errors.is_empty() { Ok(pattern) } else { Err(errors) }
    }

    fn arguments(&self, warnings: &mut Vec<Diagnostic>) -> Result<TracedGraph, Diagnostic> {
        let traced = self.run("replacement_args")?;
        warnings.extend(traced.warnings);
        let Value::Sequence { items, .. } = traced.result else {
            return Err(self
                .at_function("replacement_args", "must return a tuple of arguments".into())
                .with_hint("for a single argument write `return (x,)`"));
        };
        let mut graph = traced.graph;
        for item in &items {
            graph.outputs.push(
                item.to_arg().map_err(|what| {
                    self.at_function("replacement_args", format!("returns {what}"))
                })?,
            );
        }
        Ok(drop_dead(TracedGraph { graph, origins: traced.origins }, |_, _| {}))
    }

    /// `replacement_func` must return the same function at every call: a function of the file.
    fn wrapper(&self) -> Result<Wrapper, Diagnostic> {
        let name = "replacement_func";
        let (_, function) = self.function(name)?;
        if !function.parameters.is_empty() {
            return Err(self.at_function(name, "takes no arguments".into()));
        }
        let traced = self.run(name)?;
        match traced.result {
            Value::Function(callable) => match callable.global_name() {
                Some(function) => {
                    Ok(Wrapper { module: callable.module, function: function.into() })
                }
                None => Err(self
                    .at_function(name, "makes a new function at every call".into())
                    .with_hint("define the wrapper at the top level of the file and return it")),
            },
            Value::Path(path) => Err(self
                .at_function(
                    name,
                    format!("returns `{path}`, which is not a function of this pass"),
                )
                .with_hint("return a wrapper that launches kernels")),
            other => {
                Err(self.at_function(name, format!("returns {}, not a function", other.describe())))
            }
        }
    }
}

fn used_nodes(graph: &Graph) -> Vec<bool> {
    let mut used = vec![false; graph.nodes().len()];
    for output in &graph.outputs {
        output.for_each_node(&mut |id| used[id.index()] = true);
    }
    for (_, call) in graph.calls() {
        call.for_each_input(|id| used[id.index()] = true);
    }
    used
}

/// Removes calls without effect whose results nothing needs.
fn drop_dead(traced: TracedGraph, mut dropped: impl FnMut(Origin, &Call)) -> TracedGraph {
    let TracedGraph { graph, origins } = traced;
    let effects = Effects::of(&graph);
    let mut live = FxHashSet::default();
    for output in &graph.outputs {
        output.for_each_node(&mut |id| {
            live.insert(id);
        });
    }
    for (id, call) in graph.calls().rev() {
        if effects.mutates(id) || effects.is_global(id) {
            live.insert(id);
        }
        if live.contains(&id) {
            call.for_each_input(|input| {
                live.insert(input);
            });
        }
    }
    if graph.calls().all(|(id, _)| live.contains(&id)) {
        return TracedGraph { graph, origins };
    }
    let mut kept = Graph::new();
    let mut kept_origins = Vec::new();
    let mut renumbered: Vec<Option<NodeId>> = vec![None; graph.nodes().len()];
    for id in graph.ids() {
        let node = graph.node(id);
        let new = match graph.call(id) {
            None => Some(kept.push_placeholder(node.name.clone(), Default::default(), node.line)),
            Some(_) if !live.contains(&id) => None,
            Some(call) => {
                let mut call = call.clone();
                call.map_inputs(|input| renumber(&renumbered, input));
                Some(kept.push_call(node.name.clone(), call, node.line))
            }
        };
        match new {
            Some(_) => kept_origins.push(origins[id.index()]),
            None => graph.call(id).into_iter().for_each(|call| dropped(origins[id.index()], call)),
        }
        renumbered[id.index()] = new;
    }
    kept.outputs = graph.outputs.clone();
    for output in &mut kept.outputs {
        output.map_nodes(&mut |input| renumber(&renumbered, input));
    }
    TracedGraph { graph: kept, origins: kept_origins }
}

fn renumber(renumbered: &[Option<NodeId>], input: NodeId) -> Arg {
    renumbered[input.index()].map_or(Arg::None, Arg::Node)
}

fn reads_metadata(call: &Call) -> bool {
    call.op().is_some_and(|op| op.class() == Class::Scalar || op == Op::GetItem)
}
