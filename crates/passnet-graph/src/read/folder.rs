//! A graph folder: the files that belong together, read and checked against each other.

use super::{Constraints, TensorMeta, read_constraints, read_model, read_tensor_metas};
use crate::Diagnostic;
use crate::files::{FileName, GraphFiles};
use crate::graph::Graph;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A graph with everything that is recorded about it.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFolder {
    /// What `model.py` computes.
    pub graph: Graph,
    /// One meta per forward argument, in argument order; empty when the folder has no `weight_meta.py`.
    pub metas: Vec<TensorMeta>,
    /// Which sizes are symbols; empty where the folder has no such file.
    pub constraints: Constraints,
    /// `graph_net.json`.
    pub info: Map<String, Value>,
    /// `subgraph_sources.json`: original graph path to `[start, end)` op ranges.
    pub sources: Vec<(String, Vec<(usize, usize)>)>,
}

/// Reads a graph folder; every error of every file is collected.
pub fn read_folder(files: &GraphFiles) -> Result<GraphFolder, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let graph = match files.source(FileName::Model) {
        Some(source) => keep(source.and_then(|source| read_model(&source)), &mut errors),
        None => {
            let hint = "a graph folder holds at least `model.py`";
            errors.push(Diagnostic::file(&files.path, "there is no `model.py`").with_hint(hint));
            None
        }
    };
    let constraints = files
        .source(FileName::InputTensorConstraints)
        .and_then(|source| keep(source.and_then(|s| read_constraints(&s)), &mut errors))
        .unwrap_or_default();
    let info = keep(json_object(files, FileName::GraphNet), &mut errors).unwrap_or_default();
    let sources = keep(read_sources(files), &mut errors).unwrap_or_default();
    let mut metas = Vec::new();
    for name in [FileName::WeightMeta, FileName::InputMeta] {
        let Some(source) = files.source(name) else { continue };
        match source.map_err(|error| vec![error]).and_then(|source| read_tensor_metas(&source)) {
            Ok(read) => metas.extend(read),
            Err(found) => errors.extend(found),
        }
    }
    let (Some(graph), true) = (graph, errors.is_empty()) else { return Err(errors) };
    if files.get(FileName::WeightMeta).is_some() {
        metas = match_metas(&files.file_path(FileName::WeightMeta), &graph, metas)?;
    }
    Ok(GraphFolder { graph, metas, constraints, info, sources })
}

fn keep<T>(result: Result<T, Diagnostic>, errors: &mut Vec<Diagnostic>) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}

/// Brings the metas into argument order; arguments without meta and metas without argument are errors.
fn match_metas(
    path: &str,
    graph: &Graph,
    metas: Vec<TensorMeta>,
) -> Result<Vec<TensorMeta>, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut by_name: BTreeMap<String, TensorMeta> = BTreeMap::new();
    for meta in metas {
        match by_name.get(&meta.name) {
            Some(first) if *first != meta => errors.push(Diagnostic::file(
                path,
                format!("two classes describe `{}` and contradict each other", meta.name),
            )),
            _ => {
                by_name.insert(meta.name.clone(), meta);
            }
        }
    }
    let mut ordered = Vec::with_capacity(by_name.len());
    for placeholder in graph.placeholders() {
        match by_name.remove(&*placeholder.name) {
            Some(meta) => ordered.push(meta),
            None => errors.push(
                Diagnostic::file(
                    path,
                    format!("no class describes argument `{}`", placeholder.name),
                )
                .with_hint("every argument of `forward` needs shape and dtype"),
            ),
        }
    }
    for name in by_name.keys() {
        errors.push(Diagnostic::file(path, format!("`{name}` is not an argument of `forward`")));
    }
    if errors.is_empty() { Ok(ordered) } else { Err(errors) }
}

fn json_object(files: &GraphFiles, name: FileName) -> Result<Map<String, Value>, Diagnostic> {
    let Some(source) = files.source(name) else { return Ok(Map::new()) };
    let source = source?;
    match serde_json::from_str(source.text()) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Diagnostic::file(source.path(), "expected a JSON object")),
        Err(error) => Err(Diagnostic {
            line: error.line(),
            column: error.column(),
            ..Diagnostic::file(source.path(), format!("not valid JSON: {error}"))
        }),
    }
}

type Sources = Vec<(String, Vec<(usize, usize)>)>;

fn read_sources(files: &GraphFiles) -> Result<Sources, Diagnostic> {
    let object = json_object(files, FileName::SubgraphSources)?;
    let entries = object.into_iter().map(|(path, ranges)| {
        let ranges = serde_json::from_value(ranges).map_err(|_| {
            Diagnostic::file(
                files.file_path(FileName::SubgraphSources),
                "expected `{\"graph path\": [[start, end], ...]}`",
            )
        })?;
        Ok((path, ranges))
    });
    entries.collect()
}
