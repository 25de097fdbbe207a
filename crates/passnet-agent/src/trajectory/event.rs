//! What a trajectory records.

use super::FORMAT;
use crate::budget::{EndReason, Limits, Spent};
use crate::chat::{Assistant, Message, Stop, ToolCall, Usage};
use crate::evaluator::{Assessment, Files};
use crate::model::retry::Retry;
use crate::model::{Protocol, Sampling};
use crate::prompt::CallStyle;
use passnet_bench::event_log::LoggedEvent;
use passnet_engine::Identity;
use serde::{Deserialize, Serialize};

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Always the first.
    Start(Box<Start>),
    /// A message that came neither from the model nor from a tool.
    Message {
        /// As the model sees it.
        message: Message,
    },
    /// What the model said, and what it cost.
    Reply(Box<ReplyEvent>),
    /// What a tool answered.
    Result(Box<ResultEvent>),
    /// A version that is better than all before it.
    Best(Box<BestEvent>),
    /// Always the last.
    End(Box<End>),
}

impl LoggedEvent for Event {
    const NAME: &'static str = "trajectory";
    const FORMAT: u32 = FORMAT;
    const IS_SEALED: bool = true;

    fn format(&self) -> Option<u32> {
        match self {
            Event::Start(start) => Some(start.format),
            _ => None,
        }
    }

    /// What an attempt is remembered by; its other steps come too fast for a disk.
    fn is_worth_a_sync(&self) -> bool {
        matches!(self, Event::Best(_) | Event::End(_))
    }
}

/// The conditions of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Of the file; a newer one is refused.
    pub format: u32,
    /// Of the program.
    pub version: String,
    /// By the name that the run gives it.
    pub task: String,
    /// The sample's own name and folder, as they were given.
    pub sample: String,
    /// Where the sample lay.
    pub folder: String,
    /// How many the model works on.
    pub graphs: usize,
    /// Counted from 0.
    pub attempt: u32,
    /// Who replies.
    pub model: ModelInfo,
    /// What the attempt may cost.
    pub limits: Limits,
    /// How the model asks for tools.
    pub calls: CallStyle,
    /// Digest of the prompt templates.
    pub prompts: String,
    /// Where evaluations run; older attempts, all of the native engine, do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Seconds since 1970.
    pub time: f64,
}

/// A model's address, without its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// As the provider calls it.
    pub name: String,
    /// Who answers; older attempts, all of providers, do not say.
    #[serde(default, skip_serializing_if = "Source::is_provider")]
    pub source: Source,
    /// Of a provider.
    pub protocol: Protocol,
    /// Of a provider, or where a local model lies.
    pub base_url: String,
    /// What is asked of every reply.
    #[serde(default)]
    pub sampling: Sampling,
    /// Of the solver: operations of one pass, where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_operations: Option<usize>,
}

/// Where replies come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A server, over the network.
    #[default]
    Provider,
    /// The solver: no network, no key.
    Solver,
    /// The solver, whose first try is wrong in a way that models are.
    SolverWithMistakes,
    /// A model that a process of ours runs; the address is its folder or file.
    Local,
}

impl Source {
    pub(crate) fn is_provider(&self) -> bool {
        *self == Source::Provider
    }
}

/// What the model said in a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyEvent {
    /// Counted from 1.
    pub step: u32,
    /// What it said.
    pub message: Assistant,
    /// Calls that stood in the text; the message has none of its own then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub text_calls: Vec<ToolCall>,
    /// Why it ended there.
    pub stop: Stop,
    /// Tokens of this call.
    pub usage: Usage,
    /// Where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// With retries.
    pub seconds: f64,
    /// Tries that failed before this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<Retry>,
    /// Seconds since 1970.
    pub time: f64,
}

impl ReplyEvent {
    /// The calls of a reply, wherever they stood.
    pub fn calls(&self) -> &[ToolCall] {
        match self.text_calls.is_empty() {
            true => &self.message.tool_calls,
            false => &self.text_calls,
        }
    }
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultEvent {
    /// Of the reply that called.
    pub step: u32,
    /// Which call of the reply.
    pub index: usize,
    /// Of the call.
    pub id: String,
    /// Its name as the model wrote it.
    pub tool: String,
    /// What the model reads.
    pub content: String,
    /// Whether the call was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Where the evaluator was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Assessment>,
    /// Without the time in line.
    pub seconds: f64,
    /// In line for the evaluator.
    #[serde(default)]
    pub waited_seconds: f64,
    /// Seconds since 1970.
    pub time: f64,
}

impl ResultEvent {
    /// The answer as the model reads it: in the text, if the call stood in the text.
    pub fn message(&self, is_text: bool) -> Message {
        match is_text {
            true => {
                Message::User { content: format!("Result of `{}`:\n{}", self.tool, self.content) }
            }
            false => Message::Tool {
                id: self.id.clone(),
                name: self.tool.clone(),
                content: self.content.clone(),
                is_error: self.is_error,
            },
        }
    }
}

/// A version better than all before, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BestEvent {
    /// Of the reply that asked for the evaluation.
    pub step: u32,
    /// AS.
    pub score: f64,
    /// The passes themselves.
    pub files: Files,
}

/// Why an attempt ended, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// One word.
    pub reason: EndReason,
    /// In words, where there is more to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// In the whole attempt.
    pub spent: Spent,
    /// AS of the best version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// Seconds since 1970.
    pub time: f64,
}
