//! The outputs of both sides on the same inputs, held against each other and against float64.

use super::case::{Case, Run};
use super::oracle::{self, Accuracy};
use super::tensors::{Flat, views};
use super::verification::{OutputSummary, first_difference, no_memory};
use crate::number::Number;
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Verdict, VerdictKind};
use crate::verify::{self, Comparison, MalformedTensor, Rules};
use passnet_engine::Value;
use passnet_engine::native::Tensor;

/// The outputs of eager and of the candidate.
pub(super) struct Pair {
    eager: Vec<Tensor>,
    candidate: Vec<Tensor>,
}

/// Both sides' elements, and the float64 result's where it is asked for.
struct Flats<'a> {
    eager: Vec<Flat<'a>>,
    candidate: Vec<Flat<'a>>,
}

impl Pair {
    pub(super) fn new(case: &Case, eager: &Run, candidate: &Run) -> Result<Pair, Box<Verdict>> {
        let tensors = |run: &Run| run.tensors(case.writes_inputs).map_err(|e| no_memory(&e));
        Ok(Pair { eager: tensors(eager)?, candidate: tensors(candidate)? })
    }

    fn flats(&self) -> Result<Flats<'_>, Box<Verdict>> {
        let flats = |tensors| Flat::all(tensors).map_err(|error| no_memory(&error));
        Ok(Flats { eager: flats(&self.eager)?, candidate: flats(&self.candidate)? })
    }

    /// Everything there is to say about the differences.
    pub(super) fn compare(&self) -> Result<Comparison, Box<Verdict>> {
        let flats = self.flats()?;
        verify::compare(&views(&flats.eager), &views(&flats.candidate), Rules::Strict)
            .map_err(malformed)
    }

    /// Only the ladder, much faster; `None` where the outputs cannot be compared.
    pub(super) fn ladder(&self) -> Result<Option<Ladder>, Box<Verdict>> {
        // The bits tell fastest, where they are the same.
        if self.is_equal()? {
            return Ok(Some(Ladder::ALL));
        }
        let flats = self.flats()?;
        verify::ladder(&views(&flats.eager), &views(&flats.candidate), Rules::Strict)
            .map_err(malformed)
    }

    /// Whether every output is the same in every bit.
    pub(super) fn is_equal(&self) -> Result<bool, Box<Verdict>> {
        Ok(first_difference(&self.eager, &self.candidate)?.is_none())
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
        Ok(self.against_truth(case, inputs, oracle::accuracy)?.flatten())
    }

    /// Whether the candidate is as close to the float64 result as eager is.
    pub(super) fn is_as_accurate(
        &self,
        case: &Case,
        inputs: &[Value],
    ) -> Result<bool, Box<Verdict>> {
        Ok(self.against_truth(case, inputs, oracle::as_accurate_as_eager)?.unwrap_or(false))
    }

    /// Whether the candidate stays within a few times eager's own error.
    pub(super) fn survives_stress(
        &self,
        case: &Case,
        inputs: &[Value],
    ) -> Result<bool, Box<Verdict>> {
        Ok(self.against_truth(case, inputs, oracle::survives_stress)?.unwrap_or(false))
    }

    /// Asks about eager, the candidate and the float64 result; `None` where there is none.
    fn against_truth<R>(
        &self,
        case: &Case,
        inputs: &[Value],
        ask: impl Fn(&[Flat<'_>], &[Flat<'_>], &[Flat<'_>]) -> R,
    ) -> Result<Option<R>, Box<Verdict>> {
        let Some(truth) = case.run_oracle(case.inputs_for_eager(inputs)?) else { return Ok(None) };
        let truth = Flat::all(&truth).map_err(|error| no_memory(&error))?;
        let flats = self.flats()?;
        Ok(Some(ask(&flats.eager, &flats.candidate, &truth)))
    }

    pub(super) fn summaries(
        &self,
        comparison: &Comparison,
    ) -> Result<Vec<OutputSummary>, Box<Verdict>> {
        let flats = self.flats()?;
        let sides = flats.eager.iter().zip(&flats.candidate);
        let outputs = comparison.outputs.iter().zip(sides);
        Ok(outputs
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
            .collect())
    }
}

fn malformed(error: MalformedTensor) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::RuntimeFail).because(error.to_string()))
}
