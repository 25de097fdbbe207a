//! `passnet dataset find`

use super::{KindArg, StoreArgs, kinds};
use crate::commands::pass::Passes;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::find::{FindReport, Found, Index, Query, op_counts};
use passnet_dataset::store::{Kind, OpCounts};
use passnet_graph::GraphFolder;
use passnet_graph::ops::Op;
use passnet_pass::matcher::{self, MatchOptions, Pattern, TargetGraph};
use passnet_pass::trace::Dialect;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Graphs that people are shown of each search.
const SHOWN: usize = 20;
/// Families and names that people are shown.
const NAMES_SHOWN: usize = 8;

#[derive(Debug, Args)]
pub struct FindArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Pass folders or pass files: where do their patterns match?
    #[arg(long, value_name = "PASS", num_args = 1.., required_unless_present = "op")]
    pass: Vec<PathBuf>,

    /// Operations: which graphs have all of them? (`softmax`, `torch.nn.functional.softmax`)
    #[arg(long, value_name = "OP", value_delimiter = ',', conflicts_with = "pass")]
    op: Vec<String>,

    /// Look at these kinds only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    /// Graphs to show of each search (default: 20, with `--json` all)
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Let `maximum(a, b)` match `maximum(b, a)`, which may return another zero; sums and products always do
    #[arg(long)]
    commutative: bool,
}

pub fn run(args: FindArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let kinds = kinds(&args.kind, &Kind::ALL);
    let workers = args.store.workers.count();
    let passes = Passes {
        passes: args.pass.clone(),
        input_passes: None,
        pattern_limit: None,
        function_limit: None,
    };
    let sets = if args.pass.is_empty() { Vec::new() } else { passes.load()? };
    let bar = Bar::new();
    let index = Index::open(&args.store.store, &kinds, workers, &bar)?;
    let store = args.store.read()?;
    let mut search = |what: Value, query: Query<'_>| -> Result<FindReport, CommandError> {
        let limit = args.limit.unwrap_or(if output.is_json() { usize::MAX } else { SHOWN });
        let mut first: Vec<Found> = Vec::new();
        let report = index.find(&store, query, workers, &bar, |found| {
            if first.len() < limit {
                first.push(found.clone());
            }
        })?;
        match output.is_json() {
            true => show_json(output, &what, &first, &report)?,
            false => show(output, what.as_str().unwrap_or_default(), &first, &report)?,
        }
        Ok(report)
    };
    if !args.op.is_empty() {
        let ops = wanted(&args.op, &index)?;
        let names: Vec<&str> = ops.keys().map(String::as_str).collect();
        let report = search(names.join(", ").into(), Query { ops: &ops, matcher: None })?;
        return Ok(Outcome::failed_if(report.graphs == 0));
    }
    let options = MatchOptions { commutative: args.commutative, ..MatchOptions::default() };
    let mut failed = false;
    for set in &sets {
        let traced = passes.traced(set, Dialect::Plain);
        failed |= traced.failed;
        for pass in &traced.passes {
            let pattern = Pattern::new(&pass.pattern.graph);
            let matcher = |folder: &GraphFolder| {
                matcher::find(&pattern, &TargetGraph::new(&folder.graph), &options).matches.len()
            };
            let ops = op_counts(&pass.pattern.graph);
            let query = Query { ops: &ops, matcher: Some(&matcher) };
            failed |= search(pass.name.as_str().into(), query)?.graphs == 0;
        }
    }
    Ok(Outcome::failed_if(failed))
}

/// The operations that were named, by the names of the table.
fn wanted(names: &[String], index: &Index) -> Result<OpCounts, CommandError> {
    let there = index.operations();
    let mut wanted = OpCounts::new();
    for name in names {
        let last = name.rsplit('.').next().unwrap_or(name);
        let is_known = |op: &Op| op.name() == last;
        let found = match there.contains(name.as_str()) {
            true => name.as_str(),
            false => match Op::all().find(is_known) {
                Some(op) => op.name(),
                None => return Err(unknown(name, last, &there)),
            },
        };
        wanted.insert(found.to_string(), 1);
    }
    Ok(wanted)
}

fn unknown(name: &str, last: &str, there: &BTreeSet<&str>) -> CommandError {
    let error = CommandError::input(format!("no operation is called `{}`", name.escape_debug()));
    let alike: Vec<&str> = there
        .iter()
        .copied()
        .filter(|known| known.contains(last) || last.contains(*known) && known.len() > 2)
        .take(NAMES_SHOWN)
        .collect();
    match alike.is_empty() {
        true => error.with_hint("`passnet dataset stats` lists the operations of a store"),
        false => error.with_hint(format!("there is {}", alike.join(", "))),
    }
}

fn show_json(
    output: &mut Output,
    what: &Value,
    first: &[Found],
    report: &FindReport,
) -> Result<(), CommandError> {
    for found in first {
        output.json(&json!({
            "what": what, "graph": found.path, "kind": found.kind.as_str(), "places": found.places,
        }))?;
    }
    output.json(&json!({"what": what, "summary": report}))
}

fn show(
    output: &mut Output,
    what: &str,
    first: &[Found],
    report: &FindReport,
) -> Result<(), CommandError> {
    output.line(format!(
        "{what}: {} places in {} of {} graphs ({} structures)",
        report.places, report.graphs, report.searched, report.structures
    ))?;
    if report.graphs == 0 {
        return output.line(format!("  {} graphs have all its operations", report.candidates));
    }
    let mut families: Vec<_> = report.families.iter().collect();
    families.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let named: Vec<String> = families
        .iter()
        .take(NAMES_SHOWN)
        .map(|(name, graphs)| format!("{name} {graphs}"))
        .collect();
    output.line(format!("  by family: {}", named.join(", ")))?;
    if first.is_empty() {
        return Ok(());
    }
    let mut rows = table(["places", "kind", "graph"]);
    for found in first {
        rows.add_row([found.places.to_string(), found.kind.to_string(), found.path.clone()]);
    }
    output.table(&rows)?;
    match report.graphs - first.len() {
        0 => Ok(()),
        rest => output.line(format!("and {rest} more (`--limit` shows others, `--json` all)")),
    }
}
