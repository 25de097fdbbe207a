//! The episodes of a server.

use super::http::Failure;
use crate::budget::Limits;
use crate::chat::{Message, ToolCall};
use crate::episode::Episode;
use crate::evaluator::{Assessment, Evaluator, Tier};
use crate::model::text_calls;
use crate::prompt::{CallStyle, Prompts};
use crate::task::Task;
use crate::tools::{self, Tool};
use passnet_engine::Identity;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// What a server allows.
#[derive(Debug, Clone)]
pub struct ServerLimits {
    /// Steps of one episode.
    pub steps: u32,
    /// Episodes open at once.
    pub episodes: usize,
    /// Open at once.
    pub connections: usize,
    /// An episode that nobody used for so long is forgotten when room is needed.
    pub idle: Duration,
    /// The score an episode begins with, for rewards.
    pub floor: f64,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            steps: 50,
            episodes: 4096,
            connections: 1024,
            idle: Duration::from_secs(1800),
            floor: 0.1,
        }
    }
}

/// Calls of one step.
const MAX_CALLS: usize = 16;

#[derive(Debug)]
struct Slot {
    episode: Episode,
    steps: u32,
    is_done: bool,
    /// How far its passes ever came.
    tier: Tier,
}

/// A task and how its prompt begins, by way of calling tools.
#[derive(Debug)]
struct Offer {
    task: Arc<Task>,
    native: Vec<Message>,
    text: Vec<Message>,
}

#[derive(Debug)]
struct Open {
    slot: Arc<Mutex<Slot>>,
    used: Instant,
}

#[derive(Debug)]
pub(super) struct Episodes {
    offers: BTreeMap<String, Offer>,
    evaluator: Arc<Evaluator>,
    limits: ServerLimits,
    open: Mutex<BTreeMap<String, Open>>,
}

impl Episodes {
    pub(super) fn new(
        tasks: Vec<Arc<Task>>,
        evaluator: Arc<Evaluator>,
        prompts: &Prompts,
        limits: ServerLimits,
    ) -> Self {
        let told = Limits { steps: limits.steps, ..Limits::default() };
        let offer = |task: Arc<Task>| {
            let messages = |style| prompts.messages(&task, &told, style, evaluator.target());
            let (native, text) = (messages(CallStyle::Native), messages(CallStyle::Text));
            (task.id.clone(), Offer { task, native, text })
        };
        let offers = tasks.into_iter().map(offer).collect();
        Episodes { offers, evaluator, limits, open: Mutex::new(BTreeMap::new()) }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn count(&self) -> usize {
        self.open().len()
    }

    pub(super) fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    pub(super) fn task_count(&self) -> usize {
        self.offers.len()
    }

    /// The task at a place that may lie beyond the last one, after which the first comes again.
    pub(super) fn task_at(&self, index: u64) -> Option<String> {
        let place = index.checked_rem(self.offers.len() as u64)?;
        self.offers.keys().nth(usize::try_from(place).ok()?).cloned()
    }

    /// Where rewards come from.
    pub(super) fn engine(&self) -> &Identity {
        &self.evaluator.target().identity
    }

    pub(super) fn tasks(&self) -> Value {
        let task = |(id, offer): (&String, &Offer)| json!({ "task": id, "graphs": offer.task.graphs.len() });
        json!({ "tasks": self.offers.iter().map(task).collect::<Vec<_>>() })
    }

    pub(super) fn reset(&self, body: &Value) -> Result<Value, Failure> {
        let task = text(body, "task")?;
        let offer =
            self.offers.get(task).ok_or_else(|| Failure::new(404, "there is no such task"))?;
        let (messages, tools) = match body.get("calls").and_then(Value::as_str) {
            None | Some("native") => (&offer.native, tools::specs()),
            Some("text") => (&offer.text, Vec::new()),
            Some(_) => return Err(Failure::bad("`calls` is `native` or `text`")),
        };
        let episode = Episode::new(offer.task.clone(), self.evaluator.clone());
        let slot = Slot { episode, steps: 0, is_done: false, tier: Tier::default() };
        let id = fresh_id();
        let mut open = self.open();
        if open.len() >= self.limits.episodes {
            let idle = self.limits.idle;
            open.retain(|_, open| open.used.elapsed() < idle);
            if open.len() >= self.limits.episodes {
                return Err(Failure::busy("too many episodes; close some"));
            }
        }
        open.insert(id.clone(), Open { slot: Arc::new(Mutex::new(slot)), used: Instant::now() });
        Ok(json!({
            "episode": id,
            "task": task,
            "messages": messages,
            "tools": tools,
            "max_steps": self.limits.steps,
            "engine": self.engine(),
        }))
    }

    fn slot(&self, body: &Value) -> Result<Arc<Mutex<Slot>>, Failure> {
        let id = text(body, "episode")?;
        let mut open = self.open();
        let found =
            open.get_mut(id).ok_or_else(|| Failure::new(404, "there is no such episode"))?;
        found.used = Instant::now();
        Ok(found.slot.clone())
    }

    pub(super) fn step(&self, body: &Value) -> Result<Value, Failure> {
        let calls = calls(body)?;
        let slot = self.slot(body)?;
        let mut slot = match slot.try_lock() {
            Ok(slot) => slot,
            Err(TryLockError::Poisoned(slot)) => slot.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(Failure::new(409, "another step of this episode is under way"));
            }
        };
        if slot.is_done {
            return Err(Failure::new(409, "the episode is over"));
        }
        let (before, tier_before) = (self.standing(&slot), slot.tier);
        slot.steps += 1;
        let (mut results, mut seconds, mut waited) = (Vec::new(), 0.0, 0.0);
        for call in &calls {
            if slot.episode.is_submitted() {
                break;
            }
            let seen = slot.episode.perform(call).map_err(|error| Failure::new(500, error))?;
            seconds += seen.seconds;
            waited += seen.waited;
            slot.tier =
                slot.tier.max(seen.assessment.as_ref().map_or(Tier::Nothing, Assessment::tier));
            results.push(json!({
                "tool": call.name,
                "observation": seen.content,
                "is_error": seen.is_error,
                "assessment": seen.assessment,
            }));
        }
        if calls.is_empty() {
            let observation = "There was no tool call. Call a tool; `submit` when you are done.";
            results.push(json!({ "tool": null, "observation": observation, "is_error": true }));
        }
        slot.is_done = slot.episode.is_submitted() || slot.steps >= self.limits.steps;
        let reward = self.standing(&slot).ln() - before.ln();
        Ok(json!({
            "results": results,
            "reward": reward,
            "tier": slot.tier,
            "tiered_reward": reward + slot.tier.worth() - tier_before.worth(),
            "done": slot.is_done,
            "best": slot.episode.best().map(|best| best.score),
            "steps": slot.steps,
            "steps_remaining": self.limits.steps - slot.steps,
            "seconds": seconds,
            "waited_seconds": waited,
        }))
    }

