//! What `run` and `resume` share: from settings to attempts, with news on stderr and a summary at the end.

use super::live::Live;
use super::run_error;
use crate::commands::cluster::{ClusterArgs, Evaluators, Kind};
use crate::commands::engine;
use crate::commands::report::agent::print_metrics;
use crate::commands::shard::Part;
use crate::error::{CommandError, Outcome};
use crate::interrupt;
use crate::output::{Output, warn};
use passnet_agent::agent::Agent;
use passnet_agent::budget::Purse;
use passnet_agent::evaluator::{Evaluator, Judge};
use passnet_agent::metrics::Metrics;
use passnet_agent::model::retry::{Pace, Patience};
use passnet_agent::model::{Endpoint, Model, SolverModel};
use passnet_agent::prompt::{Prompts, Target};
use passnet_agent::run::{self, AttemptRecord, Order, Plan, RunFolder, Settings, read_attempts};
use passnet_agent::secrets::{Redactor, Secret};
use passnet_agent::task::{Portion, Task};
use passnet_agent::trajectory::Source;
use passnet_bench::bench::Bench;
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::sample::Sample;
use passnet_bench::score::Parameters;
use passnet_bench::subject::Subject;
use passnet_engine::{Engine, EngineChoice, Identity};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A server that is silent for so long has gone.
const SILENCE: Duration = Duration::from_secs(600);

/// How passes are judged, whatever the engine.
pub(super) struct Judging<'a> {
    pub(super) options: &'a EvaluateOptions,
    pub(super) rules: bool,
    pub(super) evaluation_seconds: f64,
}

/// A judge for each engine, all of one kind. Where the target is known it is not measured again: every attempt of a run reads
/// the same words.
pub(super) fn judges(
    engines: Vec<Box<dyn Engine>>,
    judging: &Judging<'_>,
    target: Option<Target>,
) -> Result<Vec<Judge>, CommandError> {
    let Some(first) = engines.first() else { return Err(CommandError::bug("no engine")) };
    let target = target.unwrap_or_else(|| Target::of(&**first));
    let judge = |engine| {
        let mut judge = Judge::new(engine, judging.options.clone(), target.clone());
        judge.rules = judging.rules;
        judge.evaluation_seconds = judging.evaluation_seconds;
        judge
    };
    Ok(engines.into_iter().map(judge).collect())
}

/// Templates of the user's own may not say where evaluations run.
pub(super) fn note_target(prompts: &Prompts, target: &Target) {
    if target.identity.device.kind != "cpu" && !prompts.tell_target() {
        warn("note: task.md has no `{{target}}`, so the model is not told which GPU it writes for");
    }
}

/// The target of a run that goes on: its engine as it is now, its rates as they were told before.
fn goes_on_with(
    folder: &RunFolder,
    identity: Identity,
    measure: impl FnOnce() -> Target,
) -> Target {
    let before = Settings::read(folder.root()).ok().and_then(|settings| settings.target);
    match before {
        Some(before) if before.identity.device == identity.device => {
            Target { identity, rates: before.rates }
        }
        _ => measure(),
    }
}

/// The largest noise that any of the engines shows.
fn noise_floor(settings: &Settings, engines: &[Box<dyn Engine>], tasks: &[Task]) -> f64 {
    let bench =
        |engine| Bench::new(engine, Subject::Eager, settings.evaluate.clone(), settings.rules);
    let mut benches: Vec<Bench<'_>> = engines.iter().map(|engine| bench(&**engine)).collect();
    let samples: Vec<Sample> = tasks.iter().map(|task| task.sample.clone()).collect();
    Bench::measure_noise_of_all(&mut benches, &samples)
}

pub(super) fn tasks(paths: &[PathBuf]) -> Result<Vec<Task>, CommandError> {
    Ok(Task::find(paths)?)
}

/// The tasks with a portion of their graphs; those that have none are left out, and it is said.
pub(in crate::commands) fn portions(
    tasks: Vec<Task>,
    portion: &Portion,
) -> Result<Vec<Task>, CommandError> {
    let all = tasks.len();
    let tasks: Vec<Task> = tasks.into_iter().filter_map(|task| task.portion(portion)).collect();
    match all - tasks.len() {
        0 => {}
        without if without == all => {
            return Err(CommandError::input("no task has a graph that is small enough")
                .with_hint("allow larger ones by --most-mib"));
        }
        without => {
            warn(&format!("note: {without} of {all} tasks have no graph that is small enough"))
        }
    }
    Ok(tasks)
}

