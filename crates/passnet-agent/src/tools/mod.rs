//! The tools a model has: their descriptions, their arguments, and what each does.
//!
//! Arguments come from a model and are checked before anything happens. Every answer is short: what a model reads, it
//! pays for.

mod view;

use crate::chat::{ToolCall, ToolSpec};
use crate::workspace::{Refused, Workspace};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Arguments longer than this are not looked at.
pub const MAX_ARGUMENT_BYTES: usize = 512 << 10;

/// The only argument of a call whose arguments were thrown away.
pub(crate) const TOO_LARGE: &str = "arguments_too_large";

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named by the tool that asks for it")]
pub enum Action {
    Edit(Edit),
    View { path: String, range: Option<(usize, usize)> },
    Match,
    Check,
    Evaluate,
    Submit,
}

/// A change of the pass folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is named by the tool that asks for it")]
pub enum Edit {
    Create { path: String, text: String },
    Replace { path: String, old: String, new: String },
    Insert { path: String, line: usize, text: String },
    Undo { path: String },
}

/// A tool's name, as it stands in a trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is named as models call it; `describe` says what it does")]
pub enum Tool {
    View,
    Create,
    StrReplace,
    Insert,
    Undo,
    Match,
    Check,
    Evaluate,
    Submit,
}

impl Tool {
    /// In the order in which models are told of them.
    pub const ALL: [Tool; 9] = [
        Tool::View,
        Tool::Create,
        Tool::StrReplace,
        Tool::Insert,
        Tool::Undo,
        Tool::Match,
        Tool::Check,
        Tool::Evaluate,
        Tool::Submit,
    ];

    /// As models call it.
    pub const fn name(self) -> &'static str {
        match self {
            Tool::View => "view",
            Tool::Create => "create",
            Tool::StrReplace => "str_replace",
            Tool::Insert => "insert",
            Tool::Undo => "undo",
            Tool::Match => "match",
            Tool::Check => "check",
            Tool::Evaluate => "evaluate",
            Tool::Submit => "submit",
        }
    }

    /// `None` for a tool that there is not.
    pub fn from_name(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    const fn description(self) -> &'static str {
        match self {
            Tool::View => {
                "Show a file with line numbers, or what a folder holds. Paths: `pass_dir`, `pass_dir/NAME.py`, \
                 `graphs/N/model.py`, `graphs/N/inputs.txt`."
            }
            Tool::Create => {
                "Create a new file `pass_dir/NAME.py` or `pass_dir/NAME.json`. Existing files are not overwritten."
            }
            Tool::StrReplace => "Replace a text that occurs exactly once in a file.",
            Tool::Insert => "Insert a text after a line of a file; line 0 is the beginning.",
            Tool::Undo => "Take the last change of a file back.",
            Tool::Match => {
                "Instantly: which graphs do the passes match, and if not, why not and what to change?"
            }
            Tool::Check => {
                "Quickly, without timing: integrity rules, launch plans, correctness of the numbers and kernel findings."
            }
            Tool::Evaluate => {
                "The whole benchmark: verdict, speed-up and score of every graph. Slow; the best score counts."
            }
            Tool::Submit => "Finish. The best evaluated version counts, not the last one.",
        }
    }

    fn parameters(self) -> Value {
        let text = |what: &str| json!({ "type": "string", "description": what });
        let number = |what: &str| json!({ "type": "integer", "minimum": 0, "description": what });
        let path = || text("the file, for example pass_dir/fuse.py");
        let (properties, required) = match self {
            Tool::View => (
                json!({ "path": text("a file or a folder"), "view_range": {
                    "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2,
                    "description": "first and last line, counted from 1" } }),
                json!(["path"]),
            ),
            Tool::Create => (
                json!({ "path": path(), "file_text": text("the whole file") }),
                json!(["path", "file_text"]),
            ),
            Tool::StrReplace => (
                json!({ "path": path(), "old_str": text("occurs exactly once"), "new_str": text("takes its place") }),
                json!(["path", "old_str", "new_str"]),
            ),
            Tool::Insert => (
                json!({ "path": path(), "insert_line": number("the line after which to insert"),
                        "new_str": text("the new lines") }),
                json!(["path", "insert_line", "new_str"]),
            ),
            Tool::Undo => (json!({ "path": path() }), json!(["path"])),
            Tool::Match | Tool::Check | Tool::Evaluate | Tool::Submit => (json!({}), json!([])),
        };
        json!({ "type": "object", "properties": properties, "required": required })
    }
}

/// All tools, as a provider wants them.
pub fn specs() -> Vec<ToolSpec> {
    Tool::ALL
        .into_iter()
        .map(|tool| ToolSpec {
            name: tool.name(),
            description: tool.description(),
            parameters: tool.parameters(),
        })
        .collect()
}

