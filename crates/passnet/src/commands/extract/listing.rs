//! The models of an extraction by name: its units.

use super::python::{self, records};
use super::{CaptureArgs, Chosen};
use crate::commands::shard::Part;
use crate::error::CommandError;
use passnet_bench::shard::Unit;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// The models of a part, as the extractor reads them; in the folder of an extraction.
const LIST: &str = "models.jsonl";

/// One model, as the extractor lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub family: String,
    pub name: String,
    pub source: String,
    pub options: Map<String, Value>,
}

impl Entry {
    /// The name of its record, and of its folder below `samples/`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.family, self.name)
    }
}

/// The models that are asked for, in the order in which they are captured.
pub fn entries(chosen: Chosen<'_>, args: &CaptureArgs) -> Result<Vec<Entry>, CommandError> {
    let path = std::env::temp_dir().join(format!("passnet-models-{}.jsonl", std::process::id()));
    let listed = python::list(chosen, &path, args)
        .and_then(|()| std::fs::read_to_string(&path).map_err(CommandError::from));
    let _ = std::fs::remove_file(&path);
    let entry = |line: &str| serde_json::from_str::<Entry>(line);
    listed?.lines().map(entry).collect::<Result<_, _>>().map_err(|error| {
        CommandError::bug(format!("the extractor lists something that is no model: {error}"))
    })
}

/// Models as units.
fn units(entries: &[Entry]) -> Vec<Unit> {
    let unit = |(index, entry): (usize, &Entry)| Unit {
        index,
        name: entry.id(),
        sample: String::new(),
        folder: String::new(),
        graphs: Vec::new(),
    };
    entries.iter().enumerate().map(unit).collect()
}

impl CaptureArgs {
    /// What graphs depend on and no record says.
    pub(in crate::commands) fn choices(&self) -> [(&'static str, String); 2] {
        [
            ("way of keeping sizes", if self.dynamic { "symbolic" } else { "fixed" }.into()),
            ("handling of graph breaks", if self.full_graph { "refused" } else { "kept" }.into()),
        ]
    }
}

/// Captures the models of one part, and says so when all of them have a record.
pub(super) fn capture_part(
    chosen: Chosen<'_>,
    out: &Path,
    args: &CaptureArgs,
) -> Result<(), CommandError> {
    let entries = entries(chosen, args)?;
    let all = || units(&entries);
    let part = Part::begin(args.shard, Some(out), "extract", args.choices(), all)?;
    let Some(part) = part else { return Ok(()) };
    let ours: Vec<&Entry> = entries.iter().filter(|entry| part.holds(&entry.id())).collect();
    if !ours.is_empty() {
        python::capture_list(&write_list(out, &ours)?, out, args)?;
    }
    let known = records(out)?;
    match ours.iter().all(|entry| known.contains_key(&entry.id())) {
        true => part.finish(),
        false => Ok(()),
    }
}

fn write_list(out: &Path, entries: &[&Entry]) -> Result<PathBuf, CommandError> {
    let mut text = String::new();
    for entry in entries {
        text.push_str(&serde_json::to_string(entry).map_err(std::io::Error::from)?);
        text.push('\n');
    }
    std::fs::create_dir_all(out)?;
    let path = out.join(LIST);
    std::fs::write(&path, text)?;
    Ok(path)
}
