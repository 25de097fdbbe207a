//! How much faster, and how sure are we?
//!
//! Eager and candidate are timed in turns, so that whatever the machine does meanwhile happens to both, on several
//! sets of inputs in turn. Noise is answered by measuring longer. What is left of it shows in the interval.

use crate::stats::{Bootstrap, RatioInterval};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingOptions {
    /// Calls of each side before the first timed one.
    pub warmup: usize,
    /// Timed calls of each side, unless the budget runs out first.
    pub trials: usize,
    /// The most timed calls when the interval is still too wide.
    pub max_trials: usize,
    /// Half the width of the interval, relative to the ratio, that is precise enough.
    pub precision: f64,
    /// Seconds after which the planned trials are cut short; measuring longer may take as much again.
    pub seconds: f64,
}

impl Default for TimingOptions {
    fn default() -> Self {
        TimingOptions { warmup: 25, trials: 100, max_trials: 400, precision: 0.03, seconds: 2.0 }
    }
}

/// Fewer timed calls than this say nothing.
const LEAST_TRIALS: usize = 10;
/// Warming up takes at most this share of the budget.
const WARMUP_SHARE: f64 = 0.2;

/// Seconds of each timed call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timings {
    pub eager: Vec<f64>,
    pub candidate: Vec<f64>,
    /// Of these, what the device itself was busy with; empty where it cannot tell.
    pub eager_device: Vec<f64>,
    pub candidate_device: Vec<f64>,
    /// Seconds that went into calls of both sides, warm-up included.
    pub measured: f64,
}

/// What one call took, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallTime {
    pub seconds: f64,
    /// Of these, what the device itself was busy with, where it can tell.
    pub device: Option<f64>,
}

/// One side of a comparison.
pub trait Side {
    type Error;

    /// Makes call number `call` ready, outside the clock.
    fn prepare(&mut self, call: usize) -> Result<(), Self::Error>;

    /// The call itself, timed where it happens.
    fn call(&mut self) -> Result<CallTime, Self::Error>;

    /// Looks at what the call gave, outside the clock.
    fn finish(&mut self) -> Result<(), Self::Error>;
}

/// Times two sides against each other.
pub fn race<E>(
    eager: &mut dyn Side<Error = E>,
    candidate: &mut dyn Side<Error = E>,
    options: &TimingOptions,
) -> Result<Timings, E> {
    let mut timings = Timings::default();
    let started = Instant::now();
    let budget = Duration::from_secs_f64(options.seconds.max(0.0));
    for call in 0..options.warmup {
        if call > 0 && started.elapsed() > budget.mul_f64(WARMUP_SHARE) {
            break;
        }
        timings.measured += timed(eager, call)?.seconds;
        timings.measured += timed(candidate, call)?.seconds;
    }
    let started = Instant::now();
    let mut planned = options.trials.max(LEAST_TRIALS);
    let mut limit = budget;
    loop {
        while timings.eager.len() < planned {
            let call = timings.eager.len();
            // Who goes first changes, so that neither always finds the caches as the other left them.
            let (first, second) = if call.is_multiple_of(2) {
                let first = timed(eager, call)?;
                (first, timed(candidate, call)?)
            } else {
                let second = timed(candidate, call)?;
                (timed(eager, call)?, second)
            };
            timings.eager.push(first.seconds);
            timings.candidate.push(second.seconds);
            timings.eager_device.extend(first.device);
            timings.candidate_device.extend(second.device);
            timings.measured += first.seconds + second.seconds;
            if timings.eager.len() >= LEAST_TRIALS && started.elapsed() > limit {
                return Ok(timings);
            }
        }
        let precise = interval(&timings)
            .is_none_or(|found| (found.high - found.low) / 2.0 <= options.precision * found.ratio);
        if precise || planned >= options.max_trials || limit > budget {
            return Ok(timings);
        }
        planned = (planned * 2).min(options.max_trials);
        limit = budget * 2;
    }
}

fn timed<E>(side: &mut dyn Side<Error = E>, call: usize) -> Result<CallTime, E> {
    side.prepare(call)?;
    let time = side.call()?;
    side.finish()?;
    Ok(time)
}

