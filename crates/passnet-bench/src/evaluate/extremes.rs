//! Is the candidate right on extreme inputs?

use super::case::{Case, Run, bytes_of};
use super::check::{Check, CheckAnswer};
use super::contents::Contents;
use super::failure::harness_failure;
use super::findings::Findings;
use super::pair::{Judged, Pair};
use super::stress::{Stress, Stressed};
use crate::tolerance::{BASELINE, Ladder};
use crate::verdict::{Evidence, Verdict};
use passnet_engine::Value;
use rayon::prelude::*;

/// How often each kind that leaves elements as they were is asked, every time on a content of its own. A kernel that is honest
/// wherever some elements are unusual, by chance or not, must find them unusual every time; and in less than half of the timed
/// calls, or it gains nothing.
const ROUNDS: usize = 2;

/// Inputs or outputs that may be held at once, in bytes: the more of them, the less do threads wait for each other.
const HELD_BYTES: usize = 24 << 20;

/// What both sides gave on extreme inputs.
pub(super) struct Extremes<'a> {
    case: &'a Case,
    fixed: Vec<bool>,
    ranges: Vec<Option<(i64, i64)>>,
    /// What is changed: like the contents of timed calls.
    contents: Contents<'a>,
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
        let mut all = Extremes {
            case,
            fixed: case.drawer.is_fixed(),
            ranges: case.drawer.integer_ranges(),
            contents: Contents::new(&case.drawer, &case.draws, &case.secret, "stressed contents"),
            looked_at: Vec::new(),
            called: Vec::new(),
            failed: None,
        };
        let concerned = |stress: &Stress| stress.concerns(&all.stressed(&case.draws[0]));
        let kinds: Vec<Stress> = Stress::ALL.into_iter().filter(concerned).collect();
        let of_round = |round: usize| {
            let asked = kinds.iter().filter(move |kind| round == 0 || kind.has_ordinary_places());
            asked.map(move |kind| (round, *kind))
        };
        let kinds: Vec<(usize, Stress)> = (0..ROUNDS).flat_map(of_round).collect();
        let bytes = bytes_of(&case.draws[0]).max(output_bytes);
        let together = (HELD_BYTES / bytes.max(1)).clamp(2, Stress::ALL.len());
        for kinds in kinds.chunks(together) {
            all = all.look();
            if let Err(verdict) = all.call_with(kinds) {
                all.failed = Some(verdict);
                break;
            }
        }
        all
    }

    fn stressed<'b>(&'b self, draw: &'b [Value]) -> Stressed<'b> {
        Stressed { draw, fixed: &self.fixed, ranges: &self.ranges, named: &self.case.sides.named }
    }

    fn call_with(&mut self, kinds: &[(usize, Stress)]) -> Result<(), Box<Verdict>> {
        let contents = kinds.iter().map(|_| self.contents.next());
        let contents = contents.collect::<Result<Vec<_>, Box<Verdict>>>()?;
        let made: Vec<_> = kinds
            .par_iter()
            .zip(&contents)
            .map(|((round, stress), content)| {
                let apply = || {
                    let content = self.contents.make(content)?;
                    let changed = stress.apply(&self.stressed(&content), &self.case.secret, *round);
                    changed.map_err(harness_failure)
                };
                (*stress, self.case.beside_others(apply))
            })
            .collect();
        for (stress, inputs) in made {
            let inputs = inputs?;
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

    /// All answers. The verdict is on the first result that is wrong at the level that the candidate reaches on ordinary
    /// inputs; a candidate that fails to run ends the evaluation.
    pub(super) fn conclude(self, level: i32) -> Findings {
        let mut found = Findings::default();
        for (stress, answer) in self.looked_at {
            let answer = match answer {
                Ok(answer) => answer,
                Err(verdict) => return found.end(*verdict),
            };
            let (answer, detail) = match answer {
                Answer::NoQuestion => (CheckAnswer::Skipped, "eager refuses".into()),
                Answer::Judged(judged, _) if judged.ladder.is_right_at(level) => {
                    (CheckAnswer::Passed, String::new())
                }
                Answer::Judged(_, verdict) | Answer::Failed(verdict) if stress.is_advice() => {
                    (CheckAnswer::Advice, verdict.to_string())
                }
                Answer::Judged(_, mut verdict) | Answer::Failed(mut verdict) => {
                    let detail = verdict.to_string();
                    let named = Evidence::Message { text: format!("with {}", stress.name()) };
                    verdict.evidence.insert(0, named);
                    let hint = stress.hint().map(|hint| Evidence::Message { text: hint.into() });
                    verdict.evidence.extend(hint);
                    if !verdict.kind.is_comparable() {
                        return found.end(*verdict);
                    }
                    found.verdict.get_or_insert(*verdict);
                    found.ladder = Ladder::NONE;
                    (CheckAnswer::Failed, detail)
                }
            };
            let check = Check { name: stress.name(), answer, detail };
            let is_news = |known: &Check| {
                check.answer == CheckAnswer::Failed && known.answer != CheckAnswer::Failed
                    || known.answer == CheckAnswer::Passed
            };
            match found.checks.iter_mut().find(|known| known.name == check.name) {
                Some(known) if is_news(known) => *known = check,
                Some(_) => {}
                None => found.checks.push(check),
            }
        }
        match self.failed {
            Some(verdict) => found.end(*verdict),
            None => found,
        }
    }
}

enum Answer {
    /// At which levels the candidate is right, and what is wrong at the baseline.
    Judged(Judged, Box<Verdict>),
    Failed(Box<Verdict>),
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
        Some((_, Err(verdict))) => return Ok(Answer::Failed(verdict)),
        Some((eager, Ok(candidate))) => (eager, candidate),
    };
    let pair = Pair::new(case, &eager, &candidate)?;
    let judged = match pair.judge(case, &called.inputs) {
        Ok(judged) => judged,
        Err(verdict) => return Ok(Answer::Failed(verdict)),
    };
    let verdict = match judged.ladder.is_right_at(BASELINE) {
        true => Verdict::new(crate::verdict::VerdictKind::Correct),
        false => pair.compare()?.verdict,
    };
    Ok(Answer::Judged(judged, Box::new(verdict)))
}
