//! `passnet learn`: from a model that writes few right passes to one that writes more.

mod given;
mod package;
mod report;
mod steps;

use super::agent::run::PortionArgs;
use super::agent::session;
use super::engine::EngineArgs;
use super::judging::AgentJudging;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use clap::Args;
use passnet_agent::task::{Portion, Task};
use passnet_graph::identity::{Digest, identify};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use steps::Learn;

#[derive(Debug, Args)]
#[command(after_help = "\
Steps: the model as it is is evaluated; the solver writes conversations about the training tasks, with mistakes and repairs;
adapters are trained on them; then rounds: sample replies, judge them, train on what is right and fast; after each step the
evaluation tasks again. Training tasks, and conversations of --data, that share a structure with an evaluation task are left
out. Everything is kept below --out, and the same command goes on where it stopped. DIR/report.html and DIR/report.json tell
what came of it; DIR/sft and DIR/round-N are adapters in the form of PEFT.

Needs a Python with PyTorch and transformers, and for GGUF files the package `gguf`.

Examples:
  passnet learn --model Qwen2.5-Coder-1.5B-Instruct --tasks train --evaluate held-out --engine torch --device cuda --out learned
  passnet learn --model model.gguf --tasks train --evaluate held-out --rounds 0 --epochs 1 --out first-try

Exit codes: 0 done; 2 bad usage; 3 this machine lacks what it needs, or a training ended early.")]
pub struct LearnArgs {
    /// A Hugging Face folder or a GGUF file
    #[arg(long, value_name = "PATH")]
    model: PathBuf,

    /// Tasks to learn from: sample folders, or folders of them
    #[arg(long, value_name = "TASKS", num_args = 1.., required = true)]
    tasks: Vec<PathBuf>,

    /// Tasks to be evaluated on, never learned from
    #[arg(long, value_name = "SET", num_args = 1.., required = true)]
    evaluate: Vec<PathBuf>,

    /// Other tasks to be evaluated on before and after, told apart; never learned from either
    #[arg(long, value_name = "SET", num_args = 1..)]
    also: Vec<PathBuf>,

    /// Keep everything in this folder, and go on with what is there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Conversations made before (`passnet agent export --to openai` of runs with `--calls text`), instead of the solver's
    #[arg(long, value_name = "FILE")]
    data: Vec<PathBuf>,

    /// Training tasks at most, spread over all lengths of graphs
    #[arg(long, value_name = "N")]
    most_tasks: Option<usize>,

    #[command(flatten)]
    portion: PortionArgs,

    /// The solver's attempts at each training task; every second one begins with a mistake
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    solver_attempts: u32,

    /// Operations of one pass of the solver at most: short passes, which a small model can learn to write
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    solver_ops: Option<u32>,

    /// Rounds of sampling, judging and training on what was right and fast
    #[arg(long, default_value_t = 2)]
    rounds: u32,

    /// Training tasks of one round
    #[arg(long, default_value_t = 64, value_name = "N")]
    round_tasks: usize,

    /// Attempts at each task of a round
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,

    /// The temperature of sampled attempts; evaluations are greedy
    #[arg(long, default_value_t = 0.8)]
    temperature: f64,

    /// In the end also so many sampled attempts at each evaluation task, of which the best counts
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(2..=1000))]
    best_of: Option<u32>,

    /// The least score from which an attempt of a round is learned
    #[arg(long, default_value_t = 1.0, value_name = "AS")]
    min_score: f64,

    /// Replies of the model in one attempt
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: u32,

    /// Tokens of one reply
    #[arg(long, default_value_t = 2048, value_name = "N")]
    max_output: u32,

    /// Tokens of a conversation, and of those that are learned at once
    #[arg(long, default_value_t = 8192, value_name = "N")]
    length: u32,

    /// Conversations that are answered at once
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: u32,

    /// Times that the solver's conversations are learned
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    epochs: u32,

    /// Rank of the adapters
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1024))]
    rank: u32,

    #[arg(long, default_value_t = 2e-4, value_name = "RATE")]
    learning_rate: f64,

    /// Blocks of --length tokens in one step of training
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    blocks: u32,

    /// Steps of training between two checkpoints
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    checkpoint_steps: u32,

    /// Where the model computes [default: where the engine does]
    #[arg(long, value_parser = ["cpu", "cuda"])]
    model_device: Option<String>,

    /// A folder with prompt templates of your own
    #[arg(long, value_name = "DIR")]
    prompts: Option<PathBuf>,

    #[arg(long, default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    judging: AgentJudging,
}

/// What must not change when a run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Conditions {
    model: PathBuf,
    tasks: Vec<PathBuf>,
    evaluate: Vec<PathBuf>,
    #[serde(default)]
    also: Vec<PathBuf>,
    data: Vec<PathBuf>,
    most_tasks: Option<usize>,
    #[serde(default)]
    portion: Portion,
    solver_attempts: u32,
    #[serde(default)]
    solver_ops: Option<u32>,
    rank: u32,
    epochs: u32,
    length: u32,
    blocks: u32,
    learning_rate: f64,
    seed: u64,
}

