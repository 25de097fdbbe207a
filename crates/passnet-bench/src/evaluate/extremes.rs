//! Is the candidate right on extreme inputs?

use super::Evaluation;
use super::case::{Case, Run};
use super::pair::Pair;
use super::stress::Stress;
use super::verification::{Check, CheckOutcome, no_memory};
use crate::verdict::{Evidence, Verdict};
use passnet_engine::Value;
use rayon::prelude::*;

/// Tries extreme inputs. Gives the first wrong result that counts; a candidate that fails to run ends the evaluation.
pub(super) fn try_extremes(
    case: &Case,
    evaluation: &mut Evaluation,
) -> Result<Option<Verdict>, Box<Verdict>> {
    let mut wrong = None;
    for kinds in Stress::ALL.chunks(2) {
        // Only the calls run alone: making inputs and looking at outputs takes one thread for the most part.
        let made: Vec<_> =
            kinds.par_iter().map(|stress| (*stress, stress.apply(&case.draws[0]))).collect();
        let runs = made.into_iter().map(|(stress, changed)| {
            let changed = changed.map_err(|error| no_memory(&error))?;
            let runs = run(case, &changed)?;
            Ok((stress, changed, runs))
        });
        let runs = runs.collect::<Result<Vec<_>, Box<Verdict>>>()?;
        let answers: Vec<_> = runs
            .into_par_iter()
            .map(|(stress, changed, runs)| (stress, answer(case, stress, &changed, runs)))
            .collect();
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
    }
    Ok(wrong)
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

fn answer(
    case: &Case,
    stress: Stress,
    changed: &[Value],
    runs: Runs,
) -> Result<Answer, Box<Verdict>> {
    let (eager, candidate) = match runs {
        None => return Ok(Answer::NoQuestion),
        Some((_, Err(verdict))) => return Ok(Answer::Wrong(*verdict)),
        Some((eager, Ok(candidate))) => (eager, candidate),
    };
    let pair = Pair::new(case, &eager, &candidate)?;
    if pair.is_right()? || is_forgiven(case, stress, &pair, changed)? {
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
