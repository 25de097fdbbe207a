//! The chat-completions protocol.

use super::http::{Answer, Client, reported};
use super::{
    Endpoint, ErrorKind, MAX_CALLS, MAX_REPLY_BYTES, Model, ModelError, Request, arguments,
};
use crate::chat::{Assistant, Message, Reply, Stop, ToolCall, Usage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A server that speaks `POST BASE/chat/completions`.
#[derive(Debug)]
pub struct OpenAi {
    endpoint: Endpoint,
    client: Client,
}

impl OpenAi {
    /// Nothing is sent before the first request.
    pub fn new(endpoint: Endpoint) -> Self {
        OpenAi { client: Client::new(&endpoint), endpoint }
    }

    fn body(&self, request: &Request<'_>) -> Value {
        let mut body = json!({
            "model": self.endpoint.model,
            "messages": request.messages.iter().map(message).collect::<Vec<_>>(),
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        if let Some(temperature) = self.endpoint.sampling.temperature {
            body["temperature"] = temperature.into();
        }
        if let Some(limit) = self.endpoint.sampling.max_output_tokens {
            // OpenAI itself has a new name for it, the others know only the old one.
            let is_new = self.endpoint.base_url.contains("api.openai.com");
            let name = if is_new { "max_completion_tokens" } else { "max_tokens" };
            body[name] = limit.into();
        }
        if !request.tools.is_empty() {
            let function = |tool| json!({ "type": "function", "function": tool });
            body["tools"] = request.tools.iter().map(function).collect();
        }
        body
    }
}

impl Model for OpenAi {
    fn reply(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        let bearer = self.endpoint.key.as_ref().map(|key| format!("Bearer {}", key.expose()));
        let headers: Vec<(&str, &str)> =
            bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        let url = self.endpoint.url("chat/completions");
        let mut assembly = Assembly::default();
        match self.client.post(&url, &headers, &self.body(request), request)? {
            Answer::Whole(value) => assembly.add(&value)?,
            Answer::Stream(mut stream) => {
                while let Some((_, value)) = stream.next_json()? {
                    if value.is_null() {
                        assembly.is_done = true;
                        break;
                    }
                    assembly.add(&value)?;
                    if assembly.is_flood() {
                        break;
                    }
                }
            }
        }
        assembly.finish(request.messages)
    }
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { content } => json!({ "role": "system", "content": content }),
        Message::User { content } => json!({ "role": "user", "content": content }),
        Message::Tool { id, content, .. } => {
            json!({ "role": "tool", "tool_call_id": id, "content": content })
        }
        Message::Assistant(assistant) => {
            let mut value = json!({ "role": "assistant", "content": assistant.content });
            if !assistant.tool_calls.is_empty() {
                let call = |call: &ToolCall| {
                    let arguments = arguments::text(&call.arguments);
                    let function = json!({ "name": call.name, "arguments": arguments });
                    json!({ "id": call.id, "type": "function", "function": function })
                };
                value["tool_calls"] = assistant.tool_calls.iter().map(call).collect();
            }
            value
        }
    }
}

/// A reply that is still coming in.
#[derive(Debug, Default)]
struct Assembly {
    content: String,
    reasoning: String,
    refusal: String,
    /// With the index the server gives, in the order in which they began.
    calls: Vec<(u64, ToolCall)>,
    /// By index, which need not be dense: the last call that had it.
    places: BTreeMap<u64, usize>,
    finish: Option<String>,
    usage: Option<Usage>,
    is_done: bool,
    bytes: usize,
}

impl Assembly {
    fn is_flood(&self) -> bool {
        self.bytes > MAX_REPLY_BYTES
    }

    /// A chunk of a stream (`delta`) or a whole answer (`message`).
    fn add(&mut self, chunk: &Value) -> Result<(), ModelError> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(reported(error));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(read_usage(usage));
        }
        let Some(choice) = chunk.get("choices").and_then(|choices| choices.get(0)) else {
            return Ok(());
        };
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(reason.to_string());
        }
        let Some(part) = choice.get("delta").or_else(|| choice.get("message")) else {
            return Ok(());
        };
        let said = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or("");
        let reasoning = [said("reasoning_content"), said("reasoning")].concat();
        for (text, more) in [
            (&mut self.content, said("content")),
            (&mut self.reasoning, &reasoning),
            (&mut self.refusal, said("refusal")),
        ] {
            self.bytes += more.len();
            text.push_str(more);
        }
        let calls = part.get("tool_calls").and_then(Value::as_array);
        for (position, call) in calls.into_iter().flatten().enumerate() {
            self.add_call(position as u64, call);
        }
        Ok(())
    }

    fn add_call(&mut self, position: u64, part: &Value) {
        let index = part.get("index").and_then(Value::as_u64).unwrap_or(position);
        let known = self.places.get(&index).copied();
        let place = match known.filter(|place| !begins_anew(&self.calls[*place].1, part)) {
            Some(place) => place,
            None if self.calls.len() >= MAX_CALLS => {
                self.bytes = self.bytes.max(MAX_REPLY_BYTES + 1);
                return;
            }
            None => {
                let (id, name, arguments) = Default::default();
                self.calls.push((index, ToolCall { id, name, arguments }));
                self.places.insert(index, self.calls.len() - 1);
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[place].1;
        let function = part.get("function");
        let said = |name: &str| function.and_then(|f| f.get(name));
        if let (Some(id), true) = (part.get("id").and_then(Value::as_str), call.id.is_empty()) {
            call.id = id.to_string();
        }
        if let Some(name) = said("name").and_then(Value::as_str) {
            call.name.push_str(name);
            self.bytes += name.len();
        }
        let before = call.arguments.len();
        match said("arguments") {
            Some(Value::String(more)) => call.arguments.push_str(more),
            // Some servers send the object itself.
            Some(object @ Value::Object(_)) => call.arguments.push_str(&object.to_string()),
            _ => {}
        }
        self.bytes += call.arguments.len() - before;
    }

    fn finish(mut self, messages: &[Message]) -> Result<Reply, ModelError> {
        let is_flood = self.is_flood();
        let has_ended = self.is_done || self.finish.is_some() || is_flood;
        if !has_ended {
            return Err(ModelError::new(ErrorKind::Truncated, "the stream ended before the reply"));
        }
        let stop = match self.finish.as_deref() {
            _ if is_flood => Stop::Flood,
            _ if !self.refusal.is_empty() => Stop::Refusal,
            Some("content_filter") => Stop::Refusal,
            Some("length") => Stop::Length,
            _ if !self.calls.is_empty() => Stop::ToolCalls,
            _ => Stop::Done,
        };
        let content = if self.content.is_empty() { self.refusal } else { self.content };
        self.calls.sort_by_key(|(index, _)| *index);
        let message = Assistant {
            content,
            reasoning: Some(self.reasoning).filter(|text| !text.is_empty()),
            tool_calls: self.calls.into_iter().map(|(_, call)| call).collect(),
        };
        let usage = self.usage.unwrap_or_else(|| Usage::estimate(messages, &message));
        Ok(Reply { message, stop, usage })
    }
}

/// Whether a piece with the index of a call is another call all the same: some servers give every call the index 0. A new id
/// alone does not tell, because others give every piece an id of its own; a call that begins has a name.
fn begins_anew(call: &ToolCall, part: &Value) -> bool {
    let id = part.get("id").and_then(Value::as_str).unwrap_or("");
    let name = part.get("function").and_then(|function| function.get("name"));
    let has_name = name.and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    has_name && !id.is_empty() && !call.id.is_empty() && id != call.id
}

fn read_usage(usage: &Value) -> Usage {
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    let cached = usage.get("prompt_tokens_details").and_then(|d| d.get("cached_tokens"));
    Usage {
        input: count("prompt_tokens"),
        output: count("completion_tokens"),
        cached: cached.and_then(Value::as_u64).unwrap_or(0),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(parts: &[Value]) -> Vec<(String, String, String)> {
        let mut assembly = Assembly { is_done: true, ..Assembly::default() };
        for part in parts {
            let delta = json!({ "choices": [{ "delta": { "tool_calls": [part] } }] });
            assembly.add(&delta).unwrap();
        }
        let calls = assembly.finish(&[]).unwrap().message.tool_calls;
        calls.into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn calls_of_one_index_with_new_ids_are_separate() {
        let begin = |id: &str, name: &str| json!({ "index": 0, "id": id, "function": { "name": name, "arguments": "{" } });
        let more = json!({ "index": 0, "function": { "arguments": "}" } });
        let found = assembled(&[begin("a", "match"), more.clone(), begin("b", "check"), more]);
        assert_eq!(found, [call("a", "match", "{}"), call("b", "check", "{}")]);
    }

    #[test]
    fn an_id_for_every_piece_does_not_tear_a_call_apart() {
        let found = assembled(&[
            json!({ "index": 0, "id": "a", "function": { "name": "match", "arguments": "" } }),
            json!({ "index": 0, "id": "b", "function": { "arguments": "{" } }),
            json!({ "index": 0, "id": "c", "function": { "name": "", "arguments": "}" } }),
            json!({ "index": 0, "id": "a", "function": { "name": null, "arguments": " " } }),
        ]);
        assert_eq!(found, [call("a", "match", "{} ")]);
    }

    #[test]
    fn calls_come_in_the_order_of_their_indices() {
        let at = |index: u64, id: &str| json!({ "index": index, "id": id, "function": { "name": "view", "arguments": "" } });
        let found = assembled(&[at(7, "late"), at(2, "early")]);
        assert_eq!(found, [call("early", "view", ""), call("late", "view", "")]);
    }
}
