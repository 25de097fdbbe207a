//! What an evaluation of one graph found.

use super::check::Check;
use super::oracle::Accuracy;
use super::overhead::Overhead;
use super::pair::OutputSummary;
use crate::candidate::Rewrites;
use crate::roofline::{Roofline, Work};
use crate::score::JudgedGraph;
use crate::secret::Secret;
use crate::stats::{Decision, RatioInterval, median};
use crate::tolerance::Ladder;
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_engine::{Costs, Engine, Tier, TunedKernel};
use passnet_graph::{DType, Diagnostic};
use serde::{Deserialize, Serialize};

/// What an evaluation of one graph found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// What counts: verdict, speed-up, and the levels at which it is right.
    #[serde(flatten)]
    pub judged: JudgedGraph,
    /// Why nothing of this is a judgement: the machine failed, neither the graph nor the pass. Never stored.
    #[serde(skip)]
    pub not_judged: Option<String>,
    /// How the code of passes ran. Only plans are timed and scored.
    #[serde(default, skip_serializing_if = "Tier::is_plan")]
    pub tier: Tier,
    /// Where the speed-up lies with 99 % confidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<RatioInterval>,
    /// Whether the difference in time is more than noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Milliseconds of each timed call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub eager_ms: Vec<f64>,
    /// As `eager_ms`, of the candidate's calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidate_ms: Vec<f64>,
    /// What one call costs the host and the device, where the engine can tell.
    #[serde(default, skip_serializing_if = "CallCosts::are_unknown")]
    pub eager_costs: CallCosts,
    /// As `eager_costs`, of the candidate.
    #[serde(default, skip_serializing_if = "CallCosts::are_unknown")]
    pub candidate_costs: CallCosts,
    /// What the graph has to do at the least, and the milliseconds that takes on the engine's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The least that `work` takes on the engine's device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline_ms: Option<f64>,
    /// What each pass replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<Rewrites>,
    /// Calls that eager ran and the rewritten graph did without, because nothing needs them: what that saved is no kernel's doing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// With which configurations the kernels of `@triton.autotune` ran, and the times that decided it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tuned: Vec<TunedKernel>,
    /// One for each output of the graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputSummary>,
    /// How far both sides are from the float64 result; not asked where they are equal in every bit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Questions beyond the reference's, with their answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<Check>,
    /// What was noticed but changes nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Evidence>,
    /// What draws, places and contents came from; `None` where nothing was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Type of the first float input, and the operations, for scores by group.
    pub dtype: String,
    /// The graph's operations, each once, by name.
    pub operations: Vec<String>,
    /// Seconds of the harness itself, by stage.
    #[serde(default, rename = "spent")]
    pub overhead: Overhead,
    /// Seconds spent in timed and warm-up calls, and in all.
    pub measured_seconds: f64,
    /// Of the whole evaluation.
    pub seconds: f64,
}

/// Milliseconds of one call, taken apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CallCosts {
    /// Until the call returns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ms: Option<f64>,
    /// On the device's own clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ms: Option<f64>,
    /// The device again, its cache emptied before every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_ms: Option<f64>,
}

impl CallCosts {
    fn are_unknown(&self) -> bool {
        *self == CallCosts::default()
    }
}

impl From<Costs> for CallCosts {
    fn from(costs: Costs) -> Self {
        let milliseconds = |seconds: Option<f64>| seconds.map(|seconds| seconds * 1e3);
        CallCosts {
            host_ms: milliseconds(costs.host),
            device_ms: milliseconds(costs.device),
            cold_ms: milliseconds(costs.cold),
        }
    }
}

impl Evaluation {
    /// A graph that was never run.
    pub fn without_run(graph: &str, verdict: Verdict) -> Self {
        Evaluation {
            judged: JudgedGraph {
                graph: graph.to_string(),
                verdict,
                ladder: Ladder::NONE,
                speedup: None,
            },
            not_judged: None,
            tier: Tier::Plan,
            interval: None,
            decision: None,
            eager_ms: Vec::new(),
            candidate_ms: Vec::new(),
            eager_costs: CallCosts::default(),
            candidate_costs: CallCosts::default(),
            work: None,
            roofline_ms: None,
            rewrites: Vec::new(),
            left_out: Vec::new(),
            tuned: Vec::new(),
            outputs: Vec::new(),
            accuracy: None,
            checks: Vec::new(),
            remarks: Vec::new(),
            secret: None,
            dtype: String::new(),
            operations: Vec::new(),
            overhead: Overhead::default(),
            measured_seconds: 0.0,
            seconds: 0.0,
        }
    }

    /// Which share of what its device can do the candidate reaches: the least time there can be, as a share of the
    /// device's, or of the whole call's where the engine cannot tell them apart.
    pub fn roofline_share(&self) -> Option<f64> {
        let took = self.candidate_costs.device_ms.or_else(|| median(&self.candidate_ms))?;
        Some(self.roofline_ms? / took)
    }

    /// With the least time there can be on the engine's device, where the graph was timed.
    #[must_use]
    pub fn with_roofline(self, roofline: &Roofline, engine: &dyn Engine) -> Evaluation {
        let least = |(work, dtype)| roofline.milliseconds(engine, work, dtype);
        Evaluation { roofline_ms: self.timed_work().and_then(least), ..self }
    }

    /// The work of a graph that was timed, and the type that it computes in.
    fn timed_work(&self) -> Option<(Work, DType)> {
        // A graph without floats computes nothing that a product of matrices could be compared with.
        let dtype = DType::from_name(&self.dtype).unwrap_or(DType::Float32);
        Some((self.work.filter(|_| self.interval.is_some())?, dtype))
    }

    /// A graph that nobody came to.
    pub(crate) fn not_begun(graph: &str, reason: &str) -> Self {
        let verdict = Verdict::new(VerdictKind::ReferenceFail);
        Evaluation { not_judged: Some(reason.into()), ..Evaluation::without_run(graph, verdict) }
    }

    /// A graph whose files could not be read.
    pub fn unreadable(graph: &str, error: &Diagnostic) -> Self {
        Evaluation::without_run(
            graph,
            Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed() -> Evaluation {
        Evaluation {
            work: Some(Work { bytes: 1, flops: 1 }),
            interval: Some(RatioInterval { ratio: 1.0, low: 1.0, high: 1.0 }),
            candidate_ms: vec![8.0, 2.0, 4.0],
            ..Evaluation::without_run("g", Verdict::new(VerdictKind::Correct))
        }
    }

    #[test]
    fn only_a_timed_graph_has_work_to_compare_with() {
        assert_eq!(timed().timed_work(), Some((Work { bytes: 1, flops: 1 }, DType::Float32)));
        assert_eq!(Evaluation { interval: None, ..timed() }.timed_work(), None);
        let half = Evaluation { dtype: "float16".into(), ..timed() };
        assert_eq!(half.timed_work().map(|(_, dtype)| dtype), Some(DType::Float16));
    }

    #[test]
    fn the_share_is_of_the_device_where_it_is_known() {
        let mut evaluation = timed();
        assert_eq!(evaluation.roofline_share(), None);
        evaluation.roofline_ms = Some(1.0);
        assert_eq!(evaluation.roofline_share(), Some(0.25), "of the median call");
        evaluation.candidate_costs.device_ms = Some(2.0);
        assert_eq!(evaluation.roofline_share(), Some(0.5));
    }
}
