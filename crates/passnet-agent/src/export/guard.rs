//! Attempts that nobody should learn from: changed after the fact, with scores or files that their own record does not bear
//! out, with something in them that looks like a key, or about graphs that talk.
//!
//! Seals notice lines that were changed; whoever can write a record can also seal it. So what can be worked out from the rest
//! of the record is worked out again: the score, whether it was right, and which files were judged.

use super::spoken;
use crate::agent::MAX_DONE;
use crate::chat::Message;
use crate::model::text_calls;
use crate::run::AttemptRecord;
use crate::secrets::Redactor;
use crate::tools::{self, Action};
use crate::trajectory::Event;
use crate::workspace::Workspace;
use passnet_bench::run::GraphEvent;
use passnet_bench::score::{Parameters, Score, Scoring};
use passnet_bench::verdict::VerdictKind;
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
    /// The files that were judged are not those that the conversation made.
    Files,
    /// A text looks like a key, or is one of this process.
    Secret,
    /// A graph in the prompt holds sentences.
    Words,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unfit::Changed => "its record was changed",
            Unfit::Unsealed => "its record is from before seals",
            Unfit::Score => "its score is not that of its results",
            Unfit::Best => "its best version was never evaluated so",
            Unfit::Files => "its best version is not what its calls made",
            Unfit::Secret => "it holds what looks like a key",
            Unfit::Words => "its graphs hold sentences",
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
    if !are_files_made(attempt) {
        return Some(Unfit::Files);
    }
    let spoken = spoken(attempt, None);
    // Names of tasks, samples and models stand beside the messages.
    let about = serde_json::to_string(&attempt.start).unwrap_or_default();
    let is_secret = |text: &str| redactor.text(text) != text;
    if is_secret(&about) || spoken.iter().any(|message| has_secret(message, redactor)) {
        return Some(Unfit::Secret);
    }
    let is_asked = |message: &&Message| !matches!(message, Message::Assistant(_));
    spoken.iter().take_while(is_asked).any(speaks).then_some(Unfit::Words)
}

/// Whether the calls up to the best version made its files.
fn are_files_made(attempt: &AttemptRecord) -> bool {
    let Some(best) = &attempt.best else { return true };
    let mut work = Workspace::default();
    for event in &attempt.events {
        let Event::Reply(reply) = event else { continue };
        if reply.step > best.step {
            break;
        }
        // What is exported is the message, so its own calls count, not those that were noted beside it.
        let in_text = match reply.message.tool_calls.is_empty() {
            true => text_calls::find(&reply.message.content, is_ours),
            false => Vec::new(),
        };
        for call in reply.message.tool_calls.iter().chain(&in_text).take(MAX_DONE) {
            match tools::action(call) {
                // What was refused then is refused now.
                Ok((_, Action::Edit(edit))) => drop(edit.apply(&mut work)),
                // A reply may go on editing after it asked.
                Ok((_, Action::Evaluate)) if work.files() == &best.files => return true,
                _ => {}
            }
        }
    }
    false
}

/// A text of a graph with so many words is meant for a reader: literals are names of modes and letters of dimensions.
const MOST_WORDS: usize = 3;

/// Whether a literal text of the code in a prompt is a sentence.
fn speaks(message: &Message) -> bool {
    let (Message::System { content } | Message::User { content }) = message else { return false };
    let code =
        content.split("```python").skip(1).map(|rest| rest.split("```").next().unwrap_or(""));
    let is_word = |word: &&str| word.chars().filter(|c| c.is_alphabetic()).count() >= 3;
    let is_sentence = |text: &str| text.split_whitespace().filter(is_word).count() > MOST_WORDS;
    // Between quotes of either kind; our printer writes one line for each statement.
    code.flat_map(str::lines).any(|line| {
        ['\'', '"'].iter().any(|quote| line.split(*quote).skip(1).step_by(2).any(is_sentence))
    })
}

/// Whether the recorded best score is the one that the stored results of the best version give.
fn is_score_borne_out(attempt: &AttemptRecord) -> bool {
    let Some(score) = attempt.best_score() else { return true };
    let Some(events) = attempt.best_events() else { return false };
    let scored: Vec<_> =
        events.iter().map(|event| event.evaluation.judged.scored(Scoring::Strict)).collect();
    let Some(again) = Score::of(&scored, Parameters::default()) else { return false };
    let is_same = (again.aggregated - score).abs() <= SAME * score.abs();
    let is_right =
        |event: &GraphEvent| event.evaluation.judged.verdict.kind == VerdictKind::Correct;
    let is_correct = events.iter().all(is_right);
    is_same && events.len() == attempt.start.graphs && is_correct == attempt.is_correct()
}

fn has_secret(message: &Message, redactor: &Redactor) -> bool {
    let is_secret = |text: &str| redactor.text(text) != text;
    match message {
        Message::System { content } | Message::User { content } => is_secret(content),
        Message::Tool { id, name, content, .. } => {
            is_secret(id) || is_secret(name) || is_secret(content)
        }
        Message::Assistant(reply) => {
            is_secret(&reply.content)
                || reply.reasoning.as_deref().is_some_and(is_secret)
                || reply.tool_calls.iter().any(|call| {
                    is_secret(&call.id)
                        || is_secret(&call.name)
                        || redactor.arguments(&call.arguments) != call.arguments
                })
        }
    }
}

/// Whether a call names one of our tools; frameworks are told of no others.
pub(super) fn is_ours(name: &str) -> bool {
    tools::Tool::from_name(name).is_some()
}
