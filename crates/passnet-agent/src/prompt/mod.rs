//! What a model is told at the beginning: templates with marks, filled from an analysis of the task's graphs.
//!
//! The templates are files (`prompts/` of this crate, built in); a user may point to a folder with their own. A mark is
//! `{{name}}`; values are put in once, so marks inside them mean nothing.

mod analysis;
mod target;
mod template;

pub(crate) use analysis::facts;
pub use target::Target;
pub use template::{Template, TemplateError};

use crate::budget::Limits;
use crate::chat::Message;
use crate::task::Task;
use crate::tools;
use std::path::Path;

/// How a model makes its tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// The provider's own way. Calls in the text are understood as well.
    Native,
    /// As JSON in the text, for models that know no other way.
    Text,
}

/// The texts of all prompts.
#[derive(Debug, Clone)]
pub struct Prompts {
    system: Template,
    task: Template,
    text_calls: Template,
    /// A whole pass, shown as it is.
    example: String,
}

/// The files of a prompt folder, with what is built in.
const FILES: [(&str, &str); 3] = [
    ("system.md", include_str!("../../prompts/system.md")),
    ("task.md", include_str!("../../prompts/task.md")),
    ("text_calls.md", include_str!("../../prompts/text_calls.md")),
];
const EXAMPLE: (&str, &str) = ("example.py", include_str!("../../prompts/example.py"));
/// The marks that each file may use.
const MARKS: [&[&str]; 3] = [
    &["max_steps"],
    &[
        "name",
        "graphs",
        "operations",
        "code",
        "inputs",
        "varies",
        "fusion",
        "traffic",
        "target",
        "max_steps",
        "example",
    ],
    &["tools"],
];

impl Prompts {
    /// The templates in this crate's `prompts`.
    pub fn built_in() -> Self {
        Prompts::from(|(_, built_in)| Ok(built_in.to_string()))
            .unwrap_or_else(|error| unreachable!("the tests read the built-in prompts: {error}"))
    }

    /// The templates of a folder; files it lacks are the built-in ones.
    pub fn read(folder: &Path) -> Result<Self, TemplateError> {
        Prompts::from(|(name, built_in)| template::read_or(&folder.join(name), built_in))
    }

    /// Writes the built-in templates into a folder, to be edited. Existing files stay.
    pub fn write(folder: &Path) -> std::io::Result<Vec<String>> {
        std::fs::create_dir_all(folder)?;
        let mut written = Vec::new();
        for (name, text) in FILES.into_iter().chain([EXAMPLE]) {
            let path = folder.join(name);
            if !path.exists() {
                std::fs::write(&path, text)?;
                written.push(name.to_string());
            }
        }
        Ok(written)
    }

    fn from(
        text: impl Fn((&str, &str)) -> Result<String, TemplateError>,
    ) -> Result<Self, TemplateError> {
        let parsed =
            |index: usize| Template::parse(FILES[index].0, &text(FILES[index])?, MARKS[index]);
        let example = text(EXAMPLE)?.trim().to_string();
        Ok(Prompts { system: parsed(0)?, task: parsed(1)?, text_calls: parsed(2)?, example })
    }

    /// A digest of all templates: two runs with the same one asked in the same words.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let texts = [self.system.text(), self.task.text(), self.text_calls.text(), &self.example];
        for text in texts {
            hasher.update(text.as_bytes());
            hasher.update(&[0]);
        }
        hasher.finalize().to_hex()[..16].to_string()
    }

    /// Whether the texts say where evaluations run.
    pub fn tell_target(&self) -> bool {
        self.task.has_mark("target")
    }

    /// The first messages of an attempt.
    pub fn messages(
        &self,
        task: &Task,
        limits: &Limits,
        style: CallStyle,
        target: &Target,
    ) -> Vec<Message> {
        let steps = limits.steps.to_string();
        let mut system = self.system.fill(&[("max_steps", &steps)]);
        if style == CallStyle::Text {
            let tools: Vec<String> = tools::specs()
                .iter()
                .map(|tool| {
                    format!(
                        "- `{}` {}: {}",
                        tool.name,
                        argument_names(&tool.parameters),
                        tool.description
                    )
                })
                .collect();
            system.push_str("\n\n");
            system.push_str(&self.text_calls.fill(&[("tools", &tools.join("\n"))]));
        }
        let mut values: Vec<(&str, &str)> =
            facts(task).iter().map(|(name, value)| (*name, value.as_str())).collect();
        let target = target.describe();
        values.push(("target", &target));
        values.push(("max_steps", &steps));
        values.push(("example", &self.example));
        vec![
            Message::System { content: system },
            Message::User { content: self.task.fill(&values) },
        ]
    }
}

fn argument_names(parameters: &serde_json::Value) -> String {
    let properties = parameters.get("properties").and_then(|value| value.as_object());
    let names: Vec<&str> =
        properties.into_iter().flat_map(|map| map.keys()).map(String::as_str).collect();
    format!("({})", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prompts_are_well_formed_and_can_be_replaced_one_by_one() {
        let built_in = Prompts::built_in();
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Prompts::write(folder.path()).unwrap().len(), 4);
        assert_eq!(Prompts::read(folder.path()).unwrap().digest(), built_in.digest());
        std::fs::write(folder.path().join("system.md"), "Only {{max_steps}} steps").unwrap();
        let own = Prompts::read(folder.path()).unwrap();
        assert_ne!(own.digest(), built_in.digest());
        assert_eq!(Prompts::write(folder.path()).unwrap(), [""; 0], "nothing is overwritten");
        std::fs::write(folder.path().join("task.md"), "{{nonsense}}").unwrap();
        let error = Prompts::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("task.md:1") && error.contains("nonsense"), "{error}");
    }
}
