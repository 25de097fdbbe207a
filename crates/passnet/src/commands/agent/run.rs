//! `passnet agent run`

use super::session;
use crate::commands::cluster::ClusterArgs;
use crate::commands::engine::EngineArgs;
use crate::commands::judging::AgentJudging;
use crate::error::{CommandError, Outcome};
use crate::output::Output;
use crate::paths::with_list;
use clap::{Args, ValueEnum};
use passnet_agent::budget::Limits;
use passnet_agent::model::retry::Patience;
use passnet_agent::model::{Prices, Protocol, Sampling};
use passnet_agent::prompt::CallStyle;
use passnet_agent::run::{STALL_SECONDS, Settings};
use passnet_agent::task::Portion;
use passnet_agent::trajectory::{ModelInfo, Source};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::shard::Shard;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
The key is read from the environment (OPENAI_API_KEY or ANTHROPIC_API_KEY, or the variable that --key-variable
names); it is never written anywhere. The same command with the same --out goes on where it was stopped.

Examples:
  passnet agent run bench/tasks/swiglu --model gpt-5 --out runs/gpt
  passnet agent run bench/tasks --protocol anthropic --model claude-sonnet-4-6 --attempts 4 --jobs 8 --out runs/c
  passnet agent run bench/tasks --model local --base-url http://127.0.0.1:8080/v1 --calls text --out runs/local
  passnet agent run bench/tasks --model gpt-5 --engine torch --device cuda --out runs/gpu
  passnet agent run --list PassNet/sample_lists/eval/hf_fusible_eval_samples_v2.txt --model gpt-5 --out runs/eval
  passnet agent run bench/tasks --model solver --with-mistakes --out runs/solver     trajectories to learn from, no network
  passnet agent run bench/tasks --model gpt-5 --shard 0/8 --out parts/0     one of eight parts, for `passnet merge`
  passnet agent run bench/tasks --model gpt-5 --cluster auto --jobs 64 --out runs/nodes     evaluated by a Ray cluster
  passnet report runs/gpt runs/c                         compare the models

With an engine on a GPU evaluations run there and the prompts describe it; `match` and `check` stay on the CPU.

Exit codes: 0 every attempt solved its task; 1 some did not; 2 bad usage, or the provider refuses the key; 3 this
machine lacks what the engine needs.")]
pub struct RunArgs {
    /// Sample folders, or folders of them
    #[arg(required_unless_present = "list", value_name = "TASKS")]
    tasks: Vec<PathBuf>,

    /// A published list of samples, as text, table (`sample_path`) or tasks (`.jsonl`); paths from the top of its checkout
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,

    /// The model's name at its provider, or `solver`: passes written without a language model, as a conversation
    #[arg(long)]
    model: String,

    /// Every second attempt of the solver begins wrong in a way that models are; it is told so, and repairs it
    #[arg(long)]
    with_mistakes: bool,

    /// Operations of one pass of the solver at most: short passes, which a small model can learn to write
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    solver_ops: Option<u32>,

    /// Where the provider is [default: the protocol's own]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// How the provider speaks
    #[arg(long, value_enum, default_value_t = ProtocolArg::Openai)]
    protocol: ProtocolArg,

    /// The environment variable that holds the key [default: the protocol's own]
    #[arg(long, value_name = "NAME")]
    key_variable: Option<String>,

    /// Send the key to another machine without encryption
    #[arg(long)]
    allow_http: bool,

    /// The provider wants no key (a model on this machine never needs one)
    #[arg(long)]
    no_key: bool,

    /// How the model calls tools: as its provider does, or as JSON in its text
    #[arg(long, value_enum, default_value_t = CallsArg::Native)]
    calls: CallsArg,

    /// A folder with prompt templates of your own (see `passnet agent prompts`)
    #[arg(long, value_name = "DIR")]
    prompts: Option<PathBuf>,

    /// Keep everything in this folder, and go on with what is there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    #[command(flatten)]
    portion: PortionArgs,

    /// Work on one of N parts (I from 0 to N-1): tasks go to parts by their names; `passnet merge` puts them together
    #[arg(long, value_name = "I/N", conflicts_with = "cluster")]
    shard: Option<Shard>,

    /// Independent attempts at each task
    #[arg(long, short = 'k', default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    attempts: u32,

    /// Attempts at a time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=4096))]
    jobs: u64,

    /// Replies of the model in one attempt
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,

    /// Tokens of one attempt, all calls together
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,

    /// Tokens of one call: the longest conversation
    #[arg(long, default_value_t = 131_072, value_name = "N")]
    max_context: u64,

    /// Tokens of one reply; the solver then tells as many of its passes as fit
    #[arg(long, value_name = "N")]
    max_output: Option<u64>,

    /// Seconds of one attempt, without waiting for the evaluator
    #[arg(long, default_value_t = 50_000.0, value_name = "S")]
    max_seconds: f64,

    /// Seconds of one call
    #[arg(long, default_value_t = 7200.0, value_name = "S")]
    call_seconds: f64,

    /// Seconds without a word of the model after which a stream that has begun is given up and asked for again
    #[arg(long, default_value_t = STALL_SECONDS, value_name = "S")]
    stall_seconds: f64,

    /// Money for one attempt, in the currency of the prices
    #[arg(long, value_name = "M", requires = "price_in")]
    max_cost: Option<f64>,

