//! The PassNet command line: parses arguments, runs one command, prints its result.
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 done; 1 done, and something under test
//! failed; 2 bad usage or input; 3 this machine lacks what was asked for, or failed before all was judged; 70 a bug of
//! ours; 130 ended by Ctrl-C.

mod cache;
mod commands;
mod embedded;
mod error;
mod help;
mod interrupt;
mod output;
mod paths;
mod progress;

use clap::{CommandFactory, Parser, Subcommand};
use error::{CommandError, Outcome};
use mimalloc::MiMalloc;
use output::Output;
use passnet_engine::identity::Build;
use std::process::ExitCode;

/// Graphs are many small pieces, which this allocator serves faster than the system's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Write, check, time and score graph-compiler passes
#[derive(Debug, Parser)]
#[command(name = "passnet", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Exit codes: 0 done; 1 done, and something under test failed; 2 bad usage or input;
            3 this machine lacks what was asked for, or failed before all was judged; 70 a bug of ours;
            130 ended by Ctrl-C.")]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Print JSON for machines instead of tables for people
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Let language models write passes: run, resume, show, export, serve
    #[command(subcommand)]
    Agent(commands::agent::AgentCommand),
    /// Answer the backend of `torch.compile`; the Python package starts it
    #[command(hide = true)]
    BackendServer(commands::backend_server::BackendServerArgs),
    /// Evaluate passes on samples: match, rewrite, verify, time, score
    Bench(Box<commands::bench::BenchArgs>),
    /// Make a signed bundle of a run, or verify one
    Bundle(commands::bundle::BundleArgs),
    /// Work on units of a command for a driver elsewhere; a cluster's nodes start it
    #[command(hide = true)]
    ClusterWorker,
    /// Name what a shell could put next; the scripts of `passnet completions` ask
    #[command(hide = true)]
    Complete(commands::completions::CompleteArgs),
    /// Print a script that teaches a shell to complete commands and options
    Completions(commands::completions::CompletionsArgs),
    /// Build, inspect and export a dataset of graphs
    #[command(subcommand)]
    Dataset(commands::dataset::DatasetCommand),
    /// Show what this machine can do, and how to enable the rest
    Doctor(commands::doctor::DoctorArgs),
    /// Say what the library's passes replace in a model, what it brings, and what is left and why
    ExplainModel(commands::model::ExplainArgs),
    /// Turn PyTorch models into graphs: one's own, or a catalogue of thousands
    Extract(commands::extract::ExtractArgs),
    /// Read, check, print and identify graphs
    #[command(subcommand)]
    Graph(commands::graph::GraphCommand),
    /// Make a task of graphs of your own, with passes to begin with
    Init(commands::init::InitArgs),
    /// Check, plan and run the kernels of a pass without a GPU
    #[command(subcommand)]
    Kernel(commands::kernel::KernelCommand),
    /// Look after a leaderboard: runs, authors, tokens, backups
    #[command(subcommand)]
    Leaderboard(commands::leaderboard::LeaderboardCommand),
    /// Teach a small model to write passes: baseline, data, training, rounds, evaluation, report
    Learn(Box<commands::learn::LearnArgs>),
    /// Keep passes for use in programs: add, list, verify, merge, export
    #[command(subcommand)]
    Library(commands::library::LibraryCommand),
    /// Put the parts of a run together: what `--shard I/N` made becomes the run of one process
    Merge(commands::merge::MergeArgs),
    /// Measure whole models with the library's passes, beside eager PyTorch and TorchInductor
    #[command(subcommand)]
    Model(commands::model::ModelCommand),
    /// Check, trace, match, apply and explain passes, without running them
    #[command(subcommand)]
    Pass(commands::pass::PassCommand),
    /// The command lines of the reference's harness, for scripts that were written for it
    #[command(subcommand)]
    Reference(commands::reference::ReferenceCommand),
    /// Judge one graph of a submission; `passnet serve` starts it in a sandbox
    #[command(hide = true)]
    Rejudge,
    /// Show what runs found: tables, worst offenders, comparisons, one HTML page
    Report(commands::report::ReportArgs),
    /// Score a run, or a validation.log of the reference implementation
    Score(commands::score::ScoreArgs),
    /// Serve a leaderboard: pages, an interface for machines, submissions
    Serve(commands::serve::ServeArgs),
    /// Write the pages of runs as files that open from a disk
    Site(commands::site::SiteArgs),
    /// Write passes without a language model: analyse, generate, tune, evaluate
    Solve(commands::solve::SolveArgs),
    /// Send a bundle to a leaderboard, or take an entry back
    Submit(commands::submit::SubmitArgs),
}

