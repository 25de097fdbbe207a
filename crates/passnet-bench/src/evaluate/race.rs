//! How fast is the candidate?
//!
//! Every call gets a content that no earlier call had, in fresh memory, and finds nothing of earlier calls in memory that
//! it did not write; every timed call's outputs are held against eager's on the same content, which eager computes only
//! afterwards. A timed call is so a verified one, and cannot be told from it.

use super::case::{Case, Run};
use super::contents::{Contents, Schedule};
use super::evaluation::CallCosts;
use super::failure::{candidate_failure, eager_failure, harness_failure};
use super::options::EvaluateOptions;
use super::pair::Pair;
use crate::secret::Dice;
use crate::stats::RatioInterval;
use crate::subject::Subject;
use crate::timing::{self, Rounds, Timings};
use crate::tolerance::{self, BASELINE, Ladder};
use crate::verdict::{Verdict, VerdictKind};
use passnet_engine::dump::output_tensors;
use passnet_engine::{Compared, Content, Prepared, RunOptions, Side, Staged, Turn, Value};
use std::collections::VecDeque;
use std::time::Instant;

/// What the race of both sides showed.
#[derive(Debug, Default)]
pub(super) struct Race {
    /// The levels at which verified and timed calls are right.
    pub(super) ladder: Ladder,
    pub(super) timings: Timings,
    pub(super) interval: Option<RatioInterval>,
    pub(super) eager_costs: CallCosts,
    pub(super) candidate_costs: CallCosts,
    /// Seconds of all calls, those of verification included where they have warmed up.
    pub(super) measured_seconds: f64,
    /// Seconds around the calls.
    pub(super) overhead: f64,
}

/// Times both sides; verification found these levels right.
pub(super) fn time(
    case: &Case,
    options: &EvaluateOptions,
    verified: Ladder,
) -> Result<Race, Box<Verdict>> {
    let started = Instant::now();
    let is_checked = case.sides.subject != Subject::Eager;
    let checks = is_checked.then(|| TimedChecks::new(case, verified));
    let run_options = case.run_options();
    let sides = &case.sides;
    let staged = sides
        .candidate
        .stage(&*sides.eager, &case.draws, &tolerance::table(), &run_options)
        .map_err(candidate_failure)?;
    let mut race = Race::default();
    let checks = match staged {
        Some(staged) => {
            let mut remote = Remote::new(staged, case, checks);
            race.timings = timing::race(&mut remote, &options.timing)?;
            remote.settle()?;
            let mut costs =
                |side| remote.staged.costs(side).map(CallCosts::from).map_err(candidate_failure);
            race.eager_costs = costs(Side::Eager)?;
            race.candidate_costs = costs(Side::Candidate)?;
            remote.checks
        }
        None => {
            // Verification has called both sides already, each call by itself: that much of the warm-up is done.
            let calls = case.calls();
            let mut plan = options.timing.clone();
            plan.warmup = plan.warmup.saturating_sub(calls.of_each_side());
            race.measured_seconds = calls.seconds;
            let mut local = Local::new(case, &*sides.candidate, checks);
            race.timings = timing::race(&mut local, &plan)?;
            local.settle()?;
            local.checks
        }
    };
    Ok(Race {
        ladder: checks.map_or(verified, |checks| verified.and(checks.ladder)),
        interval: timing::interval(&race.timings),
        measured_seconds: race.measured_seconds + race.timings.measured,
        overhead: started.elapsed().as_secs_f64() - race.timings.measured,
        ..race
    })
}