/// Reads a call; what is wrong with it is said to the model.
pub fn action(call: &ToolCall) -> Result<(Tool, Action), Refused> {
    let Some(tool) = Tool::from_name(&call.name) else {
        let names: Vec<&str> = Tool::ALL.iter().map(|tool| tool.name()).collect();
        let name: String = call.name.chars().take(40).collect();
        return Err(Refused(format!("there is no tool `{name}`; there are {}", names.join(", "))));
    };
    if call.arguments.len() > MAX_ARGUMENT_BYTES {
        let bytes = call.arguments.len();
        return Err(Refused(format!(
            "{bytes} bytes of arguments; the limit is {MAX_ARGUMENT_BYTES}"
        )));
    }
    let arguments: Value = match call.arguments.trim().is_empty() {
        true => json!({}),
        false => serde_json::from_str(&call.arguments)
            .map_err(|error| Refused(format!("the arguments are not valid JSON: {error}")))?,
    };
    if !arguments.is_object() {
        return Err(Refused("the arguments are not a JSON object".into()));
    }
    if let Some(bytes) = arguments.get(TOO_LARGE).and_then(Value::as_u64) {
        return Err(Refused(format!(
            "{bytes} bytes of arguments; the limit is {MAX_ARGUMENT_BYTES}"
        )));
    }
    let given = Given { tool, arguments: &arguments };
    let path = || given.text(&["path"]);
    let action = match tool {
        Tool::View => Action::View { path: path()?, range: given.range()? },
        Tool::Create => Action::Edit(Edit::Create {
            path: path()?,
            text: given.text(&["file_text", "text", "content"])?,
        }),
        Tool::StrReplace => Action::Edit(Edit::Replace {
            path: path()?,
            old: given.text(&["old_str"])?,
            new: given.text(&["new_str"])?,
        }),
        Tool::Insert => Action::Edit(Edit::Insert {
            path: path()?,
            line: given.number("insert_line")?,
            text: given.text(&["new_str", "text"])?,
        }),
        Tool::Undo => Action::Edit(Edit::Undo { path: path()? }),
        Tool::Match => Action::Match,
        Tool::Check => Action::Check,
        Tool::Evaluate => Action::Evaluate,
        Tool::Submit => Action::Submit,
    };
    Ok((tool, action))
}

struct Given<'a> {
    tool: Tool,
    arguments: &'a Value,
}

impl Given<'_> {
    /// A text under its name, or under a name models confuse with it.
    fn text(&self, names: &[&str]) -> Result<String, Refused> {
        match names.iter().find_map(|name| self.arguments.get(*name)) {
            Some(Value::String(text)) => Ok(text.clone()),
            // A manifest is JSON itself; models like to send it unquoted.
            Some(value @ (Value::Array(_) | Value::Object(_))) if names.contains(&"file_text") => {
                Ok(value.to_string())
            }
            Some(_) => Err(self.wrong(names[0], "a string")),
            None => Err(self.wrong(names[0], "given")),
        }
    }

    fn number(&self, name: &str) -> Result<usize, Refused> {
        let value = self.arguments.get(name).and_then(Value::as_u64);
        value
            .and_then(|v| usize::try_from(v).ok())
            .ok_or_else(|| self.wrong(name, "a number from 0 on"))
    }

    fn range(&self) -> Result<Option<(usize, usize)>, Refused> {
        match self.arguments.get("view_range") {
            None | Some(Value::Null) => Ok(None),
            Some(range) => {
                let line = |at: usize| range.get(at).and_then(Value::as_i64);
                let (Some(first), Some(last)) = (line(0), line(1)) else {
                    return Err(self.wrong("view_range", "two line numbers"));
                };
                let first = usize::try_from(first).unwrap_or(0).max(1);
                // -1 is the end, as in other editors.
                Ok(Some((first, usize::try_from(last).unwrap_or(usize::MAX))))
            }
        }
    }

    fn wrong(&self, name: &str, wanted: &str) -> Refused {
        Refused(format!("`{}` needs `{name}`, and it must be {wanted}", self.tool.name()))
    }
}

impl Edit {
    /// Changes the files; says what is there now.
    pub fn apply(self, work: &mut Workspace) -> Result<String, Refused> {
        let (verb, name) = match self {
            Edit::Create { path, text } => ("created", work.create(&path, text)?),
            Edit::Replace { path, old, new } => ("changed", work.replace(&path, &old, &new)?),
            Edit::Insert { path, line, text } => ("changed", work.insert(&path, line, &text)?),
            Edit::Undo { path } => ("taken back a change of", work.undo(&path)?),
        };
        Ok(format!("{verb} {name}; {}", work.listing()))
    }
}

pub use view::view;
