//! `passnet agent`: language models that write passes.

mod export;
mod live;
mod prompts;
mod resume;
pub(in crate::commands) mod run;
mod serve;
pub(in crate::commands) mod session;
mod show;
mod verl_table;

use crate::error::{CommandError, Outcome};
use crate::output::Output;
use clap::Subcommand;
use passnet_agent::run::{AttemptRecord, RunError, is_agent_run, read_attempts};
use std::path::Path;

#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Let a model work on tasks: k attempts each, everything recorded
    Run(Box<run::RunArgs>),
    /// Go on with a run, with the settings it was begun with
    Resume(resume::ResumeArgs),
    /// List the attempts of a run, or replay one step by step
    Show(show::ShowArgs),
    /// Write trajectories as training data
    Export(export::ExportArgs),
    /// Serve tasks as episodes over HTTP, for reinforcement learning
    Serve(Box<serve::ServeArgs>),
    /// Write the built-in prompt templates into a folder, to be edited
    Prompts(prompts::PromptsArgs),
}

pub fn run(command: AgentCommand, out: &mut Output) -> Result<Outcome, CommandError> {
    match command {
        AgentCommand::Run(args) => run::run(&args, out),
        AgentCommand::Resume(args) => resume::run(&args, out),
        AgentCommand::Show(args) => show::run(&args, out),
        AgentCommand::Export(args) => export::run(&args, out),
        AgentCommand::Serve(args) => serve::run(&args, out),
        AgentCommand::Prompts(args) => prompts::run(&args, out),
    }
}

/// The attempts of a run folder, of which there is at least one.
fn attempts(path: &Path) -> Result<Vec<AttemptRecord>, CommandError> {
    if !is_agent_run(path) {
        return Err(CommandError::input(format!("{}: no run of an agent here", path.display()))
            .with_hint("`passnet agent run … --out DIR` writes one"));
    }
    let attempts = read_attempts(path).map_err(run_error)?;
    match attempts.is_empty() {
        true => Err(CommandError::input(format!("{}: no attempt has begun yet", path.display()))),
        false => Ok(attempts),
    }
}

pub(in crate::commands) fn run_error(error: RunError) -> CommandError {
    use passnet_agent::agent::AgentError;
    match error {
        RunError::Agent(AgentError::Denied(error)) => CommandError::input(error.to_string())
            .with_hint("check the key's variable, the model's name and the base URL; the same command goes on"),
        RunError::Agent(AgentError::Bug(message)) => CommandError::bug(message),
        RunError::Settings(mismatch) => CommandError::input(mismatch.to_string())
            .with_hint("give another `--out`, or go on with `passnet agent resume`"),
        other => CommandError::input(other.to_string()),
    }
}
