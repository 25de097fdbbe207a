//! Is the candidate right on ordinary inputs?

use super::Evaluation;
use super::case::{Case, Run, bytes_of};
use super::oracle::Accuracy;
use super::pair::Pair;
use super::verification::{OutputSummary, Outputs, first_difference, no_memory, passed};
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Evidence, Verdict, VerdictKind};
use crate::verify::Comparison;
use passnet_engine::Value;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::{Fingerprint, FingerprintKey, Tensor};
use rayon::prelude::*;

/// Eager's and the candidate's.
type BothRuns = Result<(Run, Run), Box<Verdict>>;

/// What both sides gave on every draw.
pub(super) struct Drawn<'a> {
    case: &'a Case,
    eager: Run,
    candidate: Run,
    /// The candidate on the first draw once more; eager is not asked.
    again: Option<Result<Run, Box<Verdict>>>,
    others: Vec<(&'a [Value], BothRuns)>,
}

/// What all draws showed.
pub(super) struct Compared {
    pub(super) ladder: Ladder,
    /// The verdict on the first wrong draw.
    pub(super) wrong: Option<Verdict>,
    /// The candidate's, for every draw.
    pub(super) outputs: Outputs,
}

impl<'a> Drawn<'a> {
    pub(super) fn call(case: &'a Case) -> Result<Drawn<'a>, Box<Verdict>> {
        let first = &case.draws[0];
        let watched = Watched::new(case, first)?;
        let eager = case.run_eager(case.inputs_for_eager(first)?)?;
        let candidate = watched.run_candidate()?;
        let again = case.is_rewritten.then(|| watched.run_candidate());
        let others = case.draws[1..].iter().map(|draw| (&draw[..], run_both(case, draw)));
        Ok(Drawn { case, eager, candidate, again, others: others.collect() })
    }

    /// Bytes of what a call gives.
    pub(super) fn output_bytes(&self) -> usize {
        bytes_of(&self.eager.outputs)
    }

    /// Compares everything and writes what the first draw shows into the evaluation.
    pub(super) fn look(self, evaluation: &mut Evaluation) -> Result<Compared, Box<Verdict>> {
        let Drawn { case, eager, candidate, again, others } = self;
        let first = &case.draws[0];
        let pair = Pair::new(case, &eager, &candidate)?;
        let (compared, others) = rayon::join(
            || look_closely(case, first, &pair),
            || {
                others
                    .into_par_iter()
                    .map(|(draw, runs)| case.beside_others(|| judge_runs(case, draw, runs?)))
                    .collect::<Vec<_>>()
            },
        );
        let (comparison, outputs, accuracy) = compared?;
        evaluation.outputs = outputs;
        evaluation.accuracy = accuracy;
        if let Some(again) = again {
            first_draw_checks(&eager, &candidate, again, evaluation)?;
        }
        let mut draws = vec![judge_draw(case, first, &pair, comparison.ladder, candidate.outputs)];
        draws.extend(others);
        let mut all = Compared { ladder: Ladder::ALL, wrong: None, outputs: Vec::new() };
        for (index, draw) in draws.into_iter().enumerate() {
            let draw = draw?;
            if draw.is_forgiven {
                let text = format!(
                    "draw {index}: outside eager's tolerance, but as close to the float64 result as eager"
                );
                evaluation.remarks.push(Evidence::Message { text });
            }
            all.ladder = all.ladder.and(draw.ladder);
            all.wrong = all.wrong.or(draw.wrong);
            all.outputs.push(draw.outputs);
        }
        Ok(all)
    }
}

fn run_both(case: &Case, inputs: &[Value]) -> BothRuns {
    let watched = Watched::new(case, inputs)?;
    let eager = case.run_eager(case.inputs_for_eager(inputs)?)?;
    Ok((eager, watched.run_candidate()?))
}

/// Inputs that the candidate may not change, because eager leaves them alone.
struct Watched<'a> {
    case: &'a Case,
    inputs: &'a [Value],
    key: FingerprintKey,
    /// As they were before anyone ran; `None` where every run gets copies.
    before: Option<Vec<Option<Fingerprint>>>,
}

impl<'a> Watched<'a> {
    fn new(case: &'a Case, inputs: &'a [Value]) -> Result<Watched<'a>, Box<Verdict>> {
        let mut watched = Watched { case, inputs, key: FingerprintKey::random(), before: None };
        // Reading inputs twice costs less than copying them.
        if case.is_rewritten && !case.writes_inputs {
            watched.before = Some(watched.fingerprints()?);
        }
        Ok(watched)
    }

    fn fingerprints(&self) -> Result<Vec<Option<Fingerprint>>, Box<Verdict>> {
        let tensors = self.inputs.iter().map(|input| input.as_tensor());
        let prints = tensors.map(|tensor| tensor.map(|it| it.fingerprint(&self.key)).transpose());
        prints.collect::<Result<_, _>>().map_err(|error| no_memory(&error))
    }

    fn run_candidate(&self) -> Result<Run, Box<Verdict>> {
        let run = self.case.run_candidate(self.case.inputs_for_eager(self.inputs)?)?;
        let Some(before) = &self.before else { return Ok(run) };
        let after = self.fingerprints()?;
        match before.iter().zip(&after).position(|(before, after)| before != after) {
            None => Ok(run),
            Some(index) => {
                let text = format!("input {index} is changed, which eager does not do");
                Err(Box::new(Verdict::new(VerdictKind::RuntimeFail).because(text)))
            }
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
    // Two equal results are equally far from the truth.
    let accuracy = || if pair.is_equal()? { Ok(None) } else { pair.accuracy(case, inputs) };
    let (compared, accuracy) = rayon::join(compare, || case.beside_others(accuracy));
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

/// What a candidate may not do whatever its numbers are.
fn first_draw_checks(
    eager: &Run,
    candidate: &Run,
    again: Result<Run, Box<Verdict>>,
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
    let again = again?;
    let tensors = |run: &Run| output_tensors(&run.outputs).map_err(|error| no_memory(&error));
    if let Some(output) = first_difference(&tensors(candidate)?, &tensors(&again)?)? {
        let text = format!("output {output} differs between two runs on the same inputs");
        return Err(Box::new(Verdict::new(VerdictKind::Unstable).because(text)));
    }
    evaluation.checks.push(passed("two runs agree in every bit"));
    Ok(())
}
