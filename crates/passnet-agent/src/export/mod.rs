//! Trajectories for trainers: chat lines, preference pairs, the forms of well-known frameworks, and the files of the
//! reference. [`guard`] says which attempts nobody should learn from.

mod chat_lines;
mod frameworks;
pub mod guard;
mod preference;
mod reference;

pub use chat_lines::{ChatFilter, chat_lines};
pub use frameworks::{Framework, framework_lines};
pub use preference::{PairFilter, preference_pairs};
pub use reference::{completions, trajectories};

use crate::chat::{Message, push};
use crate::run::AttemptRecord;
use crate::tools;
use crate::trajectory::{Event, ResultEvent};
use passnet_bench::verdict::VerdictKind;
use serde_json::{Value, json};

/// A conversation in the form trainers read: the messages of the chat-completions protocol, as the model saw them.
fn conversation(attempt: &AttemptRecord, until_step: Option<u32>) -> Vec<Value> {
    spoken(attempt, until_step).iter().map(|message| plain(message, Arguments::Text)).collect()
}

/// How the arguments of tool calls are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arguments {
    /// As the text that the model wrote, which servers want.
    Text,
    /// As an object, which chat templates want: they would put a text into quotes once more.
    Object,
}

/// The messages of a conversation.
fn spoken(attempt: &AttemptRecord, until_step: Option<u32>) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let mut is_text = false;
    for event in &attempt.events {
        let message = match event {
            Event::Message { message } => message.clone(),
            Event::Reply(reply) if until_step.is_some_and(|until| reply.step > until) => break,
            Event::Reply(reply) => {
                is_text = !reply.text_calls.is_empty();
                Message::Assistant(reply.message.clone())
            }
            Event::Result(result) => result.message(is_text),
            Event::Start(_) | Event::Best(_) | Event::End(_) => continue,
        };
        push(&mut messages, message);
    }
    messages
}

/// A reply that scores less than this share of the attempt's best is not worth repeating.
const NEAR_BEST: f64 = 0.9;

/// For each reply of a conversation, whether it is worth learning: every call of it was done, nothing that was asked about it
/// showed a wrong graph, and it is about as fast as the best.
fn worth_learning(attempt: &AttemptRecord, until_step: Option<u32>) -> Vec<bool> {
    let best = attempt.best_score();
    let is_good = |result: &ResultEvent| {
        let found = result.assessment.as_ref();
        let is_right =
            found.is_none_or(|found| found.count(VerdictKind::Correct) == found.graphs.len());
        let is_fast = match (found.and_then(|found| found.score), best) {
            (Some(score), Some(best)) => score >= best * NEAR_BEST,
            _ => true,
        };
        !result.is_error && is_right && is_fast
    };
    let mut worth = Vec::new();
    for event in &attempt.events {
        match event {
            Event::Reply(reply) if until_step.is_some_and(|until| reply.step > until) => break,
            Event::Reply(reply) => worth.push(!reply.calls().is_empty()),
            Event::Result(result) => {
                if let Some(last) = worth.last_mut() {
                    *last &= is_good(result);
                }
            }
            Event::Start(_) | Event::Message { .. } | Event::Best(_) | Event::End(_) => {}
        }
    }
    worth
}

fn plain(message: &Message, arguments: Arguments) -> Value {
    match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Tool { id, name, content, .. } => {
            json!({ "role": "tool", "tool_call_id": id, "name": name, "content": content })
        }
        Message::Assistant(assistant) => {
            let mut value = json!({ "role": "assistant", "content": assistant.content });
            if let Some(reasoning) = &assistant.reasoning {
                value["reasoning_content"] = reasoning.as_str().into();
            }
            if !assistant.tool_calls.is_empty() {
                let call = |call: &crate::chat::ToolCall| {
                    let written = || Value::from(call.arguments.as_str());
                    let given = match arguments {
                        Arguments::Text => written(),
                        // What is no JSON stays what it is.
                        Arguments::Object => serde_json::from_str(&call.arguments)
                            .ok()
                            .filter(Value::is_object)
                            .unwrap_or_else(written),
                    };
                    let function = json!({ "name": call.name, "arguments": given });
                    json!({ "id": call.id, "type": "function", "function": function })
                };
                value["tool_calls"] = assistant.tool_calls.iter().map(call).collect();
            }
            value
        }
    }
}

/// The tools as a training line names them.
fn tool_list() -> Value {
    tools::specs().iter().map(|tool| json!({ "type": "function", "function": tool })).collect()
}

/// How many messages come before the model's first word.
fn prompt_length(messages: &[Value]) -> usize {
    let is_reply = |message: &Value| message["role"] == "assistant";
    messages.iter().position(is_reply).unwrap_or(messages.len())
}

/// A digest of the files of the best version.
fn files_digest(attempt: &AttemptRecord) -> Option<String> {
    attempt.best.as_ref()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(attempt.start.task.as_bytes());
    for (name, text) in attempt.best_files() {
        for part in [name, text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    Some(hasher.finalize().to_hex().to_string())
}
