//! Is the candidate right?

use super::case::{Case, Run, copies};
use super::stress::Stress;
use super::tensors::{Flat, views};
use super::{Evaluation, oracle};
use crate::number::Number;
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Evidence, Verdict, VerdictKind};
use crate::verify::{self, Comparison, Rules};
use passnet_engine::Value;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::{Tensor, TensorError};
use passnet_kernel::check::Severity;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// One question beyond the reference's, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub outcome: CheckOutcome,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    Failed,
    /// Failed, but only advice.
    Advice,
    /// The question makes no sense here.
    Skipped,
}

/// What the first draw shows about one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutputSummary {
    pub dtype: String,
    pub equal: bool,
    /// By the tolerances of float16, bfloat16, float32, float64.
    pub ladders: [Ladder; 4],
    pub max_error: Number,
    pub mean_error: Number,
}

/// Verifies a case and writes what it finds into the evaluation. Gives the candidate's outputs for every draw.
pub(super) fn verify(
    case: &Case,
    evaluation: &mut Evaluation,
) -> Result<Vec<Vec<Value>>, Box<Verdict>> {
    let mut verified = Vec::with_capacity(case.draws.len());
    let mut ladder = Ladder::ALL;
    let mut wrong: Option<Verdict> = None;
    for (index, inputs) in case.draws.iter().enumerate() {
        let eager = case.run_eager(fresh(inputs)?)?;
        let candidate = case.run_candidate(fresh(inputs)?)?;
        let pair = Pair::new(case, &eager, &candidate)?;
        let comparison = pair.compare()?;
        if !comparison.verdict.kind.is_comparable() {
            return Err(Box::new(comparison.verdict));
        }
        let mut found = comparison.ladder;
        let accuracy = match index == 0 || !found.is_right_at(BASELINE) {
            true => pair.measure(case, inputs)?,
            false => None,
        };
        if !found.is_right_at(BASELINE) && accuracy.as_ref().is_some_and(|a| a.as_accurate) {
            found = Ladder::from_fn(|t| t >= BASELINE || comparison.ladder.is_right_at(t));
            evaluation.remarks.push(Evidence::Message {
                text: format!(
                    "draw {index}: outside eager's tolerance, but as close to the float64 result as eager"
                ),
            });
        }
        if index == 0 {
            evaluation.outputs = pair.summaries(&comparison);
            evaluation.accuracy = accuracy.map(|accuracy| accuracy.worst);
            if case.is_rewritten {
                first_draw_checks(case, inputs, &eager, &candidate, evaluation)?;
            }
        }
        if !found.is_right_at(BASELINE) && wrong.is_none() {
            wrong = Some(comparison.verdict);
        }
        ladder = ladder.and(found);
        verified.push(candidate.outputs);
    }
    if case.is_rewritten && case.thorough {
        // A candidate that is wrong on ordinary inputs is scored by how wrong; extreme ones would add nothing.
        if wrong.is_none()
            && let Some(verdict) = stress(case, evaluation)?
        {
            wrong = Some(verdict);
            ladder = Ladder::NONE;
        }
        watch_kernels(case, evaluation)?;
    }
    evaluation.judged.ladder = ladder;
    evaluation.judged.verdict = wrong.unwrap_or_else(|| Verdict::new(VerdictKind::Correct));
    Ok(verified)
}

fn fresh(inputs: &[Value]) -> Result<Vec<Value>, Box<Verdict>> {
    copies(inputs).map_err(|error| no_memory(&error))
}

/// The harness itself could not get at the data.
fn no_memory(error: &TensorError) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
}

/// The outputs of both sides, flat.
struct Pair {
    eager: Vec<Flat>,
    candidate: Vec<Flat>,
}

struct Measured {
    worst: oracle::Accuracy,
    as_accurate: bool,
}

