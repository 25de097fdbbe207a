//! The steps of learning, each of which goes on where it was stopped.

use super::package::{Python, ReplyJob, TrainJob};
use super::report::{Data, Example, Step, StepScore, Story, Training};
use super::{LearnArgs, Tasks};
use crate::commands::agent::session;
use crate::error::CommandError;
use crate::output::warn;
use passnet_agent::budget::Limits;
use passnet_agent::export::guard::unfit;
use passnet_agent::export::{ChatFilter, Framework, PairFilter, framework_lines};
use passnet_agent::model::retry::Patience;
use passnet_agent::model::{Model, Protocol, Sampling, SolverModel};
use passnet_agent::prompt::CallStyle;
use passnet_agent::run::{AttemptRecord, STALL_SECONDS, Settings, read_attempts};
use passnet_agent::secrets::Redactor;
use passnet_agent::task::Portion;
use passnet_agent::trajectory::{ModelInfo, Source};
use passnet_bench::evaluate::EvaluateOptions;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Adapters weigh twice their rank, as is usual.
const ALPHA_PER_RANK: f64 = 2.0;

pub(super) struct Learn<'a> {
    args: &'a LearnArgs,
    tasks: Tasks,
    /// Conversations made before, without those that must not be learned.
    given: Option<Vec<PathBuf>>,
    python: Python,
    model: PathBuf,
    device: String,
}

/// What is to be attempted.
struct Attempts<'a> {
    name: &'a str,
    tasks: &'a [PathBuf],
    /// Of training tasks; evaluation tasks are judged on all their graphs.
    portion: Portion,
    attempts: u32,
    adapter: Option<&'a Path>,
    temperature: f64,
}

impl<'a> Learn<'a> {
    pub(super) fn new(
        args: &'a LearnArgs,
        tasks: Tasks,
        given: Option<Vec<PathBuf>>,
    ) -> Result<Self, CommandError> {
        let python = Python::new(args, args.out.join("jobs"))?;
        let model = std::path::absolute(&args.model)?;
        let engine = args.engine.choice();
        let device = args.model_device.clone().unwrap_or(engine.device);
        Ok(Learn { args, tasks, given, python, model, device })
    }

    /// Everything that is not done yet, and what came of all of it.
    pub(super) fn work(&self) -> Result<Story, CommandError> {
        let mut story = Story::new(&self.model, &self.tasks.training, self.tasks.withheld);
        let baseline = self.evaluate("baseline", None)?;
        story.identity = baseline.iter().find_map(|attempt| attempt.start.identity.clone());
        let mut steps = vec![Step::new("baseline", baseline)];
        let mut also = Vec::from_iter(self.also("baseline", None)?);
        let data = self.data(&mut story)?;
        let mut adapter = self.train("sft", &data, None, self.args.epochs, &mut story)?;
        steps.push(Step::new("sft", self.evaluate("after-sft", Some(&adapter))?));
        let mut kept: Vec<PathBuf> = Vec::new();
        for round in 1..=self.args.rounds {
            let name = format!("round-{round}");
            kept.extend(self.sample(round, &adapter, &mut story)?);
            if kept.is_empty() {
                warn(&format!("{name}: nothing was right and fast, so there is nothing to learn"));
                continue;
            }
            adapter = self.train(&name, &kept, Some(&adapter), 1, &mut story)?;
            let attempts = self.evaluate(&format!("after-{name}"), Some(&adapter))?;
            steps.push(Step::new(&name, attempts));
        }
        also.extend(self.also("last", Some(&adapter))?);
        story.example = Example::find(&steps);
        steps.extend(self.best_of(&adapter)?);
        story.steps = StepScore::of(&steps);
        story.also = StepScore::of(&also);
        story.adapter = adapter.file_name().map(PathBuf::from).unwrap_or_default();
        Ok(story)
    }

    /// Greedy attempts at the evaluation tasks.
    fn evaluate(
        &self,
        name: &str,
        adapter: Option<&Path>,
    ) -> Result<Vec<AttemptRecord>, CommandError> {
        let tasks = &self.tasks.evaluation;
        let portion = Portion::default();
        self.attempt(&Attempts { name, tasks, portion, attempts: 1, adapter, temperature: 0.0 })
    }

    /// Greedy attempts at the second set.
    fn also(&self, name: &str, adapter: Option<&Path>) -> Result<Option<Step>, CommandError> {
        let tasks = &self.tasks.also;
        if tasks.is_empty() {
            return Ok(None);
        }
        let (folder, portion) = (format!("also-{name}"), Portion::default());
        let wanted =
            Attempts { name: &folder, tasks, portion, attempts: 1, adapter, temperature: 0.0 };
        Ok(Some(Step::new(name, self.attempt(&wanted)?)))
    }

