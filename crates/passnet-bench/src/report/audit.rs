//! Does a stored run hold together? Speed-ups are found again from the timings beside them, and every line must be the
//! one that was written.

use crate::evaluate::Evaluation;
use crate::event_log::{BROKEN, Seal};
use crate::run::Event;
use crate::stats::{Decision, RatioInterval};
use crate::timing::{self, Timings};
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::VerdictKind;
use serde::Serialize;

/// Milliseconds are stored where seconds were measured: the last digits may differ.
const ROUNDING: f64 = 1e-6;

/// Something in a run that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// Of `events.jsonl`.
    pub line: usize,
    /// Where it is about one graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// One sentence for people.
    pub text: String,
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some(graph) = &self.graph {
            write!(f, "{graph}: ")?;
        }
        f.write_str(&self.text)
    }
}

/// Everything that does not hold, by line.
pub(super) fn audit(events: &[(usize, Event)], seal: &Seal) -> Vec<Doubt> {
    let name_at = |line: usize| {
        let found = events.iter().find(|(number, _)| *number == line);
        found.and_then(|(_, event)| name_of(event))
    };
    let mut doubts: Vec<Doubt> = seal
        .broken
        .iter()
        .map(|line| Doubt { line: *line, graph: name_at(*line), text: BROKEN.into() })
        .collect();
    for (line, event) in events {
        let Event::Graph(graph) = event else { continue };
        let texts = contradictions(&graph.evaluation).into_iter();
        doubts.extend(texts.map(|text| Doubt { line: *line, graph: name_of(event), text }));
    }
    doubts.sort_by_key(|doubt| doubt.line);
    doubts
}

fn name_of(event: &Event) -> Option<String> {
    match event {
        Event::Graph(graph) => Some(format!("{}/{}", graph.sample, graph.evaluation.judged.graph)),
        _ => None,
    }
}

/// Where one part of a result says something else than another.
fn contradictions(evaluation: &Evaluation) -> Vec<String> {
    let judged = &evaluation.judged;
    let kind = judged.verdict.kind;
    let mut found = Vec::new();
    if kind == VerdictKind::Correct && !judged.ladder.is_right_at(BASELINE) {
        found.push(format!("called correct, but not right at t = {BASELINE}"));
    }
    if !kind.is_comparable() && (judged.ladder != Ladder::NONE || judged.speedup.is_some()) {
        found.push(format!("called {kind}, but with a speed-up or a level at which it is right"));
    }
    let timed = judged.speedup.is_some() || evaluation.interval.is_some();
    if !timed {
        return found;
    }
    let again = Timings::new(evaluation.eager_ms.clone(), evaluation.candidate_ms.clone(), 0.0);
    let Some(again) = timing::interval(&again) else {
        found.push("a speed-up without timings that it could come from".into());
        return found;
    };
    if let Some(speedup) = judged.speedup
        && !is_same(speedup, again.ratio)
    {
        found.push(format!(
            "the speed-up is said to be {speedup}, its timings give {}",
            again.ratio
        ));
    }
    match &evaluation.interval {
        None => found.push("a speed-up without its interval".into()),
        Some(said) if !is_same_interval(said, &again) => found.push(format!(
            "the interval is said to be {} to {}, its timings give {} to {}",
            said.low, said.high, again.low, again.high
        )),
        Some(_) => {}
    }
    let is_impossible = match evaluation.decision {
        Some(Decision::Faster) => again.low <= 1.0,
        Some(Decision::Slower) => again.high >= 1.0,
        Some(Decision::Tie) | None => false,
    };
    if let (Some(decision), true) = (evaluation.decision, is_impossible) {
        found.push(format!("called {}, which its timings do not show", decision.name()));
    }
    found
}

fn is_same(one: f64, two: f64) -> bool {
    (one - two).abs() <= ROUNDING * two.abs()
}

fn is_same_interval(one: &RatioInterval, two: &RatioInterval) -> bool {
    is_same(one.low, two.low) && is_same(one.ratio, two.ratio) && is_same(one.high, two.high)
}
