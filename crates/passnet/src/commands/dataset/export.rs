//! `passnet dataset export`

use super::{KindArg, PIECES, StoreArgs, kinds};
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::progress::Bar;
use clap::Args;
use passnet_dataset::content::check_path_part;
use passnet_dataset::export::ExportError;
use passnet_dataset::export::folders::{FolderOptions, export_folders};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Write these kinds only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    /// The name of the set, a folder below `graphs` and `samples`
    #[arg(long, default_value = "passnet", value_name = "NAME")]
    set: String,

    /// Write only graphs that some task uses
    #[arg(long)]
    only_tasks: bool,
}

pub fn run(args: ExportArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    check_path_part(&args.set)
        .map_err(|why| CommandError::input(format!("the name of the set {why}")))?;
    let store = args.store.read()?;
    let options = FolderOptions {
        set: args.set,
        kinds: kinds(&args.kind, &PIECES),
        only_tasks: args.only_tasks,
    };
    let done = export_folders(&store, &args.out, &options, &Bar::new())?;
    if output.is_json() {
        output.json(&json!({"graphs": done.graphs, "tasks": done.tasks}))?;
    } else {
        output.line(format!("{} graphs and {} tasks written", done.graphs, done.tasks))?;
    }
    Ok(Outcome::Done)
}

impl From<ExportError> for CommandError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Write(error) => error.into(),
        }
    }
}
