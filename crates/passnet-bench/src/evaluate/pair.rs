//! The outputs of both sides on the same inputs, held against each other and against float64.

use super::case::{Case, Run};
use super::failure::harness_failure;
use super::oracle::{self, Accuracy, Judgement};
use super::tensors::{Flat, views};
use crate::compare::{self, Comparison, MalformedTensor, Rules};
use crate::number::Number;
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::Value;
use passnet_engine::native::{Scalar, Tensor};
use serde::{Deserialize, Serialize};

/// What the first draw shows about one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSummary {
    /// As eager gives it.
    pub dtype: String,
    /// Whether both sides gave the same values.
    pub equal: bool,
    /// By the tolerances of float16, bfloat16, float32, float64.
    pub ladders: [Ladder; 4],
    /// The largest absolute difference.
    pub max_error: Number,
    /// The mean of absolute differences.
    pub mean_error: Number,
}

/// At which levels outputs are right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    pub(super) ladder: Ladder,
    /// Where they leave eager's tolerance and the yardstick allows it: how many elements it had to forgive, because they
    /// leave the tolerance of float64 too, and by how many tolerances.
    pub(super) forgiven: Option<(usize, f64)>,
}

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
        let tensors = |run: &Run| run.tensors(case.sides.writes_inputs).map_err(harness_failure);
        Ok(Pair { eager: tensors(eager)?, candidate: tensors(candidate)? })
    }

    pub(super) fn of(eager: Vec<Tensor>, candidate: Vec<Tensor>) -> Pair {
        Pair { eager, candidate }
    }

    fn flats(&self) -> Result<Flats<'_>, Box<Verdict>> {
        let flats = |tensors| Flat::all(tensors).map_err(harness_failure);
        Ok(Flats { eager: flats(&self.eager)?, candidate: flats(&self.candidate)? })
    }

    /// Everything there is to say about the differences.
    pub(super) fn compare(&self) -> Result<Comparison, Box<Verdict>> {
        let flats = self.flats()?;
        compare::compare(&views(&flats.eager), &views(&flats.candidate), Rules::Strict)
            .map_err(malformed)
    }

    /// Only the ladder, much faster; `None` where the outputs cannot be compared.
    pub(super) fn ladder(&self) -> Result<Option<Ladder>, Box<Verdict>> {
        // The bits tell fastest, where they are the same.
        if self.is_equal()? {
            return Ok(Some(Ladder::ALL));
        }
        let flats = self.flats()?;
        compare::ladder(&views(&flats.eager), &views(&flats.candidate), Rules::Strict)
            .map_err(malformed)
    }

    /// At which levels outputs of nothing but zeros would be right.
    pub(super) fn ladder_of_zeros(&self) -> Result<Ladder, Box<Verdict>> {
        let zeros = |tensor: &Tensor| Tensor::full(tensor.shape(), Scalar::Int(0), tensor.dtype());
        let zeros = self.eager.iter().map(zeros).collect::<Result<Vec<_>, _>>();
        let zeros = Pair::of(self.eager.clone(), zeros.map_err(harness_failure)?);
        Ok(zeros.ladder()?.unwrap_or(Ladder::NONE))
    }

    /// Whether every output is the same in every bit.
    pub(super) fn is_equal(&self) -> Result<bool, Box<Verdict>> {
        Ok(first_difference(&self.eager, &self.candidate)?.is_none())
    }

    /// At which levels the candidate is right, the yardstick asked where it leaves eager's tolerance. What cannot be
    /// compared, or lies in memory otherwise than eager's, is an error.
    pub(super) fn judge(&self, case: &Case, inputs: &[Value]) -> Result<Judged, Box<Verdict>> {
        let Some(ladder) = self.ladder()? else { return Err(Box::new(self.compare()?.verdict)) };
        self.compare_layouts()?;
        if ladder.is_right_at(BASELINE) {
            return Ok(Judged { ladder, forgiven: None });
        }
        let forgiven = match self.judge_by_truth(case, inputs)? {
            Judgement::Wrong | Judgement::Unexplained => {
                return Ok(Judged { ladder, forgiven: None });
            }
            Judgement::Right => (0, 1.0),
            Judgement::Forgiven { elements, worst } => (elements, worst),
        };
        let ladder = Ladder::from_fn(|t| t >= BASELINE || ladder.is_right_at(t));
        Ok(Judged { ladder, forgiven: Some(forgiven) })
    }

    fn judge_by_truth(&self, case: &Case, inputs: &[Value]) -> Result<Judgement, Box<Verdict>> {
        let Some(truth) = case.run_oracle(inputs)? else { return Ok(Judgement::Wrong) };
        let truth = Flat::all(&truth).map_err(harness_failure)?;
        let Flats { eager, candidate } = self.flats()?;
        match oracle::judge(&eager, &candidate, &truth, None) {
            Judgement::Unexplained => {
                let moves = case.moves(inputs, &truth)?;
                Ok(oracle::judge(&eager, &candidate, &truth, Some(&moves)))
            }
            judgement => Ok(judgement),
        }
    }

    /// Outputs have eager's strides. Nothing in a graph tells who takes its result: a view of it, or the layout of
    /// everything computed from it, follows from them. Strides of dimensions with one element cannot be told apart.
    fn compare_layouts(&self) -> Result<(), Box<Verdict>> {
        let told = |tensor: &Tensor| -> Vec<(usize, usize)> {
            let sizes = tensor.shape().iter().copied().zip(tensor.strides().iter().copied());
            sizes.filter(|(size, _)| *size > 1).collect()
        };
        for (output, (eager, candidate)) in self.eager.iter().zip(&self.candidate).enumerate() {
            if eager.numel() > 0 && told(eager) != told(candidate) {
                let text = format!(
                    "output {output} has the strides {:?}, eager's has {:?}",
                    candidate.strides(),
                    eager.strides()
                );
                return Err(Box::new(Verdict::new(VerdictKind::ShapeMismatch).because(text)));
            }
        }
        Ok(())
    }

    /// How far both are from the float64 result; `None` where there is none.
    pub(super) fn accuracy(
        &self,
        case: &Case,
        inputs: &[Value],
    ) -> Result<Option<Accuracy>, Box<Verdict>> {
        let Some(truth) = case.run_oracle(inputs)? else { return Ok(None) };
        let truth = Flat::all(&truth).map_err(harness_failure)?;
        let Flats { eager, candidate } = self.flats()?;
        Ok(oracle::accuracy(&eager, &candidate, &truth))
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
                ladders: compare::ladders_by_format(
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

/// The first output that is not the same in every bit.
pub(super) fn first_difference(
    one: &[Tensor],
    two: &[Tensor],
) -> Result<Option<usize>, Box<Verdict>> {
    if one.len() != two.len() {
        return Ok(Some(one.len().min(two.len())));
    }
    for (index, (one, two)) in one.iter().zip(two).enumerate() {
        if !one.same_bits(two).map_err(harness_failure)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn malformed(error: MalformedTensor) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::RuntimeFail).because(error.to_string()))
}