    /// Money for the whole run
    #[arg(long, value_name = "M", requires = "price_in")]
    run_cost: Option<f64>,

    /// Price of a million prompt tokens
    #[arg(long, value_name = "M", requires = "price_out")]
    price_in: Option<f64>,

    /// Price of a million tokens of replies
    #[arg(long, value_name = "M", requires = "price_in")]
    price_out: Option<f64>,

    /// Price of a million prompt tokens from the provider's cache [default: a tenth of --price-in]
    #[arg(long, value_name = "M", requires = "price_in")]
    price_cached: Option<f64>,

    /// Calls a minute at most, over all attempts
    #[arg(long, value_name = "N")]
    calls_per_minute: Option<f64>,

    /// Tries after a failed call
    #[arg(long, default_value_t = 6, value_name = "N")]
    retries: u32,

    /// Left to the provider unless given
    #[arg(long)]
    temperature: Option<f64>,

    #[command(flatten)]
    pub(in crate::commands) engine: EngineArgs,

    #[command(flatten)]
    pub(in crate::commands) judging: AgentJudging,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// Which graphs of a task are worked on.
#[derive(Debug, Args)]
pub struct PortionArgs {
    /// Of each task only so many graphs: those that move the fewest bytes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    most_graphs: Option<u32>,

    /// Of each task only graphs whose inputs and outputs have at most so many MiB
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(1..))]
    most_mib: Option<u32>,
}

impl PortionArgs {
    pub(in crate::commands) fn portion(&self) -> Portion {
        Portion {
            most_graphs: self.most_graphs.map(|most| most as usize),
            most_bytes: self.most_mib.map(|most| u64::from(most) << 20),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProtocolArg {
    Openai,
    Anthropic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CallsArg {
    Native,
    Text,
}

/// Prompt tokens from a cache cost about so much of the ordinary price.
const CACHED_SHARE: f64 = 0.1;

/// The model that needs no provider.
const SOLVER: &str = "solver";

impl RunArgs {
    /// A provider's model may have the same name; its address says so.
    fn source(&self) -> Source {
        match (self.model == SOLVER && self.base_url.is_none(), self.with_mistakes) {
            (false, _) => Source::Provider,
            (true, false) => Source::Solver,
            (true, true) => Source::SolverWithMistakes,
        }
    }

    fn settings(&self, tasks: Vec<PathBuf>) -> Settings {
        let engine = self.engine.choice();
        let options = self.judging.judging.options();
        let protocol = match self.protocol {
            ProtocolArg::Openai => Protocol::OpenAi,
            ProtocolArg::Anthropic => Protocol::Anthropic,
        };
        let default_url = match self.source() {
            Source::Provider => protocol.default_base_url(),
            Source::Solver | Source::SolverWithMistakes | Source::Local => "",
        };
        let base_url = self.base_url.clone().unwrap_or_else(|| default_url.into());
        let prices = self.price_in.zip(self.price_out).map(|(input, output)| Prices {
            input,
            output,
            cached: self.price_cached.unwrap_or(input * CACHED_SHARE),
            cache_written: input,
        });
        Settings {
            format: Settings::FORMAT,
            model: ModelInfo {
                name: self.model.clone(),
                source: self.source(),
                protocol,
                base_url,
                sampling: Sampling {
                    temperature: self.temperature,
                    max_output_tokens: self.max_output,
                },
                most_operations: self.solver_ops.map(|most| most as usize),
            },
            key_variable: self
                .key_variable
                .clone()
                .unwrap_or_else(|| protocol.key_variable().into()),
            allow_http: self.allow_http,
            no_key: self.no_key,
            calls: match self.calls {
                CallsArg::Native => CallStyle::Native,
                CallsArg::Text => CallStyle::Text,
            },
            prompts: self.prompts.clone(),
            prompt_digest: String::new(),
            tasks,
            portion: self.portion.portion(),
            shard: self.shard,
            attempts: self.attempts,
            jobs: usize::try_from(self.jobs).unwrap_or(1),
            limits: Limits {
                steps: self.max_steps,
                tokens: self.max_tokens,
                context: Some(self.max_context),
                cost: self.max_cost,
                seconds: self.max_seconds,
                call_seconds: self.call_seconds,
            },
            stall_seconds: self.stall_seconds,
            prices,
            run_cost: self.run_cost,
            calls_per_minute: self.calls_per_minute,
            evaluate: EvaluateOptions { tier: engine.tier, ..options },
            engine,
            target: None,
            rules: self.judging.judging.rules(),
            evaluation_seconds: self.judging.evaluation_seconds,
        }
    }
}

pub fn run(args: &RunArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if args.with_mistakes && args.source() == Source::Provider {
        return Err(CommandError::input("`--with-mistakes` is for `--model solver`")
            .with_hint("models of providers make their own"));
    }
    if args.solver_ops.is_some() && args.source() == Source::Provider {
        return Err(CommandError::input("`--solver-ops` is for `--model solver`")
            .with_hint("say in a prompt template (--prompts) what a model is to do"));
    }
    let patience = Patience { retries: args.retries, ..Patience::default() };
    let tasks = with_list(&args.tasks, args.list.as_deref())?;
    args.cluster.check(&args.engine.choice())?;
    let cluster = args.cluster.is_asked().then_some(&args.cluster);
    let settings = args.settings(tasks).with_absolute_paths();
    session::work(settings, &args.out, patience, cluster, out)
}
