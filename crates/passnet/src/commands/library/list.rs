//! `passnet library list`

use super::LibraryPlace;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table, warn};
use clap::Args;
use passnet_engine::Identity;
use passnet_engine::identity::DeviceIdentity;
use passnet_library::{Entry, Standing};
use serde_json::json;

#[derive(Debug, Args)]
pub struct ListArgs {
    /// A GPU by its name, such as `NVIDIA H200` [default: this machine's processor]
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,

    #[command(flatten)]
    place: LibraryPlace,
}

pub fn run(args: ListArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    let library = args.place.open();
    let device = match &args.gpu {
        None => Identity::here("native").device,
        Some(name) => {
            DeviceIdentity { kind: "cuda".into(), name: name.clone(), ..DeviceIdentity::default() }
        }
    };
    let mut rows =
        table(["entry", "name", "passes", "operations", "known here", "author", "licence"]);
    let (mut damaged, mut count) = (false, 0);
    for (name, found) in library.entries()? {
        let entry = match found {
            Ok(entry) => entry,
            Err(error) => {
                damaged = true;
                warn(&format!("error: {error}"));
                continue;
            }
        };
        count += 1;
        let known = in_words(&entry.standing(&device));
        if output.is_json() {
            output.json(&json!({
                "entry": name, "name": entry.name, "passes": entry.passes, "author": entry.author,
                "licence": entry.licence, "standing": known, "evidence": entry.evidence,
            }))?;
            continue;
        }
        rows.add_row([
            name,
            entry.name.clone(),
            entry.passes.len().to_string(),
            largest(&entry).to_string(),
            known,
            entry.author.clone(),
            entry.licence.clone(),
        ]);
    }
    if !output.is_json() {
        match count {
            0 => output.line(format!("{}: empty", library.folder().display()))?,
            _ => output.table(&rows)?,
        }
    }
    output.flush()?;
    Ok(Outcome::failed_if(damaged))
}

/// Calls in the largest pattern.
fn largest(entry: &Entry) -> usize {
    entry.passes.iter().map(|pass| pass.size).max().unwrap_or(0)
}

pub fn in_words(standing: &Standing) -> String {
    match standing {
        Standing::Correct { speedup: Some(speedup) } => format!("correct, {speedup:.2}x"),
        Standing::Correct { speedup: None } => "correct".into(),
        Standing::Unknown => "nothing".into(),
        Standing::Wrong { graph, verdict } => format!("{verdict} on {graph}"),
    }
}
