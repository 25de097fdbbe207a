//! A quick reader for metadata in the one form that extraction writes: names, numbers, strings and lists of them.
//!
//! Metadata is almost half of a corpus and needs no syntax tree. The readers here take exactly that form and give up
//! (`None`) at anything else: a comment, an escape, a prefix, a letter beyond ASCII, a mistake. Whoever calls them
//! then asks the Python parser, so both ways give the same result and errors come from one place.

mod constraints;
mod metas;
#[cfg(test)]
mod tests;

pub(super) use constraints::constraints;
pub(super) use metas::tensor_metas;

use super::meta::Number;
use crate::syntax::MAX_SOURCE_BYTES;

/// Integers of more digits are left to the parser: fewer cannot overflow.
const MAX_DIGITS: usize = 18;

/// A place in a text, moved forward by what is recognised there.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a str) -> Option<Self> {
        (text.len() <= MAX_SOURCE_BYTES).then_some(Scanner { text, at: 0 })
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Exactly this text.
    fn take(&mut self, wanted: &str) -> Option<()> {
        self.rest().starts_with(wanted.as_bytes()).then(|| self.at += wanted.len())
    }

    fn take_while(&mut self, accept: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.iter().position(|&byte| !accept(byte)).unwrap_or(rest.len());
        let start = self.at;
        self.at += length;
        // The bytes that callers accept are ASCII, so both ends are between characters.
        self.text.get(start..self.at).unwrap_or("")
    }

    /// The white space at the start of a line.
    fn indentation(&mut self) -> &'a str {
        self.take_while(|byte| matches!(byte, b' ' | b'\t'))
    }

    /// Inside brackets lines do not matter.
    fn layout(&mut self) {
        self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
    }

    fn line_end(&mut self) -> Option<()> {
        self.indentation();
        if self.is_at_end() { Some(()) } else { self.take("\n") }
    }

    /// Moves to the start of the next line that holds something.
    fn blank_lines(&mut self) {
        loop {
            let line = self.at;
            self.indentation();
            if !self.is_at_end() && self.take("\n").is_none() {
                self.at = line;
                return;
            }
            if self.is_at_end() {
                return;
            }
        }
    }

    fn identifier(&mut self) -> Option<&'a str> {
        let name = self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        name.starts_with(|c: char| !c.is_ascii_digit()).then_some(name)
    }

    /// A string without escapes, in parentheses or not.
    fn string(&mut self) -> Option<&'a str> {
        if self.take("(").is_none() {
            return self.quoted();
        }
        self.layout();
        let text = self.quoted()?;
        self.layout();
        self.take(")").map(|()| text)
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let quote = self.peek().filter(|byte| matches!(byte, b'"' | b'\''))?;
        self.at += 1;
        let text =
            self.take_while(|byte| matches!(byte, b' '..=b'~') && byte != quote && byte != b'\\');
        // Two quotes in a row may open a string of many lines.
        let closed = self.peek() == Some(quote) && self.rest().get(1) != Some(&quote);
        closed.then(|| self.at += 1)?;
        Some(text)
    }

    /// An integer or a float, perhaps negative.
    fn number(&mut self) -> Option<Number> {
        let negative = self.take("-").is_some();
        let start = self.at;
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > MAX_DIGITS {
            return None;
        }
        let has_point = self.take(".").is_some();
        if has_point {
            self.take_while(|byte| byte.is_ascii_digit());
        }
        let has_exponent = self.take("e").is_some();
        if has_exponent {
            let _ = self.take("-").or_else(|| self.take("+"));
            if self.take_while(|byte| byte.is_ascii_digit()).is_empty() {
                return None;
            }
        }
        // What follows must not be part of the number: `1_000`, `0x10`, `1j`.
        if !matches!(self.peek(), None | Some(b',' | b']' | b')' | b'}' | b'\n' | b' ')) {
            return None;
        }
        if has_point || has_exponent {
            let value: f64 = self.text[start..self.at].parse().ok()?;
            return Some(Number::Float(if negative { -value } else { value }));
        }
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        let value: i64 = digits.parse().ok()?;
        Some(Number::Int(if negative { -value } else { value }))
    }

    fn int(&mut self) -> Option<i64> {
        match self.number()? {
            Number::Int(value) => Some(value),
            Number::Bool(_) | Number::Float(_) => None,
        }
    }

    /// Items between brackets, with commas between them and perhaps one behind the last.
    fn items<T>(
        &mut self,
        brackets: [&str; 2],
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let [open, close] = brackets;
        self.take(open)?;
        let mut items = Vec::new();
        loop {
            self.layout();
            if self.take(close).is_some() {
                return Some(items);
            }
            items.push(item(self)?);
            self.layout();
            if self.take(",").is_none() {
                return self.take(close).map(|()| items);
            }
        }
    }
}
