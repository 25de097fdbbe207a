//! Scores: what a set of judged graphs is worth.
//!
//! Every graph has a speed-up, a ladder of tolerance levels at which it is right, and a class for its failures.
//! From these come the curves S(t) and ES(t), their weighted mean AS, and the plain rates people ask for.

mod aggregate;
mod curve;
mod macro_form;
mod summary;

pub use aggregate::{WEIGHTS, aggregated_speedup, graph_log_score, weighted_speedup};
pub use curve::{
    CURVE_HIGHEST, CURVE_LEVELS, Curve, curve_levels, error_aware, graph_error_aware, graph_speed,
    speed,
};
pub use macro_form::{MacroForm, Statistics};
pub use summary::{Summary, by_label, sample_correctness_rate};

use crate::tolerance::Ladder;
use crate::verdict::{ErrorClass, ReferenceStatus, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose judgement counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scoring {
    /// What really happened.
    #[default]
    Strict,
    /// What the reference would have made of it, misclassifications included.
    Reference,
}

impl Scoring {
    /// As `--scoring` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Scoring::Strict => "strict",
            Scoring::Reference => "reference",
        }
    }
}

impl fmt::Display for Scoring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The two numbers a scorer may choose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// What a failed graph scores.
    pub b: f64,
    /// How much harder a slow-down counts: a speed-up s below 1 becomes s^(p+1).
    pub p: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters { b: 0.1, p: 0.0 }
    }
}

impl Parameters {
    /// Refuses parameters that give no meaningful score.
    pub fn checked(b: f64, p: f64) -> Result<Self, String> {
        if !(b.is_finite() && b > 0.0 && b <= 1.0) {
            return Err(format!("b must be above 0 and at most 1, not {b}"));
        }
        if !(p.is_finite() && (0.0..=100.0).contains(&p)) {
            return Err(format!("p must be between 0 and 100, not {p}"));
        }
        Ok(Parameters { b, p })
    }

    /// The speed-up with slow-downs made to count `p` times more.
    pub fn rectified(&self, speedup: f64) -> f64 {
        if speedup >= 1.0 { speedup } else { speedup.powf(self.p + 1.0) }
    }
}

/// The part of a judged graph that scoring needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredGraph {
    ladder: Ladder,
    speedup: Option<f64>,
    class: ErrorClass,
}

impl ScoredGraph {
    /// A graph that ran: right where its ladder says so, wrong numbers elsewhere. A speed-up that is no positive
    /// finite number cannot enter a geometric mean: such a graph has failed.
    pub fn ran(ladder: Ladder, speedup: f64) -> Self {
        if speedup.is_finite() && speedup > 0.0 {
            ScoredGraph { ladder, speedup: Some(speedup), class: ErrorClass::Accuracy }
        } else {
            ScoredGraph::failed(ErrorClass::Never)
        }
    }

    /// A graph that gave nothing to compare.
    pub fn failed(class: ErrorClass) -> Self {
        ScoredGraph { ladder: Ladder::NONE, speedup: None, class }
    }

    /// What the reference makes of a status.
    pub fn of_status(status: ReferenceStatus, ladder: Ladder, speedup: Option<f64>) -> Self {
        match (status, speedup) {
            (ReferenceStatus::Correct, Some(speedup)) => ScoredGraph::ran(ladder, speedup),
            (ReferenceStatus::Correct, None) => ScoredGraph::failed(ErrorClass::Never),
            _ => ScoredGraph::failed(status.class()),
        }
    }

    /// The speed-up, if the graph is right at this level.
    pub fn speedup_at(&self, t: i32) -> Option<f64> {
        self.speedup.filter(|_| self.ladder.is_right_at(t))
    }

    /// What a failure of this graph counts as.
    pub fn class(&self) -> ErrorClass {
        self.class
    }
}

/// A judged graph: what a run stores and a report shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JudgedGraph {
    /// Its folder's name.
    pub graph: String,
    /// With evidence.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Where its outputs are right; empty unless it ran.
    pub ladder: Ladder,
    /// Eager time over candidate time.
    pub speedup: Option<f64>,
}

impl JudgedGraph {
    /// What it counts for, by these rules.
    pub fn scored(&self, scoring: Scoring) -> ScoredGraph {
        let kind = self.verdict.kind;
        let row = kind.classification();
        match scoring {
            Scoring::Reference => ScoredGraph::of_status(row.reference, self.ladder, self.speedup),
            Scoring::Strict => match self.speedup {
                Some(speedup) if kind.is_comparable() => ScoredGraph::ran(self.ladder, speedup),
                None if kind.is_comparable() => ScoredGraph::failed(ErrorClass::Never),
                _ => ScoredGraph::failed(row.strict),
            },
        }
    }
}

/// Everything a set of graphs scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// AS.
    #[serde(rename = "as")]
    pub aggregated: f64,
    /// ES(t).
    pub es: Curve,
    /// S(t).
    pub s: Curve,
    /// Rates without a tolerance ladder.
    pub summary: Summary,
}

impl Score {
    /// `None` without graphs: the mean of nothing is no score.
    pub fn of(scored: &[ScoredGraph], parameters: Parameters) -> Option<Self> {
        let es = error_aware(scored, parameters)?;
        Some(Score {
            aggregated: aggregated_speedup(&es),
            es,
            s: speed(scored, parameters)?,
            summary: Summary::of(scored)?,
        })
    }
}

/// The geometric mean; `None` for an empty list.
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, n) = values.into_iter().fold((0.0, 0u64), |(sum, n), x| (sum + x.ln(), n + 1));
    (n > 0).then(|| (sum / n as f64).exp())
}
