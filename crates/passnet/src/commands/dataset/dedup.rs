//! `passnet dataset dedup`

use super::{KindArg, StoreArgs, kinds};
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::progress::Bar;
use clap::{Args, ValueEnum};
use passnet_dataset::dedup::{DedupOptions, Level, dedup};
use passnet_dataset::store::Kind;
use serde_json::json;

#[derive(Debug, Args)]
pub struct DedupArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// How equal graphs must be
    #[arg(long, value_enum, default_value_t = LevelArg::Full)]
    level: LevelArg,

    /// Look at these kinds only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    /// Change nothing, only say what would collapse
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LevelArg {
    /// Same operations and flow
    Structure,
    /// Same literal arguments too
    Literals,
    /// Same input shapes and dtypes too
    Full,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Self {
        match level {
            LevelArg::Structure => Level::Structure,
            LevelArg::Literals => Level::Literals,
            LevelArg::Full => Level::Full,
        }
    }
}

pub fn run(args: DedupArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let mut store = args.store.write()?;
    let options = DedupOptions {
        level: args.level.into(),
        kinds: kinds(&args.kind, &Kind::ALL),
        originals_only: false,
        dry_run: args.dry_run,
    };
    let report = dedup(&mut store, &options, &Bar::new())?;
    for collapse in &report.collapses {
        if output.is_json() {
            output.json(&json!({
                "kept": collapse.kept, "digest": collapse.digest, "removed": collapse.removed,
            }))?;
            continue;
        }
        output.line(&collapse.kept)?;
        for removed in &collapse.removed {
            output.line(format!("  <- {removed}"))?;
        }
    }
    if !output.is_json() {
        let verb = if args.dry_run { "would be removed" } else { "removed" };
        output.line(format!(
            "{} graphs looked at, {} {verb}, {} classes of equal graphs",
            report.looked_at,
            report.removed,
            report.collapses.len()
        ))?;
    }
    Ok(Outcome::Done)
}