/// Times eager against itself, in turns and one after the other.
pub(super) fn against_itself(
    case: &Case,
    options: &EvaluateOptions,
) -> Result<[Timings; 2], Box<Verdict>> {
    let run_options = case.run_options();
    let eager = &*case.sides.eager;
    let staged = eager
        .stage(eager, &case.draws, &tolerance::table(), &run_options)
        .map_err(eager_failure)?;
    match staged {
        Some(staged) => {
            let mut remote = Remote::new(staged, case, None);
            let turns = timing::race(&mut remote, &options.timing)?;
            let alone = timing::one_after_the_other(&options.timing, &mut |side, calls| {
                remote.alone(side, calls)
            })?;
            Ok([turns, alone])
        }
        None => {
            let mut local = Local::new(case, eager, None);
            let turns = timing::race(&mut local, &options.timing)?;
            let alone = timing::one_after_the_other(&options.timing, &mut |side, calls| {
                (0..calls).map(|_| local.call(side, false)).collect()
            })?;
            Ok([turns, alone])
        }
    }
}

/// Calls that leave the level they must be right at are judged by float64: the first few, then one in so many, at
/// random. The others must stay within what float64 can forgive at the most.
const JUDGED_FIRST: usize = 2;
const JUDGED_ONE_IN: usize = 16;
/// Twice the most tolerances that the yardstick forgives, and one: the candidate and eager on opposite sides.
const MOST_DOUBTFUL: i32 = BASELINE + 2;

/// What is asked of the outputs of timed calls.
struct TimedChecks<'a> {
    case: &'a Case,
    /// The strictest level that verification found right.
    first: i32,
    /// The level that every call must be right at; `None` where nothing scores.
    level: Option<i32>,
    /// Right in all calls.
    ladder: Ladder,
    dice: Dice,
    doubtful: usize,
}

impl<'a> TimedChecks<'a> {
    fn new(case: &'a Case, verified: Ladder) -> TimedChecks<'a> {
        TimedChecks {
            case,
            first: verified.first_right().unwrap_or(BASELINE),
            level: verified.scoring_level(),
            ladder: Ladder::ALL,
            dice: case.secret.dice("judged calls"),
            doubtful: 0,
        }
    }

    /// Takes in the ladder of a call; `pair` gives its outputs, and `inputs` what it was called with, where they must be
    /// looked at more closely.
    fn call(
        &mut self,
        ladder: Option<Ladder>,
        pair: impl FnOnce() -> Result<Pair, Box<Verdict>>,
        inputs: impl FnOnce() -> Result<Vec<Value>, Box<Verdict>>,
    ) -> Result<(), Box<Verdict>> {
        let Some(level) = self.level else { return Ok(()) };
        let found = ladder.unwrap_or(Ladder::NONE);
        if found.is_right_at(level) {
            self.ladder = self.ladder.and(found);
            return Ok(());
        }
        self.doubtful += 1;
        let is_judged = self.doubtful <= JUDGED_FIRST || self.dice.one_in(JUDGED_ONE_IN);
        if found.is_right_at(MOST_DOUBTFUL) && !is_judged {
            return Ok(());
        }
        let pair = pair()?;
        let judged = pair.judge(self.case, &inputs()?)?;
        if judged.ladder.is_right_at(level) {
            self.ladder = self.ladder.and(judged.ladder);
            return Ok(());
        }
        let mut verdict = pair.compare()?.verdict;
        verdict.kind = VerdictKind::Unstable;
        Err(Box::new(verdict.because("a timed call gave a wrong result, unlike the verified ones")))
    }
}

/// Both sides in this process.
struct Local<'a> {
    case: &'a Case,
    candidate: &'a dyn Prepared,
    schedule: Schedule<'a>,
    options: RunOptions,
    checks: Option<TimedChecks<'a>>,
    /// What the candidate gave, until eager has been called on the same content.
    waiting: VecDeque<(u64, Run)>,
}

