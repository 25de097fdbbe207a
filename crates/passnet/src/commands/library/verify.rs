//! `passnet library verify`

use super::LibraryPlace;
use super::list::in_words;
use crate::commands::engine::EngineArgs;
use crate::commands::judging::Judging;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use clap::Args;
use passnet_library::Standing;
use passnet_library::judge::judge;
use serde_json::json;

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Only these entries
    #[arg(value_name = "ENTRY")]
    entries: Vec<String>,

    /// Judge entries again of which something is known on the device
    #[arg(long)]
    again: bool,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    judging: Judging,

    #[command(flatten)]
    place: LibraryPlace,
}

pub fn run(args: VerifyArgs, output: &mut Output) -> Result<Outcome, CommandError> {
    args.engine.check()?;
    let library = args.place.open();
    for name in &args.entries {
        library.entry(name).map_err(CommandError::input)?;
    }
    let engine = args.engine.start_one_for_passes()?;
    let device = engine.identity().device;
    let options = args.judging.options();
    let (mut wrong, mut lost) = (false, false);
    for (name, found) in library.entries()? {
        if !args.entries.is_empty() && !args.entries.contains(&name) {
            continue;
        }
        let entry = found.map_err(CommandError::input)?;
        let mut standing = entry.standing(&device);
        if args.again || standing == Standing::Unknown {
            let judged = judge(&library, &name, &*engine, &options)
                .and_then(|evidence| library.learn(&name, &evidence));
            match judged {
                Ok(entry) => standing = entry.standing(&device),
                Err(error) => {
                    lost = true;
                    warn(&format!("{name}  {}: {error}", entry.name));
                    continue;
                }
            }
        }
        wrong |= matches!(standing, Standing::Wrong { .. });
        let known = in_words(&standing);
        match output.is_json() {
            true => output.json(&json!({"entry": name, "name": entry.name, "standing": known}))?,
            false => output.line(format!("{name}  {}: {known}", entry.name))?,
        }
    }
    output.flush()?;
    Ok(match (wrong, lost) {
        (true, _) => Outcome::SomethingFailed,
        (false, true) => Outcome::NotJudged,
        (false, false) => Outcome::Done,
    })
}