pub(super) fn prompts(folder: Option<&Path>) -> Result<Prompts, CommandError> {
    match folder {
        Some(folder) => {
            Prompts::read(folder).map_err(|error| CommandError::input(error.to_string()))
        }
        None => Ok(Prompts::built_in()),
    }
}

/// Where the model is. A missing key is said here, before anything is measured or asked.
fn endpoint(settings: &Settings) -> Result<Endpoint, CommandError> {
    let key = std::env::var(&settings.key_variable).ok().filter(|key| !key.trim().is_empty());
    let seconds = |seconds: f64| Duration::from_secs_f64(seconds.clamp(0.1, 1e6));
    let endpoint = Endpoint {
        protocol: settings.model.protocol,
        base_url: settings.model.base_url.clone(),
        model: settings.model.name.clone(),
        key: key.map(|key| Secret::new(key.trim())),
        sampling: settings.model.sampling,
        silence: SILENCE.min(seconds(settings.limits.call_seconds)),
        stall: seconds(settings.stall_seconds),
    };
    endpoint
        .check(settings.allow_http)
        .map_err(|error| CommandError::input(error.message).with_hint(error.hint))?;
    if endpoint.lacks_key() && !settings.no_key {
        let message = format!("the environment variable {} holds no key", settings.key_variable);
        return Err(CommandError::input(message).with_hint(
            "set it, name another one by `--key-variable`, or say `--no-key` for a provider that wants none",
        ));
    }
    Ok(endpoint)
}

/// Works on a run until its attempts are done.
pub(super) fn work(
    settings: Settings,
    folder: &Path,
    patience: Patience,
    cluster: Option<&ClusterArgs>,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let endpoint = match settings.model.source {
        Source::Provider => Some(endpoint(&settings)?),
        Source::Solver | Source::SolverWithMistakes => None,
        Source::Local => {
            return Err(CommandError::input("this run is a step of `passnet learn`")
                .with_hint("`passnet learn` with the same --out goes on"));
        }
    };
    let key = endpoint.as_ref().and_then(|endpoint| endpoint.key.as_ref());
    let redactor = Redactor::from_environment(key);
    let with_mistakes = settings.model.source == Source::SolverWithMistakes;
    let most_output = settings.model.sampling.max_output_tokens;
    let most_operations = settings.model.most_operations;
    let model = |evaluator: &Arc<Evaluator>| -> Result<Box<dyn Model>, CommandError> {
        Ok(match endpoint {
            Some(endpoint) => endpoint.connect(),
            None => {
                let solver = SolverModel::new(evaluator.clone(), with_mistakes);
                Box::new(solver.within(most_output, most_operations))
            }
        })
    };
    let goes_on = format!("`passnet agent resume {}` goes on", folder.display());
    perform(settings, folder, patience, redactor, cluster, &goes_on, model)?;
    summary(folder, out)
}

/// Makes the attempts of a run with whatever answers them.
pub(in crate::commands) fn perform(
    mut settings: Settings,
    folder: &Path,
    patience: Patience,
    redactor: Redactor,
    cluster: Option<&ClusterArgs>,
    goes_on: &str,
    model: impl FnOnce(&Arc<Evaluator>) -> Result<Box<dyn Model>, CommandError>,
) -> Result<(), CommandError> {
    let mut tasks = portions(tasks(&settings.tasks)?, &settings.portion)?;
    let units = || run::merge::units(&tasks);
    let part = Part::begin(settings.shard, Some(folder), "agent", [], units)?;
    if let Some(part) = &part {
        tasks.retain(|task| part.holds(&task.id));
    }
    let prompts = prompts(settings.prompts.as_deref())?;
    settings.prompt_digest = prompts.digest();
    let run_folder = RunFolder::open(folder).map_err(run_error)?;
    // What differs from the run there is said before anything is started.
    settings.check(&run_folder).map_err(run_error)?;
    let evaluator = Arc::new(match cluster {
        Some(cluster) => remote_evaluator(&mut settings, &run_folder, &prompts, cluster)?,
        None => local_evaluator(&mut settings, &run_folder, &prompts, &tasks)?,
    });
    let agent = Agent {
        model: model(&evaluator)?,
        info: settings.model.clone(),
        redactor,
        evaluator,
        prompts,
        calls: settings.calls,
        limits: settings.limits.clone(),
        prices: settings.prices,
        patience,
        pace: Pace::new(settings.calls_per_minute),
        purse: Purse::new(settings.run_cost),
    };
    let tasks: Vec<Arc<Task>> = tasks.into_iter().map(Arc::new).collect();
    interrupt::end_at_once(goes_on);
    let live = Live::new(tasks.len() * settings.attempts as usize, settings.limits.steps);
    let order = Order::of(settings.model.source);
    let plan = Plan { tasks, attempts: settings.attempts, jobs: settings.jobs, order };
    let done = run::run(&agent, &run_folder, &plan, &|news| live.hear(news));
    live.finish();
    done.map_err(run_error)?;
    match part.filter(|_| run_folder.is_complete()) {
        Some(part) => part.finish(),
        None => Ok(()),
    }
}

