//! The JSON list of passes, with errors that say which entry is wrong.

use super::folder::Folder;
use passnet_graph::Diagnostic;
use passnet_graph::syntax::Source;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Manifest {
    pub names: Vec<String>,
}

impl Manifest {
    pub(super) const OUTPUT: &str = "sorted_output_pass_rule_names.json";
    pub(super) const INPUT: &str = "sorted_input_pass_rule_names.json";

    /// `Ok(None)` when there is no such file.
    pub(super) fn read(folder: &Folder, name: &str) -> Result<Option<Self>, Vec<Diagnostic>> {
        if !folder.holds(name) {
            return Ok(None);
        }
        let path = folder.path().join(name);
        // Reading a pipe would wait for somebody to write into it.
        if !folder.is_file(&path) {
            return Err(vec![Diagnostic::file(path.display().to_string(), "not a plain file")]);
        }
        let source = folder.source(&path).map_err(|error| vec![error])?;
        Self::parse(&source).map(Some)
    }

    fn parse(source: &Source) -> Result<Self, Vec<Diagnostic>> {
        let value: Value = serde_json::from_str(source.text()).map_err(|error| {
            let text = error.to_string();
            let reason = text.split(" at line ").next().unwrap_or(&text);
            let message = format!("not valid JSON: {reason}");
            vec![
                Diagnostic {
                    line: error.line(),
                    column: error.column().max(1),
                    ..Diagnostic::file(source.path(), message)
                }
                .with_hint("a JSON list of pass names, for example `[\"fuse_add_relu\"]`"),
            ]
        })?;
        let Value::Array(items) = value else {
            return Err(vec![
                Diagnostic::file(source.path(), "expected a JSON list of pass names")
                    .with_hint("for example `[\"fuse_add_relu\"]`"),
            ]);
        };
        let mut names: Vec<String> = Vec::with_capacity(items.len());
        let mut errors = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match item {
                Value::String(name) if names.contains(name) => errors.push(entry_error(
                    source,
                    index,
                    item,
                    format!("`{name}` is listed twice"),
                )),
                Value::String(name) if is_stem(name) => names.push(name.clone()),
                Value::String(name) => errors.push(
                    entry_error(source, index, item, format!("`{name}` is not a file stem"))
                        .with_hint("write the file's name without folder and without `.py`"),
                ),
                _ => errors.push(entry_error(source, index, item, "not a string".into())),
            }
        }
        if errors.is_empty() { Ok(Manifest { names }) } else { Err(errors) }
    }
}

/// Points at an entry of the list by searching its text: JSON values carry no positions.
fn entry_error(source: &Source, index: usize, item: &Value, message: String) -> Diagnostic {
    let message = format!("entry {}: {message}", index + 1);
    match source.text().rfind(&item.to_string()) {
        Some(offset) => source.at_offset(offset, message),
        None => Diagnostic::file(source.path(), message),
    }
}

fn is_stem(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphanumeric() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !name.contains("..")
        && !name.ends_with('.')
        && !name.ends_with(".py")
        && name.len() <= 200
}
