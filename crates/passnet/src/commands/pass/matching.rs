//! `passnet pass match`

use super::prepare::read_graph;
use super::{Matching, Passes, Semantics, counted};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn_located};
use crate::paths::for_each_graph;
use clap::Args;
use passnet_graph::GraphFolder;
use passnet_pass::explain::{NamedGraph, brief};
use passnet_pass::generality::{Generality, Observation, observe};
use passnet_pass::load::Program;
use passnet_pass::matcher::{self, MatchOptions, Pattern, TargetGraph, reference};
use passnet_pass::trace::Pass;
use serde_json::json;
use std::path::PathBuf;

/// Near misses and types shown for one pass.
const SHOWN: usize = 8;

#[derive(Debug, Args)]
pub struct MatchArgs {
    #[command(flatten)]
    passes: Passes,

    /// Graph folders, trees of them, or `.tar.zst` archives
    #[arg(long = "in", required = true, num_args = 1.., value_name = "GRAPHS")]
    graphs: Vec<PathBuf>,

    #[command(flatten)]
    matching: Matching,

    /// How widely each pass applies: one JSON object for each pass instead of each pass and graph
    #[arg(long)]
    summary: bool,
}

/// What became of one pass on one graph.
struct Row {
    pass: usize,
    matches: usize,
    reason: Option<String>,
    observation: Option<Observation>,
}

