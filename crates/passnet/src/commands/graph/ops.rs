//! `passnet graph ops`

use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn_located};
use crate::paths::for_each_graph;
use clap::{Args, ValueEnum};
use passnet_graph::{Graph, read};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct OpsArgs {
    /// Graph folders, `model.py` files, trees of them, or `.tar.zst` archives
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// What counts as one operation
    #[arg(long, value_enum, default_value_t = By::Op)]
    by: By,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum By {
    /// The operation, whatever its spelling
    Op,
    /// Every way to write it
    Spelling,
    /// The class of work it does
    Class,
}

#[derive(Default)]
struct Count {
    class: &'static str,
    calls: u64,
    graphs: u64,
}

pub fn run(args: OpsArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let mut total = 0_u64;
    let mut failed = false;
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for_each_graph(
        &args.paths,
        |files| read::read_folder(files).map(|folder| count(&folder.graph, args.by)),
        |_, result| {
            match result {
                Ok(in_graph) => {
                    total += 1;
                    for (name, (class, calls)) in in_graph {
                        let count = counts.entry(name).or_default();
                        count.class = class;
                        count.calls += calls;
                        count.graphs += 1;
                    }
                }
                Err(errors) => {
                    failed = true;
                    warn_located(&errors);
                }
            }
            Ok(())
        },
    )?;
    let mut rows: Vec<(String, Count)> = counts.into_iter().collect();
    rows.sort_by(|a, b| b.1.calls.cmp(&a.1.calls).then_with(|| a.0.cmp(&b.0)));
    if output.is_json() {
        for (name, count) in &rows {
            output.json(&json!({
                "op": name, "class": count.class, "calls": count.calls, "graphs": count.graphs
            }))?;
        }
    } else {
        let mut shown = table(["operation", "class", "calls", "graphs", "% of graphs"]);
        for (name, count) in &rows {
            let share = 100.0 * count.graphs as f64 / total.max(1) as f64;
            shown.add_row([
                name.clone(),
                count.class.into(),
                count.calls.to_string(),
                count.graphs.to_string(),
                format!("{share:.1}"),
            ]);
        }
        output.table(&shown)?;
        let calls: u64 = rows.iter().map(|(_, count)| count.calls).sum();
        output.line(format!("{} operations, {calls} calls in {total} graphs", rows.len()))?;
    }
    output.flush()?;
    Ok(Outcome::failed_if(failed))
}

fn count(graph: &Graph, by: By) -> BTreeMap<String, (&'static str, u64)> {
    let mut counts = BTreeMap::new();
    for (_, call) in graph.calls() {
        let class = call.op().map_or("unknown", |op| op.class().name());
        let name = match (by, call.op()) {
            (By::Class, _) => class.to_string(),
            (By::Op, Some(op)) => op.name().to_string(),
            _ => call.target.to_string(),
        };
        counts.entry(name).or_insert((class, 0)).1 += 1;
    }
    counts
}
