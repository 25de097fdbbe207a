//! What `run` and `resume` share: from settings to attempts, with news on stderr and a summary at the end.

use super::run_error;
use crate::commands::report::agent::print_metrics;
use crate::error::{CommandError, Outcome};
use crate::output::{Output, warn};
use passnet_agent::agent::Agent;
use passnet_agent::budget::Purse;
use passnet_agent::evaluator::{Evaluator, Judge};
use passnet_agent::metrics::Metrics;
use passnet_agent::model::Endpoint;
use passnet_agent::model::retry::{Pace, Patience};
use passnet_agent::prompt::Prompts;
use passnet_agent::run::{self, News, Plan, RunFolder, Settings, read_attempts};
use passnet_agent::secrets::{Redactor, Secret};
use passnet_agent::task::Task;
use passnet_bench::bench::{Bench, Compiler};
use passnet_bench::roofline::Roofline;
use passnet_bench::sample::Sample;
use passnet_bench::score::Parameters;
use passnet_engine::native::NativeEngine;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A server that is silent for so long has gone.
const SILENCE: Duration = Duration::from_secs(600);

/// The judge of passes, with this machine's noise measured.
pub(super) fn judge(settings: &mut Settings, tasks: &[Task]) -> Judge {
    let bench = Bench {
        engine: &NativeEngine,
        compiler: Compiler::Eager,
        options: settings.evaluate.clone(),
        rules: settings.rules,
        roofline: Roofline::default(),
    };
    let samples: Vec<Sample> = tasks.iter().map(|task| task.sample.clone()).collect();
    settings.evaluate.noise_floor = bench.measure_noise(&samples);
    let mut judge = Judge::new(Box::new(NativeEngine), settings.evaluate.clone());
    judge.rules = settings.rules;
    judge.evaluation_seconds = settings.evaluation_seconds;
    judge
}

pub(super) fn tasks(paths: &[PathBuf]) -> Result<Vec<Task>, CommandError> {
    Ok(Task::find(paths)?)
}

pub(super) fn prompts(folder: Option<&Path>) -> Result<Prompts, CommandError> {
    match folder {
        Some(folder) => {
            Prompts::read(folder).map_err(|error| CommandError::input(error.to_string()))
        }
        None => Ok(Prompts::built_in()),
    }
}

/// Works on a run until its attempts are done.
pub(super) fn work(
    mut settings: Settings,
    folder: &Path,
    patience: Patience,
    out: &mut Output,
) -> Result<Outcome, CommandError> {
    let key = std::env::var(&settings.key_variable).ok().filter(|key| !key.trim().is_empty());
    let key = key.map(|key| Secret::new(key.trim()));
    let endpoint = Endpoint {
        protocol: settings.model.protocol,
        base_url: settings.model.base_url.clone(),
        model: settings.model.name.clone(),
        key: key.clone(),
        sampling: settings.model.sampling,
        silence: SILENCE.min(Duration::from_secs_f64(settings.limits.call_seconds.clamp(0.1, 1e6))),
    };
    endpoint
        .check(settings.allow_http)
        .map_err(|error| CommandError::input(error.message).with_hint(error.hint))?;
    let tasks = tasks(&settings.tasks)?;
    let prompts = prompts(settings.prompts.as_deref())?;
    settings.prompt_digest = prompts.digest();
    let run_folder = RunFolder::open(folder).map_err(run_error)?;
    settings.write(&run_folder).map_err(run_error)?;
    let judge = judge(&mut settings, &tasks);
    settings.write(&run_folder).map_err(run_error)?;
    let agent = Agent {
        model: endpoint.connect(),
        info: settings.model.clone(),
        redactor: Redactor::from_environment(key.as_ref()),
        evaluator: Arc::new(Evaluator::start(judge)?),
        prompts,
        calls: settings.calls,
        limits: settings.limits.clone(),
        prices: settings.prices,
        patience,
        pace: Pace::new(settings.calls_per_minute),
        purse: Purse::new(settings.run_cost),
    };
    let tasks = tasks.into_iter().map(Arc::new).collect();
    let plan = Plan { tasks, attempts: settings.attempts, jobs: settings.jobs };
    run::run(&agent, &run_folder, &plan, &tell).map_err(run_error)?;
    summary(folder, out)
}

/// One line for each attempt that ends.
fn tell(news: &News<'_>) {
    let News::Ended { task, attempt, end } = news else { return };
    let score = end.best.map_or("no score".to_string(), |score| format!("AS {score:.4}"));
    let detail = if end.detail.is_empty() { String::new() } else { format!(" ({})", end.detail) };
    warn(&format!(
        "{task} attempt {attempt}: {}, {score}, {} steps{detail}",
        end.reason, end.spent.steps
    ));
}

fn summary(folder: &Path, out: &mut Output) -> Result<Outcome, CommandError> {
    let attempts = read_attempts(folder).map_err(run_error)?;
    let metrics = Metrics::of(&attempts, Parameters::default());
    let unsolved = attempts.iter().any(|attempt| !attempt.is_correct());
    if out.is_json() {
        out.json(&json!({ "run": folder.display().to_string(), "metrics": metrics }))?;
    } else if let Some(metrics) = &metrics {
        print_metrics(&[(folder.display().to_string(), metrics.clone())], out)?;
    }
    out.flush()?;
    Ok(Outcome::failed_if(unsolved))
}