pub fn run(args: MatchArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let sets = args.passes.load()?;
    let (passes, mut failed) = args.passes.traced_with_sets(&sets, args.matching.dialect());
    let options = args.matching.options();
    // A person reads the summary; near misses are worked out for it only.
    let summary = args.summary || !output.is_json();
    let mut totals: Vec<Generality> =
        passes.iter().map(|(_, pass)| Generality::new(&pass.name)).collect();
    for_each_graph(
        &args.graphs,
        |files| {
            let (folder, source) = read_graph(files)?;
            let named =
                NamedGraph { name: &files.path, graph: &folder.graph, source: source.as_ref() };
            let rows = passes.iter().enumerate().map(|(index, (set, pass))| {
                match args.matching.semantics {
                    Semantics::Reference => by_reference(index, pass, named),
                    Semantics::Default => {
                        by_default(index, &set.program, pass, named, &folder, &options, summary)
                    }
                }
            });
            let rows: Vec<Row> = rows.collect();
            Ok((model_name(&folder, &files.path), rows))
        },
        |path, result: Result<_, Vec<passnet_graph::Diagnostic>>| {
            let (model, rows) = match result {
                Ok(found) => found,
                Err(errors) => {
                    failed = true;
                    warn_located(&errors);
                    return Ok(());
                }
            };
            for row in rows {
                let total = &mut totals[row.pass];
                match &row.observation {
                    Some(observation) => total.add(&model, path, observation),
                    None => {
                        total.graphs += 1;
                        total.graphs_matched += usize::from(row.matches > 0);
                        total.matches += row.matches;
                    }
                }
                if output.is_json() && !args.summary {
                    output.json(&json!({
                        "pass": passes[row.pass].1.name,
                        "graph": path,
                        "matches": row.matches,
                        "reason": row.reason,
                    }))?;
                }
            }
            Ok(())
        },
    )?;
    for total in &totals {
        failed |= total.matches == 0;
        if output.is_json() {
            if args.summary {
                let value = serde_json::to_value(total).unwrap_or_default();
                output.json(&value)?;
            }
        } else {
            show(output, total)?;
        }
    }
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn model_name(folder: &GraphFolder, path: &str) -> String {
    let recorded = folder.info.get("model_name").and_then(|name| name.as_str());
    recorded.map_or_else(|| path.to_string(), str::to_string)
}

fn by_default(
    index: usize,
    program: &Program,
    pass: &Pass,
    named: NamedGraph<'_>,
    folder: &GraphFolder,
    options: &MatchOptions,
    summary: bool,
) -> Row {
    if summary {
        let observation = observe(program, pass, named, folder, options);
        let matches = observation.matches.len();
        return Row { pass: index, matches, reason: None, observation: Some(observation) };
    }
    let pattern = Pattern::new(&pass.pattern.graph);
    let outcome = matcher::find(&pattern, &TargetGraph::new(named.graph), options);
    let reason = outcome.miss.map(|miss| brief(pass, named.graph, &miss));
    Row { pass: index, matches: outcome.matches.len(), reason, observation: None }
}

fn by_reference(index: usize, pass: &Pass, named: NamedGraph<'_>) -> Row {
    let normal = reference::normalise(&pass.pattern.graph);
    let (matches, reason) = match reference::find(&normal, named.graph) {
        Ok(found) if found.is_empty() => (0, Some("torch.fx finds no match".to_string())),
        Ok(found) => (found.len(), None),
        Err(error) => (0, Some(error.to_string())),
    };
    Row { pass: index, matches, reason, observation: None }
}

fn show(output: &mut Output, total: &Generality) -> Result<(), CommandError> {
    output.line(format!(
        "pass {}: {} in {} of {}",
        total.pass,
        counted(total.matches, "match", "matches"),
        total.graphs_matched,
        counted(total.graphs, "graph", "graphs"),
    ))?;
    if total.models_matched > 0 {
        output.line(format!(
            "  {}, {}",
            counted(total.models_matched, "model", "models"),
            counted(total.structures_matched, "distinct structure", "distinct structures"),
        ))?;
    }
    if !total.taps.is_empty() {
        let mut taps: Vec<_> = total.taps.iter().collect();
        taps.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let mut rows = table(["matches", "arguments"]);
        for (types, count) in taps.iter().take(SHOWN) {
            rows.add_row([count.to_string(), (*types).clone()]);
        }
        output.table(&rows)?;
        if taps.len() > SHOWN {
            let rest = counted(taps.len() - SHOWN, "other combination", "other combinations");
            output.line(format!("  and {rest}"))?;
        }
    }
    near_misses(output, total)?;
    reasons(output, total)
}

/// Single changes that would make more graphs match, the most rewarding first.
fn near_misses(output: &mut Output, total: &Generality) -> Result<(), CommandError> {
    let mut near: Vec<_> = total.near_misses.iter().collect();
    near.sort_by(|a, b| b.1.graphs.cmp(&a.1.graphs).then(a.0.cmp(b.0)));
    if !near.is_empty() {
        output.line("  one change away:")?;
    }
    for (message, count) in near.iter().take(SHOWN) {
        let graphs = counted(count.graphs, "graph", "graphs");
        output.line(format!("  {graphs:>13}: {}", shortened(message)))?;
        output.line(format!("{:17}{}", "", shortened(&count.change)))?;
        output.line(format!("{:17}for example in {}", "", count.example))?;
    }
    Ok(())
}

/// Text with long argument lists cut off, for a line of a table.
fn shortened(text: &str) -> String {
    const MOST: usize = 140;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

/// What stands in the way elsewhere, the most common first.
fn reasons(output: &mut Output, total: &Generality) -> Result<(), CommandError> {
    let mut reasons: Vec<_> = total.reasons.iter().collect();
    reasons.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    if !reasons.is_empty() {
        let elsewhere = if total.matches > 0 { " elsewhere" } else { "" };
        output.line(format!("  no match{elsewhere} because:"))?;
    }
    for (reason, count) in reasons.iter().take(SHOWN) {
        output.line(format!("  {:>13}: {reason}", counted(**count, "graph", "graphs")))?;
    }
    if let Some(rest) = reasons.get(SHOWN..).filter(|rest| !rest.is_empty()) {
        let graphs: usize = rest.iter().map(|(_, count)| **count).sum();
        let reasons = counted(rest.len(), "other reason", "other reasons");
        output.line(format!("  {:>13}: {reasons}", counted(graphs, "graph", "graphs")))?;
    }
    Ok(())
}
