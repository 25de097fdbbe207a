//! How the code of passes runs.

use serde::{Deserialize, Serialize};

/// How the code of passes runs, and what its results are therefore worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// As launch plans, replayed by us: nothing of a pass runs but its kernels.
    #[default]
    Plan,
    /// What cannot become a plan runs inside PyTorch in a sandbox, and is not timed.
    Compat,
}

impl Tier {
    /// The word on the command line and in runs.
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Plan => "plan",
            Tier::Compat => "compat",
        }
    }

    /// Whether wrappers become launch plans.
    pub fn is_plan(&self) -> bool {
        *self == Tier::Plan
    }
}