    /// Sampled attempts at the evaluation tasks, of which the best counts.
    fn best_of(&self, adapter: &Path) -> Result<Option<Step>, CommandError> {
        let Some(attempts) = self.args.best_of else { return Ok(None) };
        let name = format!("best-of-{attempts}");
        let found = self.attempt(&Attempts {
            name: &name,
            tasks: &self.tasks.evaluation,
            portion: Portion::default(),
            attempts,
            adapter: Some(adapter),
            temperature: self.args.temperature,
        })?;
        Ok(Some(Step::new(&name, found)))
    }

    /// The conversations to begin with: those that were given, or the solver's.
    fn data(&self, story: &mut Story) -> Result<Vec<PathBuf>, CommandError> {
        if let Some(given) = &self.given {
            return Ok(given.clone());
        }
        let folder = self.args.out.join("solver");
        let most_output = Some(u64::from(self.args.max_output));
        let most_operations = self.args.solver_ops.map(|most| most as usize);
        let info = ModelInfo {
            name: "solver".into(),
            source: Source::SolverWithMistakes,
            protocol: Protocol::OpenAi,
            base_url: String::new(),
            // As much as the model may say.
            sampling: Sampling { max_output_tokens: most_output, ..Sampling::default() },
            most_operations,
        };
        let attempts = self.args.solver_attempts;
        let portion = self.args.portion.portion();
        let settings = self.settings(info, &self.tasks.training, portion, attempts, 4);
        if !is_done(&folder, &settings) {
            warn(&format!("solver: conversations about {} tasks", self.tasks.training.len()));
            let redactor = Redactor::from_environment(None);
            session::perform(
                settings,
                &folder,
                Patience::default(),
                redactor,
                None,
                GOES_ON,
                |evaluator| {
                    let solver = SolverModel::new(evaluator.clone(), true);
                    Ok(Box::new(solver.within(most_output, most_operations)))
                },
            )?;
        }
        let attempts = records(&folder)?;
        let path = self.args.out.join("solver.jsonl");
        let lines = learnable(&attempts, None);
        if lines.is_empty() {
            return Err(CommandError::input("the solver solved none of the training tasks")
                .with_hint("give other tasks, or conversations by --data"));
        }
        story.data.push(Data::of("solver", &attempts, lines.len()));
        write_lines(&path, &lines)?;
        Ok(vec![path])
    }

    /// A round's attempts; the file of those worth learning, if there is one.
    fn sample(
        &self,
        round: u32,
        adapter: &Path,
        story: &mut Story,
    ) -> Result<Option<PathBuf>, CommandError> {
        let name = format!("samples-{round}");
        // Other tasks each time, as far as there are others.
        let all = &self.tasks.training;
        let count = self.args.round_tasks.min(all.len());
        let first = (round as usize - 1) * count;
        let tasks: Vec<PathBuf> =
            (0..count).map(|place| all[(first + place) % all.len()].clone()).collect();
        let attempts = self.attempt(&Attempts {
            name: &name,
            tasks: &tasks,
            portion: self.args.portion.portion(),
            attempts: self.args.samples,
            adapter: Some(adapter),
            temperature: self.args.temperature,
        })?;
        let lines = learnable(&attempts, Some(self.args.min_score));
        story.data.push(Data::of(&name, &attempts, lines.len()));
        let path = self.args.out.join(format!("{name}.jsonl"));
        write_lines(&path, &lines)?;
        Ok((!lines.is_empty()).then_some(path))
    }

    fn train(
        &self,
        name: &str,
        data: &[PathBuf],
        adapter: Option<&Path>,
        epochs: u32,
        story: &mut Story,
    ) -> Result<PathBuf, CommandError> {
        let out = std::path::absolute(self.args.out.join(name))?;
        let args = self.args;
        self.python.train(
            name,
            &TrainJob {
                model: &self.model,
                device: &self.device,
                data,
                out: &out,
                adapter,
                rank: args.rank,
                alpha: ALPHA_PER_RANK * f64::from(args.rank),
                learning_rate: args.learning_rate,
                epochs,
                length: args.length,
                blocks_per_step: args.blocks,
                seed: args.seed,
                checkpoint_steps: args.checkpoint_steps,
            },
        )?;
        story.trainings.push(Training::read(name, &out)?);
        Ok(out)
    }

