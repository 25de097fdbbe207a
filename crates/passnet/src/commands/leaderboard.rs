//! `passnet leaderboard`: what the owner of a board does, also while it is served.

use crate::error::{CommandError, Outcome};
use crate::output::{Output, table};
use clap::{Args, Subcommand};
use passnet_bench::report::{printable, ratio_text};
use passnet_web::site::add_run;
use passnet_web::store::{Entry, Store};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Every command works while the board is served.

Examples:
  passnet leaderboard add runs/one --store board
  passnet bundle key my.key                                  the author does this, and sends what it prints
  passnet leaderboard author alice --public-key HEX --store board
  passnet leaderboard list --store board
  passnet leaderboard backup board-2026-11-17.sqlite --store board")]
pub enum LeaderboardCommand {
    /// Put run folders on the board as runs of its owner
    Add(AddArgs),
    /// Let an author submit: remember the key, print a token
    Author(AuthorArgs),
    /// Print another token for a known author
    Token(NameArgs),
    /// End all tokens of an author
    Revoke(NameArgs),
    /// Withdraw an entry; it stays visible as withdrawn
    Withdraw(EntryArgs),
    /// Give a benchmark set a name
    Name(BenchmarkArgs),
    /// Show entries, authors and submissions
    List(StoreArgs),
    /// Copy the whole store to a file
    Backup(BackupArgs),
    /// Check that the store holds together
    Check(StoreArgs),
}

#[derive(Debug, Args)]
pub struct StoreArgs {
    /// The leaderboard's folder
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
}

#[derive(Debug, Args)]
pub struct AddArgs {
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Who made the runs
    #[arg(long, default_value = "local", value_name = "NAME")]
    author: String,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Args)]
pub struct AuthorArgs {
    #[arg(value_name = "NAME")]
    name: String,

    /// What `passnet bundle key` prints; bundles of the author must be signed with it
    #[arg(long, value_name = "HEX")]
    public_key: String,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Args)]
pub struct NameArgs {
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Args)]
pub struct EntryArgs {
    #[arg(value_name = "ID")]
    id: String,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Args)]
pub struct BenchmarkArgs {
    /// Key of the set: the part of a ranking's address after the dash
    #[arg(value_name = "KEY")]
    key: String,

    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Debug, Args)]
pub struct BackupArgs {
    /// A new file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    store: StoreArgs,
}

pub fn run(command: LeaderboardCommand, out: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        LeaderboardCommand::Add(args) => add(&args, out)?,
        LeaderboardCommand::Author(args) => {
            let store = Store::open(&args.store.store)?;
            store.add_author(&args.name, &args.public_key)?;
            token(&store, &args.name, out)?;
        }
        LeaderboardCommand::Token(args) => {
            token(&Store::open_existing(&args.store.store)?, &args.name, out)?;
        }
        LeaderboardCommand::Revoke(args) => {
            let revoked = Store::open_existing(&args.store.store)?.revoke_tokens(&args.name)?;
            match out.is_json() {
                true => out.json(&json!({ "author": args.name, "revoked": revoked }))?,
                false => out.line(format!("{revoked} tokens ended"))?,
            }
        }
        LeaderboardCommand::Withdraw(args) => {
            let store = Store::open_existing(&args.store.store)?;
            let entry = store.withdraw(&args.id, None)?;
            rank(&store, &entry)?;
            show_entries(&[entry], out)?;
        }
        LeaderboardCommand::Name(args) => {
            let store = Store::open_existing(&args.store.store)?;
            if !store.name_benchmark(&args.key, &args.name)? {
                let message = format!("there is no benchmark set `{}`", args.key.escape_debug());
                return Err(CommandError::input(message));
            }
        }
        LeaderboardCommand::List(args) => list(&Store::open_existing(&args.store)?, out)?,
        LeaderboardCommand::Backup(args) => {
            Store::open_existing(&args.store.store)?.back_up(&args.file)?;
            match out.is_json() {
                true => out.json(&json!({ "file": args.file.display().to_string() }))?,
                false => out.line(args.file.display().to_string())?,
            }
        }
        LeaderboardCommand::Check(args) => {
            let is_whole = Store::open_existing(&args.store)?.is_whole()?;
            match out.is_json() {
                true => out.json(&json!({ "whole": is_whole }))?,
                false => out.line(if is_whole { "whole" } else { "damaged" })?,
            }
            out.flush()?;
            return Ok(Outcome::failed_if(!is_whole));
        }
    }
    out.flush()?;
    Ok(Outcome::Done)
}

fn rank(store: &Store, entry: &Entry) -> Result<(), CommandError> {
    if let Some(board) = store.board(&entry.board())? {
        store.rank(&board)?;
    }
    Ok(())
}

fn add(args: &AddArgs, out: &mut Output) -> Result<(), CommandError> {
    let store = Store::open(&args.store.store)?;
    let mut added = Vec::new();
    for run in &args.runs {
        let id = add_run(&store, run, &args.author)?;
        added.extend(store.entry(&id)?);
    }
    for entry in &added {
        rank(&store, entry)?;
    }
    show_entries(&added, out)
}

fn token(store: &Store, author: &str, out: &mut Output) -> Result<(), CommandError> {
    let token = store.add_token(author)?;
    match out.is_json() {
        true => out.json(&json!({ "author": author, "token": token.reveal() })),
        false => {
            out.line(token.reveal())?;
            crate::output::warn("the token is shown once; the store keeps only its digest");
            Ok(())
        }
    }
}

fn show_entries(entries: &[Entry], out: &mut Output) -> Result<(), CommandError> {
    if out.is_json() {
        return out.json(&json!({ "entries": entries }));
    }
    let mut rows = table(["entry", "name", "author", "AS", "correct", "state", "checked"]);
    for entry in entries {
        rows.add_row([
            entry.id.clone(),
            printable(&entry.name),
            printable(&entry.author),
            ratio_text(entry.score),
            format!("{:.1} %", entry.correct * 100.0),
            entry.state.name().to_string(),
            entry.badge().text(),
        ]);
    }
    out.table(&rows)
}

/// Submissions that are shown, the newest first.
const SUBMISSIONS: usize = 50;

fn list(store: &Store, out: &mut Output) -> Result<(), CommandError> {
    let (entries, authors) = (store.all_entries()?, store.authors()?);
    let submissions = store.submissions(SUBMISSIONS)?;
    if out.is_json() {
        return out.json(&json!({
            "entries": entries,
            "authors": authors,
            "submissions": submissions,
        }));
    }
    show_entries(&entries, out)?;
    if !authors.is_empty() {
        out.line("")?;
        let mut rows = table(["author", "tokens", "public key"]);
        for author in authors {
            let tokens = author.tokens.to_string();
            rows.add_row([printable(&author.name), tokens, author.public_key]);
        }
        out.table(&rows)?;
    }
    if !submissions.is_empty() {
        out.line("")?;
        let mut rows = table(["submission", "author", "state", "entry", "because"]);
        for submission in submissions {
            rows.add_row([
                submission.id.to_string(),
                printable(&submission.author),
                submission.state.name().to_string(),
                submission.entry.unwrap_or_default(),
                printable(&submission.reasons.join("; ")),
            ]);
        }
        out.table(&rows)?;
    }
    Ok(())
}
