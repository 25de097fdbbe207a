//! `passnet dataset split`

use super::StoreArgs;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn};
use clap::Args;
use passnet_dataset::sample::buckets::PieceKind;
use passnet_dataset::sample::tasks::{SplitReport, split_tasks};
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub struct SplitArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Evaluation tasks of each kind
    #[arg(long, default_value_t = 200, value_name = "N")]
    evaluation: usize,
}

pub fn run(args: SplitArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let mut store = args.store.write()?;
    let reports = split_tasks(&mut store, args.evaluation)?;
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
    Ok(Outcome::Done)
}

/// Says where there are fewer tasks than were asked for: nothing is left to train on there.
pub(super) fn note_few(reports: &[SplitReport], asked: usize) {
    for report in reports {
        // Single operations are all for training.
        if report.evaluation < asked && report.kind != PieceKind::SoleOp {
            warn(&format!(
                "note: {asked} evaluation tasks were asked for, and there are {} tasks of kind {}: all of them are for \
                 evaluation, none is left for training",
                report.evaluation,
                report.kind.as_str()
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
