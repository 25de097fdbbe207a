//! Python source with its words coloured. The text is only read, never understood: whatever it is, all of it is shown.

use super::markup::Markup;

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];
/// Longer texts are shown in part.
const MAX_CHARS: usize = 60_000;

/// A block of source.
pub fn source(text: &str, out: &mut Markup) {
    let shown: String = text.chars().take(MAX_CHARS).collect();
    out.open("pre", &[("tabindex", "0")]);
    out.open("code", &[]);
    let mut rest = shown.as_str();
    while !rest.is_empty() {
        let (class, length) = token(rest);
        let (token, after) = rest.split_at(length);
        match class {
            "" => out.text(token),
            class => out.inline("span", &[("class", class)], token),
        }
        rest = after;
    }
    out.close("code");
    out.close("pre");
    if shown.len() < text.len() {
        out.element("p", &[("class", "soft")], "The rest of the text is left out.");
    }
}

/// The class of what the text begins with, and its length, at least one character.
fn token(text: &str) -> (&'static str, usize) {
    let first = text.chars().next().unwrap_or(' ');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let run = |belongs: &dyn Fn(char) -> bool| {
        text.find(|c: char| !belongs(c)).unwrap_or(text.len()).max(first.len_utf8())
    };
    match first {
        '#' => ("c", text.find('\n').unwrap_or(text.len())),
        '"' | '\'' => ("s", string(text, first)),
        '@' => {
            ("d", 1 + text[1..].find(|c: char| !is_word(c) && c != '.').unwrap_or(text.len() - 1))
        }
        c if c.is_ascii_digit() => ("n", run(&|c| is_word(c) || c == '.')),
        c if is_word(c) => {
            let length = run(&is_word);
            let class = if KEYWORDS.contains(&&text[..length]) { "k" } else { "" };
            (class, length)
        }
        _ => ("", run(&|c| !is_word(c) && !"#\"'@".contains(c))),
    }
}

/// The length of a string that begins here, to its end or to that of its line.
fn string(text: &str, quote: char) -> usize {
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    if text.starts_with(&triple) {
        return text[3..].find(&triple).map_or(text.len(), |end| end + 6);
    }
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' => return at,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Markup::default();
        source(text, &mut out);
        out.into_text()
    }

    #[test]
    fn words_have_their_classes() {
        let page = shown("@triton.jit\ndef f(x):  # a <b>\n    return 'it\\'s' + 1.5e3\n");
        for part in [
            "<span class=\"d\">@triton.jit</span>",
            "<span class=\"k\">def</span> f(x):",
            "<span class=\"c\"># a &lt;b&gt;</span>",
            "<span class=\"s\">&#39;it\\&#39;s&#39;</span>",
            "<span class=\"n\">1.5e3</span>",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }

    #[test]
    fn all_of_any_text_is_read() {
        let letters: Vec<char> = "\"'#@\\\n a1_é.<>\u{0}\u{202e}".chars().collect();
        let mut dice = blake3::Hasher::new().update(b"texts").finalize_xof();
        for _ in 0..2000 {
            let mut bytes = [0; 24];
            dice.fill(&mut bytes);
            let text: String =
                bytes.iter().map(|byte| letters[usize::from(*byte) % letters.len()]).collect();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let (_, length) = token(rest);
                assert!(length > 0 && rest.is_char_boundary(length), "{text:?}");
                rest = &rest[length..];
            }
            assert!(!shown(&text).contains("<a"), "{text:?}");
        }
    }
}
