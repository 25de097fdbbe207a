//! Is the candidate right on extreme inputs?

use super::Evaluation;
use super::case::Case;
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
    // Inputs are made two kinds at a time: most of that work takes one thread.
    let made = Stress::ALL.chunks(2).flat_map(|kinds| {
        let made = |stress: &Stress| (*stress, stress.apply(&case.draws[0]));
        kinds.par_iter().map(made).collect::<Vec<_>>()
    });
    for (stress, changed) in made {
        let changed = changed.map_err(|error| no_memory(&error))?;
        let (outcome, detail) = match answer(case, stress, &changed)? {
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

fn answer(case: &Case, stress: Stress, changed: &[Value]) -> Result<Answer, Box<Verdict>> {
    let Ok(eager) = case.run_eager(case.inputs_for_eager(changed)?) else {
        return Ok(Answer::NoQuestion);
    };
    let candidate = match case.run_candidate(case.inputs_for_eager(changed)?) {
        Ok(candidate) => candidate,
        Err(verdict) => return Ok(Answer::Wrong(*verdict)),
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
