//! What the evaluator found, as a trajectory stores it.

use super::Question;
use passnet_bench::evaluate::{CheckAnswer, Evaluation};
use passnet_bench::stats::{Decision, median};
use passnet_bench::verdict::{Evidence, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};

/// The answer to one question about the passes of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assessment {
    /// What was asked.
    pub question: Question,
    /// AS over all graphs of the task; only an evaluation has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Graphs of the task; a check may have looked at some of them only.
    pub graphs_in_task: usize,
    /// Those that were looked at.
    pub graphs: Vec<GraphAssessment>,
    /// What was noticed about the passes themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Evidence>,
}

/// One graph, by its number in the task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphAssessment {
    /// Its number in the task, from 0.
    pub graph: usize,
    /// With evidence.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Over eager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<f64>,
    /// Where the speed-up lies with 99 % confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
    /// Whether the difference in time is more than noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The strictest tolerance at which the numbers are right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub right_from: Option<i32>,
    /// Median of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eager_ms: Option<f64>,
    /// Median of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_ms: Option<f64>,
    /// The time this machine takes to move the graph's inputs and outputs once, or for its arithmetic: no pass can be
    /// faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline_ms: Option<f64>,
    /// Rewritten places.
    #[serde(default)]
    pub matches: usize,
    /// What to change, where we know it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<String>,
}

/// How far passes have come, for trainers that need a word before there is a score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Nothing could be tried.
    #[default]
    Nothing,
    /// The files are read, and no rule refuses them.
    Reads,
    /// They change every graph of the task.
    Matches,
    /// The numbers of every graph are right.
    Right,
}

impl Tier {
    /// What it is worth. Together less than what a right pass as fast as eager earns, so that no tier is worth staying in.
    pub const fn worth(self) -> f64 {
        match self {
            Tier::Nothing => 0.0,
            Tier::Reads => 0.1,
            Tier::Matches => 0.3,
            Tier::Right => 1.0,
        }
    }
}

impl Assessment {
    /// How far the passes have come, as far as the question can tell.
    pub fn tier(&self) -> Tier {
        use VerdictKind::{CompileFail, Integrity, ReferenceFail, Unsupported};
        let refused = [CompileFail, Integrity, ReferenceFail, Unsupported];
        if self.graphs.is_empty() || refused.into_iter().any(|kind| self.count(kind) > 0) {
            return Tier::Nothing;
        }
        let is_whole = self.graphs.len() == self.graphs_in_task;
        match is_whole && self.graphs.iter().all(|graph| graph.matches > 0) {
            false => Tier::Reads,
            true if self.question != Question::Match && self.is_all_correct() => Tier::Right,
            true => Tier::Matches,
        }
    }

    /// Graphs with this verdict.
    pub fn count(&self, kind: VerdictKind) -> usize {
        self.graphs.iter().filter(|graph| graph.verdict.kind == kind).count()
    }

    /// Whether a pass changed anything. What leaves every graph alone has a score, because scores tolerate failures at loose
    /// levels, but it is no result: neither a best version nor a reward comes of it.
    pub fn earns(&self) -> bool {
        self.graphs.iter().any(|graph| graph.matches > 0)
    }

    /// Whether every graph of the task was looked at and is right.
    pub fn is_all_correct(&self) -> bool {
        self.graphs.len() == self.graphs_in_task
            && self.count(VerdictKind::Correct) == self.graphs_in_task
    }
}

impl GraphAssessment {
    pub(super) fn new(graph: usize, verdict: Verdict) -> Self {
        GraphAssessment {
            graph,
            verdict,
            speedup: None,
            interval: None,
            decision: None,
            right_from: None,
            eager_ms: None,
            candidate_ms: None,
            roofline_ms: None,
            matches: 0,
            advice: Vec::new(),
        }
    }

    pub(super) fn of(graph: usize, evaluation: &Evaluation) -> Self {
        let is_advice = |answer: CheckAnswer| answer == CheckAnswer::Advice;
        let advice = evaluation.checks.iter().filter(|check| is_advice(check.answer));
        GraphAssessment {
            speedup: evaluation.judged.speedup,
            interval: evaluation.interval.map(|interval| (interval.low, interval.high)),
            decision: evaluation.decision,
            right_from: evaluation.judged.ladder.first_right(),
            eager_ms: median(&evaluation.eager_ms),
            candidate_ms: median(&evaluation.candidate_ms),
            roofline_ms: evaluation.roofline_ms,
            matches: evaluation.rewrites.iter().map(|rewrites| rewrites.count).sum(),
            advice: advice.map(|check| format!("{}: {}", check.name, check.detail)).collect(),
            ..GraphAssessment::new(graph, evaluation.judged.verdict.clone())
        }
    }
}
