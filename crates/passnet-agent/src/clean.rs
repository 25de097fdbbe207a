//! Replies as they may be kept: everything a model says passes here before anything else sees it.

use crate::chat::{Assistant, ToolCall};
use crate::secrets::Redactor;
use crate::tools::{self, MAX_ARGUMENT_BYTES};

/// Bytes of what a model said beside its calls.
const MAX_CONTENT: usize = 256 << 10;

/// An id of our own for a call without one.
pub(crate) fn call_id(step: u32, index: usize) -> String {
    format!("call_{step}_{index}")
}

/// A reply as it may be kept: no secrets, no floods, calls with names and ids of their own.
pub(crate) fn clean(message: Assistant, step: u32, redactor: &Redactor) -> Assistant {
    let text = |text: String| cut(redactor.text(&text), MAX_CONTENT);
    let mut tool_calls: Vec<ToolCall> = Vec::new();
    for (index, call) in message.tool_calls.into_iter().enumerate() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let is_known = tool_calls.iter().any(|known| known.id == call.id);
        let is_good = !call.id.is_empty() && call.id.len() <= 64 && call.id.chars().all(is_plain);
        let id = match is_good && !is_known {
            true => redactor.text(&call.id),
            false => call_id(step, index),
        };
        // Providers refuse conversations with odd names in them; the tool is told apart by ours anyway.
        let name: String =
            redactor.text(&call.name).chars().filter(|c| is_plain(*c)).take(64).collect();
        let name = if name.is_empty() { "unnamed".into() } else { name };
        let arguments = match call.arguments.len() > MAX_ARGUMENT_BYTES {
            true => format!("{{\"{}\": {}}}", tools::TOO_LARGE, call.arguments.len()),
            false => redactor.arguments(&call.arguments),
        };
        tool_calls.push(ToolCall { id, name, arguments });
    }
    Assistant { content: text(message.content), reasoning: message.reasoning.map(text), tool_calls }
}

fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("… [cut]");
    }
    text
}