    /// The score an episode stands at.
    fn standing(&self, slot: &Slot) -> f64 {
        slot.episode.best().map_or(self.limits.floor, |best| best.score.max(self.limits.floor))
    }

    pub(super) fn score(&self, body: &Value) -> Result<Value, Failure> {
        let slot = self.slot(body)?;
        let slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let best = slot.episode.best();
        let assessment =
            best.and_then(|best| best.answer.as_ref()).map(|answer| &answer.assessment);
        Ok(json!({
            "score": best.map(|best| best.score),
            "correct": assessment.is_some_and(Assessment::is_all_correct),
            "assessment": assessment,
            "files": best.map(|best| &best.files),
            "steps": slot.steps,
            "done": slot.is_done,
            "engine": self.engine(),
        }))
    }

    pub(super) fn close(&self, body: &Value) -> Result<Value, Failure> {
        let id = text(body, "episode")?;
        match self.open().remove(id) {
            Some(_) => Ok(json!({ "closed": true })),
            None => Err(Failure::new(404, "there is no such episode")),
        }
    }
}

fn text<'a>(body: &'a Value, name: &str) -> Result<&'a str, Failure> {
    body.get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Failure::bad(format!("`{name}` is missing")))
}

/// The calls of a step: given as such, or found in the text of a reply.
fn calls(body: &Value) -> Result<Vec<ToolCall>, Failure> {
    let mut calls = match (body.get("calls"), body.get("text")) {
        (Some(Value::Array(items)), None) => {
            items.iter().map(call).collect::<Result<Vec<_>, _>>()?
        }
        (None, Some(Value::String(text))) => {
            text_calls::find(text, |name| Tool::from_name(name).is_some())
        }
        _ => return Err(Failure::bad("a step has either `calls`, a list, or `text`, a string")),
    };
    calls.truncate(MAX_CALLS);
    Ok(calls)
}

fn call(item: &Value) -> Result<ToolCall, Failure> {
    let name = text(item, "name")?.to_string();
    let arguments = match item.get("arguments") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    Ok(ToolCall { id: String::new(), name, arguments })
}

/// Not to be guessed: the standard library's hash keys are random.
pub(super) fn fresh_id() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
}
