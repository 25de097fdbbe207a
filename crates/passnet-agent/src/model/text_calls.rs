//! Tool calls written into the text: small models answer with fenced JSON where a call belongs.
//!
//! Accepted: an object with `tool` (or `name`, or `function`) and `arguments` (or `parameters`, `input`), in a fence or as
//! the whole text; arguments beside the name; a list of such objects; `<tool_call>` marks. Nothing else is taken for a
//! call, so that an example in an explanation is only taken where it names one of our tools.

use crate::chat::ToolCall;
use serde_json::{Map, Value};

/// More objects than this in one text are not looked at.
const MAX_FOUND: usize = 16;

/// The calls a text holds, for the tools that exist.
pub fn find(text: &str, is_tool: impl Fn(&str) -> bool) -> Vec<ToolCall> {
    let mut calls = Vec::new();
    for block in blocks(text) {
        let Some(value) = first_json(block) else { continue };
        let items = match value {
            Value::Array(items) => items,
            other => vec![other],
        };
        for item in items {
            if let Some((name, arguments)) = call(item)
                && is_tool(&name)
                && calls.len() < MAX_FOUND
            {
                calls.push(ToolCall { id: String::new(), name, arguments: arguments.to_string() });
            }
        }
    }
    calls
}

/// The fenced or marked parts; without any, the whole text if it begins as JSON does.
fn blocks(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (open, close) in [("<tool_call>", "</tool_call>"), ("```", "```")] {
        let mut rest = text;
        while let Some(at) = rest.find(open) {
            let after = &rest[at + open.len()..];
            let end = after.find(close).unwrap_or(after.len());
            found.push(
                after[..end].trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
            );
            rest = after.get(end + close.len()..).unwrap_or("");
            if found.len() >= MAX_FOUND {
                break;
            }
        }
        if !found.is_empty() {
            return found;
        }
    }
    match text.trim_start().starts_with(['{', '[']) {
        true => vec![text],
        false => found,
    }
}

/// The first JSON value of a text, whatever follows it.
fn first_json(text: &str) -> Option<Value> {
    serde_json::Deserializer::from_str(text.trim_start()).into_iter().next()?.ok()
}

fn call(item: Value) -> Option<(String, Value)> {
    let Value::Object(mut map) = item else { return None };
    // `{"function": {"name": …, "arguments": …}}`
    if let Some(Value::Object(inner)) = map.get_mut("function") {
        map = std::mem::take(inner);
    }
    let name = ["tool", "name", "function", "tool_name"]
        .iter()
        .find_map(|key| map.get(*key)?.as_str().map(str::to_string))?;
    let given =
        ["arguments", "parameters", "input", "args"].iter().find_map(|key| map.shift_remove(*key));
    let arguments = match given {
        Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
        Some(value @ Value::Object(_)) => value,
        Some(_) => return None,
        None => {
            for key in ["tool", "name", "function", "tool_name"] {
                map.shift_remove(key);
            }
            Value::Object(std::mem::take(&mut map))
        }
    };
    Some((
        name,
        match arguments {
            Value::Null => Value::Object(Map::new()),
            other => other,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, String)> {
        let is_tool = |name: &str| ["create", "evaluate", "view"].contains(&name);
        find(text, is_tool).into_iter().map(|call| (call.name, call.arguments)).collect()
    }

    fn one(name: &str, arguments: &str) -> Vec<(String, String)> {
        vec![(name.to_string(), arguments.to_string())]
    }

    #[test]
    fn the_forms_small_models_use() {
        let expected = one("create", r#"{"path":"a.py","text":"x"}"#);
        for text in [
            "Sure!\n```json\n{\"tool\": \"create\", \"arguments\": {\"path\": \"a.py\", \"text\": \"x\"}}\n```\nDone.",
            "```\n{\"name\": \"create\", \"parameters\": {\"path\": \"a.py\", \"text\": \"x\"}}\n```",
            "{\"tool\": \"create\", \"path\": \"a.py\", \"text\": \"x\"}",
            "<tool_call>{\"name\": \"create\", \"arguments\": \"{\\\"path\\\":\\\"a.py\\\",\\\"text\\\":\\\"x\\\"}\"}</tool_call>",
            "```tool_call\n[{\"function\": {\"name\": \"create\", \"arguments\": {\"path\": \"a.py\", \"text\": \"x\"}}}]",
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
        assert_eq!(found("{\"tool\": \"evaluate\"} trailing words"), one("evaluate", "{}"));
    }

    #[test]
    fn other_texts_hold_no_call() {
        for text in [
            "",
            "I would call evaluate now.",
            "```python\ndef pattern(x):\n    return x\n```",
            "{\"tool\": \"format_disk\"}",
            "```json\n{\"tool\": \"create\", \"arguments\": [1]}\n```",
            "```json\n{\"tool\": \"create\", \"argum",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn several_calls_keep_their_order_and_their_number_has_a_limit() {
        let text = "```json\n{\"tool\":\"view\",\"path\":\"a\"}\n```\nthen\n```json\n{\"tool\":\"evaluate\"}\n```";
        let names: Vec<String> = found(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["view", "evaluate"]);
        assert_eq!(found(&"```json\n{\"tool\":\"evaluate\"}\n```\n".repeat(500)).len(), 16);
        let bomb = format!("```json\n{}", "[".repeat(1_000_000));
        assert_eq!(found(&bomb), []);
    }
}
