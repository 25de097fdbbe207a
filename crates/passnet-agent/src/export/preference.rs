//! Preference pairs: two attempts at one task, one clearly better.

use super::{Arguments, files_digest, plain, prompt_length, spoken};
use crate::run::AttemptRecord;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What counts as clearly better.
#[derive(Debug, Clone, Copy)]
pub struct PairFilter {
    /// The least ratio of the two scores.
    pub min_ratio: f64,
    /// Pairs of one task.
    pub max_pairs: usize,
    /// What an attempt without a score counts.
    pub floor: f64,
}

impl Default for PairFilter {
    fn default() -> Self {
        PairFilter { min_ratio: 1.1, max_pairs: 4, floor: 0.1 }
    }
}

/// The pairs of each task: its best attempt against the others, worst first.
pub fn preference_pairs(attempts: &[AttemptRecord], filter: PairFilter) -> Vec<Value> {
    pairs(attempts, filter, Arguments::Text)
}

pub(super) fn pairs(
    attempts: &[AttemptRecord],
    filter: PairFilter,
    arguments: Arguments,
) -> Vec<Value> {
    let said = |attempt: &AttemptRecord| -> Vec<Value> {
        spoken(attempt, None).iter().map(|message| plain(message, arguments)).collect()
    };
    let mut tasks: BTreeMap<&str, Vec<&AttemptRecord>> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.is_finished()) {
        tasks.entry(&attempt.start.task).or_default().push(attempt);
    }
    let score = |attempt: &AttemptRecord| attempt.best_score().unwrap_or(filter.floor);
    let mut pairs = Vec::new();
    for (task, mut attempts) in tasks {
        // Only right answers are worth preferring; the first of equals.
        attempts.sort_by(|a, b| score(a).total_cmp(&score(b)));
        let chosen = attempts.iter().rev().filter(|attempt| attempt.is_correct());
        let Some(chosen) = chosen.copied().reduce(|best, other| {
            if score(other) == score(best) && other.start.attempt < best.start.attempt {
                other
            } else {
                best
            }
        }) else {
            continue;
        };
        let is_worse = |attempt: &&&AttemptRecord| {
            score(chosen) >= score(attempt) * filter.min_ratio
                && files_digest(attempt) != files_digest(chosen)
                && attempt.start.prompts == chosen.start.prompts
                // Scores of other engines are no comparison.
                && attempt.start.identity == chosen.start.identity
        };
        for rejected in attempts.iter().filter(is_worse).take(filter.max_pairs) {
            let (good, bad) = (said(chosen), said(rejected));
            let start = prompt_length(&good);
            // Other limits or another way of calling tools make another question.
            if bad.get(..start) != good.get(..start) {
                continue;
            }
            pairs.push(json!({
                "task": task,
                "prompt": good[..start],
                "chosen": good[start..],
                "rejected": bad[start..],
                "chosen_score": score(chosen),
                "rejected_score": score(rejected),
                "engine": chosen.start.identity,
            }));
        }
    }
    pairs
}
