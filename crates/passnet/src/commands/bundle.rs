//! `passnet bundle`: a run as one signed file, and what becomes of it when it is verified.

use super::rejudge;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use crate::progress::Bar;
use clap::{Args, Subcommand};
use passnet_bench::report::printable;
use passnet_web::bundle::{
    Bundle, Limits, MakeOptions, SigningKey, Verified, draft_of_run, verify,
};
use passnet_web::rejudge::{Sandboxed, again, is_like_here};
use passnet_web::store::{Rejudged, result_rows};
use passnet_web::tasks::TaskIndex;
use passnet_work::progress::Task;
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
A bundle holds the passes, every event with its raw samples, where the run comes from, and what a model used. It is known by
the digest of its content and signed with an ed25519 key. Paths of sample folders are part of the sealed events.

Examples:
  passnet bundle key my.key                                  a new key; its public part is printed
  passnet bundle runs/one --out one.bundle --key my.key
  passnet bundle verify one.bundle
  passnet bundle verify one.bundle --judge bench/tasks       every graph that is claimed right, judged again here")]
pub struct BundleArgs {
    #[command(subcommand)]
    command: Option<BundleCommand>,

    /// A run folder that `passnet bench --out` or `passnet agent run --out` wrote
    #[arg(required = true, value_name = "RUN")]
    run: Option<PathBuf>,

    /// The bundle
    #[arg(long, required = true, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The key that signs it
    #[arg(long, required = true, value_name = "KEY")]
    key: Option<PathBuf>,

    /// What the run is called; else its folder's name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Let an agent's trajectories travel along
    #[arg(long)]
    trajectories: bool,
}

#[derive(Debug, Subcommand)]
pub enum BundleCommand {
    /// Find everything in a bundle again: signature, events, scores from raw samples, passes
    Verify(VerifyArgs),
    /// Make a key that signs bundles, or print the public part of one
    Key(KeyArgs),
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Judge again here, in a sandbox, every graph that is claimed right; the tasks of the run
    #[arg(long, value_name = "TASKS")]
    judge: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub struct KeyArgs {
    /// A file that is there is read, otherwise it is made
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub fn run(args: BundleArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    match (args.command, args.run, args.out, args.key) {
        (Some(BundleCommand::Verify(args)), ..) => verify_file(&args, out),
        (Some(BundleCommand::Key(args)), ..) => key(&args, out),
        (None, Some(run), Some(file), Some(key)) => {
            let options = MakeOptions { name: args.name, trajectories: args.trajectories };
            make(&run, &file, &key, &options, out)
        }
        _ => Err(CommandError::bug("a bundle without a run, a file or a key")),
    }
}

fn key(args: &KeyArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let key = match args.file.exists() {
        true => SigningKey::read(&args.file)?,
        false => SigningKey::create(&args.file)?,
    };
    match out.is_json() {
        true => out.json(&json!({ "public_key": key.public_key() }))?,
        false => out.line(key.public_key())?,
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn make(
    run: &Path,
    file: &Path,
    key: &Path,
    options: &MakeOptions,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let key = SigningKey::read(key)?;
    let bytes = draft_of_run(run, options)?.pack(Some(&key))?;
    let bundle = Bundle::parse(bytes, &Limits::default())?;
    write_whole(file, bundle.bytes())?;
    let claims = bundle.manifest.claims;
    match out.is_json() {
        true => out.json(&json!({
            "file": file.display().to_string(),
            "digest": bundle.digest(),
            "public_key": key.public_key(),
            "bytes": bundle.bytes().len(),
            "claims": claims,
        }))?,
        false => {
            out.line(format!(
                "{}: {:.1} kB, AS {:.4}, {} of {} graphs right",
                file.display(),
                bundle.bytes().len() as f64 / 1e3,
                claims.aggregated,
                claims.correct,
                claims.graphs
            ))?;
            out.line(format!("digest    {}", bundle.digest()))?;
            out.line(format!("signed by {}", key.public_key()))?;
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

/// Whole or not at all.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let mut partial = path.as_os_str().to_os_string();
    partial.push(format!(".{}.partial", std::process::id()));
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
    written.map_err(|error| {
        // What is left of it helps nobody.
        let _ = std::fs::remove_file(&partial);
        CommandError::input(format!("{}: {error}", path.display()))
    })
}

fn verify_file(args: &VerifyArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let limits = Limits::default();
    let named =
        |error: std::io::Error| CommandError::input(format!("{}: {error}", args.file.display()));
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&args.file).map_err(named)?;
    file.take(limits.file_bytes as u64 + 1).read_to_end(&mut bytes).map_err(named)?;
    let bundle = Bundle::parse(bytes, &limits)?;
    let found = verify(&bundle)?;
    let again = match args.judge.is_empty() {
        true => Vec::new(),
        false => judge(&args.judge, &bundle, &found)?,
    };
    let disagreed = again.iter().filter(|one| one.agrees == Some(false)).count();
    if out.is_json() {
        out.json(&json!({
            "file": args.file.display().to_string(),
            "digest": bundle.digest(),
            "name": bundle.manifest.name,
            "public_key": bundle.signature.as_ref().map(|it| it.public_key()),
            "holds": found.holds(),
            "checks": found.checks,
            "rejudged": again,
        }))?;
    } else {
        show(&bundle, &found, &again, out)?;
    }
    out.flush()?;
    Ok(Outcome::failed_if(!found.holds() || disagreed > 0))
}

fn judge(
    folders: &[PathBuf],
    bundle: &Bundle,
    found: &Verified,
) -> Result<Vec<Rejudged>, CommandError> {
    let tasks = TaskIndex::read(folders)?;
    let program = std::env::current_exe()?;
    let rejudger = Sandboxed::new(&program, &rejudge::ARGUMENTS)?;
    let is_like = is_like_here(&found.run);
    let rows = result_rows(&found.run);
    let right: Vec<_> = rows.iter().filter(|row| row.verdict == "correct").collect();
    let bar = Bar::new();
    let mut task = Task::begin(&bar, "judging graphs again", Some(right.len() as u64));
    let mut again_found = Vec::new();
    for row in right {
        again_found.push(again(&rejudger, &tasks, bundle, &found.run, row, is_like));
        task.advance(1);
    }
    Ok(again_found)
}

fn show(
    bundle: &Bundle,
    found: &Verified,
    again: &[Rejudged],
    out: &mut Output,
) -> Result<(), CommandError> {
    out.line(format!("{} ({})", printable(&bundle.manifest.name), bundle.digest()))?;
    let mut rows = table(["check", "", "found"]);
    for check in &found.checks {
        let word = if check.passed { "holds" } else { "FAILED" };
        rows.add_row([check.name, word, &printable(&check.text)]);
    }
    out.table(&rows)?;
    if again.is_empty() {
        return Ok(());
    }
    let count = |agrees: Option<bool>| again.iter().filter(|one| one.agrees == agrees).count();
    out.line(format!(
        "judged again: {} agree, {} disagree, {} cannot be said",
        count(Some(true)),
        count(Some(false)),
        count(None)
    ))?;
    for one in again.iter().filter(|one| one.agrees != Some(true)) {
        let seen = one.verdict.as_deref().unwrap_or("not judged");
        out.line(format!(
            "  {}/{}: claimed {}, here {seen}: {}",
            printable(&one.task),
            printable(&one.graph),
            one.claimed_verdict,
            printable(&one.text)
        ))?;
    }
    Ok(())
}
