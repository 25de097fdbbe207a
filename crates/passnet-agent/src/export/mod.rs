//! Trajectories for trainers: chat lines, preference pairs, and the files of the reference.

mod chat_lines;
mod preference;
mod reference;

pub use chat_lines::{ChatFilter, chat_lines};
pub use preference::{PairFilter, preference_pairs};
pub use reference::{completions, trajectories};

use crate::chat::{Message, push};
use crate::run::AttemptRecord;
use crate::tools;
use crate::trajectory::Event;
use serde_json::{Value, json};

/// A conversation in the form trainers read: the messages of the chat-completions protocol, as the model saw them.
fn conversation(attempt: &AttemptRecord, until_step: Option<u32>) -> Vec<Value> {
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
    messages.iter().map(plain).collect()
}

fn plain(message: &Message) -> Value {
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
                    let function = json!({ "name": call.name, "arguments": call.arguments });
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
