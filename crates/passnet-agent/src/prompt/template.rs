//! Texts with marks.

use std::fmt;
use std::io::Read;
use std::path::Path;

/// Longer templates are refused.
const MAX_BYTES: u64 = 256 << 10;

/// A text in pieces: plain, mark, plain, mark, …
#[derive(Debug, Clone)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Plain(String),
    Mark(String),
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    pub(crate) file: String,
    /// 0 for the file as a whole.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads a template that may use the given marks.
    pub fn parse(file: &str, text: &str, marks: &[&str]) -> Result<Template, TemplateError> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find("{{") {
            let line = text[..text.len() - rest.len() + at].matches('\n').count() + 1;
            let fail = |message: String| TemplateError { file: file.to_string(), line, message };
            let Some(end) = rest[at..].find("}}") else {
                return Err(fail("a mark without `}}`".into()));
            };
            let name = rest[at + 2..at + end].trim();
            if !marks.contains(&name) {
                let name: String = name.chars().take(40).collect();
                return Err(fail(format!("no mark `{name}`; there are {}", marks.join(", "))));
            }
            pieces.push(Piece::Plain(rest[..at].to_string()));
            pieces.push(Piece::Mark(name.to_string()));
            rest = &rest[at + end + 2..];
        }
        pieces.push(Piece::Plain(rest.to_string()));
        Ok(Template { text: text.to_string(), pieces })
    }

    /// With its marks.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn has_mark(&self, mark: &str) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Mark(name) if name == mark))
    }

    pub(crate) fn fill(&self, values: &[(&str, &str)]) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Plain(text) => text.as_str(),
                Piece::Mark(name) => {
                    values.iter().find(|(mark, _)| mark == name).map_or("", |(_, value)| value)
                }
            })
            .collect()
    }
}

/// The text of a file, or another one where there is none.
pub(super) fn read_or(path: &Path, built_in: &str) -> Result<String, TemplateError> {
    let fail =
        |message: String| TemplateError { file: path.display().to_string(), line: 0, message };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(built_in.to_string());
        }
        Err(error) => return Err(fail(error.to_string())),
    };
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| fail(error.to_string()))?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(fail(format!("larger than {MAX_BYTES} bytes"))),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_filled_once() {
        let template = Template::parse("t", "a {{x}} b {{ y }}{{x}}", &["x", "y"]).unwrap();
        assert_eq!(template.fill(&[("x", "{{y}}"), ("y", "2")]), "a {{y}} b 2{{y}}");
        assert!(
            Template::parse("t", "one\n{{x", &["x"]).unwrap_err().to_string().starts_with("t:2")
        );
    }
}
