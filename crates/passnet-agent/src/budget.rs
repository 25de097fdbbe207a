//! Limits of an attempt and of a run, and why an attempt ended.

use crate::chat::Usage;
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// What one attempt may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Replies of the model.
    pub steps: u32,
    /// Tokens of all calls together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens of one call, prompt and reply: the length of the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
    /// Money, in the unit of the prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Seconds of model and tools; waiting for the evaluator is not counted.
    pub seconds: f64,
    /// Seconds of one call of the model.
    pub call_seconds: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            steps: 50,
            tokens: None,
            context: Some(131_072),
            cost: None,
            seconds: 50_000.0,
            call_seconds: 7200.0,
        }
    }
}

/// Why an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model said that it is done.
    Submitted,
    /// Several replies in a row without a call.
    NoAction,
    /// The model declined.
    Refused,
    /// No reply is left.
    StepLimit,
    /// The tokens of all replies together are spent.
    TokenLimit,
    /// The conversation does not fit into the model any more.
    ContextLimit,
    /// The money is spent.
    CostLimit,
    /// The seconds are spent.
    TimeLimit,
    /// The provider gave no reply. The attempt can go on later.
    ModelError,
    /// The money of the whole run is spent. The attempt can go on with more.
    RunBudget,
}

impl EndReason {
    /// As it stands in a trajectory.
    pub const fn name(self) -> &'static str {
        match self {
            EndReason::Submitted => "submitted",
            EndReason::NoAction => "no_action",
            EndReason::Refused => "refused",
            EndReason::StepLimit => "step_limit",
            EndReason::TokenLimit => "token_limit",
            EndReason::ContextLimit => "context_limit",
            EndReason::CostLimit => "cost_limit",
            EndReason::TimeLimit => "time_limit",
            EndReason::ModelError => "model_error",
            EndReason::RunBudget => "run_budget",
        }
    }

    /// Whether the attempt is over for good; if not, the same command goes on with it.
    pub const fn is_final(self) -> bool {
        !matches!(self, EndReason::ModelError | EndReason::RunBudget)
    }
}

impl std::fmt::Display for EndReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What an attempt has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Replies.
    pub steps: u32,
    /// Tokens of all calls together.
    pub usage: Usage,
    /// Tokens of the last call.
    pub context: u64,
    /// `None` where no prices are known.
    pub cost: Option<f64>,
    /// Of model and tools, without waiting for the evaluator.
    pub seconds: f64,
}

impl Limits {
    /// The first limit that is reached.
    pub fn reached(&self, spent: &Spent) -> Option<EndReason> {
        let over = |limit: Option<u64>, used: u64| limit.is_some_and(|limit| used >= limit);
        if spent.steps >= self.steps {
            Some(EndReason::StepLimit)
        } else if over(self.tokens, spent.usage.total()) {
            Some(EndReason::TokenLimit)
        } else if over(self.context, spent.context) {
            Some(EndReason::ContextLimit)
        } else if self.cost.is_some_and(|limit| spent.cost.unwrap_or(0.0) >= limit) {
            Some(EndReason::CostLimit)
        } else if spent.seconds >= self.seconds {
            Some(EndReason::TimeLimit)
        } else {
            None
        }
    }
}

/// The money of a whole run, shared by its attempts.
#[derive(Debug)]
pub struct Purse {
    limit: Option<f64>,
    spent: Mutex<f64>,
}

impl Purse {
    /// Without a limit it is never empty.
    pub fn new(limit: Option<f64>) -> Self {
        Purse { limit, spent: Mutex::new(0.0) }
    }

    pub(crate) fn spend(&self, cost: f64) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner) += cost;
    }

    pub(crate) fn spent(&self) -> f64 {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no further call may be made.
    pub fn is_empty(&self) -> bool {
        self.limit.is_some_and(|limit| self.spent() >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_ends_an_attempt_for_its_own_reason() {
        let limits = Limits {
            steps: 3,
            tokens: Some(100),
            context: Some(50),
            cost: Some(1.0),
            seconds: 10.0,
            call_seconds: 1.0,
        };
        let spent = Spent::default();
        assert_eq!(limits.reached(&spent), None);
        let usage = Usage { input: 90, output: 10, ..Usage::default() };
        for (spent, reason) in [
            (Spent { steps: 3, ..spent }, EndReason::StepLimit),
            (Spent { usage, ..spent }, EndReason::TokenLimit),
            (Spent { context: 50, ..spent }, EndReason::ContextLimit),
            (Spent { cost: Some(1.5), ..spent }, EndReason::CostLimit),
            (Spent { seconds: 10.0, ..spent }, EndReason::TimeLimit),
        ] {
            assert_eq!(limits.reached(&spent), Some(reason));
            assert!(reason.is_final());
        }
        let purse = Purse::new(Some(1.0));
        purse.spend(0.6);
        assert!(!purse.is_empty());
        purse.spend(0.6);
        assert!(purse.is_empty() && !Purse::new(None).is_empty());
    }
}
