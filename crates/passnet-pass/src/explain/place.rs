//! A place in a pass file or a graph file, with the text that stands there.

use super::NamedGraph;
use crate::load::Program;
use crate::trace::Pass;
use passnet_graph::graph::CalleeKind;
use passnet_graph::print::print_arg;
use passnet_graph::{Graph, NodeId};
use serde::Serialize;

/// Longest piece of text shown for one operation.
const SHOWN: usize = 88;

/// Where something is written.
#[derive(Debug, Clone, Serialize)]
pub struct Place {
    /// The path as messages give it.
    pub file: String,
    /// Counted from 1; 0 where the node was not read from a file.
    pub line: usize,
    /// The statement itself.
    pub text: String,
}

impl Place {
    pub(super) fn in_pass(program: &Program, pass: &Pass, id: NodeId) -> Self {
        let origin = pass.pattern.origins[id.index()];
        let source = &program.module(origin.module).source;
        Place {
            file: source.path().to_string(),
            line: source.position(origin.range.start().to_usize()).0,
            text: one_line(source.slice(origin.range)),
        }
    }

    pub(super) fn in_graph(named: NamedGraph<'_>, id: NodeId) -> Self {
        let node = named.graph.node(id);
        let line = node.line as usize;
        let written = named.source.filter(|_| line > 0).map(|source| {
            let text = source.line_text(line);
            // What follows a semicolon only frees memory.
            text.split(';').next().unwrap_or(text)
        });
        let text = match (named.graph.call(id), written) {
            (None, _) => format!("input {}", node.name),
            // A statement that goes over several lines is shown as the graph has it.
            (Some(_), Some(text)) if is_whole(text) => one_line(text),
            (Some(_), _) => one_line(&statement(named.graph, id)),
        };
        let file = named.source.map_or_else(|| named.name.to_string(), |s| s.path().to_string());
        Place { file, line, text }
    }
}

fn is_whole(text: &str) -> bool {
    let count = |open: char, close: char| text.matches(open).count() == text.matches(close).count();
    !text.trim().is_empty() && count('(', ')') && count('[', ']')
}

/// One line of text, cut if it is long.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// A node as a line of Python.
pub(super) fn statement(graph: &Graph, id: NodeId) -> String {
    let name = &graph.node(id).name;
    match graph.call(id) {
        None => name.to_string(),
        Some(_) => format!("{name} = {}", call_text(graph, id)),
    }
}

/// The right-hand side of a node as Python.
pub(super) fn call_text(graph: &Graph, id: NodeId) -> String {
    let Some(call) = graph.call(id) else { return graph.node(id).name.to_string() };
    let mut args: Vec<String> = call.args.iter().map(|arg| print_arg(graph, arg)).collect();
    args.extend(call.kwargs.iter().map(|(name, arg)| format!("{name}={}", print_arg(graph, arg))));
    let path = call.target.path();
    match call.target.kind() {
        CalleeKind::Function => format!("{path}({})", args.join(", ")),
        CalleeKind::Operator => format!("operator.{path}({})", args.join(", ")),
        CalleeKind::Method if !args.is_empty() => {
            format!("{}.{path}({})", args[0], args[1..].join(", "))
        }
        CalleeKind::Attribute if !args.is_empty() => format!("{}.{path}", args[0]),
        _ => path.to_string(),
    }
}
