//! What the server says about itself in OpenEnv's forms.

use super::Episodes;
use crate::tools;
use serde_json::{Value, json};

pub(super) const NAME: &str = "passnet";
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn metadata(episodes: &Episodes) -> Value {
    json!({
        "name": NAME,
        "description": format!(
            "Write passes for a graph compiler: patterns and Triton kernels, judged for correctness and speed. {} tasks.",
            episodes.task_count()
        ),
        "version": VERSION,
        "author": "PassNet",
        "readme_content": null,
        "documentation_url": null,
    })
}

/// The tools, with their parameters under the name that the reader looks for.
pub(super) fn tools(parameters: &str) -> Value {
    let tool = |tool: crate::chat::ToolSpec| {
        let mut value = json!({ "name": tool.name, "description": tool.description });
        value[parameters] = tool.parameters;
        value
    };
    tools::specs().into_iter().map(tool).collect()
}

fn object(title: &str, properties: Value, required: &[&str]) -> Value {
    json!({ "title": title, "type": "object", "properties": properties, "required": required })
}

fn described(kind: &str, what: &str) -> Value {
    json!({ "type": kind, "description": what })
}

/// An observation has these whatever else it has.
fn observation(title: &str, mut properties: Value, required: &[&str]) -> Value {
    properties["text"] = described("string", "what the tools answered, in words");
    properties["metadata"] = described("object", "the episode, both rewards, seconds");
    object(title, properties, required)
}

/// Actions, observations and states. A client that has nothing but a model's reply sends it as `text`, so that alone is
/// required; `calls` and OpenEnv's `call_tool` and `list_tools` are understood too.
pub(super) fn schema() -> Value {
    let action = json!({
        "text": described("string", "a reply; the calls of tools in it are done, in order"),
        "metadata": described("object", "not looked at"),
    });
    let step = json!({
        "results": described("array", "for each call: tool, observation, is_error, assessment"),
        "tier": described("string", "how far the passes came: nothing, reads, matches, right"),
        "best": { "type": ["number", "null"], "description": "the best score so far" },
        "steps_remaining": described("integer", "steps until the episode ends"),
    });
    let reset = json!({
        "task": described("string", "the name of the task"),
        "messages": described("array", "how the conversation begins: role and content"),
        "functions": described("array", "the tools, where calls are not written into texts"),
        "max_steps": described("integer", "steps of the episode"),
    });
    let state = json!({
        "episode_id": { "type": ["string", "null"] },
        "step_count": { "type": "integer", "minimum": 0 },
        "task": { "type": ["string", "null"] },
        "done": { "type": "boolean" },
    });
    json!({
        "action": object("PassAction", action, &["text"]),
        "observation": observation("PassObservation", step, &["text"]),
        "reset_observation": observation("PassPrompt", reset, &["text", "task", "messages"]),
        "state": object("PassState", state, &["step_count"]),
    })
}

/// The addresses, for programs that look for them.
pub(super) fn openapi() -> Value {
    let answers = |what: &str| json!({ "responses": { "200": { "description": what } } });
    let get = |what: &str| json!({ "get": answers(what) });
    let post = |what: &str| json!({ "post": answers(what) });
    json!({
        "openapi": "3.1.0",
        "info": { "title": NAME, "version": VERSION },
        "paths": {
            "/reset": post("a new episode: observation, reward, done, metadata"),
            "/step": post("the observation after an action of the episode that `episode_id` names"),
            "/state": get("the state of the episode that the query's `episode_id` names"),
            "/schema": get("schemas of actions, observations and states"),
            "/metadata": get("name and description"),
            "/health": get("whether the server is well"),
            "/mcp": post("JSON-RPC: tools/list, tools/call, sessions"),
        },
    })
}
