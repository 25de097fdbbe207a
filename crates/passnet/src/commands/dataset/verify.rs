//! `passnet dataset verify`

use super::running::RunArgs;
use super::{KindArg, StoreArgs, kinds};
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::store::Kind;
use passnet_dataset::verify::{Constraint, Runner, Violation, verify};
use passnet_graph::{GraphFiles, GraphFolder};
use serde_json::json;

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// Look at these kinds only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    #[command(flatten)]
    running: RunArgs,
}

pub fn run(args: VerifyArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let store = args.store.read()?;
    let kinds = kinds(&args.kind, &Kind::ALL);
    let workers = args.store.workers.count();
    let mut shown: Result<(), CommandError> = Ok(());
    let mut each = |path: &str, violations: &[Violation]| -> Result<(), CommandError> {
        if output.is_json() {
            let ok = violations.is_empty();
            return output.json(&json!({"path": path, "ok": ok, "violations": violations}));
        }
        violations.iter().try_for_each(|violation| {
            let Violation { constraint, reason } = violation;
            output.line(format!("{path}: not {}: {reason}", constraint.as_str()))
        })
    };
    let run = |files: &GraphFiles, folder: &GraphFolder| args.running.refusal(files, folder);
    let runner: Option<Runner<'_>> = if args.running.is_asked() { Some(&run) } else { None };
    let report = verify(&store, &kinds, runner, workers, &Bar::new(), |record, violations| {
        if shown.is_ok() {
            shown = each(&record.path, violations);
        }
        Ok(())
    })?;
    shown?;
    if !output.is_json() {
        let mut rows = table(["constraint", "met", "not met"]);
        for constraint in Constraint::ALL {
            let not_met = report.violations.get(&constraint).copied().unwrap_or(0);
            let met = report.graphs - not_met;
            rows.add_row([constraint.as_str().to_string(), met.to_string(), not_met.to_string()]);
        }
        output.table(&rows)?;
        output.line(format!("{} graphs, {} meet all", report.graphs, report.sound))?;
    }
    Ok(Outcome::failed_if(report.sound < report.graphs))
}
