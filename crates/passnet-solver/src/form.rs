//! The forms of a task: graphs that differ only in sizes, float types and numbers, so that one pass serves all.

use passnet_graph::graph::NodeKind;
use passnet_graph::infer::{Inference, Value, infer_folder};
use passnet_graph::ops::Op;
use passnet_graph::read::read_folder;
use passnet_graph::{Arg, Diagnostic, Graph, GraphFiles, TensorMeta};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One graph of a task, typed.
#[derive(Debug)]
pub struct TypedGraph {
    /// Its path in the task's list.
    pub path: String,
    pub graph: Graph,
    pub types: Inference,
    /// How the graph's inputs are drawn, in argument order.
    pub metas: Vec<TensorMeta>,
}

impl TypedGraph {
    pub fn read(files: &GraphFiles) -> Result<TypedGraph, Vec<Diagnostic>> {
        let folder = read_folder(files)?;
        let types = infer_folder(&folder);
        Ok(TypedGraph { path: files.path.clone(), graph: folder.graph, types, metas: folder.metas })
    }
}

/// Graphs with the same operations, edges, ranks and kinds of numbers.
#[derive(Debug)]
pub struct Form {
    /// At least one.
    pub members: Vec<TypedGraph>,
}

impl Form {
    pub fn graph(&self) -> &Graph {
        &self.members[0].graph
    }

    pub fn count(&self) -> usize {
        self.members.len()
    }
}

/// Sorts graphs into forms, the largest form first.
pub fn forms(graphs: Vec<TypedGraph>) -> Vec<Form> {
    let mut found: BTreeMap<String, Form> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for graph in graphs {
        let key = outline(&graph);
        if !found.contains_key(&key) {
            order.push(key.clone());
        }
        found.entry(key).or_insert_with(|| Form { members: Vec::new() }).members.push(graph);
    }
    let mut forms: Vec<Form> = order.iter().filter_map(|key| found.remove(key)).collect();
    forms.sort_by_key(|form| std::cmp::Reverse(form.count()));
    forms
}

/// Everything about a graph that one pass cannot leave open.
fn outline(typed: &TypedGraph) -> String {
    let mut text = String::new();
    for (index, node) in typed.graph.nodes().iter().enumerate() {
        match &node.kind {
            NodeKind::Placeholder(_) => {
                let kind = match &typed.types.values[index] {
                    Value::Tensor(tensor) => {
                        format!("{:?}{}", tensor.dtype.kind(), tensor.rank())
                    }
                    other => other.type_name().to_string(),
                };
                let _ = writeln!(text, "{kind}");
            }
            NodeKind::Call(call) => {
                let open = Open::of(call.op());
                let _ = write!(text, "{}", call.target);
                for arg in call.args.iter().chain(call.kwargs.iter().map(|(_, arg)| arg)) {
                    text.push(' ');
                    literal(&mut text, arg, open);
                }
                for (name, _) in &call.kwargs {
                    let _ = write!(text, " {name}");
                }
                text.push('\n');
            }
        }
    }
    for output in &typed.graph.outputs {
        literal(&mut text, output, Open::NOTHING);
    }
    text
}

/// Which literals of a call may differ within a form.
#[derive(Clone, Copy)]
struct Open {
    sizes: bool,
    floats: bool,
}

impl Open {
    const NOTHING: Open = Open { sizes: false, floats: false };

    fn of(op: Option<Op>) -> Open {
        match op {
            Some(
                Op::View
                | Op::Reshape
                | Op::Expand
                | Op::BroadcastTo
                | Op::Unflatten
                | Op::LayerNorm
                | Op::RmsNorm
                | Op::GetItem
                | Op::Narrow
                | Op::Split
                | Op::Interpolate,
            ) => Open { sizes: true, floats: false },
            Some(Op::Add | Op::Sub | Op::Mul | Op::Div) => Open { sizes: false, floats: true },
            _ => Open::NOTHING,
        }
    }
}

fn literal(text: &mut String, arg: &Arg, open: Open) {
    match arg {
        Arg::Node(id) => {
            let _ = write!(text, "%{}", id.index());
        }
        // Ones broadcast and minus ones are inferred: they are part of the form.
        Arg::Int(value) if open.sizes && *value > 1 => text.push('#'),
        Arg::Float(_) if open.floats => text.push('~'),
        Arg::Tuple(items) | Arg::List(items) => {
            text.push('(');
            for item in items {
                literal(text, item, open);
                text.push(',');
            }
            text.push(')');
        }
        Arg::Slice(parts) => {
            text.push('[');
            for part in parts.iter() {
                literal(text, part, open);
                text.push(':');
            }
            text.push(']');
        }
        other => {
            let _ = write!(text, "{other:?}");
        }
    }
}
