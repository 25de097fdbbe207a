//! Is the candidate right on extreme inputs?

use super::Evaluation;
use super::case::{Case, Run, bytes_of};
use super::pair::Pair;
use super::stress::Stress;
use super::verification::{Check, CheckOutcome, no_memory};
use crate::verdict::{Evidence, Verdict};
use passnet_engine::Value;
use rayon::prelude::*;

/// Inputs or outputs that may be held at once, in bytes: the more of them, the less do threads wait for each other.
const HELD_BYTES: usize = 24 << 20;

/// What both sides gave on extreme inputs.
pub(super) struct Extremes<'a> {
    case: &'a Case,
    looked_at: Vec<(Stress, Result<Answer, Box<Verdict>>)>,
    called: Vec<Called>,
    /// Why not all were called.
    failed: Option<Box<Verdict>>,
}

/// Inputs that both sides were called with, and what they gave.
struct Called {
    stress: Stress,
    inputs: Vec<Value>,
    runs: Runs,
}

impl<'a> Extremes<'a> {
    /// Calls both sides, whose outputs take so many bytes each.
    pub(super) fn call(case: &'a Case, output_bytes: usize) -> Extremes<'a> {
        let mut all = Extremes { case, looked_at: Vec::new(), called: Vec::new(), failed: None };
        let bytes = bytes_of(&case.draws[0]).max(output_bytes);
        let together = (HELD_BYTES / bytes.max(1)).clamp(2, Stress::ALL.len());
        for kinds in Stress::ALL.chunks(together) {
            all = all.look();
            if let Err(verdict) = all.call_with(kinds) {
                all.failed = Some(verdict);
                break;
            }
        }
        all
    }

    fn call_with(&mut self, kinds: &[Stress]) -> Result<(), Box<Verdict>> {
        let draw = &self.case.draws[0];
        let made: Vec<_> = kinds
            .par_iter()
            .map(|stress| (*stress, self.case.beside_others(|| stress.apply(draw))))
            .collect();
        for (stress, inputs) in made {
            let inputs = inputs.map_err(|error| no_memory(&error))?;
            let runs = run(self.case, &inputs)?;
            self.called.push(Called { stress, inputs, runs });
        }
        Ok(())
    }

    /// Looks at what has been called and not yet looked at.
    pub(super) fn look(mut self) -> Self {
        let called = std::mem::take(&mut self.called).into_par_iter();
        let answers: Vec<_> = called
            .map(|called| (called.stress, self.case.beside_others(|| answer(self.case, called))))
            .collect();
        self.looked_at.extend(answers);
        self
    }

    /// Writes all answers into the evaluation. Gives the first wrong result that counts; a candidate that fails to run
    /// ends the evaluation.
    pub(super) fn conclude(
        self,
        evaluation: &mut Evaluation,
    ) -> Result<Option<Verdict>, Box<Verdict>> {
        let mut wrong = None;
        for (stress, answer) in self.looked_at {
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
        self.failed.map_or(Ok(wrong), Err)
    }
}

enum Answer {
    Right,
    Wrong(Verdict),
    /// Eager refuses such inputs, so there is nothing to ask.
    NoQuestion,
}

/// What eager gave, where it took such inputs, and the candidate.
type Runs = Option<(Run, Result<Run, Box<Verdict>>)>;

fn run(case: &Case, changed: &[Value]) -> Result<Runs, Box<Verdict>> {
    let Ok(eager) = case.run_eager(case.inputs_for_eager(changed)?) else { return Ok(None) };
    Ok(Some((eager, case.run_candidate(case.inputs_for_eager(changed)?))))
}

fn answer(case: &Case, called: Called) -> Result<Answer, Box<Verdict>> {
    let (eager, candidate) = match called.runs {
        None => return Ok(Answer::NoQuestion),
        Some((_, Err(verdict))) => return Ok(Answer::Wrong(*verdict)),
        Some((eager, Ok(candidate))) => (eager, candidate),
    };
    let pair = Pair::new(case, &eager, &candidate)?;
    if pair.is_right()? || is_forgiven(case, called.stress, &pair, &called.inputs)? {
        return Ok(Answer::Right);
    }
    Ok(Answer::Wrong(pair.compare()?.verdict))
}

/// Whether float64 says that eager itself is no better.
fn is_forgiven(
    case: &Case,
    stress: Stress,
    pair: &Pair,
    changed: &[Value],
) -> Result<bool, Box<Verdict>> {
    match stress.changes_values() {
        true => pair.survives_stress(case, changed),
        false => pair.is_as_accurate(case, changed),
    }
}
