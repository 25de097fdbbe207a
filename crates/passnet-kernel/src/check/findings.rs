//! What the checker reports.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Probably a mistake.
    Warning,
    /// Certainly a mistake.
    Error,
}

/// One thing found wrong, or worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the rule.
    pub rule: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The file of the kernel or the wrapper.
    pub file: String,
    /// Counted from one.
    pub line: u32,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Proved for every input of this signature; otherwise observed in a run.
    pub proved: bool,
}
