//! `passnet agent prompts`

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_agent::prompt::Prompts;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  passnet agent prompts my_prompts             then edit my_prompts/task.md
  passnet agent run bench/tasks --model gpt-5 --prompts my_prompts --out runs/mine")]
pub struct PromptsArgs {
    /// Where to write; files that are there already stay as they are
    folder: PathBuf,
}

pub fn run(args: &PromptsArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let written = Prompts::write(&args.folder)?;
    match out.is_json() {
        true => {
            out.json(&json!({ "folder": args.folder.display().to_string(), "written": written }))?
        }
        false if written.is_empty() => out.line("all templates are there already")?,
        false => out.line(format!("wrote {} to {}", written.join(", "), args.folder.display()))?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}
