//! The inferred types as data for other programs.

use super::infer_folder;
use crate::graph::{Call, NodeId};
use crate::read::GraphFolder;
use serde_json::{Value as Json, json};

/// The operations in order, each with what `more` says of it.
fn nodes(folder: &GraphFolder, more: impl Fn(NodeId, &Call, &mut Json)) -> Vec<Json> {
    let calls = folder.graph.calls().enumerate();
    calls
        .map(|(index, (id, call))| {
            let mut node = json!({
                "index": index,
                "name": folder.graph.node(id).name,
                "op": call.target.op_name(),
            });
            more(id, call, &mut node);
            node
        })
        .collect()
}

/// The operations without types: `{"nodes": [{"index", "name", "op", "class", "line"}]}`.
pub fn outline(folder: &GraphFolder) -> Json {
    let nodes = nodes(folder, |id, call, node| {
        node["class"] = json!(call.op().map(|op| op.class().name()));
        node["line"] = folder.graph.node(id).line.into();
    });
    json!({ "nodes": nodes })
}

/// `{"nodes": [{"index", "name", "op", "type"}], "failures": […], "guards": […]}`; `index` counts operations.
pub fn report(folder: &GraphFolder) -> Json {
    let inference = infer_folder(folder);
    let nodes = nodes(folder, |id, _, node| node["type"] = inference.value(id).to_json());
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
