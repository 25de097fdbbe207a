//! A graph folder: the files that belong together, read and checked against each other.

use super::{Constraints, TensorMeta, read_constraints, read_model, read_tensor_metas};
use crate::Diagnostic;
use crate::graph::Graph;
use crate::syntax::Source;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Map, Value};
use std::path::Path;

/// The texts of a graph folder, wherever they come from. Only `model.py` must be there.
#[derive(Debug, Clone, Default)]
pub struct GraphFiles {
    /// What the graph is called in messages: its folder's path.
    pub path: String,
    pub model: Vec<u8>,
    pub weight_meta: Option<Vec<u8>>,
    pub input_meta: Option<Vec<u8>>,
    pub constraints: Option<Vec<u8>>,
    pub info: Option<Vec<u8>>,
    pub sources: Option<Vec<u8>>,
}

/// Names of the files of a graph folder.
impl GraphFiles {
    pub const MODEL: &str = "model.py";
    pub const WEIGHT_META: &str = "weight_meta.py";
    pub const INPUT_META: &str = "input_meta.py";
    pub const CONSTRAINTS: &str = "input_tensor_constraints.py";
    pub const INFO: &str = "graph_net.json";
    pub const SOURCES: &str = "subgraph_sources.json";

    /// Puts a file's bytes where they belong; files of other names are left alone.
    pub fn set(&mut self, file_name: &str, bytes: Vec<u8>) {
        match file_name {
            Self::MODEL => self.model = bytes,
            Self::WEIGHT_META => self.weight_meta = Some(bytes),
            Self::INPUT_META => self.input_meta = Some(bytes),
            Self::CONSTRAINTS => self.constraints = Some(bytes),
            Self::INFO => self.info = Some(bytes),
            Self::SOURCES => self.sources = Some(bytes),
            _ => {}
        }
    }

    /// Reads the files of a folder, or a single `model.py` with its neighbours.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        let mut files = GraphFiles { path: path.display().to_string(), ..Default::default() };
        let required = if path.is_dir() { path.join(Self::MODEL) } else { path.to_path_buf() };
        files.model = Source::read(&required)?.text().as_bytes().to_vec();
        for name in
            [Self::WEIGHT_META, Self::INPUT_META, Self::CONSTRAINTS, Self::INFO, Self::SOURCES]
        {
            let file = folder.join(name);
            if file.is_file() {
                files.set(name, Source::read(&file)?.text().as_bytes().to_vec());
            }
        }
        Ok(files)
    }

    fn source(&self, name: &str, bytes: &[u8]) -> Result<Source, Diagnostic> {
        let path = Path::new(&self.path);
        let path = if path.extension().is_some_and(|e| e == "py") {
            path.with_file_name(name)
        } else {
            path.join(name)
        };
        Source::from_bytes(path.display().to_string(), bytes.to_vec())
    }
}

/// A folder is a graph's when it holds `model.py`.
pub fn is_graph_folder(path: &Path) -> bool {
    path.join(GraphFiles::MODEL).is_file()
}

/// A graph with everything that is recorded about it.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphFolder {
    pub graph: Graph,
    /// One meta per forward argument, in argument order; empty when the folder has no `weight_meta.py`.
    pub metas: Vec<TensorMeta>,
    pub constraints: Constraints,
    /// `graph_net.json`.
    pub info: Map<String, Value>,
    /// `subgraph_sources.json`: original graph path to `[start, end)` op ranges.
    pub sources: Vec<(String, Vec<(usize, usize)>)>,
}

