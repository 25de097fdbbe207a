//! Is the candidate right on ordinary inputs?

use super::case::{Case, Run, bytes_of};
use super::check::Check;
use super::failure::harness_failure;
use super::findings::Findings;
use super::oracle::Accuracy;
use super::pair::{Judged, OutputSummary, Pair, first_difference};
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Evidence, Verdict, VerdictKind};
use passnet_engine::Value;
use passnet_engine::dump::output_tensors;
use passnet_engine::native::{Fingerprint, FingerprintKey, Tensor};
use rayon::prelude::*;

/// Eager's and the candidate's.
type BothRuns = Result<(Run, Run), Box<Verdict>>;

/// What both sides gave on every draw.
pub(super) struct DrawRuns<'a> {
    case: &'a Case,
    eager: Run,
    candidate: Run,
    /// The candidate on the first draw once more; eager is not asked.
    again: Option<Result<Run, Box<Verdict>>>,
    others: Vec<(&'a [Value], BothRuns)>,
}

impl<'a> DrawRuns<'a> {
    pub(super) fn call(case: &'a Case) -> Result<DrawRuns<'a>, Box<Verdict>> {
        let first = &case.draws[0];
        let watched = Watched::new(case, first)?;
        let eager = case.run_eager(case.inputs_for_eager(first)?)?;
        let candidate = watched.run_candidate()?;
        let again = case.sides.subject.has_passes().then(|| watched.run_candidate());
        let others = case.draws[1..].iter().map(|draw| (&draw[..], run_both(case, draw)));
        Ok(DrawRuns { case, eager, candidate, again, others: others.collect() })
    }

    /// Bytes of what a call gives.
    pub(super) fn output_bytes(&self) -> usize {
        bytes_of(&self.eager.outputs)
    }

    /// Compares everything; the verdict is that on the first wrong draw.
    pub(super) fn look(self) -> Result<Findings, Box<Verdict>> {
        let DrawRuns { case, eager, candidate, again, others } = self;
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
        let (outputs, accuracy) = compared?;
        let found = Findings { outputs, accuracy, ..Findings::default() };
        Ok(found
            .then(|_| match again {
                Some(again) => first_draw_checks(case, &eager, &candidate, again),
                None => Findings::default(),
            })
            .then(|_| {
                let draws = std::iter::once(judge_draw(case, first, &pair)).chain(others);
                all_draws(draws)
            }))
    }
}

/// Right is what every draw finds right.
fn all_draws(draws: impl Iterator<Item = Result<Draw, Box<Verdict>>>) -> Findings {
    let mut found = Findings::default();
    for (index, draw) in draws.enumerate() {
        let draw = match draw {
            Ok(draw) => draw,
            Err(verdict) => return found.end(*verdict),
        };
        found.remarks.extend(draw.remark(index));
        found.ladder = found.ladder.and(draw.judged.ladder);
        found.verdict = found.verdict.or(draw.wrong);
    }
    found
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
        if case.sides.subject.has_passes() && !case.sides.writes_inputs {
            watched.before = Some(watched.fingerprints()?);
        }
        Ok(watched)
    }

