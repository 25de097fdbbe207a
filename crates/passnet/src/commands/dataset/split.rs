//! `passnet dataset split`

use super::StoreArgs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn};
use clap::Args;
use passnet_dataset::sample::buckets::PieceKind;
use passnet_dataset::sample::least::LeastGraphs;
use passnet_dataset::sample::sides::{SplitOptions, SplitReport, split_tasks_without};
use passnet_dataset::sample::withhold::{Difference, Withheld, difference};
use passnet_dataset::store::Store;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct SplitArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Evaluation tasks of each kind, but for single operations
    #[arg(long, default_value_t = 200, value_name = "N")]
    evaluation: usize,

    /// Evaluation tasks of single operations; the others are for training
    #[arg(long, default_value_t = 0, value_name = "N")]
    sole_op: usize,

    /// Graphs that an evaluation task has at least; `6,fusible=8` where a kind has its own number
    #[arg(long, default_value = "1", value_name = "N")]
    least_graphs: LeastGraphs,

    /// A store with tasks of which no structure may stand in a training task; the report says how the two differ
    #[arg(long, value_name = "STORE")]
    withhold: Option<PathBuf>,
}

pub fn run(args: SplitArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let withheld = match &args.withhold {
        Some(path) => Some(Withheld::of(&Store::open(path)?)?),
        None => None,
    };
    let mut store = args.store.write()?;
    let nothing = Withheld::default();
    let options = SplitOptions {
        evaluation: args.evaluation,
        sole_op: args.sole_op,
        least_graphs: args.least_graphs,
    };
    let reports = split_tasks_without(&mut store, options, withheld.as_ref().unwrap_or(&nothing))?;
    if reports.is_empty() {
        return Err(CommandError::input("the store has no tasks")
            .with_hint("`passnet dataset sample` makes them"));
    }
    note_few(&reports, args.evaluation);
    if output.is_json() {
        reports.iter().try_for_each(|report| output.json(&to_json(report)))?;
    } else {
        show(output, &reports)?;
    }
    if let Some(withheld) = &withheld {
        show_difference(output, &difference(&store, withheld)?)?;
    }
    Ok(Outcome::Done)
}

/// Operations that are named one by one.
const NAMED: usize = 12;

fn show_difference(output: &mut Output, found: &Difference) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&json!({ "difference": found }));
    }
    let mut rows = table(["operations of a task", "tasks", "least", "median", "nine of ten"]);
    for (name, lengths) in [("training", found.training), ("withheld set", found.withheld)] {
        let numbers = [lengths.tasks, lengths.least, lengths.median, lengths.most];
        let cells = numbers.map(|number| number.to_string());
        rows.add_row([vec![name.to_string()], cells.to_vec()].concat());
    }
    output.table(&rows)?;
    let named = found.never_learned.iter().take(NAMED);
    let named: Vec<String> = named.map(|(op, count)| format!("{op} ({count})")).collect();
    let more = found.never_learned.len().saturating_sub(NAMED);
    match (named.is_empty(), more) {
        (true, _) => output.line("every operation of the withheld set stands in a training task"),
        (false, 0) => output.line(format!("in no training task: {}", named.join(", "))),
        (false, more) => {
            output.line(format!("in no training task: {} and {more} more", named.join(", ")))
        }
    }
}

/// Says where there are fewer tasks than were asked for: no other could be one.
pub(super) fn note_few(reports: &[SplitReport], asked: usize) {
    for report in reports {
        // Single operations are mostly for training.
        if report.evaluation < asked && report.kind != PieceKind::SoleOp {
            warn(&format!(
                "note: {asked} evaluation tasks were asked for, and there are {} tasks of kind {} to choose from: \
                 all of them are for evaluation, {} are left for training",
                report.evaluation,
                report.kind.as_str(),
                report.training
            ));
        }
    }
}

pub(super) fn show(output: &mut Output, reports: &[SplitReport]) -> Result<(), CommandError> {
    let mut shown = table(["kind", "evaluation", "training", "withheld", "transitions shown"]);
    for report in reports {
        shown.add_row([
            report.kind.as_str().to_string(),
            report.evaluation.to_string(),
            report.training.to_string(),
            report.withheld.to_string(),
            format!("{} of {}", report.transitions_shown, report.transitions),
        ]);
    }
    output.table(&shown)
}

pub(super) fn to_json(report: &SplitReport) -> Value {
    json!({
        "kind": report.kind, "evaluation": report.evaluation, "training": report.training,
        "withheld": report.withheld, "transitions": report.transitions,
        "transitions_shown": report.transitions_shown,
    })
}