/// Evaluates on devices of this machine.
fn local_evaluator(
    settings: &mut Settings,
    folder: &RunFolder,
    prompts: &Prompts,
    tasks: &[Task],
) -> Result<Evaluator, CommandError> {
    let engines = engine::start_for_passes(&settings.engine)?;
    let target = goes_on_with(folder, engines[0].identity(), || Target::of(&*engines[0]));
    note_target(prompts, &target);
    settings.target = Some(target.clone());
    settings.write(folder).map_err(run_error)?;
    settings.evaluate.noise_floor = noise_floor(settings, &engines, tasks);
    settings.write(folder).map_err(run_error)?;
    let judging = Judging {
        options: &settings.evaluate,
        rules: settings.rules,
        evaluation_seconds: settings.evaluation_seconds,
    };
    Ok(Evaluator::start(judges(engines, &judging, Some(target))?)?)
}

/// Evaluates on the nodes of a cluster.
fn remote_evaluator(
    settings: &mut Settings,
    folder: &RunFolder,
    prompts: &Prompts,
    cluster: &ClusterArgs,
) -> Result<Evaluator, CommandError> {
    let pool = Evaluators::start(cluster, Kind::timed(&settings.engine))?;
    let found = pool.target().clone();
    let target = goes_on_with(folder, found.identity.clone(), || found);
    note_target(prompts, &target);
    settings.target = Some(target.clone());
    settings.evaluate.noise_floor = pool.noise();
    settings.write(folder).map_err(run_error)?;
    let judging = Judging {
        options: &settings.evaluate,
        rules: settings.rules,
        evaluation_seconds: settings.evaluation_seconds,
    };
    judging.over(pool, target, settings.jobs)
}

impl Judging<'_> {
    /// An evaluator of the nodes of a cluster, with a native engine for what needs no clock.
    pub(super) fn over(
        &self,
        pool: Evaluators,
        target: Target,
        evaluations: usize,
    ) -> Result<Evaluator, CommandError> {
        let here: Vec<Box<dyn Engine>> = engine::start(&EngineChoice::default())?;
        let judge = judges(here, self, Some(target))?.into_iter().next();
        let judge = judge.ok_or_else(|| CommandError::bug("no engine"))?;
        Ok(Evaluator::start_remote(judge, Arc::new(pool), evaluations)?)
    }
}

fn summary(folder: &Path, out: &mut Output) -> Result<Outcome, CommandError> {
    let attempts = read_attempts(folder).map_err(run_error)?;
    let metrics = Metrics::of(&attempts, Parameters::default());
    // What eager fails on, nobody can solve.
    let aside = metrics.as_ref().map_or(&[][..], |metrics| metrics.set_aside.as_slice());
    let counts = |attempt: &&AttemptRecord| !aside.contains(&attempt.start.task);
    let unsolved = attempts.iter().filter(counts).any(|attempt| !attempt.is_correct());
    if out.is_json() {
        out.json(&json!({ "run": folder.display().to_string(), "metrics": metrics }))?;
    } else if let Some(metrics) = &metrics {
        print_metrics(&[(folder.display().to_string(), metrics.clone())], out)?;
    }
    out.flush()?;
    Ok(Outcome::failed_if(unsolved))
}
