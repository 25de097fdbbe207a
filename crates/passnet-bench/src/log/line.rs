//! One line of a log at a time: where lines end, and what the known kinds of line say.
//!
//! The reference searches its patterns anywhere in a line, so a line counts whatever stands before it.

use std::borrow::Cow;

/// A line is read up to here; no real one is a tenth as long.
const MAX_LINE_BYTES: usize = 64 << 10;

/// A line as text, with its number counted from 1.
pub(super) struct TextLine<'a> {
    pub number: usize,
    pub text: Cow<'a, str>,
    pub is_damaged: bool,
    pub is_cut: bool,
}

/// Lines end at `\n`, `\r\n` or `\r`: progress bars redraw themselves with a bare `\r`.
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Lines { rest: bytes, number: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = TextLine<'a>;

    fn next(&mut self) -> Option<TextLine<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
        let end = end.unwrap_or(self.rest.len());
        let (line, rest) = self.rest.split_at(end);
        let separator = if rest.starts_with(b"\r\n") { 2 } else { 1 };
        self.rest = rest.get(separator..).unwrap_or_default();
        self.number += 1;
        let kept = &line[..line.len().min(MAX_LINE_BYTES)];
        let text = String::from_utf8_lossy(kept);
        Some(TextLine {
            number: self.number,
            is_damaged: matches!(text, Cow::Owned(_)),
            is_cut: kept.len() < line.len(),
            text,
        })
    }
}

/// What a line says, if it is of a known kind. The first kind that fits counts, in this order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line<'a> {
    Config { key: &'a str, value: &'a str },
    Performance { side: &'a str, json: &'a str },
    Datatype { side: &'a str, names: Vec<&'a str> },
    Correctness { key: &'a str, values: &'a str },
    Speedup { clock: &'a str, value: &'a str },
}

/// The path of a `[Processing]` line: its last word.
pub(super) fn processing_path(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("[Processing] ")?;
    rest.split_whitespace().next_back()
}

impl<'a> Line<'a> {
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        if let Some((key, value)) = config(line) {
            return Some(Line::Config { key, value });
        }
        if let Some((side, json)) = tagged(line, "[Performance][") {
            return Some(Line::Performance { side, json });
        }
        if let Some((side, names)) = tagged(line, "[Datatype][") {
            return Some(Line::Datatype { side, names: names.split_whitespace().collect() });
        }
        if let Some((key, values)) = correctness(line) {
            return Some(Line::Correctness { key, values });
        }
        let (clock, value) = tagged(line, "[Speedup][")?;
        Some(Line::Speedup { clock, value })
    }
}

/// `[Config] KEY: VALUE` with a key without blanks.
fn config(line: &str) -> Option<(&str, &str)> {
    line.match_indices("[Config] ").find_map(|(at, prefix)| {
        let rest = &line[at + prefix.len()..];
        let (key, value) = rest.split_once(char::is_whitespace)?;
        let key = key.strip_suffix(':')?;
        (!key.is_empty() && !value.is_empty()).then_some((key, value))
    })
}

/// `PREFIX word]: VALUE`.
fn tagged<'a>(line: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    line.match_indices(prefix).find_map(|(at, prefix)| {
        let (word, value) = line[at + prefix.len()..].split_once("]: ")?;
        let is_word = word.chars().all(|c| c.is_alphanumeric() || c == '_');
        (!word.is_empty() && is_word && !value.is_empty()).then_some((word, value))
    })
}

/// `[Correctness][KEY]: VALUES`, the key up to the last `]: ` of the line.
fn correctness(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("[Correctness][")?;
    let (key, values) = rest.rsplit_once("]: ")?;
    (!key.is_empty() && !values.is_empty()).then_some((key, values))
}

/// Numbers separated by blanks; `None` if one of them is not a number or there are absurdly many.
pub(super) fn numbers(text: &str) -> Option<Vec<f64>> {
    const MAX_OUTPUTS: usize = 4096;
    let numbers: Option<Vec<f64>> =
        text.split_whitespace().take(MAX_OUTPUTS + 1).map(|word| word.parse().ok()).collect();
    numbers.filter(|n| n.len() <= MAX_OUTPUTS)
}

/// The end-to-end milliseconds of `Trial 7: e2e=0.31400 ms, gpu=0.26000 ms`.
pub(super) fn trial(line: &str) -> Option<f64> {
    let (_, rest) = line.strip_prefix("Trial ")?.split_once(": e2e=")?;
    rest.split_once(" ms")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_in_three_ways() {
        let bytes = b"a\nb\r\nc\rd\n\n\xffe";
        let lines: Vec<_> = Lines::new(bytes).map(|l| (l.number, l.text.into_owned())).collect();
        let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["a", "b", "c", "d", "", "\u{fffd}e"]);
        assert_eq!(lines[5].0, 6);
        assert!(Lines::new(bytes).last().is_some_and(|l| l.is_damaged));
        let long = vec![b'x'; MAX_LINE_BYTES * 2];
        assert!(Lines::new(&long).all(|l| l.is_cut && l.text.len() == MAX_LINE_BYTES));
    }

    #[test]
    fn each_kind_of_line() {
        let cases = [
            ("P [Config] device: cuda", Some(Line::Config { key: "device", value: "cuda" })),
            ("P [Config] no colon", None),
            (
                "P [Performance][eager]: {\"e2e\": 1}",
                Some(Line::Performance { side: "eager", json: "{\"e2e\": 1}" }),
            ),
            (
                "P [Datatype][eager]: bfloat16 float32",
                Some(Line::Datatype { side: "eager", names: vec!["bfloat16", "float32"] }),
            ),
            ("P [Datatype][eager]: ", None),
            ("P [Datatype][a b]: float32", None),
            (
                "P [Correctness][equal]: 0 1",
                Some(Line::Correctness { key: "equal", values: "0 1" }),
            ),
            (
                "noise [Speedup][e2e]: 0.88900",
                Some(Line::Speedup { clock: "e2e", value: "0.88900" }),
            ),
            ("[Speedup][]: 1", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(Line::parse(text), expected, "{text}");
        }
        assert_eq!(processing_path("P [Processing] a path/to/graph"), Some("path/to/graph"));
        assert_eq!(processing_path("P [Processing]"), None);
        assert_eq!(trial("Trial 1: e2e=0.31400 ms, gpu=0.26000 ms"), Some(0.314));
        assert_eq!(trial("Trial and error: e2e= ms"), None);
        assert_eq!(numbers("0 1 nan 1e-3").map(|n| n.len()), Some(4));
        assert_eq!(numbers("0 one"), None);
        assert_eq!(numbers(&"1 ".repeat(5000)), None);
    }
}
