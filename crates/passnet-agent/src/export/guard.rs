//! Attempts that nobody should learn from: changed after the fact, with scores that their own results do not bear out, or
//! with something in them that looks like a key.

use super::spoken;
use crate::chat::Message;
use crate::run::AttemptRecord;
use crate::secrets::Redactor;
use crate::tools;
use passnet_bench::score::{Parameters, Score, Scoring};
use std::fmt;

/// Scores are computed again from stored numbers; these may differ in their last digits.
const SAME: f64 = 1e-6;

/// Why an attempt is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    /// A line is not what was written.
    Changed,
    /// From a version that did not seal its lines.
    Unsealed,
    /// The score is not that of the results that are kept with it.
    Score,
    /// A version is called the best that was not evaluated with this score.
    Best,
    /// A text looks like a key, or is one of this process.
    Secret,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Changed => "its record was changed",
            Unfit::Unsealed => "its record is from before seals",
            Unfit::Score => "its score is not that of its results",
            Unfit::Best => "its best version was never evaluated so",
            Unfit::Secret => "it holds what looks like a key",
        })
    }
}

/// Why this attempt must not be exported, if it must not.
pub fn unfit(attempt: &AttemptRecord, redactor: &Redactor, allow_unsealed: bool) -> Option<Unfit> {
    if !attempt.seal.broken.is_empty() {
        return Some(Unfit::Changed);
    }
    if attempt.seal.unsealed > 0 && !allow_unsealed {
        return Some(Unfit::Unsealed);
    }
    if attempt.best.is_some() && attempt.best_evaluation().is_none() {
        return Some(Unfit::Best);
    }
    if !is_score_borne_out(attempt) {
        return Some(Unfit::Score);
    }
    let holds_secret = spoken(attempt, None).iter().any(|message| has_secret(message, redactor));
    holds_secret.then_some(Unfit::Secret)
}

/// Whether the recorded best score is the one that the stored results of the best version give.
fn is_score_borne_out(attempt: &AttemptRecord) -> bool {
    let Some(score) = attempt.best_score() else { return true };
    let Some(events) = attempt.best_events() else { return false };
    let outcomes: Vec<_> =
        events.iter().map(|event| event.evaluation.judged.outcome(Scoring::Strict)).collect();
    let Some(again) = Score::of(&outcomes, Parameters::default()) else { return false };
    let is_same = (again.aggregated - score).abs() <= SAME * score.abs();
    is_same && events.len() == attempt.start.graphs
}

fn has_secret(message: &Message, redactor: &Redactor) -> bool {
    let is_secret = |text: &str| redactor.text(text) != text;
    match message {
        Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
            is_secret(content)
        }
        Message::Assistant(reply) => {
            is_secret(&reply.content)
                || reply.reasoning.as_deref().is_some_and(is_secret)
                || reply.tool_calls.iter().any(|call| {
                    is_secret(&call.name) || redactor.arguments(&call.arguments) != call.arguments
                })
        }
    }
}

/// Whether a call names one of our tools; frameworks are told of no others.
pub(super) fn is_ours(name: &str) -> bool {
    tools::Tool::from_name(name).is_some()
}