/// Reads a graph folder; every error of every file is collected.
pub fn read_folder(files: &GraphFiles) -> Result<GraphFolder, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut keep = |error: Diagnostic| errors.push(error);
    let graph = files
        .source(GraphFiles::MODEL, &files.model)
        .and_then(|source| read_model(&source))
        .map_err(&mut keep)
        .ok();
    let constraints = match &files.constraints {
        Some(bytes) => files
            .source(GraphFiles::CONSTRAINTS, bytes)
            .and_then(|source| read_constraints(&source))
            .map_err(&mut keep)
            .unwrap_or_default(),
        None => Constraints::default(),
    };
    let info = json_object(files, GraphFiles::INFO, files.info.as_deref(), &mut keep);
    let sources = json_object(files, GraphFiles::SOURCES, files.sources.as_deref(), &mut keep);
    let sources = read_sources(files, &sources).map_err(&mut keep).unwrap_or_default();
    let mut metas = Vec::new();
    for (name, bytes) in
        [(GraphFiles::WEIGHT_META, &files.weight_meta), (GraphFiles::INPUT_META, &files.input_meta)]
    {
        let Some(bytes) = bytes else { continue };
        match files.source(name, bytes).map_err(|e| vec![e]).and_then(|s| read_tensor_metas(&s)) {
            Ok(read) => metas.extend(read),
            Err(found) => errors.extend(found),
        }
    }
    let Some(graph) = graph else { return Err(errors) };
    if !errors.is_empty() {
        return Err(errors);
    }
    if files.weight_meta.is_some() {
        metas = match_metas(files, &graph, metas)?;
    }
    Ok(GraphFolder { graph, metas, constraints, info, sources })
}

/// Brings the metas into argument order; arguments without meta and metas without argument are errors.
fn match_metas(
    files: &GraphFiles,
    graph: &Graph,
    metas: Vec<TensorMeta>,
) -> Result<Vec<TensorMeta>, Vec<Diagnostic>> {
    let path = Path::new(&files.path).join(GraphFiles::WEIGHT_META).display().to_string();
    let mut errors = Vec::new();
    let mut by_name = FxHashMap::default();
    for meta in metas {
        if let Some(first) = by_name
            .insert(meta.name.clone(), meta)
            .filter(|first| by_name.get(&first.name) != Some(first))
        {
            errors.push(Diagnostic::file(
                &path,
                format!("two classes describe `{}` and contradict each other", first.name),
            ));
        }
    }
    let mut ordered = Vec::with_capacity(by_name.len());
    for placeholder in graph.placeholders() {
        match by_name.remove(&*placeholder.name) {
            Some(meta) => ordered.push(meta),
            None => errors.push(
                Diagnostic::file(
                    &path,
                    format!("no class describes argument `{}`", placeholder.name),
                )
                .with_hint("every argument of `forward` needs shape and dtype"),
            ),
        }
    }
    let arguments: FxHashSet<&str> = graph.placeholders().iter().map(|p| &*p.name).collect();
    let mut extra: Vec<&String> =
        by_name.keys().filter(|name| !arguments.contains(name.as_str())).collect();
    extra.sort();
    for name in extra {
        errors.push(Diagnostic::file(&path, format!("`{name}` is not an argument of `forward`")));
    }
    if errors.is_empty() { Ok(ordered) } else { Err(errors) }
}

fn json_object(
    files: &GraphFiles,
    name: &str,
    bytes: Option<&[u8]>,
    keep: &mut impl FnMut(Diagnostic),
) -> Map<String, Value> {
    let Some(bytes) = bytes else { return Map::new() };
    let source = match files.source(name, bytes) {
        Ok(source) => source,
        Err(error) => {
            keep(error);
            return Map::new();
        }
    };
    match serde_json::from_str(source.text()) {
        Ok(Value::Object(object)) => object,
        Ok(_) => {
            keep(Diagnostic::file(source.path(), "expected a JSON object"));
            Map::new()
        }
        Err(error) => {
            keep(Diagnostic {
                line: error.line(),
                column: error.column(),
                ..Diagnostic::file(source.path(), format!("not valid JSON: {error}"))
            });
            Map::new()
        }
    }
}

fn read_sources(
    files: &GraphFiles,
    object: &Map<String, Value>,
) -> Result<Vec<(String, Vec<(usize, usize)>)>, Diagnostic> {
    let error = || {
        let path = Path::new(&files.path).join(GraphFiles::SOURCES).display().to_string();
        Diagnostic::file(path, "expected `{\"graph path\": [[start, end], ...]}`")
    };
    let entries = object.iter().map(|(path, ranges)| {
        let ranges: Vec<(usize, usize)> =
            serde_json::from_value(ranges.clone()).map_err(|_| error())?;
        Ok((path.clone(), ranges))
    });
    entries.collect()
}
