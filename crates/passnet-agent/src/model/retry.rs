//! What is worth another try, and when: back-off that doubles, jitter, the server's own wish, one pace for all.

use super::{Model, ModelError, Request};
use crate::chat::Reply;
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How patient we are with one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patience {
    /// Tries after the first.
    pub retries: u32,
    /// The first wait; each further one is twice as long.
    pub first_seconds: f64,
    /// No wait is longer.
    pub longest_seconds: f64,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { retries: 6, first_seconds: 1.0, longest_seconds: 60.0 }
    }
}

/// A try that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// What kind of failure.
    pub error: super::ErrorKind,
    /// In words, without secrets.
    pub message: String,
    /// Before the next try.
    pub waited_seconds: f64,
}

/// When the next call may begin, for all attempts that share a provider.
#[derive(Debug)]
pub struct Pace {
    /// Time between two calls.
    interval: Duration,
    next: Mutex<Instant>,
}

impl Pace {
    /// At most so many calls a minute; `None` for as many as there are.
    pub fn new(calls_per_minute: Option<f64>) -> Self {
        let interval = calls_per_minute.filter(|calls| *calls > 0.0).map(|calls| 60.0 / calls);
        let interval = interval.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Pace { interval: interval.unwrap_or_default(), next: Mutex::new(Instant::now()) }
    }

    /// Takes the next place in line and gives the time until then.
    fn take(&self) -> Duration {
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = (*next).max(now);
        *next = mine + self.interval;
        mine - now
    }

    /// Nobody calls before this wait is over: a rate limit holds for all attempts.
    fn hold(&self, wait: Duration) {
        let until = Instant::now() + wait;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        *next = (*next).max(until);
    }
}

/// Asks until there is a reply, the error is final, patience ends or the deadline comes.
pub fn reply(
    model: &dyn Model,
    request: &Request<'_>,
    patience: &Patience,
    pace: &Pace,
    retries: &mut Vec<Retry>,
) -> Result<Reply, ModelError> {
    loop {
        std::thread::sleep(pace.take().min(time_left(request)));
        let error = match model.reply(request) {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let tried = retries.len() as u32;
        let wait = error.retry_after.unwrap_or_else(|| patience.wait(tried));
        let is_over = tried >= patience.retries || wait >= time_left(request);
        if is_over || !error.is_worth_another_try() {
            return Err(error);
        }
        retries.push(Retry {
            error: error.kind,
            message: error.message.clone(),
            waited_seconds: wait.as_secs_f64(),
        });
        if error.retry_after.is_some() {
            pace.hold(wait);
        }
        std::thread::sleep(wait);
    }
}

fn time_left(request: &Request<'_>) -> Duration {
    request.deadline.saturating_duration_since(Instant::now())
}

impl Patience {
    /// Between half and all of the doubled wait, so that many callers do not come back together.
    fn wait(&self, tried: u32) -> Duration {
        let longest = self.longest_seconds.clamp(0.0, 3600.0);
        let full = (self.first_seconds.max(0.0) * 2f64.powi(tried.min(30) as i32)).min(longest);
        let random = RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64;
        Duration::from_secs_f64(full * (0.5 + 0.5 * random))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_with_jitter() {
        let patience = Patience { retries: 9, first_seconds: 1.0, longest_seconds: 10.0 };
        for (tried, full) in [(0, 1.0), (1, 2.0), (3, 8.0), (4, 10.0), (4_000_000, 10.0)] {
            let waits: Vec<f64> = (0..50).map(|_| patience.wait(tried).as_secs_f64()).collect();
            assert!(waits.iter().all(|wait| (full / 2.0..=full).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "no jitter");
        }
    }

    #[test]
    fn a_pace_spreads_calls_and_a_hold_stops_all() {
        let pace = Pace::new(Some(600.0));
        let waits: Vec<Duration> = (0..4).map(|_| pace.take()).collect();
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]), "{waits:?}");
        assert!(waits[3] > Duration::from_millis(200));
        pace.hold(Duration::from_secs(5));
        assert!(pace.take() > Duration::from_secs(4));
        assert_eq!(Pace::new(None).take(), Duration::ZERO);
    }
}
