//! `passnet merge`: the parts of a run become the run that one process would have made.

use super::agent::run_error;
use super::bench::print_results;
use super::extract::{self, REASONS, REFUSED, RESULTS, SAMPLES, record_lines};
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_bench::bench::Judged;
use passnet_bench::run::merge::{MergeError, merge};
use passnet_bench::run::{self, Event};
use passnet_bench::shard::{Part, Unit, copy_folder, units_of};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "\
The parts are folders that `--shard I/N --out DIR` of `bench`, `solve`, `extract`, `dataset build` or `agent run` made,
all N of them, on machines that are alike. The result is the run of one process, but for times and measurements.

Parts of unlike engines, devices, versions or settings are refused, and so are parts that are missing, there twice or not
done; the message names both sides.

Examples:
  passnet bench bench/tasks --passes bench/passes --shard 0/2 --out parts/0
  passnet bench bench/tasks --passes bench/passes --shard 1/2 --out parts/1
  passnet merge parts/0 parts/1 --out whole
  passnet report whole")]
pub struct MergeArgs {
    /// Folders of parts
    #[arg(required = true, value_name = "RUN")]
    parts: Vec<PathBuf>,

    /// Where the whole run goes: a folder that is not there yet
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub fn run(args: &MergeArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if args.out.exists() {
        let error = CommandError::input(format!("{}: is there already", args.out.display()));
        return Err(error.with_hint("name a folder that is not there yet"));
    }
    let parts = args.parts.iter().map(|folder| read_part(folder)).collect::<Result<Vec<_>, _>>()?;
    let units = units_of(&parts).map_err(refused)?;
    // Whole or not at all: a merge that is killed leaves nothing that looks like a run.
    let partial = partial_of(&args.out)?;
    if partial.exists() {
        std::fs::remove_dir_all(&partial)?;
    }
    let command = parts[0].manifest.command.clone();
    match &*command {
        "bench" => merge_runs(&parts, &units, "", &partial)?,
        "solve" => merge_solved(&parts, &units, &partial)?,
        "extract" => merge_extracted(&parts, &units, &partial)?,
        "agent" => passnet_agent::run::merge::merge(&parts, &units, &partial).map_err(run_error)?,
        other => return Err(refused(format!("parts of `{other}` are not known to this version"))),
    }
    std::fs::rename(&partial, &args.out)?;
    if out.is_json() {
        let run = args.out.display().to_string();
        let merged =
            json!({"command": command, "parts": parts.len(), "units": units.len(), "run": run});
        out.json(&merged)?;
    } else {
        let (parts, units) = (parts.len(), units.len());
        out.line(format!("{}: {units} units of {parts} parts of `{command}`", args.out.display()))?;
    }
    if command == "bench" {
        show(&args.out, out)?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn read_part(folder: &Path) -> Result<Part, CommandError> {
    let path = passnet_bench::shard::Manifest::path(folder);
    if !path.exists() {
        let error = CommandError::input(format!("{}: here is no part of a run", folder.display()));
        return Err(error.with_hint("a part is what a command with `--shard I/N --out DIR` made"));
    }
    Ok(Part::read(folder)?)
}

fn refused(text: String) -> CommandError {
    CommandError::input(text)
        .with_hint("nothing was written; `passnet merge` takes all parts of one run")
}

impl From<MergeError> for CommandError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Log(error) => error.into(),
            MergeError::Unlike(text) => refused(text),
        }
    }
}

/// Beside the folder, on the same disk.
fn partial_of(out: &Path) -> Result<PathBuf, CommandError> {
    let name = out.file_name().ok_or_else(|| CommandError::input("`--out` names no folder"))?;
    let mut name = name.to_os_string();
    name.push(".partial");
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder)?;
    }
    Ok(out.with_file_name(name))
}

/// The runs that lie in a folder of the parts.
fn merge_runs(
    parts: &[Part],
    units: &[(usize, &Unit)],
    inside: &str,
    out: &Path,
) -> Result<(), CommandError> {
    // An empty name would leave a stroke at the end of every path that people see.
    let place = |folder: &Path| match inside {
        "" => folder.to_path_buf(),
        inside => folder.join(inside),
    };
    let runs: Vec<PathBuf> = parts.iter().map(|part| place(&part.folder)).collect();
    merge(&runs, units, &place(out))?;
    Ok(())
}

/// Folders of passes, and the run where they were evaluated.
fn merge_solved(parts: &[Part], units: &[(usize, &Unit)], out: &Path) -> Result<(), CommandError> {
    if parts.iter().all(|part| run::is_run(&part.folder.join("run"))) {
        merge_runs(parts, units, "run", out)?;
    }
    for (place, unit) in units {
        let inside = Path::new("passes").join(&unit.name);
        let from = parts[*place].folder.join(&inside);
        // A task that the solver cannot do has none.
        if from.is_dir() {
            copy_folder(&from, &out.join(inside))?;
        }
    }
    Ok(())
}

/// Graphs and what is said about models, in the order of the models.
fn merge_extracted(
    parts: &[Part],
    units: &[(usize, &Unit)],
    out: &Path,
) -> Result<(), CommandError> {
    std::fs::create_dir_all(out)?;
    let mut records =
        parts.iter().map(|part| record_lines(&part.folder)).collect::<Result<Vec<_>, _>>()?;
    let mut results = std::fs::File::create(out.join(RESULTS))?;
    for (place, unit) in units {
        let folder = &parts[*place].folder;
        let Some((_, line)) = records[*place].remove(&unit.name) else {
            return Err(refused(format!("{}: {} has no record", folder.display(), unit.name)));
        };
        results.write_all(&[&line[..], b"\n"].concat())?;
        for inside in [SAMPLES, REFUSED] {
            let from = folder.join(inside).join(&unit.name);
            if from.is_dir() {
                copy_folder(&from, &out.join(inside).join(&unit.name))?;
            }
        }
    }
    let mut reasons = BTreeMap::new();
    for part in parts {
        reasons.extend(extract::refused(&part.folder)?);
    }
    if !reasons.is_empty() {
        let mut file = std::fs::File::create(out.join(REASONS))?;
        for (path, reason) in reasons {
            writeln!(file, "{}", json!({"path": path, "reason": reason}))?;
        }
    }
    Ok(())
}

/// The results, as `passnet bench` shows them.
fn show(folder: &Path, out: &mut Output) -> Result<(), CommandError> {
    let mut judged = Judged::default();
    let mut start = None;
    for event in run::read(folder)? {
        match event {
            Event::Start(begun) => start = Some(begun),
            Event::Graph(graph) => judged.events.push(*graph),
            Event::End { .. } => {}
        }
    }
    let Some(start) = start else { return Ok(()) };
    let floor = start.options.noise_floor;
    print_results(Some(folder), &start.origin(), floor, &judged, out)
}
