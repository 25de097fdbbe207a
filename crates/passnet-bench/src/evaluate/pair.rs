//! The outputs of both sides on the same inputs, held against each other and against float64.

use super::case::{Case, Run};
use super::oracle::{self, Accuracy};
use super::tensors::{Flat, views};
use super::verification::{OutputSummary, no_memory};
use crate::number::Number;
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Verdict, VerdictKind};
use crate::verify::{self, Comparison, MalformedTensor, Rules};
use passnet_engine::Value;

/// The outputs of eager and of the candidate, flat.
pub(super) struct Pair {
    pub(super) eager: Vec<Flat>,
    pub(super) candidate: Vec<Flat>,
}

impl Pair {
    pub(super) fn new(case: &Case, eager: &Run, candidate: &Run) -> Result<Pair, Box<Verdict>> {
        let flat = |run: &Run| run.flat(case.writes_inputs).map_err(|error| no_memory(&error));
        Ok(Pair { eager: flat(eager)?, candidate: flat(candidate)? })
    }

    /// Everything there is to say about the differences.
    pub(super) fn compare(&self) -> Result<Comparison, Box<Verdict>> {
        verify::compare(&views(&self.eager), &views(&self.candidate), Rules::Strict)
            .map_err(malformed)
    }

    /// Only the ladder, much faster; `None` where the outputs cannot be compared.
    pub(super) fn ladder(&self) -> Result<Option<Ladder>, Box<Verdict>> {
        verify::ladder(&views(&self.eager), &views(&self.candidate), Rules::Strict)
            .map_err(malformed)
    }

    pub(super) fn is_right(&self) -> Result<bool, Box<Verdict>> {
        Ok(self.ladder()?.is_some_and(|ladder| ladder.is_right_at(BASELINE)))
    }

    /// How far both are from the float64 result; `None` where there is none.
    pub(super) fn accuracy(
        &self,
        case: &Case,
        inputs: &[Value],
    ) -> Result<Option<Accuracy>, Box<Verdict>> {
        let truth = case.run_oracle(case.inputs_for_eager(inputs)?);
        Ok(truth.and_then(|truth| oracle::accuracy(&self.eager, &self.candidate, &truth)))
    }

    /// Whether the candidate is as close to the float64 result as eager is.
    pub(super) fn is_as_accurate(
        &self,
        case: &Case,
        inputs: &[Value],
    ) -> Result<bool, Box<Verdict>> {
        let truth = case.run_oracle(case.inputs_for_eager(inputs)?);
        Ok(truth.is_some_and(|truth| {
            oracle::as_accurate_as_eager(&self.eager, &self.candidate, &truth)
        }))
    }

    pub(super) fn summaries(&self, comparison: &Comparison) -> Vec<OutputSummary> {
        let sides = self.eager.iter().zip(&self.candidate);
        let outputs = comparison.outputs.iter().zip(sides);
        outputs
            .map(|(report, (eager, candidate))| OutputSummary {
                dtype: report.dtype.name().into(),
                equal: report.is_equal(),
                ladders: verify::ladders_by_format(
                    &eager.view(),
                    &candidate.view(),
                    Rules::Reference,
                )
                .unwrap_or([Ladder::NONE; 4]),
                max_error: report.worst_absolute.as_ref().map_or(Number(0.0), |worst| worst.error),
                mean_error: Number(report.mean_error),
            })
            .collect()
    }
}

fn malformed(error: MalformedTensor) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::RuntimeFail).because(error.to_string()))
}
