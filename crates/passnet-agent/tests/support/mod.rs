//! What the tests of the agent share: a scripted provider that speaks both protocols, small tasks, and an agent.
//!
//! The provider has no memory: what it answers depends on the request alone (how many replies the conversation holds
//! already), so a test may stop an agent anywhere and go on.

// Every test binary uses a part of this.
#![allow(dead_code)]

pub mod provider;
pub mod routine;
pub mod tasks;
pub mod wrong_turns;

use passnet_agent::agent::Agent;
use passnet_agent::budget::{Limits, Purse};
use passnet_agent::evaluator::{Evaluator, Judge};
use passnet_agent::model::retry::{Pace, Patience};
use passnet_agent::model::{Endpoint, Prices, Protocol, Sampling};
use passnet_agent::prompt::{CallStyle, Prompts, Target};
use passnet_agent::run::{self, Order, Plan, RunFolder, STALL_SECONDS, Settings};
use passnet_agent::secrets::{Redactor, Secret};
use passnet_agent::task::{Portion, Task};
use passnet_agent::trajectory::{ModelInfo, Source};
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::timing::TimingOptions;
use passnet_engine::EngineChoice;
use passnet_engine::native::NativeEngine;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A key that must never be seen again.
pub const KEY: &str = "scripted-key-7f3a9c";

/// Short timing: tests ask what happens, not how fast.
pub fn options() -> EvaluateOptions {
    EvaluateOptions {
        timing: TimingOptions { warmup: 1, trials: 10, seconds: 0.0, ..TimingOptions::default() },
        draws: 1,
        ..EvaluateOptions::default()
    }
}

pub fn evaluator() -> Arc<Evaluator> {
    let judge = Judge::new(Box::new(NativeEngine), options(), Target::of(&NativeEngine));
    Arc::new(Evaluator::start(vec![judge]).unwrap())
}

/// An agent that talks to a provider at an address.
pub fn agent(base_url: &str, protocol: Protocol) -> Agent {
    let key = Secret::new(KEY);
    let endpoint = Endpoint {
        protocol,
        base_url: base_url.into(),
        model: "scripted".into(),
        key: Some(key.clone()),
        sampling: Sampling::default(),
        silence: Duration::from_secs(20),
        stall: Duration::from_secs(20),
    };
    endpoint.check(false).unwrap();
    Agent {
        model: endpoint.connect(),
        info: info(base_url, protocol),
        redactor: Redactor::new([KEY.to_string()]),
        evaluator: evaluator(),
        prompts: Prompts::built_in(),
        calls: CallStyle::Native,
        limits: Limits { steps: 20, ..Limits::default() },
        prices: Some(Prices { input: 1.0, output: 2.0, cached: 0.1, cache_written: 1.0 }),
        patience: Patience { retries: 4, first_seconds: 0.01, longest_seconds: 0.05 },
        pace: Pace::new(None),
        purse: Purse::new(None),
    }
}

pub fn info(base_url: &str, protocol: Protocol) -> ModelInfo {
    ModelInfo {
        name: "scripted".into(),
        source: Source::Provider,
        protocol,
        base_url: base_url.into(),
        sampling: Sampling::default(),
        most_operations: None,
    }
}

pub fn settings(agent: &Agent, attempts: u32) -> Settings {
    Settings {
        format: Settings::FORMAT,
        model: agent.info.clone(),
        key_variable: "SCRIPTED_KEY".into(),
        allow_http: false,
        no_key: false,
        calls: agent.calls,
        prompts: None,
        prompt_digest: agent.prompts.digest(),
        tasks: Vec::new(),
        portion: Portion::default(),
        shard: None,
        attempts,
        jobs: 1,
        limits: agent.limits.clone(),
        stall_seconds: STALL_SECONDS,
        prices: agent.prices,
        run_cost: None,
        calls_per_minute: None,
        engine: EngineChoice::default(),
        target: Some(agent.evaluator.target().clone()),
        evaluate: options(),
        rules: true,
        evaluation_seconds: 600.0,
    }
}

/// A whole run in a folder.
pub fn run_in(folder: &Path, agent: &Agent, tasks: &[Arc<Task>], attempts: u32, jobs: usize) {
    let run_folder = RunFolder::open(folder).unwrap();
    settings(agent, attempts).write(&run_folder).unwrap();
    let order = Order::of(agent.info.source);
    let plan = Plan { tasks: tasks.to_vec(), attempts, jobs, order };
    run::run(agent, &run_folder, &plan, &|_| {}).unwrap();
}