/// What the build script found.
fn build() -> Build {
    let features = env!("PASSNET_FEATURES").split_whitespace().map(str::to_string);
    Build {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("PASSNET_COMMIT").into(),
        profile: env!("PASSNET_PROFILE").into(),
        features: features.collect(),
    }
}

fn main() -> ExitCode {
    Build::register(build());
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            help::print(&error);
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut output = Output::new(cli.json);
    let result =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(cli.command, &mut output)));
    let outcome = result.unwrap_or_else(|_| {
        Err(CommandError::bug("the command stopped unexpectedly; the message above says where"))
    });
    match outcome {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::SomethingFailed) => ExitCode::from(1),
        Ok(Outcome::NotJudged) => ExitCode::from(3),
        Ok(Outcome::Interrupted) => ExitCode::from(interrupt::EXIT_CODE),
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            error.print();
            ExitCode::from(error.exit_code())
        }
    }
}

/// Makes this thread one of those that compute: what it starts in parallel begins here at once, instead of when another
/// thread has woken up. Not for commands in which other threads compute while this one waits: it would be missing.
fn compute_here() {
    // Only a pool that is there already could refuse, and it would do.
    let _ = rayon::ThreadPoolBuilder::new().use_current_thread().build_global();
}

fn run(command: Command, output: &mut Output) -> Result<Outcome, CommandError> {
    if matches!(command, Command::Bench(_) | Command::Reference(_) | Command::Solve(_)) {
        compute_here();
    }
    match command {
        Command::Agent(command) => commands::agent::run(command, output),
        Command::BackendServer(args) => commands::backend_server::run(args),
        Command::Bench(args) => commands::bench::run(*args, output),
        Command::Bundle(args) => commands::bundle::run(args, output),
        Command::ClusterWorker => commands::cluster::worker::run(),
        Command::Complete(args) => commands::completions::complete(&args, &Cli::command(), output),
        Command::Completions(args) => commands::completions::run(&args, output),
        Command::Dataset(command) => commands::dataset::run(command, output),
        Command::Doctor(args) => commands::doctor::run(args, output),
        Command::ExplainModel(args) => commands::model::explain(args, output),
        Command::Extract(args) => commands::extract::run(args, output),
        Command::Graph(command) => commands::graph::run(command, output),
        Command::Init(args) => commands::init::run(&args, output),
        Command::Kernel(command) => commands::kernel::run(command, output),
        Command::Leaderboard(command) => commands::leaderboard::run(command, output),
        Command::Learn(args) => commands::learn::run(&args, output),
        Command::Library(command) => commands::library::run(command, output),
        Command::Merge(args) => commands::merge::run(&args, output),
        Command::Model(command) => commands::model::run(command, output),
        Command::Pass(command) => commands::pass::run(command, output),
        Command::Reference(command) => commands::reference::run(command, output),
        Command::Rejudge => commands::rejudge::run(),
        Command::Report(args) => commands::report::run(args, output),
        Command::Score(args) => commands::score::run(args, output),
        Command::Serve(args) => commands::serve::run(args, output),
        Command::Site(args) => commands::site::run(args, output),
        Command::Solve(args) => commands::solve::run(args, output),
        Command::Submit(args) => commands::submit::run(args, output),
    }
}
