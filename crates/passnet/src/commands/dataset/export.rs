//! `passnet dataset export`

use super::{KindArg, PIECES, StoreArgs, kinds};
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::progress::Bar;
use clap::{Args, ValueEnum};
use passnet_dataset::content::check_path_part;
use passnet_dataset::export::folders::export_folders;
use passnet_dataset::export::hub::export_hub;
use passnet_dataset::export::{ExportError, ExportOptions};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    store: StoreArgs,

    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// How to write
    #[arg(long, value_enum, default_value_t = FormatArg::Folders)]
    format: FormatArg,

    /// Write these kinds only
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<KindArg>,

    /// Folders: the name of the set, a folder below `graphs` and `samples`
    #[arg(long, default_value = "passnet", value_name = "NAME")]
    set: String,

    /// Write only graphs that some task uses
    #[arg(long)]
    only_tasks: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Graph folders, sample folders and lists
    Folders,
    /// A folder for the Hugging Face hub: a card, and Parquet tables of graphs and tasks
    #[value(alias = "parquet")]
    Hub,
}

pub fn run(args: ExportArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    check_path_part(&args.set)
        .map_err(|why| CommandError::input(format!("the name of the set {why}")))?;
    let store = args.store.read()?;
    let options = ExportOptions { kinds: kinds(&args.kind, &PIECES), only_tasks: args.only_tasks };
    let done = match args.format {
        FormatArg::Folders => export_folders(&store, &args.out, &args.set, &options, &Bar::new())?,
        FormatArg::Hub => export_hub(&store, &args.out, &options, &Bar::new())?,
    };
    if output.is_json() {
        output.json(&json!({"graphs": done.graphs, "tasks": done.tasks, "files": done.files}))?;
    } else {
        let files = match done.files {
            0 => String::new(),
            files => format!(", with {files} files as they came"),
        };
        output.line(format!("{} graphs and {} tasks written{files}", done.graphs, done.tasks))?;
    }
    Ok(Outcome::Done)
}

impl From<ExportError> for CommandError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            ExportError::Write(error) | ExportError::Nothing(error) => error.into(),
        }
    }
}
