//! How much faster, and how sure are we?
//!
//! Eager and candidate are timed in turns, so that whatever the machine does meanwhile happens to both, on several
//! sets of inputs in turn. Noise is answered by measuring longer. What is left of it shows in the interval.

use crate::stats::{Bootstrap, CONFIDENCE, RatioInterval, Resampled};
use passnet_engine::Side;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingOptions {
    /// Calls of each side before the first timed one.
    pub warmup: usize,
    /// Timed calls of each side, unless the budget runs out first; half of them where these say it precisely already.
    pub trials: usize,
    /// The most timed calls when the interval is still too wide.
    pub max_trials: usize,
    /// Half the width of the interval of 95 %, relative to the ratio, that is precise enough; twice as much where the
    /// interval lies so far from one that the verdict is clear.
    pub precision: f64,
    /// Seconds after which the planned trials are cut short; measuring longer may take as much again.
    pub seconds: f64,
    /// Timed calls of each side even when the budget has run out: fewer say nothing that could be published.
    #[serde(default = "least_trials", skip_serializing_if = "is_least_trials")]
    pub least: usize,
}

impl Default for TimingOptions {
    fn default() -> Self {
        TimingOptions {
            warmup: 25,
            trials: 100,
            max_trials: 200,
            precision: 0.03,
            seconds: 2.0,
            least: LEAST_TRIALS,
        }
    }
}

/// Fewer timed calls than this say nothing.
const LEAST_TRIALS: usize = 10;

fn least_trials() -> usize {
    LEAST_TRIALS
}

fn is_least_trials(least: &usize) -> bool {
    *least == LEAST_TRIALS
}

/// How sure a ratio is to lie within the wanted precision.
const PRECISION_CONFIDENCE: f64 = 0.95;
/// How many times the wanted width is enough for a ratio that is clearly not one.
const CLEAR_FACTOR: f64 = 2.0;
/// Half of the planned calls are enough where they give an interval of this share of the wanted width: the other half
/// would sharpen what nobody reads, and its calls, inputs and comparisons are most of what an evaluation costs.
const EARLY_SHARE: f64 = 1.0 / 3.0;
/// Warming up takes at most this share of the budget.
const WARMUP_SHARE: f64 = 0.2;

/// Seconds of each timed call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timings {
    /// Seconds of each call.
    pub eager: Vec<f64>,
    /// Seconds of each call.
    pub candidate: Vec<f64>,
    /// Seconds that went into calls of both sides, warm-up included.
    pub measured: f64,
    /// What the ratio might have been, where that was asked while timing.
    resampled: Option<Resampled>,
}

impl Timings {
    pub(crate) fn new(eager: Vec<f64>, candidate: Vec<f64>, measured: f64) -> Timings {
        Timings { eager, candidate, measured, resampled: None }
    }

    fn resample(&self) -> Option<Resampled> {
        Bootstrap::default().ratio_of_medians(&self.eager, &self.candidate)
    }
}

/// Rounds of a race: in each, eager and the candidate are called once.
pub trait Rounds {
    /// Why a round could not be timed.
    type Error;

    /// Plays rounds that do not count; gives their seconds.
    fn warm_up(&mut self, first: usize, count: usize) -> Result<f64, Self::Error>;

    /// Plays rounds from number `first` on; gives the seconds of eager and of the candidate.
    fn play(&mut self, first: usize, count: usize) -> Result<Vec<[f64; 2]>, Self::Error>;

    /// How many rounds are best played next, without looking at the clock in between.
    fn at_a_time(&self) -> usize;
}

/// Times two sides against each other.
pub fn race<E>(rounds: &mut dyn Rounds<Error = E>, options: &TimingOptions) -> Result<Timings, E> {
    let mut timings = Timings::default();
    let started = Instant::now();
    let budget = Duration::from_secs_f64(options.seconds.max(0.0));
    let mut warm = 0;
    while warm < options.warmup {
        if warm > 0 && started.elapsed() > budget.mul_f64(WARMUP_SHARE) {
            break;
        }
        let count = rounds.at_a_time().max(1).min(options.warmup - warm);
        timings.measured += rounds.warm_up(warm, count)?;
        warm += count;
    }
    let started = Instant::now();
    let trials = options.trials.max(options.least);
    let mut planned = (trials / 2).max(options.least);
    let more = (trials / 4).max(1);
    let mut limit = budget;
    loop {
        while timings.eager.len() < planned {
            timings.resampled = None;
            let first = timings.eager.len();
            let count = rounds.at_a_time().max(1).min(planned - first);
            for [eager, candidate] in rounds.play(first, count)? {
                timings.eager.push(eager);
                timings.candidate.push(candidate);
                timings.measured += eager + candidate;
            }
            if timings.eager.len() >= options.least && started.elapsed() > limit {
                return Ok(timings);
            }
        }
        timings.resampled = timings.resample();
        let found = timings.resampled.as_ref().map(|found| found.interval(PRECISION_CONFIDENCE));
        let is_early = planned < trials;
        let wanted = options.precision * if is_early { EARLY_SHARE } else { 1.0 };
        let precise = found.is_none_or(|found| is_precise(&found, wanted));
        if precise || planned >= options.max_trials.max(trials) {
            return Ok(timings);
        }
        if is_early {
            planned = trials;
        } else {
            planned = (planned + more).min(options.max_trials);
            limit = budget * 2;
        }
    }
}