    /// Attempts of the model, with an adapter or as it is.
    fn attempt(&self, wanted: &Attempts<'_>) -> Result<Vec<AttemptRecord>, CommandError> {
        let folder = self.args.out.join(wanted.name);
        let info = ModelInfo {
            name: self
                .model
                .file_name()
                .map_or("model".into(), |n| n.to_string_lossy().into_owned()),
            source: Source::Local,
            protocol: Protocol::OpenAi,
            base_url: wanted.adapter.unwrap_or(&self.model).display().to_string(),
            sampling: Sampling {
                temperature: Some(wanted.temperature),
                max_output_tokens: Some(u64::from(self.args.max_output)),
            },
            most_operations: None,
        };
        let batch = self.args.batch as usize;
        let settings = self.settings(info, wanted.tasks, wanted.portion, wanted.attempts, batch);
        if !is_done(&folder, &settings) {
            warn(&format!(
                "{}: {} tasks, {} attempts each",
                wanted.name,
                wanted.tasks.len(),
                wanted.attempts
            ));
            let job = ReplyJob {
                model: &self.model,
                device: &self.device,
                adapter: wanted.adapter,
                max_new_tokens: self.args.max_output,
                max_length: self.args.length,
                temperature: wanted.temperature,
                seed: self.args.seed,
            };
            let redactor = Redactor::from_environment(None);
            // A process that has ended does not come back by being asked again.
            let patience = Patience { retries: 0, ..Patience::default() };
            session::perform(settings.clone(), &folder, patience, redactor, None, GOES_ON, |_| {
                let model: Box<dyn Model> =
                    Box::new(self.python.reply(wanted.name, &job, batch)?);
                Ok(model)
            })?;
            if !is_done(&folder, &settings) {
                return Err(super::package::lacking(format!(
                    "{}: some attempts got no reply",
                    wanted.name
                )));
            }
        }
        records(&folder)
    }

    fn settings(
        &self,
        model: ModelInfo,
        tasks: &[PathBuf],
        portion: Portion,
        attempts: u32,
        jobs: usize,
    ) -> Settings {
        let args = self.args;
        let engine = args.engine.choice();
        let options = args.judging.judging.options();
        Settings {
            format: Settings::FORMAT,
            model,
            key_variable: String::new(),
            allow_http: false,
            no_key: true,
            // Calls as text: every chat template can carry them.
            calls: CallStyle::Text,
            prompts: args.prompts.clone(),
            prompt_digest: String::new(),
            tasks: tasks.to_vec(),
            portion,
            shard: None,
            attempts,
            jobs,
            limits: Limits { steps: args.max_steps, ..Limits::default() },
            stall_seconds: STALL_SECONDS,
            prices: None,
            run_cost: None,
            calls_per_minute: None,
            evaluate: EvaluateOptions { tier: engine.tier, ..options },
            engine,
            target: None,
            rules: args.judging.judging.rules(),
            evaluation_seconds: args.judging.evaluation_seconds,
        }
        .with_absolute_paths()
    }
}

const GOES_ON: &str = "the same command goes on";

/// Whether every attempt of a run is finished.
fn is_done(folder: &Path, settings: &Settings) -> bool {
    let Ok(before) = Settings::read(folder) else { return false };
    let wanted = settings.tasks.len() * settings.attempts as usize;
    let is_same = before.tasks == settings.tasks && before.model == settings.model;
    is_same
        && read_attempts(folder).is_ok_and(|attempts| {
            attempts.iter().filter(|attempt| attempt.is_finished()).count() >= wanted
        })
}

fn records(folder: &Path) -> Result<Vec<AttemptRecord>, CommandError> {
    read_attempts(folder).map_err(|error| CommandError::input(error.to_string()))
}

/// The right attempts that may be learned from, one conversation a line.
fn learnable(attempts: &[AttemptRecord], min_score: Option<f64>) -> Vec<Value> {
    let redactor = Redactor::from_environment(None);
    let fit: Vec<AttemptRecord> = attempts
        .iter()
        .filter(|attempt| unfit(attempt, &redactor, false).is_none())
        .cloned()
        .collect();
    let filter = ChatFilter {
        success: true,
        min_score,
        deduplicate: min_score.is_some(),
        ..ChatFilter::default()
    };
    framework_lines(&fit, Framework::OpenAi, &filter, PairFilter::default())
}

/// Whole or not at all.
fn write_lines(path: &Path, lines: &[Value]) -> Result<(), CommandError> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let partial = path.with_extension("jsonl.partial");
    std::fs::write(&partial, text)?;
    Ok(std::fs::rename(&partial, path)?)
}