impl<'a> Local<'a> {
    fn new(
        case: &'a Case,
        candidate: &'a dyn Prepared,
        checks: Option<TimedChecks<'a>>,
    ) -> Local<'a> {
        let contents = Contents::new(&case.drawer, &case.draws, &case.secret, "contents");
        Local {
            case,
            candidate,
            schedule: Schedule::new(contents),
            options: case.run_options(),
            checks,
            waiting: VecDeque::new(),
        }
    }

    /// One call, its seconds. What it gives is checked where that counts.
    fn call(&mut self, side: Side, is_checked: bool) -> Result<f64, Box<Verdict>> {
        let (number, content) = self.schedule.turn(side)?;
        let inputs = self.schedule.contents.make(&content)?;
        let prepared = match side {
            Side::Eager => &*self.case.sides.eager,
            Side::Candidate => self.candidate,
        };
        prepared.scrub_memory();
        let started = Instant::now();
        let outputs = prepared.run(&inputs, &self.options);
        let seconds = started.elapsed().as_secs_f64();
        let outputs = outputs.map_err(|error| match side {
            Side::Eager => eager_failure(error),
            Side::Candidate => candidate_failure(error),
        })?;
        // Inputs matter afterwards only where the graph writes into them.
        let inputs = if self.case.sides.writes_inputs { inputs } else { Vec::new() };
        let run = Run { outputs, inputs };
        match side {
            Side::Candidate if is_checked && self.checks.is_some() => {
                self.waiting.push_back((number, run));
            }
            Side::Candidate => {}
            Side::Eager => self.compare(number, &content, &run)?,
        }
        Ok(seconds)
    }

    fn compare(&mut self, number: u64, content: &Content, eager: &Run) -> Result<(), Box<Verdict>> {
        let Some((_, candidate)) = self.waiting.pop_front_if(|(waiting, _)| *waiting == number)
        else {
            return Ok(());
        };
        let Some(checks) = &mut self.checks else { return Ok(()) };
        let pair = Pair::new(self.case, eager, &candidate)?;
        let ladder = pair.ladder()?;
        checks.call(ladder, || Ok(pair), || self.schedule.contents.make(content))
    }

    /// Checks the candidate's last calls.
    fn settle(&mut self) -> Result<(), Box<Verdict>> {
        while self.schedule.is_waiting() {
            self.call(Side::Eager, true)?;
        }
        Ok(())
    }
}

impl Rounds for Local<'_> {
    type Error = Box<Verdict>;

    fn warm_up(&mut self, first: usize, count: usize) -> Result<f64, Box<Verdict>> {
        let rounds = (first..first + count).flat_map(Schedule::order);
        rounds.map(|side| self.call(side, false)).sum()
    }

    fn play(&mut self, first: usize, count: usize) -> Result<Vec<[f64; 2]>, Box<Verdict>> {
        (first..first + count)
            .map(|round| {
                let mut seconds = [0.0; 2];
                for side in Schedule::order(round) {
                    seconds[usize::from(side == Side::Candidate)] = self.call(side, true)?;
                }
                Ok(seconds)
            })
            .collect()
    }

    fn at_a_time(&self) -> usize {
        1
    }
}

/// Both sides where an engine computes elsewhere and times the calls there.
struct Remote<'a> {
    staged: Box<dyn Staged + 'a>,
    schedule: Schedule<'a>,
    checks: Option<TimedChecks<'a>>,
    /// Seconds of a round, all told, as the last request showed.
    round: Option<f64>,
}

/// A request should take about this long: between requests the other process sleeps, and wakes up slow.
const REQUEST_SECONDS: f64 = 0.05;
const MOST_ROUNDS: usize = 25;
/// Played before anything is known.
const FIRST_ROUNDS: usize = 2;

