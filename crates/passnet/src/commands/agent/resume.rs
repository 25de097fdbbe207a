//! `passnet agent resume`

use super::{run_error, session};
use crate::commands::engine::EngineArgs;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Args;
use passnet_agent::model::retry::Patience;
use passnet_agent::run::{Settings, is_agent_run};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  passnet agent resume runs/gpt                   what was stopped goes on, what is finished stays
  passnet agent resume runs/gpt --attempts 8      more attempts under the same conditions
It works from any directory. The engine is the one that the run was begun with; the options below may say where it lies
now (another Python, other GPUs of the same kind), and an engine whose results differ is refused.")]
pub struct ResumeArgs {
    /// A folder that `passnet agent run --out` wrote
    run: PathBuf,

    /// Another number of attempts at each task
    #[arg(long, short = 'k', value_parser = clap::value_parser!(u32).range(1..=10_000))]
    attempts: Option<u32>,

    /// Attempts at a time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=4096))]
    jobs: Option<u64>,

    /// Money for the whole run
    #[arg(long, value_name = "M")]
    run_cost: Option<f64>,

    #[command(flatten)]
    engine: EngineArgs,
}

pub fn run(args: &ResumeArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if !is_agent_run(&args.run) {
        let message = format!("{}: no run of an agent here", args.run.display());
        return Err(
            CommandError::input(message).with_hint("`passnet agent run … --out DIR` begins one")
        );
    }
    let mut settings = Settings::read(&args.run).map_err(run_error)?;
    settings.attempts = args.attempts.unwrap_or(settings.attempts);
    settings.jobs = args.jobs.and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or(settings.jobs);
    settings.run_cost = args.run_cost.or(settings.run_cost);
    settings.engine = args.engine.over(&settings.engine).with_absolute_paths();
    session::work(settings, &args.run, Patience::default(), None, out)
}
