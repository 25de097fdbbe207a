//! Captured graphs read back: identified, held against the constraints of the dataset, and told which of their sizes may vary.

use crate::error::CommandError;
use crate::paths::for_each_graph;
use passnet_dataset::verify::verify_graph;
use passnet_graph::check::check_folder;
use passnet_graph::print::print_constraints;
use passnet_graph::resize::{find_symbols, records_symbols};
use passnet_graph::{FileName, GraphFiles, identify, read};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Where graphs are, below the folder of an extraction.
pub const SAMPLES: &str = "samples";
pub const REFUSED: &str = "refused";
pub const REASONS: &str = "refused.jsonl";

/// One graph as it was read back.
#[derive(Debug)]
pub struct Checked {
    pub path: String,
    pub operations: usize,
    /// The three digests, where the graph can be read: structure, with literals, with shapes.
    pub identity: Option<[String; 3]>,
    /// The first constraint that it does not meet.
    pub problem: Option<String>,
}

/// Looks at every graph of an extraction. Those that break a constraint are moved aside, so that what remains can be
/// imported whole.
pub fn check(out: &Path) -> Result<Vec<Checked>, CommandError> {
    let samples = out.join(SAMPLES);
    let mut found = Vec::new();
    if !samples.is_dir() {
        return Ok(found);
    }
    for_each_graph(std::slice::from_ref(&samples), look_at, |path, look| {
        if let Some(symbols) = look.symbols {
            write_whole(
                &Path::new(path).join(FileName::InputTensorConstraints.as_str()),
                &symbols,
            )?;
        }
        found.push(Checked {
            path: path.into(),
            operations: look.operations,
            identity: look.identity,
            problem: look.problem,
        });
        Ok(())
    })?;
    for graph in &found {
        if let Some(problem) = &graph.problem {
            set_aside(out, &samples, &graph.path, problem)?;
        }
    }
    Ok(found)
}

/// Why graphs were moved aside, in this run and in earlier ones, by path. Lines that a kill tore are passed over.
pub fn refused(out: &Path) -> Result<BTreeMap<String, String>, CommandError> {
    let path = out.join(REASONS);
    let text = if path.is_file() { fs::read(path)? } else { Vec::new() };
    let line = |line: &[u8]| -> Option<(String, String)> {
        let value: Value = serde_json::from_slice(line).ok()?;
        Some((value["path"].as_str()?.into(), value["reason"].as_str()?.into()))
    };
    Ok(text.split(|byte| *byte == b'\n').filter_map(line).collect())
}

/// What reading a graph tells.
#[derive(Default)]
struct Look {
    operations: usize,
    identity: Option<[String; 3]>,
    problem: Option<String>,
    /// The file that says which sizes may vary, where capture wrote none.
    symbols: Option<String>,
}

fn look_at(files: &GraphFiles) -> Look {
    let mut folder = match read::read_folder(files) {
        Ok(folder) => folder,
        Err(errors) => {
            let problem = errors.first().map(ToString::to_string);
            return Look { problem, ..Look::default() };
        }
    };
    let identity = identify(&folder.graph, &folder.metas);
    let digests = [identity.structure, identity.literals, identity.full];
    let problem = check_folder(&files.path, &folder).first().map(|error| error.message.clone());
    let problem = problem.or_else(|| {
        let violations = verify_graph(files, None);
        violations.first().map(|v| format!("not {}: {}", v.constraint.as_str(), v.reason))
    });
    let mut symbols = None;
    if problem.is_none() && !records_symbols(&folder.constraints) {
        folder.constraints = find_symbols(&folder);
        symbols = Some(print_constraints(&folder.constraints)).filter(|text| !text.is_empty());
    }
    Look {
        operations: folder.graph.op_count(),
        identity: Some(digests.map(|digest| digest.to_string())),
        problem,
        symbols,
    }
}

/// A file appears whole or not at all.
fn write_whole(path: &Path, text: &str) -> Result<(), CommandError> {
    let beside = path.with_extension("new");
    fs::write(&beside, text)?;
    Ok(fs::rename(beside, path)?)
}

fn set_aside(out: &Path, samples: &Path, path: &str, problem: &str) -> Result<(), CommandError> {
    let Ok(below) = Path::new(path).strip_prefix(samples) else { return Ok(()) };
    let place = out.join(REFUSED).join(below);
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    // The reason first: a kill in between leaves a graph that is looked at again.
    let mut reasons = OpenOptions::new().create(true).append(true).open(out.join(REASONS))?;
    writeln!(reasons, "{}", json!({"path": below, "reason": problem}))?;
    Ok(fs::rename(path, place)?)
}