    fn fingerprints(&self) -> Result<Vec<Option<Fingerprint>>, Box<Verdict>> {
        let tensors = self.inputs.iter().map(|input| input.as_tensor());
        let prints = tensors.map(|tensor| tensor.map(|it| it.fingerprint(&self.key)).transpose());
        prints.collect::<Result<_, _>>().map_err(harness_failure)
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
) -> Result<(Vec<OutputSummary>, Option<Accuracy>), Box<Verdict>> {
    let compare = || {
        let comparison = pair.compare()?;
        match comparison.verdict.kind.is_comparable() {
            true => pair.summaries(&comparison),
            false => Err(Box::new(comparison.verdict)),
        }
    };
    // Two equal results are equally far from the truth.
    let accuracy = || if pair.is_equal()? { Ok(None) } else { pair.accuracy(case, inputs) };
    let (compared, accuracy) = rayon::join(compare, || case.beside_others(accuracy));
    Ok((compared?, accuracy?))
}

fn judge_runs(case: &Case, inputs: &[Value], runs: (Run, Run)) -> Result<Draw, Box<Verdict>> {
    let (eager, candidate) = runs;
    judge_draw(case, inputs, &Pair::new(case, &eager, &candidate)?)
}

/// What one draw of inputs showed.
struct Draw {
    judged: Judged,
    wrong: Option<Verdict>,
}

impl Draw {
    /// Where the yardstick had to be asked.
    fn remark(&self, draw: usize) -> Option<Evidence> {
        let text = match self.judged.forgiven? {
            (0, _) => format!(
                "draw {draw}: outside eager's tolerance, but within the tolerance of the float64 result"
            ),
            (elements, worst) => format!(
                "draw {draw}: {elements} elements are up to {worst:.1} tolerances from the float64 result, \
                 where eager is as often about as far"
            ),
        };
        Some(Evidence::Message { text })
    }
}

fn judge_draw(case: &Case, inputs: &[Value], pair: &Pair) -> Result<Draw, Box<Verdict>> {
    let mut judged = pair.judge(case, inputs)?;
    if judged.ladder.is_right_at(BASELINE) {
        return Ok(Draw { judged, wrong: None });
    }
    // A level at which zeros would be right, too, says nothing for a candidate that is wrong.
    let zeros = pair.ladder_of_zeros()?;
    judged.ladder = Ladder::from_fn(|t| judged.ladder.is_right_at(t) && !zeros.is_right_at(t));
    Ok(Draw { judged, wrong: Some(pair.compare()?.verdict) })
}

/// What a candidate may not do whatever its numbers are.
fn first_draw_checks(
    case: &Case,
    eager: &Run,
    candidate: &Run,
    again: Result<Run, Box<Verdict>>,
) -> Findings {
    inputs_left_alone(case)
        .then(|_| shared_memory(eager, candidate).into())
        .then(|_| same_again(candidate, again).into())
}

fn inputs_left_alone(case: &Case) -> Findings {
    // Where eager writes into inputs, `Pair` compares them as it compares outputs; elsewhere `Watched` has found every
    // one unchanged, or this is not reached.
    let check = Check::passed(match case.sides.writes_inputs {
        true => "inputs compared with eager's after the call",
        false => "inputs left as eager leaves them",
    });
    Findings { checks: vec![check], ..Findings::default() }
}

fn shared_memory(eager: &Run, candidate: &Run) -> Result<Findings, Box<Verdict>> {
    let (of_eager, of_candidate) = (Sharing::of(eager)?, Sharing::of(candidate)?);
    if let Some(pair) = of_candidate.pairs.iter().find(|pair| !of_eager.pairs.contains(pair)) {
        let text = format!("{pair}, unlike eager's");
        return Err(Box::new(Verdict::new(VerdictKind::RuntimeFail).because(text)));
    }
    let lost = of_eager.pairs.iter().find(|pair| !of_candidate.pairs.contains(pair));
    let remark = lost.map(|pair| Evidence::Message {
        text: format!("eager's {pair}; the candidate's does not"),
    });
    Ok(Findings {
        checks: vec![Check::passed("outputs share no memory that eager's do not share")],
        remarks: remark.into_iter().collect(),
        ..Findings::default()
    })
}

fn same_again(candidate: &Run, again: Result<Run, Box<Verdict>>) -> Result<Findings, Box<Verdict>> {
    let again = again?;
    let tensors = |run: &Run| output_tensors(&run.outputs).map_err(harness_failure);
    if let Some(output) = first_difference(&tensors(candidate)?, &tensors(&again)?)? {
        let text = format!("output {output} differs between two runs on the same inputs");
        return Err(Box::new(Verdict::new(VerdictKind::Unstable).because(text)));
    }
    let check = Check::passed("two runs agree in every bit");
    Ok(Findings { checks: vec![check], ..Findings::default() })
}

/// An output that shares memory with an input or with another output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    WithInput(usize, usize),
    WithOutput(usize, usize),
}

impl std::fmt::Display for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Shared::WithInput(output, input) => {
                write!(f, "output {output} shares memory with input {input}")
            }
            Shared::WithOutput(output, other) => {
                write!(f, "output {output} shares memory with output {other}")
            }
        }
    }
}

/// All outputs of a run that share memory.
struct Sharing {
    pairs: Vec<Shared>,
}

impl Sharing {
    fn of(run: &Run) -> Result<Sharing, Box<Verdict>> {
        let outputs = output_tensors(&run.outputs).map_err(harness_failure)?;
        let inputs: Vec<&Tensor> = run.inputs.iter().filter_map(Value::as_tensor).collect();
        let mut pairs = Vec::new();
        for (output, tensor) in outputs.iter().enumerate() {
            let shares = |other: &Tensor| tensor.shares_storage(other);
            let with_inputs = inputs.iter().enumerate().filter(|(_, other)| shares(other));
            pairs.extend(with_inputs.map(|(input, _)| Shared::WithInput(output, input)));
            let before = outputs[..output].iter().enumerate().filter(|(_, other)| shares(other));
            pairs.extend(before.map(|(other, _)| Shared::WithOutput(output, other)));
        }
        Ok(Sharing { pairs })
    }
}
