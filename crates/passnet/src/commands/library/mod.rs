//! `passnet library`: passes kept for use in programs, with what is known of them.

mod add;
mod list;
mod verify;

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::{Args, Subcommand};
use passnet_library::{Added, Believed, Library};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum LibraryCommand {
    /// Add pass folders, or all passes of a run with its verdicts and speed-ups
    #[command(after_help = "\
Examples:
  passnet library add --bundled                                                    the passes that this program carries
  passnet library add bench/passes --tasks bench/tasks                             the same, from a checkout
  passnet library add examples/passes/rms_norm_gate --graphs examples/graphs/rms_norm_gate    to be judged on this graph
  passnet library add runs/mine --author 'A. Person' --licence MIT                 passes with what the run says of them
  passnet library add solved                                                       what `passnet solve --out solved` wrote

Passes are refused that cannot be read or that break an integrity rule. The same passes are one entry, however often they
are added: what is new about them is kept with it.")]
    Add(add::AddArgs),
    /// Show the entries, and what is known of them on this machine's processor or on a device
    List(list::ListArgs),
    /// Judge entries on this machine, on the graphs that are kept with them
    #[command(after_help = "\
Examples:
  passnet library verify                                       on the native engine, entries without evidence for it
  passnet library verify --engine torch --device cuda          on a GPU
  passnet library verify --again                               all entries, although something is known of them

Exit code 1 means that an entry is wrong, 3 that one could not be judged.")]
    Verify(verify::VerifyArgs),
    /// Take over the entries of other libraries, and what they say against their passes
    Merge(MergeArgs),
    /// Write entries into a library of their own, for others
    Export(ExportArgs),
}

/// Which library.
#[derive(Debug, Args)]
pub struct LibraryPlace {
    /// The library's folder [default: `passnet/library` in the user's data folder]
    #[arg(long, env = "PASSNET_LIBRARY", value_name = "DIR")]
    library: Option<PathBuf>,
}

impl LibraryPlace {
    pub fn open(&self) -> Library {
        Library::at(self.library.clone().unwrap_or_else(default_folder))
    }
}

/// Where a user's library lies.
pub fn default_folder() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let root = named("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(|| named("HOME").map(|home| PathBuf::from(home).join(".local/share")))
        .unwrap_or_else(std::env::temp_dir);
    root.join("passnet").join("library")
}

#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Other libraries
    #[arg(required = true, value_name = "DIR")]
    others: Vec<PathBuf>,

    /// Believe their verdicts: passes that they call correct are used here without being judged again
    #[arg(long)]
    believe: bool,

    #[command(flatten)]
    place: LibraryPlace,
}

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A folder for the new library
    #[arg(value_name = "DIR")]
    out: PathBuf,

    /// Only these entries
    #[arg(value_name = "ENTRY")]
    entries: Vec<String>,

    /// Only entries whose author and licence are known
    #[arg(long)]
    licensed: bool,

    #[command(flatten)]
    place: LibraryPlace,
}

pub fn run(command: LibraryCommand, output: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        LibraryCommand::Add(args) => add::run(args, output),
        LibraryCommand::List(args) => list::run(args, output),
        LibraryCommand::Verify(args) => verify::run(args, output),
        LibraryCommand::Merge(args) => merge(args, output),
        LibraryCommand::Export(args) => export(args, output),
    }
}

fn merge(args: MergeArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let library = args.place.open();
    for other in &args.others {
        if !other.is_dir() {
            let error = CommandError::input(format!("{}: no such folder", other.display()));
            return Err(error.with_hint("give the folder of another library"));
        }
        let believed = if args.believe { Believed::All } else { Believed::Faults };
        let all = library
            .merge(&Library::at(other), believed, &|_, _| true)
            .map_err(CommandError::input)?;
        show(&all, output)?;
    }
    output.flush()?;
    Ok(Outcome::Done)
}

fn export(args: ExportArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let library = args.place.open();
    for name in &args.entries {
        library.entry(name).map_err(CommandError::input)?;
    }
    let out = Library::at(&args.out);
    let all = out
        .merge(&library, Believed::All, &|name, entry| {
            let is_asked = args.entries.is_empty() || args.entries.iter().any(|it| it == name);
            is_asked && (!args.licensed || !(entry.licence.is_empty() || entry.author.is_empty()))
        })
        .map_err(CommandError::input)?;
    show(&all, output)?;
    output.flush()?;
    Ok(Outcome::Done)
}

/// What became of passes that were added.
fn show(all: &[Added], output: &mut Output) -> Result<(), CommandError> {
    for Added { entry, name, is_new, evidence } in all {
        if output.is_json() {
            let line = json!({"entry": entry, "name": name, "new": is_new, "evidence": evidence});
            output.json(&line)?;
            continue;
        }
        let known = if *is_new { "added" } else { "known" };
        let learned = match evidence {
            0 => String::new(),
            1 => ", one new verdict".into(),
            more => format!(", {more} new verdicts"),
        };
        output.line(format!("{entry}  {name}: {known}{learned}"))?;
    }
    Ok(())
}