/// Whether more calls would tell nothing worth their time.
fn is_precise(found: &RatioInterval, precision: f64) -> bool {
    let is_clear = found.low > 1.0 + precision || found.high < 1.0 - precision;
    let wanted = if is_clear { CLEAR_FACTOR * precision } else { precision };
    (found.high - found.low) / 2.0 <= wanted * found.ratio
}

/// The speed-up with its interval; `None` without timings.
pub fn interval(timings: &Timings) -> Option<RatioInterval> {
    match &timings.resampled {
        Some(resampled) => Some(resampled.interval(CONFIDENCE)),
        None => Some(timings.resample()?.interval(CONFIDENCE)),
    }
}

/// The reference's way, for comparison: one side after the other, warm-up first, medians divided. `calls` makes so many
/// calls of a side.
pub fn one_after_the_other<E>(
    options: &TimingOptions,
    calls: &mut dyn FnMut(Side, usize) -> Result<Vec<f64>, E>,
) -> Result<Timings, E> {
    let trials = options.trials.max(options.least);
    let mut measured = 0.0;
    let mut alone = |side: Side| -> Result<Vec<f64>, E> {
        let mut times = calls(side, options.warmup + trials)?;
        measured += times.iter().sum::<f64>();
        Ok(times.split_off(options.warmup.min(times.len())))
    };
    let (candidate, eager) = (alone(Side::Candidate)?, alone(Side::Eager)?);
    Ok(Timings::new(eager, candidate, measured))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts rounds; fails at one of them if told to.
    #[derive(Default)]
    struct Counter {
        warm: usize,
        played: usize,
        fails_at: Option<usize>,
        /// By how much, relatively, calls of the candidate differ.
        scatter: f64,
    }

    impl Rounds for Counter {
        type Error = usize;

        fn warm_up(&mut self, _: usize, count: usize) -> Result<f64, usize> {
            self.warm += count;
            Ok(1e-6 * count as f64)
        }

        fn play(&mut self, first: usize, count: usize) -> Result<Vec<[f64; 2]>, usize> {
            assert_eq!(first, self.played, "rounds are numbered on");
            self.played += count;
            if self.fails_at.is_some_and(|round| round <= self.played) {
                return Err(self.played);
            }
            let scattered = |round: usize| 1e-6 * (1.0 + self.scatter * (round % 5) as f64);
            Ok((first..first + count).map(|round| [2e-6, scattered(round)]).collect())
        }

        fn at_a_time(&self) -> usize {
            1
        }
    }

    fn options() -> TimingOptions {
        TimingOptions { seconds: 1e6, precision: f64::INFINITY, ..TimingOptions::default() }
    }

    #[test]
    fn rounds_are_warmed_up_and_played_as_planned() {
        let mut rounds = Counter::default();
        let timings = race(&mut rounds, &options()).unwrap();
        assert_eq!((timings.eager.len(), timings.candidate.len()), (50, 50));
        assert_eq!((rounds.warm, rounds.played), (25, 50), "they say it precisely");
    }

    #[test]
    fn calls_that_scatter_are_made_as_many_as_planned() {
        // Half the width is 3 % of the ratio at most, and far more than a third of that.
        let mut rounds = Counter { scatter: 0.04, ..Counter::default() };
        let options = TimingOptions { precision: 0.03, ..options() };
        assert_eq!(race(&mut rounds, &options).unwrap().eager.len(), 100);
    }

    #[test]
    fn noise_is_answered_by_measuring_longer() {
        let never = TimingOptions { precision: -1.0, ..options() };
        let timings = race(&mut Counter::default(), &never).unwrap();
        assert_eq!(timings.eager.len(), 200, "twice the trials, once");
    }

    #[test]
    fn a_clear_verdict_may_be_less_precise_than_a_close_one() {
        let interval = |ratio: f64, width: f64| RatioInterval {
            low: ratio * (1.0 - width),
            ratio,
            high: ratio * (1.0 + width),
        };
        for ratio in [0.5, 1.0, 1.05, 3.0] {
            assert!(is_precise(&interval(ratio, 0.029), 0.03), "{ratio}");
            assert!(!is_precise(&interval(ratio, 0.061), 0.03), "{ratio}");
        }
        assert!(is_precise(&interval(0.5, 0.05), 0.03));
        assert!(is_precise(&interval(3.0, 0.05), 0.03));
        assert!(!is_precise(&interval(1.0, 0.05), 0.03));
        assert!(!is_precise(&interval(1.05, 0.05), 0.03), "one lies within");
    }

    #[test]
    fn a_spent_budget_ends_the_race_with_what_there_is() {
        let hurried = TimingOptions { seconds: 0.0, ..options() };
        let timings = race(&mut Counter::default(), &hurried).unwrap();
        assert_eq!(timings.eager.len(), LEAST_TRIALS);
    }

    #[test]
    fn a_wrong_result_ends_the_race() {
        let mut rounds = Counter { fails_at: Some(30), ..Counter::default() };
        assert_eq!(race(&mut rounds, &options()).unwrap_err(), 30);
    }

    #[test]
    fn the_references_way_runs_one_side_after_the_other() {
        let mut calls = Vec::new();
        let timings = one_after_the_other(&options(), &mut |side, count| {
            calls.push((side, count));
            Ok::<_, usize>(vec![1e-6; count])
        });
        let timings = timings.unwrap();
        assert_eq!((timings.eager.len(), timings.candidate.len()), (100, 100));
        assert_eq!(calls, [(Side::Candidate, 125), (Side::Eager, 125)]);
    }
}
