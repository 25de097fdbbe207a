//! Anthropic's messages protocol, with marks for its prompt cache.

use super::http::{Answer, Client, reported};
use super::{
    Endpoint, ErrorKind, MAX_CALLS, MAX_REPLY_BYTES, Model, ModelError, Request, arguments,
};
use crate::chat::{Assistant, Message, Reply, Stop, ToolCall, Usage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const VERSION: &str = "2023-06-01";
/// The protocol wants a number where the user gave none.
const DEFAULT_OUTPUT_TOKENS: u64 = 8192;

/// A server that speaks `POST BASE/v1/messages`.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
    client: Client,
}

impl Anthropic {
    /// Nothing is sent before the first request.
    pub fn new(endpoint: Endpoint) -> Self {
        Anthropic { client: Client::new(&endpoint), endpoint }
    }

    fn body(&self, request: &Request<'_>) -> Value {
        let sampling = &self.endpoint.sampling;
        let mut body = json!({
            "model": self.endpoint.model,
            "max_tokens": sampling.max_output_tokens.unwrap_or(DEFAULT_OUTPUT_TOKENS),
            "messages": messages(request.messages),
            "stream": true,
        });
        let system: Vec<Value> = request.messages.iter().filter_map(system).collect();
        if !system.is_empty() {
            body["system"] = system.into();
            mark(body["system"].as_array_mut());
        }
        if let Some(temperature) = sampling.temperature {
            body["temperature"] = temperature.into();
        }
        if !request.tools.is_empty() {
            let tool = |tool: &crate::chat::ToolSpec| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                })
            };
            body["tools"] = request.tools.iter().map(tool).collect();
            mark(body["tools"].as_array_mut());
        }
        // The end of the conversation so far: the next call finds all of it in the cache.
        let last = body["messages"].as_array_mut().and_then(|messages| messages.last_mut());
        mark(last.and_then(|last| last["content"].as_array_mut()));
        body
    }
}

/// Everything up to the last of these blocks may be cached.
fn mark(blocks: Option<&mut Vec<Value>>) {
    if let Some(last) = blocks.and_then(|blocks| blocks.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
}

fn system(message: &Message) -> Option<Value> {
    match message {
        Message::System { content } => Some(json!({ "type": "text", "text": content })),
        _ => None,
    }
}

/// Messages with alternating roles: neighbours of one role become one message of several blocks.
fn messages(messages: &[Message]) -> Vec<Value> {
    let mut out: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (role, blocks) = match message {
            Message::System { .. } => continue,
            Message::User { content } => ("user", vec![json!({ "type": "text", "text": content })]),
            Message::Tool { id, content, is_error, .. } => {
                let mut block =
                    json!({ "type": "tool_result", "tool_use_id": id, "content": content });
                if *is_error {
                    block["is_error"] = true.into();
                }
                ("user", vec![block])
            }
            Message::Assistant(assistant) => ("assistant", assistant_blocks(assistant)),
        };
        match out.last_mut() {
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => out.push((role, blocks)),
        }
    }
    out.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

fn assistant_blocks(assistant: &Assistant) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !assistant.content.trim().is_empty() {
        blocks.push(json!({ "type": "text", "text": assistant.content }));
    }
    for call in &assistant.tool_calls {
        blocks.push(json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments::object(&call.arguments),
        }));
    }
    if blocks.is_empty() {
        // An empty message is refused.
        blocks.push(json!({ "type": "text", "text": "(nothing)" }));
    }
    blocks
}

impl Model for Anthropic {
    fn reply(&self, request: &Request<'_>) -> Result<Reply, ModelError> {
        let mut headers = vec![("anthropic-version", VERSION)];
        if let Some(key) = &self.endpoint.key {
            headers.push(("x-api-key", key.expose()));
        }
        let url = self.endpoint.url("v1/messages");
        let mut assembly = Assembly::default();
        match self.client.post(&url, &headers, &self.body(request), request)? {
            Answer::Whole(value) => assembly.whole(&value)?,
            Answer::Stream(mut stream) => {
                while let Some((_, value)) = stream.next_json()? {
                    assembly.add(&value)?;
                    if assembly.is_done || assembly.is_flood() {
                        break;
                    }
                }
            }
        }
        assembly.finish(request.messages)
    }
}

/// A reply that is still coming in.
#[derive(Debug, Default)]
struct Assembly {
    content: String,
    reasoning: String,
    calls: BTreeMap<u64, ToolCall>,
    stop: Option<String>,
    usage: Option<Usage>,
    is_done: bool,
    bytes: usize,
}