impl<'a> Remote<'a> {
    fn new(
        staged: Box<dyn Staged + 'a>,
        case: &'a Case,
        checks: Option<TimedChecks<'a>>,
    ) -> Remote<'a> {
        let contents = Contents::new(&case.drawer, &case.draws, &case.secret, "contents");
        Remote { staged, schedule: Schedule::new(contents), checks, round: None }
    }

    /// Calls in the order given; eager's are compared with the candidate's on the same contents where that counts.
    fn calls(
        &mut self,
        sides: impl Iterator<Item = Side>,
        is_checked: bool,
    ) -> Result<Vec<f64>, Box<Verdict>> {
        let level = self.checks.as_ref().filter(|_| is_checked).map(|checks| checks.first);
        let turns = sides.map(|side| {
            let (number, content) = self.schedule.turn(side)?;
            let level = level.filter(|_| side == Side::Eager);
            Ok(Turn { side, number, content, level })
        });
        let turns = turns.collect::<Result<Vec<Turn>, Box<Verdict>>>()?;
        let called = self.staged.calls(&turns).map_err(candidate_failure)?;
        for call in &called {
            match call.compared {
                None => {}
                Some(Compared::InputChanged(input)) => {
                    let text =
                        format!("a timed call changed input {input}, which eager does not do");
                    return Err(Box::new(Verdict::new(VerdictKind::RuntimeFail).because(text)));
                }
                Some(Compared::RightFrom(level)) => {
                    self.check(Ladder::right_from(level), &turns)?
                }
                Some(Compared::Wrong) => self.check(Ladder::NONE, &turns)?,
            }
        }
        Ok(called.iter().map(|call| call.seconds).collect())
    }

    fn check(&mut self, ladder: Ladder, turns: &[Turn]) -> Result<(), Box<Verdict>> {
        let Remote { staged, schedule, checks: Some(checks), .. } = self else { return Ok(()) };
        let mut doubted = None;
        let mut pair = None;
        let is_doubtful = checks.level.is_some_and(|level| !ladder.is_right_at(level));
        if is_doubtful {
            let found = staged.doubtful().map_err(candidate_failure)?;
            // It was judged with an earlier call of the same request, which was worse.
            let Some(found) = found else { return Ok(()) };
            doubted = turns.iter().find(|turn| turn.number == found.number);
            let tensors = |values: &[Value]| output_tensors(values).map_err(harness_failure);
            pair = Some(Pair::of(tensors(&found.eager)?, tensors(&found.candidate)?));
        }
        let unknown = || {
            let text = "the PyTorch worker compared a call that was not asked for";
            Box::new(Verdict::new(VerdictKind::ReferenceFail).because(text))
        };
        checks.call(
            Some(ladder),
            || pair.ok_or_else(unknown),
            || schedule.contents.make(&doubted.ok_or_else(unknown)?.content),
        )
    }

    /// Calls of one side alone, for comparison with the reference's way.
    fn alone(&mut self, side: Side, calls: usize) -> Result<Vec<f64>, Box<Verdict>> {
        self.calls(std::iter::repeat_n(side, calls), false)
    }

    /// Checks the candidate's last calls.
    fn settle(&mut self) -> Result<(), Box<Verdict>> {
        while self.schedule.is_waiting() {
            self.calls(std::iter::once(Side::Eager), true)?;
        }
        Ok(())
    }
}

impl Rounds for Remote<'_> {
    type Error = Box<Verdict>;

    fn warm_up(&mut self, first: usize, count: usize) -> Result<f64, Box<Verdict>> {
        let sides = (first..first + count).flat_map(Schedule::order);
        Ok(self.calls(sides, false)?.iter().sum())
    }

    fn play(&mut self, first: usize, count: usize) -> Result<Vec<[f64; 2]>, Box<Verdict>> {
        let rounds = first..first + count;
        let started = Instant::now();
        let times = self.calls(rounds.clone().flat_map(Schedule::order), true)?;
        self.round = Some(started.elapsed().as_secs_f64() / count.max(1) as f64);
        let in_order = |(round, &[one, two]): (usize, &[f64; 2])| {
            if Schedule::order(round)[0] == Side::Eager { [one, two] } else { [two, one] }
        };
        Ok(rounds.zip(times.as_chunks::<2>().0).map(in_order).collect())
    }

    fn at_a_time(&self) -> usize {
        match self.round {
            None => FIRST_ROUNDS,
            // A round that took no time at all saturates.
            Some(seconds) => ((REQUEST_SECONDS / seconds) as usize).clamp(1, MOST_ROUNDS),
        }
    }
}
