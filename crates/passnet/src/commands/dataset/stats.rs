//! `passnet dataset stats`

use super::{KindArg, StoreArgs, kinds, stats_page};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::stats::{KindStats, Spread, Stats, stats};
use passnet_dataset::store::Kind;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct StatsArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Look at these kinds only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    /// Operations to list, most used first
    #[arg(long, default_value_t = 20, value_name = "N")]
    top: usize,

    /// Write pictures as well: operations over families, the long tail, sizes, depth, lengths, what is alike
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub fn run(args: StatsArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let store = args.store.read()?;
    let kinds = kinds(&args.kind, &Kind::ALL);
    let stats = stats(&store, &kinds, args.store.workers.count(), &Bar::new())?;
    if let Some(path) = &args.html {
        std::fs::write(path, stats_page::page(&stats, &stats.pictures)).map_err(|error| {
            CommandError::input(format!("{} cannot be written: {error}", path.display()))
        })?;
    }
    if output.is_json() {
        let value = serde_json::to_value(&stats).map_err(|e| CommandError::bug(e.to_string()))?;
        output.json(&value)?;
        return Ok(Outcome::Done);
    }
    show(output, &stats, args.top)?;
    Ok(Outcome::Done)
}

fn show(output: &mut Output, stats: &Stats, top: usize) -> Result<(), CommandError> {
    output.line(format!("{} graphs, {:.1} MB", stats.graphs, stats.store_bytes as f64 / 1e6))?;
    output.line(format!("content {}", stats.content))?;
    if let Some(version) = &stats.version {
        output.line(format!("benchmark set, version {version}"))?;
    }
    let mut shown = table([
        "kind",
        "graphs",
        "structures",
        "with literals",
        "with shapes",
        "ops",
        "ops a graph",
        "elements a graph",
    ]);
    for (kind, one) in &stats.kinds {
        shown.add_row([
            (*kind).to_string(),
            one.graphs.to_string(),
            one.unique_structure.to_string(),
            one.unique_literals.to_string(),
            one.unique_full.to_string(),
            one.op_total.to_string(),
            spread(one.op_counts),
            spread(one.elements),
        ]);
    }
    output.table(&shown)?;
    output.line("(a graph: minimum, 10 %, median, 90 %, maximum)")?;
    by(output, stats, "family", |one| one.families.clone())?;
    by(output, stats, "dtype", |one| one.dtypes.clone())?;
    by(output, stats, "shape", |one| {
        one.shape_indices.iter().map(|(index, count)| (index.to_string(), *count)).collect()
    })?;
    let mut ops: Vec<_> = stats.ops.iter().collect();
    ops.sort_by(|a, b| b.1.calls.cmp(&a.1.calls).then_with(|| a.0.cmp(b.0)));
    output.line(format!("\n{} operations", ops.len()))?;
    let mut shown = table(["operation", "calls", "graphs"]);
    for (name, op) in ops.into_iter().take(top) {
        shown.add_row([name.clone(), op.calls.to_string(), op.graphs.to_string()]);
    }
    output.table(&shown)
}

fn spread(spread: Spread) -> String {
    let Spread { min, p10, median, p90, max } = spread;
    format!("{min} {p10} {median} {p90} {max}")
}

/// One row for each value of a property, one column for each kind.
fn by(
    output: &mut Output,
    stats: &Stats,
    property: &str,
    counts: impl Fn(&KindStats) -> BTreeMap<String, u64>,
) -> Result<(), CommandError> {
    let columns: Vec<(&str, BTreeMap<String, u64>)> =
        stats.kinds.iter().map(|(kind, one)| (*kind, counts(one))).collect();
    let mut rows: Vec<&String> = columns.iter().flat_map(|(_, counts)| counts.keys()).collect();
    rows.sort_unstable();
    rows.dedup();
    if rows.is_empty() {
        return Ok(());
    }
    output.line("")?;
    let header = std::iter::once(property).chain(columns.iter().map(|(kind, _)| *kind));
    let mut shown = table(header.collect::<Vec<_>>());
    for row in rows {
        let cells = columns
            .iter()
            .map(|(_, counts)| counts.get(row).map_or(String::new(), |count| count.to_string()));
        shown.add_row(std::iter::once(row.clone()).chain(cells).collect::<Vec<_>>());
    }
    output.table(&shown)
}
