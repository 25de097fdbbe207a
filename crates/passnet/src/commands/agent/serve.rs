//! `passnet agent serve`

use super::session;
use crate::commands::cluster::{ClusterArgs, Evaluators, Kind};
use crate::commands::engine::EngineArgs;
use crate::commands::judging::AgentJudging;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use crate::paths::with_list;
use clap::Args;
use passnet_agent::evaluator::Evaluator;
use passnet_agent::secrets::Secret;
use passnet_agent::server::{Server, ServerLimits};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::report::printable;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The variable that may hold a token.
const TOKEN: &str = "PASSNET_TOKEN";

#[derive(Debug, Args)]
#[command(after_help = "\
Prints its address and serves until it is killed. On other addresses than this machine's own it wants a token: clients
send `authorization: Bearer TOKEN`, the server reads it from PASSNET_TOKEN. `docs/agent.md` describes the requests;
`python/examples/environment_client.py` is a client.

Examples:
  passnet agent serve bench/tasks
  passnet agent serve bench/tasks --listen 127.0.0.1:8765 --max-steps 20 --quick
  passnet agent serve bench/tasks --engine torch --device cuda --devices 0,1   rewards from two GPUs
  passnet agent serve bench/tasks --engine torch --device cuda --cluster auto   rewards from all GPUs of a Ray cluster")]
pub struct ServeArgs {
    /// Sample folders, or folders of them
    #[arg(required_unless_present = "list", value_name = "TASKS")]
    tasks: Vec<PathBuf>,

    /// A published list of samples, as text, table (`sample_path`) or tasks (`.jsonl`); paths from the top of its checkout
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,

    /// Where to listen; port 0 takes any that is free
    #[arg(long, default_value = "127.0.0.1:8765", value_name = "ADDRESS")]
    listen: SocketAddr,

    /// A folder with prompt templates of your own
    #[arg(long, value_name = "DIR")]
    prompts: Option<PathBuf>,

    /// Steps of one episode
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,

    /// Episodes open at once
    #[arg(long, default_value_t = 4096)]
    max_episodes: usize,

    /// Seconds after which an unused episode may be forgotten
    #[arg(long, default_value_t = 1800, value_name = "S")]
    idle: u64,

    #[command(flatten)]
    pub(in crate::commands) engine: EngineArgs,

    #[command(flatten)]
    pub(in crate::commands) judging: AgentJudging,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Evaluations of a cluster that are asked for at a time; more wait here.
const CLUSTER_EVALUATIONS: usize = 256;

pub fn run(args: &ServeArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    let prompts = session::prompts(args.prompts.as_deref())?;
    let tasks = session::tasks(&with_list(&args.tasks, args.list.as_deref())?)?;
    let tasks: Vec<_> = tasks.into_iter().map(Arc::new).collect();
    args.engine.check()?;
    let options =
        EvaluateOptions { tier: args.engine.choice().tier, ..args.judging.judging.options() };
    let choice = args.engine.choice();
    args.cluster.check(&choice)?;
    let judging = session::Judging {
        options: &options,
        rules: args.judging.judging.rules(),
        evaluation_seconds: args.judging.evaluation_seconds,
    };
    let evaluator = match args.cluster.is_asked() {
        true => {
            let pool = Evaluators::start(&args.cluster, Kind::timed(&choice))?;
            let target = pool.target().clone();
            judging.over(pool, target, CLUSTER_EVALUATIONS)?
        }
        false => {
            Evaluator::start(session::judges(args.engine.start_for_passes()?, &judging, None)?)?
        }
    };
    let engine = evaluator.target().identity.clone();
    session::note_target(&prompts, evaluator.target());
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty()).map(Secret::new);
    let limits = ServerLimits {
        steps: args.max_steps,
        episodes: args.max_episodes,
        idle: Duration::from_secs(args.idle),
        ..ServerLimits::default()
    };
    let count = tasks.len();
    let listen = || -> std::io::Result<Server> {
        let listener = TcpListener::bind(args.listen)?;
        Server::start(listener, tasks, Arc::new(evaluator), &prompts, limits, token)
    };
    let server = listen().map_err(|error| {
        let error = CommandError::input(format!("{}: {error}", args.listen));
        error.with_hint(format!("set {TOKEN} to listen on addresses that others can reach"))
    })?;
    let address = server.address();
    match out.is_json() {
        true => {
            out.json(&json!({ "address": address.to_string(), "tasks": count, "engine": engine }))?
        }
        false => {
            out.line(format!("http://{address} serves {count} tasks"))?;
            out.line(printable(&engine.describe()))?;
        }
    }
    out.flush()?;
    warn("stop it with ctrl-c");
    server.wait();
    Ok(Outcome::Done)
}
