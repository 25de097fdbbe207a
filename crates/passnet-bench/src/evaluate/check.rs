//! Questions beyond the reference's.

use serde::{Deserialize, Serialize};

/// One question beyond the reference's, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub outcome: CheckOutcome,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    Failed,
    /// Failed, but only advice.
    Advice,
    /// The question makes no sense here.
    Skipped,
}

impl Check {
    pub(super) fn passed(name: &str) -> Check {
        Check { name: name.into(), outcome: CheckOutcome::Passed, detail: String::new() }
    }
}
