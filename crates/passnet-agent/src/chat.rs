//! A conversation, in words that belong to no provider.
//!
//! Providers translate to and from these types; the trajectory stores them as they are.

use serde::{Deserialize, Serialize};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum Message {
    /// What the model is told before anything else.
    System { content: String },
    /// What the task or the loop says.
    User { content: String },
    /// What the model said.
    Assistant(Assistant),
    /// What a tool answered.
    Tool {
        id: String,
        name: String,
        content: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// What a model said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assistant {
    /// The text of the reply.
    #[serde(default)]
    pub content: String,
    /// Thoughts that some servers send apart from the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// In the order in which they are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

/// A wish of the model. The arguments are the text it wrote, which may be anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// By which the answer names the call.
    pub id: String,
    /// Of the tool.
    pub name: String,
    /// JSON, if the model kept to the protocol.
    pub arguments: String,
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it says.
    pub message: Assistant,
    /// Why it ends there.
    pub stop: Stop,
    /// What it cost in tokens.
    pub usage: Usage,
}

/// Why a model stopped talking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It had said everything.
    Done,
    /// It waits for its tools.
    ToolCalls,
    /// The provider's limit on one reply.
    Length,
    /// We stopped listening: the reply was larger than any honest one.
    Flood,
    /// It declined, or a filter did.
    Refusal,
}

/// Tokens of one call, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Prompt tokens that came from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Prompt tokens that were put into it.
    #[serde(default)]
    pub cache_written: u64,
    /// Whether the numbers are our guess because the provider gave none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// Characters a token stands for, about, where nobody counted.
pub(crate) const CHARS_PER_TOKEN: usize = 4;

impl Usage {
    /// Prompt and reply.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// A guess from the lengths of the texts.
    pub fn estimate(messages: &[Message], reply: &Assistant) -> Usage {
        let tokens = |chars: usize| (chars / CHARS_PER_TOKEN) as u64;
        let output = tokens(reply.length());
        let input = tokens(messages.iter().map(Message::length).sum());
        Usage { input, output, estimated: true, ..Usage::default() }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.cache_written = self.cache_written.saturating_add(other.cache_written);
        self.estimated = self.estimated || other.estimated;
    }
}

impl Assistant {
    /// Bytes of all its texts.
    pub fn length(&self) -> usize {
        let calls = self.tool_calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.content.len() + self.reasoning.as_ref().map_or(0, String::len) + calls.sum::<usize>()
    }
}

impl Message {
    pub(crate) fn length(&self) -> usize {
        match self {
            Message::System { content }
            | Message::User { content }
            | Message::Tool { content, .. } => content.len(),
            Message::Assistant(assistant) => assistant.length(),
        }
    }
}

/// Adds a message to a conversation. Two of the user in a row become one: many servers insist on turns.
pub fn push(messages: &mut Vec<Message>, message: Message) {
    match (messages.last_mut(), message) {
        (Some(Message::User { content: last }), Message::User { content }) => {
            last.push_str("\n\n");
            last.push_str(&content);
        }
        (_, message) => messages.push(message),
    }
}

/// A tool as a model is told about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolSpec {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// JSON schema of the arguments.
    pub(crate) parameters: serde_json::Value,
}
