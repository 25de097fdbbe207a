//! What an extraction gave: graphs with their identities, failures by reason.

use super::Record;
use super::check::Checked;
use crate::error::CommandError;
use crate::output::{Output, table};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Beyond these, graphs and errors are counted and not listed.
const LISTED: usize = 20;

pub(super) fn show(
    output: &mut Output,
    records: &BTreeMap<String, Record>,
    graphs: &[Checked],
) -> Result<(), CommandError> {
    if output.is_json() {
        return show_json(output, records, graphs);
    }
    if graphs.len() <= LISTED {
        let mut shown = table(["graph", "operations", "identity"]);
        for graph in graphs {
            let identity = graph.identity.as_ref().map_or("unreadable", |[_, _, full]| full);
            let short = identity.get(..16).unwrap_or(identity);
            shown.add_row([graph.path.clone(), graph.operations.to_string(), short.to_string()]);
        }
        output.table(&shown)?;
    }
    let refused: Vec<(&str, &str)> = graphs
        .iter()
        .filter_map(|graph| Some((graph.path.as_str(), graph.problem.as_deref()?)))
        .collect();
    for (path, problem) in refused.iter().take(LISTED) {
        output.line(format!("refused: {path}: {problem}"))?;
    }
    show_failures(output, records)?;
    let captured = records.values().filter(|record| record.is_captured()).count();
    output.line(format!("{} models tried, {captured} captured", records.len()))?;
    output.line(format!(
        "{} graphs, {} unique with shapes, {} unique structures, {} refused",
        graphs.len(),
        unique(graphs, 2),
        unique(graphs, 0),
        refused.len(),
    ))
}

/// How many different graphs there are, at one level of identity.
fn unique(graphs: &[Checked], level: usize) -> usize {
    let digests = graphs.iter().filter_map(|graph| graph.identity.as_ref()?.get(level));
    digests.collect::<BTreeSet<_>>().len()
}

/// Failures by kind, most frequent first, each with an example.
pub fn failures(records: &BTreeMap<String, Record>) -> Vec<(String, Vec<&Record>)> {
    let mut kinds: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records.values().filter(|record| !record.is_captured()) {
        let kind = record.kind.clone().unwrap_or_else(|| "unknown".into());
        kinds.entry(kind).or_default().push(record);
    }
    let mut sorted: Vec<_> = kinds.into_iter().collect();
    sorted.sort_by_key(|(_, records)| std::cmp::Reverse(records.len()));
    sorted
}

fn show_failures(
    output: &mut Output,
    records: &BTreeMap<String, Record>,
) -> Result<(), CommandError> {
    let failures = failures(records);
    if failures.is_empty() {
        return Ok(());
    }
    let mut shown = table(["failed because", "models", "for example"]);
    for (kind, failed) in &failures {
        let example = failed.first().map(|record| {
            let reason: String = record.reason.as_deref().unwrap_or("").chars().take(100).collect();
            format!("{}: {reason}", record.id)
        });
        shown.add_row([kind.clone(), failed.len().to_string(), example.unwrap_or_default()]);
    }
    output.table(&shown)
}

fn show_json(
    output: &mut Output,
    records: &BTreeMap<String, Record>,
    graphs: &[Checked],
) -> Result<(), CommandError> {
    for record in records.values() {
        output.json(&json!({"model": record}))?;
    }
    for graph in graphs {
        let [structure, literals, full] = graph.identity.clone().unwrap_or_default();
        output.json(&json!({"graph": {
            "path": graph.path,
            "operations": graph.operations,
            "structure": structure,
            "literals": literals,
            "full": full,
            "refused": graph.problem,
        }}))?;
    }
    Ok(())
}
