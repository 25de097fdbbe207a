//! `passnet dataset import`

use super::Workers;
use crate::error::{CommandError, Outcome, render_diagnostic};
use crate::output::{Output, warn};
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::describe::describe;
use passnet_dataset::import::{ImportOptions, ImportReport, import};
use passnet_dataset::source::{self, Limits};
use passnet_dataset::store::Store;
use serde_json::{Value, json};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Graph folders, trees of them, or `.tar.zst` archives
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

pub fn run(args: ImportArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let workers = args.workers.count();
    let options = ImportOptions { workers, describe_again: args.again };
    // All inputs are opened first: a mistyped name must not leave half an import.
    let sources = args
        .paths
        .iter()
        .map(|path| source::open(path, Limits::default()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut store = Store::open_for_writing(&args.store, workers)?;
    let bar = Bar::new();
    let mut total = ImportReport::default();
    for source in sources {
        let report = import(&mut store, source, describe, options, &bar)?;
        total.added += report.added;
        total.replaced += report.replaced;
        total.skipped += report.skipped;
        total.failed += report.failed;
        total.diagnostics.extend(report.diagnostics);
    }
    show(output, &total)?;
    Ok(Outcome::failed_if(total.failed > 0))
}

pub(super) fn show(output: &mut Output, report: &ImportReport) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&to_json(report));
    }
    report.diagnostics.iter().for_each(|error| warn(&render_diagnostic(error)));
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
