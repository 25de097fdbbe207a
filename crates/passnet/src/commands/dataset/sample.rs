//! `passnet dataset sample`

use super::running::RunArgs;
use super::{KindArg, PIECES, StoreArgs, kinds};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn};
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::sample::tasks::sample_running;
use passnet_dataset::verify::Runner;
use passnet_graph::{GraphFiles, GraphFolder};
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Debug, Args)]
pub struct SampleArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Group these kinds of pieces only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    #[command(flatten)]
    running: RunArgs,
}

pub fn run(args: SampleArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let mut store = args.store.write()?;
    let kinds = kinds(&args.kind, &PIECES);
    let run = |files: &GraphFiles, folder: &GraphFolder| args.running.refusal(files, folder);
    let runner: Option<Runner<'_>> = if args.running.is_asked() { Some(&run) } else { None };
    let workers = args.store.workers.count();
    let (tasks, refused) = sample_running(&mut store, &kinds, runner, workers, &Bar::new())?;
    for (path, reason) in &refused {
        warn(&format!("note: left out: {path}: {reason}"));
    }
    if output.is_json() {
        for task in &tasks {
            let uids: Vec<&str> = task.graphs.iter().map(|graph| graph.uid.as_str()).collect();
            output.json(&json!({
                "id": task.id, "kind": task.kind, "rule": task.rule, "ops": task.ops, "uids": uids,
            }))?;
        }
        return Ok(Outcome::Done);
    }
    let mut counts: BTreeMap<(&str, String), (usize, usize)> = BTreeMap::new();
    for task in &tasks {
        let rule = format!("{:?}", task.rule);
        let count = counts.entry((task.kind.as_str(), rule)).or_default();
        count.0 += 1;
        count.1 += task.graphs.len();
    }
    let mut shown = table(["kind", "rule", "tasks", "graphs"]);
    for ((kind, rule), (tasks, graphs)) in counts {
        shown.add_row([kind.to_string(), rule, tasks.to_string(), graphs.to_string()]);
    }
    output.table(&shown)?;
    output.line(format!("{} tasks", tasks.len()))?;
    Ok(Outcome::Done)
}
