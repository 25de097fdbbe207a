//! Questions beyond the reference's.

use serde::{Deserialize, Serialize};

/// One question beyond the reference's, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was asked, such as `sizes one larger`.
    pub name: String,
    /// What came of it.
    #[serde(rename = "outcome")]
    pub answer: CheckAnswer,
    /// Why, where it is not `passed`; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What came of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckAnswer {
    /// The candidate did what eager did.
    Passed,
    /// It did not, and that is its verdict.
    Failed,
    /// Failed, but only advice.
    Advice,
    /// The question makes no sense here.
    Skipped,
}

impl Check {
    pub(super) fn passed(name: &str) -> Check {
        Check { name: name.into(), answer: CheckAnswer::Passed, detail: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_runs_keep_their_word_for_an_answer() {
        let text = r#"{"name":"sizes","outcome":"passed"}"#;
        let check: Check = serde_json::from_str(text).unwrap();
        assert_eq!(check, Check::passed("sizes"));
        assert_eq!(serde_json::to_string(&check).unwrap(), text);
    }
}