impl Conditions {
    fn of(args: &LearnArgs) -> Conditions {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let all = |paths: &[PathBuf]| paths.iter().map(absolute).collect();
        Conditions {
            model: absolute(&args.model),
            tasks: all(&args.tasks),
            evaluate: all(&args.evaluate),
            also: all(&args.also),
            data: all(&args.data),
            most_tasks: args.most_tasks,
            portion: args.portion.portion(),
            solver_attempts: args.solver_attempts,
            solver_ops: args.solver_ops,
            rank: args.rank,
            epochs: args.epochs,
            length: args.length,
            blocks: args.blocks,
            learning_rate: args.learning_rate,
            seed: args.seed,
        }
    }

    /// Refuses to go on with a folder that was begun otherwise.
    fn hold(&self, out: &Path) -> Result<(), CommandError> {
        std::fs::create_dir_all(out)?;
        let path = out.join("learn.json");
        match std::fs::read(&path) {
            Ok(bytes) if serde_json::from_slice::<Conditions>(&bytes).is_ok_and(|was| was == *self) => {
                Ok(())
            }
            Ok(_) => Err(CommandError::input(format!(
                "{}: what is there was begun with other tasks, another model or another way of training",
                path.display()
            ))
            .with_hint("name another folder by --out, or repeat the options it was begun with")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let text = serde_json::to_string_pretty(self)
                    .map_err(|error| CommandError::bug(error.to_string()))?;
                Ok(std::fs::write(&path, text + "\n")?)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The tasks of both sides.
struct Tasks {
    training: Vec<PathBuf>,
    evaluation: Vec<PathBuf>,
    /// The second set.
    also: Vec<PathBuf>,
    /// Training tasks that share a structure with an evaluation task.
    withheld: usize,
    /// The structures of the evaluation tasks.
    evaluated: BTreeSet<Digest>,
}

impl Tasks {
    fn read(args: &LearnArgs) -> Result<Tasks, CommandError> {
        let evaluation = Task::find(&args.evaluate)?;
        let also = match args.also.is_empty() {
            true => Vec::new(),
            false => Task::find(&args.also)?,
        };
        let training = Task::find(&args.tasks)?;
        let evaluated: BTreeSet<Digest> =
            evaluation.iter().chain(&also).flat_map(structures).collect();
        let all = training.len();
        let mut training: Vec<Task> =
            training.into_iter().filter(|task| structures(task).is_disjoint(&evaluated)).collect();
        let withheld = all - training.len();
        if training.is_empty() {
            return Err(CommandError::input("no task is left to learn from")
                .with_hint("every one shares a structure with an evaluation task"));
        }
        training = session::portions(training, &args.portion.portion())?;
        if let Some(most) = args.most_tasks {
            training = spread(training, most);
        }
        let folders = |tasks: Vec<Task>| -> Vec<PathBuf> {
            let folder =
                |task: Task| std::path::absolute(&task.sample.folder).unwrap_or(task.sample.folder);
            tasks.into_iter().map(folder).collect()
        };
        let (training, evaluation, also) = (folders(training), folders(evaluation), folders(also));
        Ok(Tasks { training, evaluation, also, withheld, evaluated })
    }
}

/// Of each graph: its operations and how they hang together.
fn structures(task: &Task) -> BTreeSet<Digest> {
    task.readable().map(|(_, _, folder)| identify(&folder.graph, &folder.metas).structure).collect()
}

/// So many tasks, from all lengths of graphs in turn, so that the long ones are not lost among many short ones.
fn spread(mut tasks: Vec<Task>, most: usize) -> Vec<Task> {
    tasks.sort_by_cached_key(|task| task.id.clone());
    let mut by_length: BTreeMap<usize, VecDeque<Task>> = BTreeMap::new();
    for task in tasks {
        let calls = task.readable().map(|(_, _, folder)| folder.graph.calls().count());
        by_length.entry(calls.max().unwrap_or(0)).or_default().push_back(task);
    }
    let mut chosen = Vec::new();
    while chosen.len() < most && !by_length.is_empty() {
        let room = most - chosen.len();
        chosen.extend(by_length.values_mut().rev().filter_map(VecDeque::pop_front).take(room));
        by_length.retain(|_, group| !group.is_empty());
    }
    chosen
}

pub fn run(args: &LearnArgs, out: &mut Output) -> Result<Outcome, CommandError> {
    if !args.model.exists() {
        return Err(CommandError::input(format!("{}: no such model", args.model.display()))
            .with_hint("a Hugging Face folder or a GGUF file"));
    }
    args.engine.check()?;
    let tasks = Tasks::read(args)?;
    Conditions::of(args).hold(&args.out)?;
    if tasks.withheld > 0 {
        warn(&format!(
            "note: {} training tasks share a structure with an evaluation task and are left out",
            tasks.withheld
        ));
    }
    let data = match args.data.is_empty() {
        true => None,
        false => Some(given::checked(&args.data, &tasks.evaluated, &args.out)?),
    };
    let learn = Learn::new(args, tasks, data)?;
    let told = learn.work()?;
    let (html, data) = (args.out.join("report.html"), args.out.join("report.json"));
    std::fs::write(&data, serde_json::to_string_pretty(&told).unwrap_or_default() + "\n")?;
    std::fs::write(&html, report::page(&told))?;
    if out.is_json() {
        out.json(&json!({ "report": told }))?;
    } else {
        report::print(&told, out)?;
        out.line(format!("adapter: {}", args.out.join(&told.adapter).display()))?;
        out.line(format!("{} tells more", html.display()))?;
    }
    out.flush()?;
    Ok(Outcome::Done)
}