/// The speed-up with its interval; `None` without timings.
pub fn interval(timings: &Timings) -> Option<RatioInterval> {
    Bootstrap::default().ratio_of_medians(&timings.eager, &timings.candidate)
}

/// The reference's way, for comparison: one side after the other, warm-up first, medians divided.
pub fn one_after_the_other<E>(
    eager: &mut dyn Side<Error = E>,
    candidate: &mut dyn Side<Error = E>,
    options: &TimingOptions,
) -> Result<Timings, E> {
    let alone = |side: &mut dyn Side<Error = E>| -> Result<(Vec<f64>, f64), E> {
        let mut measured = 0.0;
        for call in 0..options.warmup {
            measured += timed(side, call)?.seconds;
        }
        let trials = 0..options.trials.max(LEAST_TRIALS);
        let times =
            trials.map(|call| Ok(timed(side, call)?.seconds)).collect::<Result<Vec<_>, E>>()?;
        measured += times.iter().sum::<f64>();
        Ok((times, measured))
    };
    let (candidate, candidate_measured) = alone(candidate)?;
    let (eager, eager_measured) = alone(eager)?;
    let measured = candidate_measured + eager_measured;
    Ok(Timings { eager, candidate, measured, ..Timings::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts calls; fails at one of them if told to.
    #[derive(Default)]
    struct Counter {
        prepared: usize,
        calls: usize,
        finished: usize,
        fails_at: Option<usize>,
    }

    impl Side for Counter {
        type Error = usize;

        fn prepare(&mut self, _: usize) -> Result<(), usize> {
            self.prepared += 1;
            Ok(())
        }

        fn call(&mut self) -> Result<CallTime, usize> {
            self.calls += 1;
            let started = Instant::now();
            std::hint::black_box((0..100).sum::<usize>());
            Ok(CallTime { seconds: started.elapsed().as_secs_f64(), device: None })
        }

        fn finish(&mut self) -> Result<(), usize> {
            self.finished += 1;
            if self.fails_at == Some(self.finished) { Err(self.finished) } else { Ok(()) }
        }
    }

    fn options() -> TimingOptions {
        TimingOptions { seconds: 1e6, precision: f64::INFINITY, ..TimingOptions::default() }
    }

    #[test]
    fn every_call_is_prepared_and_looked_at() {
        let (mut eager, mut candidate) = (Counter::default(), Counter::default());
        let timings = race(&mut eager, &mut candidate, &options()).unwrap();
        assert_eq!((timings.eager.len(), timings.candidate.len()), (100, 100));
        for side in [eager, candidate] {
            assert_eq!((side.prepared, side.calls, side.finished), (125, 125, 125));
        }
    }

    #[test]
    fn noise_is_answered_by_measuring_longer() {
        let (mut eager, mut candidate) = (Counter::default(), Counter::default());
        let never = TimingOptions { precision: -1.0, ..options() };
        let timings = race(&mut eager, &mut candidate, &never).unwrap();
        assert_eq!(timings.eager.len(), 200, "twice the trials, once");
    }

    #[test]
    fn a_spent_budget_ends_the_race_with_what_there_is() {
        let (mut eager, mut candidate) = (Counter::default(), Counter::default());
        let hurried = TimingOptions { seconds: 0.0, ..options() };
        let timings = race(&mut eager, &mut candidate, &hurried).unwrap();
        assert_eq!(timings.eager.len(), LEAST_TRIALS);
    }

    #[test]
    fn a_wrong_result_ends_the_race() {
        let mut candidate = Counter { fails_at: Some(30), ..Counter::default() };
        let failed = race(&mut Counter::default(), &mut candidate, &options());
        assert_eq!(failed.unwrap_err(), 30);
    }

    #[test]
    fn the_references_way_runs_one_side_after_the_other() {
        let (mut eager, mut candidate) = (Counter::default(), Counter::default());
        let timings = one_after_the_other(&mut eager, &mut candidate, &options()).unwrap();
        assert_eq!((timings.eager.len(), timings.candidate.len()), (100, 100));
        assert_eq!(eager.calls + candidate.calls, 250);
    }
}
