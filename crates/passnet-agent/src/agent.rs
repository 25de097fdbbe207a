//! The loop: ask the model, record what it said, do what it asked, record what came of it.
//!
//! An attempt is the sum of its events. Live or after a kill, the state comes from applying them one by one, so going
//! on is nothing special: the recorded events are applied, the files rebuilt, and the loop entered.

use crate::budget::{EndReason, Limits, Purse, Spent};
use crate::chat::{Message, Reply, Stop, ToolCall, ToolSpec, push};
use crate::clean::{call_id, clean};
use crate::episode::Episode;
use crate::evaluator::Evaluator;
use crate::model::retry::{self, Pace, Patience, Retry};
use crate::model::{ErrorKind, Model, ModelError, Prices, Request, text_calls};
use crate::prompt::{CallStyle, Prompts};
use crate::secrets::Redactor;
use crate::task::Task;
use crate::tools::{self, Tool};
use crate::trajectory::{
    BestEvent, End, Event, FORMAT, Log, ModelInfo, ReplyEvent, ResultEvent, Start,
};
use passnet_bench::event_log::LogError;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Replies in a row without a call before an attempt is given up.
const MAX_IDLE: u32 = 3;
/// Calls of one reply that are done; the others are refused.
pub(crate) const MAX_DONE: usize = 16;

/// Everything that attempts share.
#[derive(Debug)]
pub struct Agent {
    /// Who replies.
    pub model: Box<dyn Model>,
    /// The same as records tell of it.
    pub info: ModelInfo,
    /// Takes secrets out of every reply.
    pub redactor: Redactor,
    /// Shared with all other attempts.
    pub evaluator: Arc<Evaluator>,
    /// The words of the first messages.
    pub prompts: Prompts,
    /// How the model asks for tools.
    pub calls: CallStyle,
    /// Of one attempt.
    pub limits: Limits,
    /// Without them cost is not counted.
    pub prices: Option<Prices>,
    /// With calls that fail.
    pub patience: Patience,
    /// Of calls, all attempts together.
    pub pace: Pace,
    /// Money of the whole run.
    pub purse: Purse,
}

/// Why the work on an attempt, and on the whole run, must stop.
#[derive(Debug)]
pub enum AgentError {
    /// The record cannot be written; nothing may happen that is not recorded.
    Record(LogError),
    /// The key or the model name is wrong: the other attempts would fail too.
    Denied(ModelError),
    /// Our own mistake.
    Bug(String),
}

impl From<LogError> for AgentError {
    fn from(error: LogError) -> Self {
        AgentError::Record(error)
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AgentError::Record(error) => error.fmt(f),
            AgentError::Denied(error) => error.fmt(f),
            AgentError::Bug(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for AgentError {}

/// What happens outside an attempt while it goes on.
pub struct Hooks<'a> {
    /// Stores each new best version before the record mentions it.
    pub keep_best: &'a dyn Fn(&Episode) -> Result<(), LogError>,
    /// Hears of every step.
    pub moved: &'a dyn Fn(Moved<'_>),
}

impl fmt::Debug for Hooks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// Where an attempt stands.
#[derive(Debug, Clone, Copy)]
pub struct Moved<'a> {
    /// So far.
    pub spent: &'a Spent,
    /// AS of the best version so far.
    pub best: Option<f64>,
    /// What it is about to do: the tool it calls, or `None` where it asks the model.
    pub doing: Option<&'a str>,
}

/// An attempt under way.
struct Attempt<'a> {
    agent: &'a Agent,
    hooks: &'a Hooks<'a>,
    episode: Episode,
    /// Which attempt at the task it is.
    number: u32,
    log: Log,
    specs: Vec<ToolSpec>,
    messages: Vec<Message>,
    spent: Spent,
    step: u32,
    /// Calls of the last reply that are not done yet, with their places in it.
    pending: Vec<(usize, ToolCall)>,
    /// Whether they stood in the text, so that results are told in the text too.
    is_text: bool,
    last_stop: Stop,
    idle: u32,
    /// The step of a best version that a kill kept out of the record.
    unrecorded_best: Option<u32>,
}

impl Agent {
    /// Works on a task until an end; goes on with what the log holds.
    pub fn attempt(
        &self,
        task: &Arc<Task>,
        number: u32,
        log: Log,
        past: &[Event],
        hooks: &Hooks<'_>,
    ) -> Result<End, AgentError> {
        let mut attempt = Attempt {
            agent: self,
            hooks,
            episode: Episode::new(task.clone(), self.evaluator.clone()),
            number,
            log,
            specs: if self.calls == CallStyle::Native { tools::specs() } else { Vec::new() },
            messages: Vec::new(),
            spent: Spent { cost: self.prices.map(|_| 0.0), ..Spent::default() },
            step: 0,
            pending: Vec::new(),
            is_text: false,
            last_stop: Stop::Done,
            idle: 0,
            unrecorded_best: None,
        };
        for event in past {
            attempt.replay(event);
        }
        for event in attempt.opening(task).into_iter().skip(past.len()) {
            attempt.record(event)?;
        }
        if let (Some(step), Some(best)) = (attempt.unrecorded_best, attempt.episode.best()) {
            let (score, files) = (best.score, best.files.clone());
            attempt.record(Event::Best(Box::new(BestEvent { step, score, files })))?;
        }
        attempt.run()
    }
}

