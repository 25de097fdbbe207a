//! A text with its path, able to turn byte offsets into lines and columns.

use super::TextRange;
use crate::Diagnostic;
use crate::diagnostic::SourceLine;
use std::path::Path;
use std::sync::OnceLock;

/// Longest piece of a source line that an error carries.
const SHOWN_LINE_BYTES: usize = 160;

/// A source file held in memory.
#[derive(Debug)]
pub struct Source {
    path: String,
    text: String,
    /// Built on the first error or location lookup: most files need none.
    line_starts: OnceLock<Vec<u32>>,
}

impl Source {
    /// A text that is read already; the path is for messages.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into(), line_starts: OnceLock::new() }
    }

    /// Reads a file, refusing what is no file, too large or not UTF-8.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let shown = path.display().to_string();
        let describe = |error: std::io::Error| Diagnostic::file(&shown, error.to_string());
        let metadata = std::fs::metadata(path).map_err(describe)?;
        // A pipe never ends, or never begins.
        if !metadata.is_file() {
            return Err(Diagnostic::file(&shown, "not a regular file")
                .with_hint("folders, pipes, sockets and devices are not read"));
        }
        let size = metadata.len();
        if size > super::MAX_SOURCE_BYTES as u64 {
            return Err(Diagnostic::file(
                &shown,
                format!(
                    "file has {size} bytes, more than the limit of {}",
                    super::MAX_SOURCE_BYTES
                ),
            ));
        }
        let bytes = std::fs::read(path).map_err(describe)?;
        Self::from_bytes(shown, bytes)
    }

    /// Refused where the bytes are no UTF-8, at the first wrong one.
    pub fn from_bytes(path: impl Into<String>, bytes: Vec<u8>) -> Result<Self, Diagnostic> {
        let path = path.into();
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(path, text)),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let prefix = &error.as_bytes()[..valid];
                let line = prefix.iter().filter(|&&b| b == b'\n').count() + 1;
                let line_start = prefix.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
                Err(Diagnostic {
                    file: path,
                    line,
                    column: valid - line_start + 1,
                    message: "not valid UTF-8".into(),
                    hint: Some("graph and pass files are UTF-8 text".into()),
                    source_line: None,
                })
            }
        }
    }

    /// The path as the caller gave it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a part of the tree.
    pub fn slice(&self, range: TextRange) -> &str {
        self.text.get(range.start().to_usize()..range.end().to_usize()).unwrap_or("")
    }

    /// Line and column of a byte offset, both counted from 1; columns count characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let (line, start) = self.line_of(offset);
        let column = self.text.get(start..offset).map_or(offset - start, |s| s.chars().count());
        (line + 1, column + 1)
    }

    /// The text of a line, counted from 1, without its newline.
    pub fn line_text(&self, line: usize) -> &str {
        let starts = self.line_starts();
        let Some(&start) = line.checked_sub(1).and_then(|i| starts.get(i)) else {
            return "";
        };
        let end = starts.get(line).map_or(self.text.len(), |&next| next as usize - 1);
        self.text[start as usize..end.max(start as usize)].trim_end_matches('\r')
    }

    /// An error that marks a part of the text.
    pub fn at(&self, range: TextRange, message: impl Into<String>) -> Diagnostic {
        self.locate(range.start().to_usize(), range.end().to_usize(), message.into())
    }

    /// An error at a byte of the text.
    pub fn at_offset(&self, offset: usize, message: impl Into<String>) -> Diagnostic {
        self.locate(offset, offset + 1, message.into())
    }

    fn locate(&self, start: usize, end: usize, message: String) -> Diagnostic {
        let start = start.min(self.text.len());
        let (line, column) = self.position(start);
        let (index, line_start) = self.line_of(start);
        let text = self.line_text(index + 1);
        Diagnostic {
            file: self.path.clone(),
            line,
            column,
            message,
            hint: None,
            source_line: Some(Box::new(shorten(
                text,
                start - line_start,
                end.max(start + 1) - line_start,
            ))),
        }
    }

    fn line_of(&self, offset: usize) -> (usize, usize) {
        let starts = self.line_starts();
        let index = starts.partition_point(|&s| s as usize <= offset).max(1) - 1;
        (index, starts[index] as usize)
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let newlines = memchr::memchr_iter(b'\n', self.text.as_bytes());
            std::iter::once(0).chain(newlines.map(|i| i as u32 + 1)).collect()
        })
    }
}

/// Cuts a window of a long line around the error.
fn shorten(line: &str, start: usize, end: usize) -> SourceLine {
    let floor = |mut i: usize| {
        i = i.min(line.len());
        while !line.is_char_boundary(i) {
            i -= 1;
        }
        i
    };
    let from = if line.len() <= SHOWN_LINE_BYTES {
        0
    } else {
        floor(start.saturating_sub(SHOWN_LINE_BYTES / 2))
    };
    let to = floor(from + SHOWN_LINE_BYTES);
    let (start, end) = (floor(start).clamp(from, to), floor(end).clamp(from, to));
    SourceLine { text: line[from..to].to_string(), start: start - from, end: end.max(start) - from }
}
