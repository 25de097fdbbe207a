//! Keys: read from the environment, never printed, and cut out of everything that comes back.
//!
//! A reply or an error message passes through [`Redactor`] the moment it arrives. What lies behind that door
//! (conversation, files, trajectory, exports) can therefore not hold a key.

use serde_json::Value;
use std::fmt;

/// A value that cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Shown by no formatter.
    pub fn new(value: impl Into<String>) -> Self {
        Secret(value.into())
    }

    /// For the one header it belongs into.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MARK)
    }
}

/// What stands where a secret stood.
pub const MARK: &str = "[redacted]";
/// Shorter values are words, not keys.
const MIN_LENGTH: usize = 8;
/// Variables with such names hold secrets.
const NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
/// How keys of well-known services begin, and how many characters must follow.
const SHAPES: [(&str, usize); 8] = [
    ("sk-", 20),
    ("ghp_", 30),
    ("github_pat_", 30),
    ("hf_", 30),
    ("xoxb-", 20),
    ("AKIA", 16),
    ("AIza", 30),
    ("glpat-", 20),
];

/// Cuts known secrets, and what looks like one, out of texts.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that no piece of one is left by another.
    known: Vec<String>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.known.len())
    }
}

impl Redactor {
    /// Knows these secrets, also as JSON would escape them; very short ones are left out.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| secret.len() >= MIN_LENGTH);
        // Also as a model would spell it in JSON to hide it.
        let spelt = |secret: String| {
            let escaped: String =
                secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let upper = escaped.to_uppercase().replace("\\U", "\\u");
            [secret, escaped, upper]
        };
        let mut known: Vec<String> = secrets.flat_map(spelt).collect();
        known.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        known.dedup();
        Redactor { known }
    }

    /// The secrets of this process: every variable whose name says that it holds one, and the key in use.
    pub fn from_environment(key: Option<&Secret>) -> Self {
        let is_secret = |name: &str| NAMES.iter().any(|part| name.to_uppercase().contains(part));
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            is_secret(&name.to_string_lossy()).then(|| value.to_string_lossy().into_owned())
        });
        // Paths to key files and switches are no secrets, and would tear holes into honest texts.
        let variables = variables.filter(|value| !value.contains('/') && !value.contains(' '));
        Redactor::new(variables.chain(key.map(|key| key.expose().to_string())))
    }

    /// The same with every secret replaced.
    pub fn text(&self, text: &str) -> String {
        let mut out = text.to_string();
        for secret in &self.known {
            if out.contains(secret.as_str()) {
                out = out.replace(secret.as_str(), MARK);
            }
        }
        for (prefix, length) in SHAPES {
            if out.contains(prefix) {
                out = without_shape(&out, prefix, length);
            }
        }
        out
    }

    /// Tool arguments: inside the strings too, where a key may hide behind escapes.
    pub fn arguments(&self, arguments: &str) -> String {
        let plain = self.text(arguments);
        let Ok(mut value) = serde_json::from_str::<Value>(&plain) else { return plain };
        match self.value(&mut value) {
            true => value.to_string(),
            false => plain,
        }
    }

    /// Whether something was cut out.
    fn value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => {
                let clean = self.text(text);
                let changed = clean != *text;
                *text = clean;
                changed
            }
            Value::Array(items) => {
                items.iter_mut().fold(false, |changed, item| self.value(item) | changed)
            }
            Value::Object(map) => {
                let mut changed = false;
                for (name, mut item) in std::mem::take(map) {
                    changed |= self.value(&mut item);
                    let clean = self.text(&name);
                    changed |= clean != name;
                    map.insert(clean, item);
                }
                changed
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
}

fn without_shape(text: &str, prefix: &str, length: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let after = &rest[at + prefix.len()..];
        let is_key = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let end = after.find(|c| !is_key(c)).unwrap_or(after.len());
        // `task-…` holds `sk-…`: a key begins a word.
        let begins_word = !rest[..at].ends_with(is_key);
        out.push_str(&rest[..at]);
        match end >= length && begins_word {
            true => out.push_str(MARK),
            false => out.push_str(&rest[at..at + prefix.len() + end]),
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "correct-horse/battery";

    #[test]
    fn a_key_is_cut_out_wherever_it_stands() {
        let redactor = Redactor::new([KEY.to_string(), "short".to_string()]);
        assert_eq!(redactor.text(&format!("a {KEY}, short")), "a [redacted], short");
        let escaped =
            r#"{"text": "correct-horse\/batter\u0079", "n": [1, {"correct-horse\/battery": 2}]}"#;
        let clean = redactor.arguments(escaped);
        assert!(!clean.contains("horse"), "{clean}");
        assert!(clean.contains("\"n\""));
        assert_eq!(redactor.arguments(&format!("{{ {KEY}")), "{ [redacted]");
        assert_eq!(format!("{:?}", Secret::new(KEY)), MARK);
        assert!(!format!("{redactor:?}").contains("horse"));
    }

    #[test]
    fn what_looks_like_a_key_goes_and_what_does_not_stays() {
        let redactor = Redactor::default();
        let key = format!("sk-{}", "a1".repeat(20));
        assert_eq!(redactor.text(&format!("use {key}.")), "use [redacted].");
        for honest in ["sk-short", "task-aaaaaaaaaaaaaaaaaaaaaaaaaaa", "hf_subgraphs_v2", "ask-"] {
            assert_eq!(redactor.text(honest), honest);
        }
        assert_eq!(
            redactor.arguments(r#"{"a":  1}"#),
            r#"{"a":  1}"#,
            "honest text is not changed"
        );
    }
}
