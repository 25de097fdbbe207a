//! `passnet dataset import`

use super::Workers;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn_located};
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::checkout::{Checkout, CheckoutReport, import_checkout, is_checkout};
use passnet_dataset::describe::describe;
use passnet_dataset::hub::{Hub, HubReport, import_hub, is_hub};
use passnet_dataset::import::{ImportOptions, ImportReport, import};
use passnet_dataset::source::{self, GraphSource, Limits};
use passnet_dataset::store::Store;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Graph folders, trees of them, `.tar.zst` archives, PassNet checkouts, or folders of tables
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// The store file; made if there is none
    #[arg(long, value_name = "FILE")]
    store: PathBuf,

    /// Describe graphs again that are stored already
    #[arg(long)]
    again: bool,

    #[command(flatten)]
    workers: Workers,
}

/// What one of the paths is.
enum Input {
    Graphs(Box<dyn GraphSource>),
    Checkout(Box<Checkout>),
    Hub(Hub),
}

fn open(path: &Path) -> Result<Input, CommandError> {
    let limits = Limits::default();
    Ok(match () {
        () if is_checkout(path) => Input::Checkout(Box::new(Checkout::open(path, limits)?)),
        () if is_hub(path) => Input::Hub(Hub::open(path, limits)?),
        () => Input::Graphs(source::open(path, limits)?),
    })
}

pub fn run(args: ImportArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let workers = args.workers.count();
    let options = ImportOptions { workers, describe_again: args.again };
    // All inputs are opened first: a mistyped name must not leave half an import.
    let inputs = args.paths.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let mut store = Store::open_for_writing(&args.store, workers)?;
    let bar = Bar::new();
    let mut total = ImportReport::default();
    let (mut checkouts, mut hubs) = (Vec::new(), Vec::new());
    for input in inputs {
        let report = match input {
            Input::Graphs(source) => import(&mut store, source, describe, options, &bar)?,
            Input::Checkout(checkout) => {
                let mut report = import_checkout(&mut store, *checkout, options, &bar)?;
                let graphs = std::mem::take(&mut report.graphs);
                checkouts.push(report);
                graphs
            }
            Input::Hub(hub) => {
                let mut report = import_hub(&mut store, hub, options, &bar)?;
                let graphs = std::mem::take(&mut report.graphs);
                hubs.push(report);
                graphs
            }
        };
        total.added += report.added;
        total.replaced += report.replaced;
        total.skipped += report.skipped;
        total.failed += report.failed;
        total.diagnostics.extend(report.diagnostics);
    }
    let failed = total.failed > 0
        || checkouts.iter().any(|report| report.failed > 0)
        || hubs.iter().any(|report| report.failed > 0);
    match output.is_json() {
        true => {
            let mut value = with_checkouts(&total, &checkouts);
            if !hubs.is_empty() {
                value["tables"] = hubs.iter().map(hub_json).collect();
            }
            output.json(&value)?;
        }
        false => {
            show(output, &total)?;
            checkouts.iter().try_for_each(|report| show_checkout(output, report))?;
            hubs.iter().try_for_each(|report| show_hub(output, report))?;
        }
    }
    Ok(Outcome::failed_if(failed))
}

fn with_checkouts(total: &ImportReport, checkouts: &[CheckoutReport]) -> Value {
    let mut value = to_json(total);
    let one = |report: &CheckoutReport| {
        json!({
            "samples": report.samples, "incomplete": report.incomplete, "groups": report.groups,
            "evaluation": report.evaluation, "training": report.training,
            "files": {
                "added": report.files_added, "replaced": report.files_replaced,
                "skipped": report.files_unchanged,
            },
            "failed": report.failed, "errors": report.problems, "left_out": report.left_out,
        })
    };
    if !checkouts.is_empty() {
        value["checkouts"] = checkouts.iter().map(one).collect();
    }
    value
}

fn hub_json(report: &HubReport) -> Value {
    json!({
        "tasks": report.tasks, "files": report.files, "failed": report.failed,
        "errors": report.problems,
    })
}

fn show_hub(output: &mut Output, report: &HubReport) -> Result<(), CommandError> {
    warn_located(&report.problems);
    let HubReport { tasks, files, failed, .. } = report;
    output.line(format!("{tasks} tasks and {files} files from tables, {failed} problems"))
}

fn show_checkout(output: &mut Output, report: &CheckoutReport) -> Result<(), CommandError> {
    warn_located(&report.problems);
    let CheckoutReport { samples, evaluation, training, incomplete, groups, .. } = report;
    output.line(format!(
        "{samples} samples are tasks ({evaluation} for evaluation, {training} for training), {incomplete} are incomplete, \
         {groups} groups without a sample became tasks"
    ))?;
    let CheckoutReport { files_added, files_replaced, files_unchanged, failed, .. } = report;
    output.line(format!(
        "{files_added} files added, {files_replaced} replaced, {files_unchanged} there already, {failed} problems"
    ))?;
    match report.left_out.is_empty() {
        true => Ok(()),
        false => {
            output.line(format!("left out, because it is no data: {}", report.left_out.join(", ")))
        }
    }
}

pub(super) fn show(output: &mut Output, report: &ImportReport) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&to_json(report));
    }
    warn_located(&report.diagnostics);
    let ImportReport { added, replaced, skipped, failed, .. } = report;
    output.line(format!(
        "{added} graphs added, {replaced} replaced, {skipped} there already, {failed} failed"
    ))
}

pub(super) fn to_json(report: &ImportReport) -> Value {
    json!({
        "added": report.added, "replaced": report.replaced, "skipped": report.skipped,
        "failed": report.failed, "errors": report.diagnostics,
    })
}
