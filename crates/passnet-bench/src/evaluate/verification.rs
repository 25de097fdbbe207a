//! Is the candidate right?

use super::Evaluation;
use super::case::{Case, Run, copies};
use super::extremes::try_extremes;
use super::oracle::Accuracy;
use super::pair::Pair;
use super::spent::timed;
use crate::number::Number;
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Evidence, Verdict, VerdictKind};
use crate::verify::Comparison;
use passnet_engine::Value;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::{FingerprintKey, Tensor, TensorError};
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
    let mut spent = evaluation.spent;
    let (mut ladder, mut wrong, verified) =
        own_time(case, &mut spent.compare, || compare_draws(case, evaluation))?;
    if case.is_rewritten && case.thorough {
        // A candidate that is wrong on ordinary inputs is scored by how wrong; extreme ones would add nothing.
        if wrong.is_none()
            && let Some(verdict) =
                own_time(case, &mut spent.stress, || try_extremes(case, evaluation))?
        {
            wrong = Some(verdict);
            ladder = Ladder::NONE;
        }
    }
    evaluation.spent = spent;
    evaluation.judged.ladder = ladder;
    evaluation.judged.verdict = wrong.unwrap_or_else(|| Verdict::new(VerdictKind::Correct));
    Ok(verified)
}

/// Does work and adds its seconds to a stage, calls of the two sides left out.
fn own_time<R>(case: &Case, stage: &mut f64, work: impl FnOnce() -> R) -> R {
    let before = case.calls().seconds;
    let result = timed(stage, work);
    *stage -= case.calls().seconds - before;
    result
}

/// The ladder over all draws, the verdict on the first wrong one, and the candidate's outputs.
type Compared = (Ladder, Option<Verdict>, Vec<Vec<Value>>);

fn compare_draws(case: &Case, evaluation: &mut Evaluation) -> Result<Compared, Box<Verdict>> {
    // Calls come first, one after the other; looking at what they gave takes all threads.
    let first = &case.draws[0];
    let (eager, candidate) = run_both(case, first)?;
    let others: Vec<_> = case.draws[1..].iter().map(|draw| (draw, run_both(case, draw))).collect();
    let pair = Pair::new(case, &eager, &candidate)?;
    let (compared, others) = rayon::join(
        || look_closely(case, first, &pair),
        || {
            others
                .into_par_iter()
                .map(|(draw, runs)| judge_runs(case, draw, runs?))
                .collect::<Vec<_>>()
        },
    );
    let (comparison, outputs, accuracy) = compared?;
    evaluation.outputs = outputs;
    evaluation.accuracy = accuracy;
    if case.is_rewritten {
        first_draw_checks(case, first, &eager, &candidate, evaluation)?;
    }
    let mut draws = vec![judge_draw(case, first, &pair, comparison.ladder, candidate.outputs)];
    draws.extend(others);
    let mut ladder = Ladder::ALL;
    let mut wrong = None;
    let mut verified = Vec::with_capacity(draws.len());
    for (index, draw) in draws.into_iter().enumerate() {
        let draw = draw?;
        if draw.is_forgiven {
            evaluation.remarks.push(Evidence::Message {
                text: format!(
                    "draw {index}: outside eager's tolerance, but as close to the float64 result as eager"
                ),
            });
        }
        ladder = ladder.and(draw.ladder);
        wrong = wrong.or(draw.wrong);
        verified.push(draw.outputs);
    }
    Ok((ladder, wrong, verified))
}

fn run_both(case: &Case, inputs: &[Value]) -> Result<(Run, Run), Box<Verdict>> {
    let eager = case.run_eager(case.inputs_for_eager(inputs)?)?;
    Ok((eager, run_candidate(case, inputs)?))
}

/// Runs the candidate, which may not change inputs that eager leaves alone.
fn run_candidate(case: &Case, inputs: &[Value]) -> Result<Run, Box<Verdict>> {
    if case.writes_inputs || !case.is_rewritten {
        return case.run_candidate(case.inputs_for_eager(inputs)?);
    }
    // Reading inputs twice costs less than copying them.
    let key = FingerprintKey::random();
    let fingerprints = || {
        let tensors = inputs.iter().map(|input| input.as_tensor());
        let prints = tensors.map(|tensor| tensor.map(|it| it.fingerprint(&key)).transpose());
        prints.collect::<Result<Vec<_>, _>>().map_err(|error| no_memory(&error))
    };
    let before = fingerprints()?;
    let run = case.run_candidate(inputs.to_vec())?;
    let after = fingerprints()?;
    match before.iter().zip(&after).position(|(before, after)| before != after) {
        None => Ok(run),
        Some(index) => {
            let text = format!("input {index} is changed, which eager does not do");
            Err(Box::new(Verdict::new(VerdictKind::RuntimeFail).because(text)))
        }
    }
}

/// Everything there is to say about one draw; an error where the outputs cannot be compared.
fn look_closely(
    case: &Case,
    inputs: &[Value],
    pair: &Pair,
) -> Result<(Comparison, Vec<OutputSummary>, Option<Accuracy>), Box<Verdict>> {
    let compare = || {
        let comparison = pair.compare()?;
        match comparison.verdict.kind.is_comparable() {
            true => pair.summaries(&comparison).map(|outputs| (comparison, outputs)),
            false => Err(Box::new(comparison.verdict)),
        }
    };
    let (compared, accuracy) = rayon::join(compare, || pair.accuracy(case, inputs));
    let (comparison, outputs) = compared?;
    Ok((comparison, outputs, accuracy?))
}

fn judge_runs(case: &Case, inputs: &[Value], runs: (Run, Run)) -> Result<Draw, Box<Verdict>> {
    let (eager, candidate) = runs;
    let pair = Pair::new(case, &eager, &candidate)?;
    match pair.ladder()? {
        Some(ladder) => judge_draw(case, inputs, &pair, ladder, candidate.outputs),
        None => Err(Box::new(pair.compare()?.verdict)),
    }
}

/// What one draw of inputs showed.
struct Draw {
    ladder: Ladder,
    wrong: Option<Verdict>,
    /// Outside eager's tolerance, but as close to float64 as eager.
    is_forgiven: bool,
    outputs: Vec<Value>,
}

fn judge_draw(
    case: &Case,
    inputs: &[Value],
    pair: &Pair,
    ladder: Ladder,
    outputs: Vec<Value>,
) -> Result<Draw, Box<Verdict>> {
    if ladder.is_right_at(BASELINE) {
        return Ok(Draw { ladder, wrong: None, is_forgiven: false, outputs });
    }
    if pair.is_as_accurate(case, inputs)? {
        let ladder = Ladder::from_fn(|t| t >= BASELINE || ladder.is_right_at(t));
        return Ok(Draw { ladder, wrong: None, is_forgiven: true, outputs });
    }
    Ok(Draw { ladder, wrong: Some(pair.compare()?.verdict), is_forgiven: false, outputs })
}

pub(super) fn fresh(inputs: &[Value]) -> Result<Vec<Value>, Box<Verdict>> {
    copies(inputs).map_err(|error| no_memory(&error))
}

/// The harness itself could not get at the data.
pub(super) fn no_memory(error: &TensorError) -> Box<Verdict> {
    Box::new(Verdict::new(VerdictKind::ReferenceFail).because(error.to_string()))
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
    let again = run_candidate(case, inputs)?;
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

pub(super) fn passed(name: &str) -> Check {
    Check { name: name.into(), outcome: CheckOutcome::Passed, detail: String::new() }
}
