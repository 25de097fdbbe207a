//! The pattern: the graph's own statements, with what the graphs differ in as arguments.

use crate::analysis::Piece;
use passnet_graph::print::print_model;

pub(super) struct Pattern {
    /// Imports that the statements need.
    pub(super) imports: String,
    pub(super) text: String,
}

pub(super) fn write(piece: &Piece) -> Pattern {
    let printed = print_model(&piece.graph);
    let imports: String = printed
        .lines()
        .filter(|line| line.starts_with("from torch import"))
        .map(|line| format!("{line}\n"))
        .collect();
    let names: Vec<&str> = piece.graph.placeholders().iter().map(|node| &*node.name).collect();
    let mut text = format!("def pattern({}):\n", names.join(", "));
    let body = printed.lines().skip_while(|line| !line.contains("def forward(")).skip(1);
    for line in body {
        let line = line.trim();
        if line.is_empty() || line.ends_with("= None") {
            continue;
        }
        if line.starts_with("return") {
            continue;
        }
        text.push_str(&format!("    {line}\n"));
    }
    let outputs: Vec<&str> = piece.outputs.iter().map(|id| piece.name(*id)).collect();
    text.push_str(&format!("    return {}\n", outputs.join(", ")));
    Pattern { imports, text }
}

/// What is fused, in one line.
pub(super) fn summary(piece: &Piece) -> String {
    let mut words: Vec<&str> = Vec::new();
    for (_, call) in piece.graph.calls() {
        if let Some(op) = call.op() {
            words.push(op.name());
        }
    }
    let more = words.len().saturating_sub(12);
    words.truncate(12);
    let mut text = words.join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    format!("Fused: {text}.")
}
