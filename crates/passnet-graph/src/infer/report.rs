//! The inferred types as data for other programs.

use super::infer_folder;
use crate::read::GraphFolder;
use serde_json::{Value as Json, json};

/// The operations without types: `{"nodes": [{"index", "name", "op", "class", "line"}]}`.
pub fn outline(folder: &GraphFolder) -> Json {
    let nodes: Vec<Json> = folder
        .graph
        .calls()
        .enumerate()
        .map(|(index, (id, call))| {
            json!({
                "index": index,
                "name": folder.graph.node(id).name,
                "op": call.target.op_name(),
                "class": call.op().map(|op| op.class().name()),
                "line": folder.graph.node(id).line,
            })
        })
        .collect();
    json!({ "nodes": nodes })
}

/// `{"nodes": [{"index", "name", "op", "type"}], "failures": […], "guards": […]}`; `index` counts operations.
pub fn report(folder: &GraphFolder) -> Json {
    let inference = infer_folder(folder);
    let nodes: Vec<Json> = folder
        .graph
        .calls()
        .enumerate()
        .map(|(index, (id, call))| {
            json!({
                "index": index,
                "name": folder.graph.node(id).name,
                "op": call.target.op_name(),
                "type": inference.value(id).to_json(),
            })
        })
        .collect();
    let failures: Vec<Json> = inference
        .failures
        .iter()
        .map(|failure| {
            json!({ "name": failure.name, "line": failure.line, "message": failure.message })
        })
        .collect();
    let guards: Vec<String> = inference.guards.iter().map(ToString::to_string).collect();
    json!({ "nodes": nodes, "failures": failures, "guards": guards })
}