impl Pair {
    fn new(case: &Case, eager: &Run, candidate: &Run) -> Result<Pair, Box<Verdict>> {
        let flat = |run: &Run| run.flat(case.writes_inputs).map_err(|error| no_memory(&error));
        Ok(Pair { eager: flat(eager)?, candidate: flat(candidate)? })
    }

    fn compare(&self) -> Result<Comparison, Box<Verdict>> {
        verify::compare(&views(&self.eager), &views(&self.candidate), Rules::Strict).map_err(
            |error| Box::new(Verdict::new(VerdictKind::RuntimeFail).because(error.to_string())),
        )
    }

    /// Holds both sides against the float64 result.
    fn measure(&self, case: &Case, inputs: &[Value]) -> Result<Option<Measured>, Box<Verdict>> {
        let Some(truth) = case.run_oracle(fresh(inputs)?) else { return Ok(None) };
        let worst = oracle::accuracy(&self.eager, &self.candidate, &truth);
        Ok(worst.map(|worst| Measured {
            worst,
            as_accurate: oracle::as_accurate_as_eager(&self.eager, &self.candidate, &truth),
        }))
    }

    fn summaries(&self, comparison: &Comparison) -> Vec<OutputSummary> {
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

/// What a candidate may not do whatever its numbers are.
fn first_draw_checks(
    case: &Case,
    inputs: &[Value],
    eager: &Run,
    candidate: &Run,
    evaluation: &mut Evaluation,
) -> Result<(), Box<Verdict>> {
    let fail = |text: String| Box::new(Verdict::new(VerdictKind::RuntimeFail).because(text));
    if !case.writes_inputs {
        for (index, (before, after)) in inputs.iter().zip(&candidate.inputs).enumerate() {
            let (Value::Tensor(before), Value::Tensor(after)) = (before, after) else { continue };
            if !before.same_bits(after).map_err(|error| no_memory(&error))? {
                return Err(fail(format!("input {index} is changed, which eager does not do")));
            }
        }
    }
    evaluation.checks.push(passed("inputs left as eager leaves them"));
    let aliases = |run: &Run| -> Result<Vec<(usize, usize)>, Box<Verdict>> {
        let outputs = output_tensors(&run.outputs).map_err(|error| no_memory(&error))?;
        let inputs: Vec<&Tensor> = run.inputs.iter().filter_map(Value::as_tensor).collect();
        let mut pairs = Vec::new();
        for (output, tensor) in outputs.iter().enumerate() {
            for (input, other) in inputs.iter().enumerate() {
                if tensor.shares_storage(other) {
                    pairs.push((output, input));
                }
            }
        }
        Ok(pairs)
    };
    let allowed = aliases(eager)?;
    if let Some((output, input)) =
        aliases(candidate)?.into_iter().find(|pair| !allowed.contains(pair))
    {
        let text = format!("output {output} shares memory with input {input}, unlike eager's");
        return Err(fail(text));
    }
    evaluation.checks.push(passed("outputs share no memory with inputs"));
    let again = case.run_candidate(fresh(inputs)?)?;
    if let Some(output) = first_difference(&candidate.outputs, &again.outputs)? {
        let text = format!("output {output} differs between two runs on the same inputs");
        return Err(Box::new(Verdict::new(VerdictKind::Unstable).because(text)));
    }
    evaluation.checks.push(passed("two runs agree in every bit"));
    Ok(())
}

/// The first output that is not the same in every bit.
pub(super) fn first_difference(
    one: &[Value],
    two: &[Value],
) -> Result<Option<usize>, Box<Verdict>> {
    let tensors = |values| output_tensors(values).map_err(|error| no_memory(&error));
    let (one, two) = (tensors(one)?, tensors(two)?);
    if one.len() != two.len() {
        return Ok(Some(one.len().min(two.len())));
    }
    for (index, (one, two)) in one.iter().zip(&two).enumerate() {
        if !one.same_bits(two).map_err(|error| no_memory(&error))? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

fn passed(name: &str) -> Check {
    Check { name: name.into(), outcome: CheckOutcome::Passed, detail: String::new() }
}

/// Tries extreme inputs. Gives the first wrong result that counts; a candidate that fails to run ends the evaluation.
fn stress(case: &Case, evaluation: &mut Evaluation) -> Result<Option<Verdict>, Box<Verdict>> {
    let answers: Vec<_> =
        Stress::ALL.par_iter().map(|stress| (*stress, stressed(case, *stress))).collect();
    let mut wrong = None;
    for (stress, answer) in answers {
        let (outcome, detail) = match answer? {
            Answer::Right => (CheckOutcome::Passed, String::new()),
            Answer::NoQuestion => (CheckOutcome::Skipped, "eager refuses".into()),
            Answer::Wrong(verdict) if stress.is_advice() => {
                (CheckOutcome::Advice, verdict.to_string())
            }
            Answer::Wrong(mut verdict) => {
                let detail = verdict.to_string();
                let named = Evidence::Message { text: format!("with {}", stress.name()) };
                verdict.evidence.insert(0, named);
                match verdict.kind.is_comparable() {
                    true => wrong.get_or_insert(verdict),
                    false => return Err(Box::new(verdict)),
                };
                (CheckOutcome::Failed, detail)
            }
        };
        evaluation.checks.push(Check { name: stress.name().into(), outcome, detail });
    }
    Ok(wrong)
}

enum Answer {
    Right,
    Wrong(Verdict),
    /// Eager refuses such inputs, so there is nothing to ask.
    NoQuestion,
}

fn stressed(case: &Case, stress: Stress) -> Result<Answer, Box<Verdict>> {
    let changed = || stress.apply(&case.draws[0]).map_err(|error| no_memory(&error));
    let Ok(eager) = case.run_eager(changed()?) else { return Ok(Answer::NoQuestion) };
    let verdict = match case.run_candidate(changed()?) {
        Ok(candidate) => stressed_verdict(case, stress, &eager, &candidate, changed)?,
        Err(verdict) => Some(*verdict),
    };
    Ok(verdict.map_or(Answer::Right, Answer::Wrong))
}

/// `None` where the candidate is right.
fn stressed_verdict(
    case: &Case,
    stress: Stress,
    eager: &Run,
    candidate: &Run,
    changed: impl Fn() -> Result<Vec<Value>, Box<Verdict>>,
) -> Result<Option<Verdict>, Box<Verdict>> {
    let pair = Pair::new(case, eager, candidate)?;
    let comparison = pair.compare()?;
    if comparison.ladder.is_right_at(BASELINE) {
        return Ok(None);
    }
    if let Some(truth) = case.run_oracle(changed()?) {
        let right = match stress.changes_values() {
            true => oracle::survives_stress(&pair.eager, &pair.candidate, &truth),
            false => oracle::as_accurate_as_eager(&pair.eager, &pair.candidate, &truth),
        };
        if right {
            return Ok(None);
        }
    }
    Ok(Some(comparison.verdict))
}

/// Runs the kernels under watch; what they touch wrongly is a failure even where the numbers came out right.
fn watch_kernels(case: &Case, evaluation: &mut Evaluation) -> Result<(), Box<Verdict>> {
    let inputs = fresh(&case.draws[0])?;
    let findings = case
        .candidate
        .check(&inputs, &case.run_options(false))
        .map_err(|error| super::candidate_failure(&error))?;
    let mut errors = Vec::new();
    for finding in findings {
        let is_error = finding.severity == Severity::Error;
        let evidence = Evidence::Rule {
            rule: finding.rule.into(),
            file: finding.file,
            line: finding.line as usize,
            message: finding.message,
        };
        match is_error {
            true => errors.push(evidence),
            false => evaluation.remarks.push(evidence),
        }
    }
    if !errors.is_empty() {
        let verdict = Verdict { kind: VerdictKind::RuntimeFail, evidence: errors };
        return Err(Box::new(verdict));
    }
    evaluation.checks.push(passed("kernels stay inside their memory, without races"));
    Ok(())
}
