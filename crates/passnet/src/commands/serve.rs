//! `passnet serve`: a leaderboard on the net.

use super::rejudge;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use clap::{Args, ValueEnum};
use passnet_web::rejudge::Sandboxed;
use passnet_web::server::{Server, ServerLimits, State};
use passnet_web::store::Store;
use passnet_web::tasks::TaskIndex;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints its address and serves until SIGINT or SIGTERM; requests that were begun are finished. Everything is in one file of
the store's folder, `leaderboard.sqlite`. What happens is told on stderr, one JSON object a line; `/metrics` counts it. TLS is a
proxy's work: `--behind-proxy` takes addresses from its X-Forwarded-For.

Submissions need authors: `passnet leaderboard author`. With `--tasks` some graphs of every submission are judged again, in a
sandbox, one at a time.

Examples:
  passnet serve --store board
  passnet serve --store board --listen 127.0.0.1:8080 --tasks bench/tasks --dataset bench/set/evaluation.pnds")]
pub struct ServeArgs {
    /// The leaderboard's folder; it is made where there is none
    #[arg(long, value_name = "DIR")]
    store: PathBuf,

    /// Where to listen; port 0 takes any that is free
    #[arg(long, default_value = "127.0.0.1:8770", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// Tasks of which graphs are judged again, and for which launch plans are shown
    #[arg(long, value_name = "DIR")]
    tasks: Vec<PathBuf>,

    /// A dataset to browse, read into the store
    #[arg(long, value_name = "FILE.pnds")]
    dataset: Option<PathBuf>,

    /// Whether graphs of submissions are judged again
    #[arg(long, value_enum, default_value_t = RejudgeArg::Sandbox)]
    rejudge: RejudgeArg,

    /// Graphs of a submission that are judged again
    #[arg(long, default_value_t = 12, value_name = "N")]
    rejudge_graphs: usize,

    /// Requests a second of one address; 0 for no limit
    #[arg(long, default_value_t = 50.0, value_name = "N")]
    rate: f64,

    /// Submissions an hour with one token
    #[arg(long, default_value_t = 30.0, value_name = "N")]
    submissions: f64,

    /// MiB of one bundle
    #[arg(long, default_value_t = 64, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..=64))]
    bundle_size: u32,

    /// A proxy before the server says whose requests it brings
    #[arg(long)]
    behind_proxy: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RejudgeArg {
    /// In a sandbox, where this machine has one and tasks are given
    Sandbox,
    /// Nothing is judged again
    Off,
}

pub fn run(args: ServeArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let store = Store::open(&args.store)?;
    if let Some(path) = &args.dataset {
        store.import_dataset(path)?;
    }
    let tasks = TaskIndex::read(&args.tasks)?;
    let limits = ServerLimits {
        bundle_bytes: (args.bundle_size as usize) << 20,
        requests_per_second: args.rate,
        submissions_per_hour: args.submissions,
        rejudged_graphs: args.rejudge_graphs,
        ..ServerLimits::default()
    };
    let is_rejudging = args.rejudge == RejudgeArg::Sandbox && !tasks.is_empty();
    let mut state = State::new(store, tasks, limits, Box::new(|line| warn(&line.to_string())));
    state.behind_proxy = args.behind_proxy;
    if is_rejudging {
        let program = std::env::current_exe()?;
        state.rejudger = Some(Box::new(Sandboxed::new(&program, &rejudge::ARGUMENTS)?));
    }
    let listener = TcpListener::bind(args.listen)
        .map_err(|error| CommandError::input(format!("{}: {error}", args.listen)))?;
    let server = Server::start(listener, state)?;
    let address = server.address();
    match out.is_json() {
        true => out.json(&json!({ "address": address.to_string() }))?,
        false => out.line(format!("http://{address} serves {}", args.store.display()))?,
    }
    out.flush()?;
    server.run_until_signal()?;
    Ok(Outcome::Done)
}
