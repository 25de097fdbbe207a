//! One graph as machines see it.

use crate::evaluate::{Accuracy, Check};
use crate::run::GraphEvent;
use crate::stats::Decision;
use crate::verdict::{Evidence, VerdictKind};
use passnet_engine::{Tier, TunedKernel};
use serde::Serialize;

/// The keys `passnet bench --json` gives for a graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "keys of a JSON object, named as in a stored run")]
pub struct GraphRow<'a> {
    pub sample: &'a str,
    pub graph: &'a str,
    pub verdict: VerdictKind,
    pub tier: Tier,
    pub speedup: Option<f64>,
    pub interval: Option<[f64; 2]>,
    pub decision: Option<Decision>,
    /// Share of what the device can do.
    pub roofline: Option<f64>,
    pub right_from: Option<i32>,
    pub dtype: &'a str,
    pub accuracy: Option<Accuracy>,
    /// With which configurations tuned kernels ran.
    #[serde(skip_serializing_if = "<[TunedKernel]>::is_empty")]
    pub tuned: &'a [TunedKernel],
    pub checks: &'a [Check],
    pub remarks: &'a [Evidence],
    pub evidence: &'a [Evidence],
}

impl<'a> GraphRow<'a> {
    /// Borrows all of it.
    pub fn of(event: &'a GraphEvent) -> Self {
        let evaluation = &event.evaluation;
        GraphRow {
            sample: &event.sample,
            graph: &evaluation.judged.graph,
            verdict: evaluation.judged.verdict.kind,
            tier: evaluation.tier,
            speedup: evaluation.judged.speedup,
            interval: evaluation.interval.map(|interval| [interval.low, interval.high]),
            decision: evaluation.decision,
            roofline: evaluation.roofline_share(),
            right_from: evaluation.judged.ladder.first_right(),
            dtype: &evaluation.dtype,
            accuracy: evaluation.accuracy,
            tuned: &evaluation.tuned,
            checks: &evaluation.checks,
            remarks: &evaluation.remarks,
            evidence: &evaluation.judged.verdict.evidence,
        }
    }
}
