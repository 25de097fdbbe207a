//! Chat JSONL for supervised fine-tuning: one conversation a line.

use super::{conversation, files_digest, tool_list, worth_learning};
use crate::run::AttemptRecord;
use crate::trajectory::Event;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Which attempts are worth learning from.
#[derive(Debug, Clone, Default)]
pub struct ChatFilter {
    /// Only attempts whose best version is right on every graph.
    pub success: bool,
    /// The least score of the best version.
    pub min_score: Option<f64>,
    /// Of several attempts with the same best files only the shortest.
    pub deduplicate: bool,
    /// The most characters of a conversation.
    pub max_chars: Option<usize>,
    /// Leave out what came after the best version.
    pub until_best: bool,
}

/// The attempts that pass the filter, in their order, each with the step up to which it is wanted; those that go on are left
/// out.
pub(super) fn chosen<'a>(
    attempts: &'a [AttemptRecord],
    filter: &ChatFilter,
) -> Vec<(&'a AttemptRecord, Option<u32>)> {
    let mut found: Vec<(Option<String>, usize, &AttemptRecord, Option<u32>)> = Vec::new();
    for attempt in attempts.iter().filter(|attempt| attempt.is_finished()) {
        let score = attempt.best_score();
        let is_wanted = (!filter.success || attempt.is_correct())
            && filter.min_score.is_none_or(|least| score.is_some_and(|score| score >= least));
        if !is_wanted {
            continue;
        }
        let until = attempt.best.as_ref().map(|best| best.step).filter(|_| filter.until_best);
        let messages = conversation(attempt, until);
        let chars: usize = messages.iter().map(|message| message.to_string().len()).sum();
        if filter.max_chars.is_some_and(|most| chars > most) {
            continue;
        }
        found.push((files_digest(attempt), chars, attempt, until));
    }
    if filter.deduplicate {
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by_key(|index| (found[*index].1, *index));
        let mut seen = BTreeSet::new();
        let kept: BTreeSet<usize> = order
            .into_iter()
            // Attempts without a best version have nothing in common.
            .filter(|index| {
                found[*index].0.as_ref().is_none_or(|digest| seen.insert(digest.clone()))
            })
            .collect();
        let mut index = 0;
        found.retain(|_| {
            index += 1;
            kept.contains(&(index - 1))
        });
    }
    found.into_iter().map(|(_, _, attempt, until)| (attempt, until)).collect()
}

/// The lines, in the order of the attempts; those that go on are left out.
pub fn chat_lines(attempts: &[AttemptRecord], filter: &ChatFilter) -> Vec<Value> {
    let line = |(attempt, until): (&AttemptRecord, Option<u32>)| {
        let messages = conversation(attempt, until);
        let mut worth = worth_learning(attempt, until).into_iter();
        let weight = |message: &Value| match message["role"] == "assistant" {
            true => u8::from(worth.next().unwrap_or(false)),
            false => 0,
        };
        let weights: Vec<u8> = messages.iter().map(weight).collect();
        json!({
            "task": attempt.start.task,
            "attempt": attempt.start.attempt,
            "model": attempt.start.model.name,
            "score": attempt.best_score(),
            "correct": attempt.is_correct(),
            "engine": attempt.start.identity,
            "messages": messages,
            "weights": weights,
            "tokens": tokens(attempt),
            "tools": tool_list(),
        })
    };
    chosen(attempts, filter).into_iter().map(line).collect()
}

/// Tokens of the longest call: the whole conversation, as the provider counted it or as we estimate.
pub(super) fn tokens(attempt: &AttemptRecord) -> u64 {
    let total = |event: &Event| match event {
        Event::Reply(reply) => Some(reply.usage.total()),
        _ => None,
    };
    attempt.events.iter().filter_map(total).max().unwrap_or(0)
}