impl Attempt<'_> {
    /// The events every attempt begins with.
    fn opening(&self, task: &Arc<Task>) -> Vec<Event> {
        let start = Start {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").into(),
            task: task.id.clone(),
            sample: task.sample.name.clone(),
            folder: task.sample.folder.display().to_string(),
            graphs: task.graphs.len(),
            attempt: self.number,
            model: self.agent.info.clone(),
            limits: self.agent.limits.clone(),
            calls: self.agent.calls,
            prompts: self.agent.prompts.digest(),
            identity: Some(self.agent.evaluator.target().identity.clone()),
            time: now(),
        };
        let Agent { prompts, limits, calls, evaluator, .. } = self.agent;
        let mut messages = prompts.messages(task, limits, *calls, evaluator.target());
        if let Some(Message::User { content }) = messages.last_mut() {
            content.push_str(&self.notice());
        }
        let messages = messages.into_iter().map(|message| Event::Message { message });
        std::iter::once(Event::Start(Box::new(start))).chain(messages).collect()
    }

    fn run(mut self) -> Result<End, AgentError> {
        loop {
            while !self.pending.is_empty() {
                self.perform_next()?;
            }
            if let Some(reason) = self.over() {
                return self.end(reason, String::new());
            }
            self.remind()?;
            self.tell(None);
            match self.ask() {
                Ok(reply) => self.take(reply)?,
                Err((error, _)) if error.kind == ErrorKind::Denied => {
                    return Err(AgentError::Denied(error));
                }
                Err((error, seconds)) => {
                    self.spent.seconds += seconds;
                    let reason = match self.agent.limits.reached(&self.spent) {
                        Some(reason) => reason,
                        None if error.is_too_long() => EndReason::ContextLimit,
                        None => EndReason::ModelError,
                    };
                    return self.end(reason, error.to_string());
                }
            }
        }
    }

    fn over(&self) -> Option<EndReason> {
        if self.episode.is_submitted() {
            return Some(EndReason::Submitted);
        }
        if self.idle >= MAX_IDLE {
            let refused = self.last_stop == Stop::Refusal;
            return Some(if refused { EndReason::Refused } else { EndReason::NoAction });
        }
        let limit = self.agent.limits.reached(&self.spent);
        limit.or_else(|| self.agent.purse.is_empty().then_some(EndReason::RunBudget))
    }

    fn ask(&self) -> Result<(Reply, Vec<Retry>, f64), (ModelError, f64)> {
        let started = Instant::now();
        let limits = &self.agent.limits;
        let seconds = (limits.seconds - self.spent.seconds).min(limits.call_seconds);
        let left = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX);
        let far = Duration::from_secs(1 << 30);
        let request = Request {
            messages: &self.messages,
            tools: &self.specs,
            deadline: started + left.min(far),
            task: self.episode.task(),
            attempt: self.number,
        };
        let mut retries = Vec::new();
        let agent = self.agent;
        let reply =
            retry::reply(&*agent.model, &request, &agent.patience, &agent.pace, &mut retries);
        let seconds = started.elapsed().as_secs_f64();
        for retry in &mut retries {
            retry.message = agent.redactor.text(&retry.message);
        }
        match reply {
            Ok(reply) => Ok((reply, retries, seconds)),
            Err(mut error) => {
                error.message = agent.redactor.text(&error.message);
                Err((error, seconds))
            }
        }
    }

    /// Cleans a reply and records it.
    fn take(
        &mut self,
        (reply, retries, seconds): (Reply, Vec<Retry>, f64),
    ) -> Result<(), AgentError> {
        let step = self.step + 1;
        let message = clean(reply.message, step, &self.agent.redactor);
        let mut text_calls = Vec::new();
        if message.tool_calls.is_empty() {
            text_calls = text_calls::find(&message.content, |name| Tool::from_name(name).is_some());
            for (index, call) in text_calls.iter_mut().enumerate() {
                call.id = call_id(step, index);
                // Escapes in the text may have hidden something.
                call.arguments = self.agent.redactor.arguments(&call.arguments);
            }
        }
        let cost = self.agent.prices.map(|prices| prices.cost(&reply.usage));
        self.agent.purse.spend(cost.unwrap_or(0.0));
        self.record(Event::Reply(Box::new(ReplyEvent {
            step,
            message,
            text_calls,
            stop: reply.stop,
            usage: reply.usage,
            cost,
            seconds,
            retries,
            time: now(),
        })))
    }

    /// A model that made no call is told so; whatever came last, the model does not answer itself.
    fn remind(&mut self) -> Result<(), AgentError> {
        if !matches!(self.messages.last(), Some(Message::Assistant(_))) {
            return Ok(());
        }
        let reminder = match self.last_stop {
            Stop::Length | Stop::Flood => "Your reply was cut off before a tool call; be shorter.",
            _ => "There was no tool call. Call a tool; `submit` when you are done.",
        };
        let content = format!("{reminder}{}", self.notice());
        self.record(Event::Message { message: Message::User { content } })
    }

    /// Tells whoever watches what comes next.
    fn tell(&self, doing: Option<&str>) {
        let best = self.episode.best().map(|best| best.score);
        (self.hooks.moved)(Moved { spent: &self.spent, best, doing });
    }

    fn perform_next(&mut self) -> Result<(), AgentError> {
        let (index, call) = self.pending[0].clone();
        self.tell(Some(&call.name));
        let seen = match index < MAX_DONE && !self.episode.is_submitted() {
            true => self.episode.perform(&call).map_err(AgentError::Bug)?,
            false => refused("not done: too many calls in one reply, or after `submit`"),
        };
        let mut content = seen.content;
        if seen.is_error && self.last_stop == Stop::Length {
            content.push_str("\nyour reply was cut off by the limit on its length");
        }
        if self.pending.len() == 1 {
            content.push_str(&self.notice());
        }
        let step = self.step;
        if seen.is_best {
            (self.hooks.keep_best)(&self.episode)?;
        }
        self.record(Event::Result(Box::new(ResultEvent {
            step,
            index,
            id: call.id,
            tool: call.name,
            content,
            is_error: seen.is_error,
            assessment: seen.assessment,
            seconds: seen.seconds,
            waited_seconds: seen.waited,
            time: now(),
        })))?;
        if let (true, Some(best)) = (seen.is_best, self.episode.best()) {
            let (score, files) = (best.score, best.files.clone());
            self.record(Event::Best(Box::new(BestEvent { step, score, files })))?;
        }
        Ok(())
    }

    fn end(mut self, reason: EndReason, detail: String) -> Result<End, AgentError> {
        let best = self.episode.best().map(|best| best.score);
        let end = End { reason, detail, spent: self.spent, best, time: now() };
        self.record(Event::End(Box::new(end.clone())))?;
        Ok(end)
    }

    /// What is left, at the end of whatever the model reads next.
    fn notice(&self) -> String {
        match self.agent.limits.steps.saturating_sub(self.step) {
            0 | 1 => "\n\nThis is your last step. Please submit your answer NOW.".into(),
            left => format!("\n\nSteps remaining: {left}"),
        }
    }

    fn record(&mut self, event: Event) -> Result<(), AgentError> {
        self.log.append(&event)?;
        self.apply(&event);
        Ok(())
    }

    /// A recorded event, seen again after a stop: the files change as they did.
    fn replay(&mut self, event: &Event) {
        match event {
            Event::Result(result) => {
                let call = self.pending.iter().find(|(index, _)| *index == result.index);
                if let Some((index, call)) = call
                    && *index < MAX_DONE
                {
                    let call = call.clone();
                    self.episode.replay(&call);
                }
                let found = result.assessment.as_ref().filter(|found| found.earns());
                let score = found.and_then(|found| found.score);
                let before = self.episode.best().map(|best| best.score);
                if let Some(score) = score
                    && before.is_none_or(|before| score > before)
                {
                    self.unrecorded_best = Some(result.step);
                    let files = self.episode.files().clone();
                    self.episode.restore_best(score, files);
                }
            }
            Event::Best(best) => {
                self.unrecorded_best = None;
                self.episode.restore_best(best.score, best.files.clone());
            }
            Event::Reply(reply) => self.agent.purse.spend(reply.cost.unwrap_or(0.0)),
            Event::Start(_) | Event::Message { .. } | Event::End(_) => {}
        }
        self.apply(event);
    }

    /// The one place where events change the conversation and the accounts.
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Message { message } => push(&mut self.messages, message.clone()),
            Event::Reply(reply) => {
                self.step = reply.step;
                self.spent.steps = reply.step;
                self.spent.usage += reply.usage;
                // A flood is cut before it enters the conversation.
                let is_flood = reply.stop == Stop::Flood;
                self.spent.context = if is_flood { 0 } else { reply.usage.total() };
                self.spent.seconds += reply.seconds;
                self.spent.cost = match (self.spent.cost, reply.cost) {
                    (None, None) => None,
                    (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
                };
                self.last_stop = reply.stop;
                self.is_text = !reply.text_calls.is_empty();
                self.pending = reply.calls().iter().cloned().enumerate().collect();
                self.idle = if self.pending.is_empty() { self.idle + 1 } else { 0 };
                self.messages.push(Message::Assistant(reply.message.clone()));
            }
            Event::Result(result) => {
                self.spent.seconds += result.seconds;
                self.pending.retain(|(index, _)| *index != result.index);
                push(&mut self.messages, result.message(self.is_text));
            }
            Event::Start(_) | Event::Best(_) | Event::End(_) => {}
        }
    }
}

fn refused(text: &str) -> crate::episode::Observation {
    crate::episode::Observation {
        content: text.into(),
        is_error: true,
        assessment: None,
        is_best: false,
        seconds: 0.0,
        waited: 0.0,
    }
}

pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}