impl Assembly {
    fn is_flood(&self) -> bool {
        self.bytes > MAX_REPLY_BYTES
    }

    fn add(&mut self, event: &Value) -> Result<(), ModelError> {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match event.get("type").and_then(Value::as_str).unwrap_or("") {
            "error" => return Err(reported(event.get("error").unwrap_or(&Value::Null))),
            "message_start" => {
                self.add_usage(event.get("message").and_then(|message| message.get("usage")));
            }
            "content_block_start" => self.begin(index, event.get("content_block")),
            "content_block_delta" => self.extend(index, event.get("delta")),
            "message_delta" => {
                let reason = event.get("delta").and_then(|delta| delta.get("stop_reason"));
                if let Some(reason) = reason.and_then(Value::as_str) {
                    self.stop = Some(reason.to_string());
                }
                self.add_usage(event.get("usage"));
            }
            "message_stop" => self.is_done = true,
            // Pings, ends of blocks, and what later versions add.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, message: &Value) -> Result<(), ModelError> {
        if message.get("type").and_then(Value::as_str) == Some("error") {
            return Err(reported(message.get("error").unwrap_or(&Value::Null)));
        }
        let blocks = message.get("content").and_then(Value::as_array);
        for (index, block) in blocks.into_iter().flatten().enumerate() {
            self.begin(index as u64, Some(block));
        }
        self.stop = message.get("stop_reason").and_then(Value::as_str).map(str::to_string);
        self.add_usage(message.get("usage"));
        Ok(())
    }

    fn begin(&mut self, index: u64, block: Option<&Value>) {
        let said =
            |name: &str| block.and_then(|b| b.get(name)).and_then(Value::as_str).unwrap_or("");
        match said("type") {
            "tool_use" if self.calls.len() >= MAX_CALLS => {
                self.bytes = self.bytes.max(MAX_REPLY_BYTES + 1);
            }
            "tool_use" => {
                let input = block.and_then(|block| block.get("input"));
                let given = input.filter(|input| input.as_object().is_some_and(|o| !o.is_empty()));
                let arguments = given.map(Value::to_string).unwrap_or_default();
                self.bytes += said("name").len() + arguments.len();
                let (id, name) = (said("id").to_string(), said("name").to_string());
                self.calls.insert(index, ToolCall { id, name, arguments });
            }
            _ => {
                self.bytes += said("text").len() + said("thinking").len();
                self.content.push_str(said("text"));
                self.reasoning.push_str(said("thinking"));
            }
        }
    }

    fn extend(&mut self, index: u64, delta: Option<&Value>) {
        let said =
            |name: &str| delta.and_then(|d| d.get(name)).and_then(Value::as_str).unwrap_or("");
        self.content.push_str(said("text"));
        self.reasoning.push_str(said("thinking"));
        let more = said("partial_json");
        if let Some(call) = self.calls.get_mut(&index) {
            call.arguments.push_str(more);
        }
        self.bytes += said("text").len() + said("thinking").len() + more.len();
    }

    /// The last count of each kind is the whole count.
    fn add_usage(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return };
        let mut total = self.usage.unwrap_or_default();
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        if let Some(written) = count("cache_creation_input_tokens") {
            total.input = total.input.saturating_sub(total.cache_written).saturating_add(written);
            total.cache_written = written;
        }
        if let Some(cached) = count("cache_read_input_tokens") {
            total.input = total.input.saturating_sub(total.cached).saturating_add(cached);
            total.cached = cached;
        }
        if let Some(input) = count("input_tokens") {
            // The protocol counts plain tokens apart from cached ones.
            total.input = input.saturating_add(total.cached).saturating_add(total.cache_written);
        }
        if let Some(output) = count("output_tokens") {
            total.output = output;
        }
        self.usage = Some(total);
    }

    fn finish(self, messages: &[Message]) -> Result<Reply, ModelError> {
        let is_flood = self.is_flood();
        if !self.is_done && self.stop.is_none() && !is_flood {
            return Err(ModelError::new(ErrorKind::Truncated, "the stream ended before the reply"));
        }
        let stop = match self.stop.as_deref() {
            _ if is_flood => Stop::Flood,
            Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
            Some("refusal") => Stop::Refusal,
            _ if !self.calls.is_empty() => Stop::ToolCalls,
            _ => Stop::Done,
        };
        let message = Assistant {
            content: self.content,
            reasoning: Some(self.reasoning).filter(|text| !text.is_empty()),
            tool_calls: self.calls.into_values().collect(),
        };
        let usage = self.usage.unwrap_or_else(|| Usage::estimate(messages, &message));
        Ok(Reply { message, stop, usage })
    }
}
