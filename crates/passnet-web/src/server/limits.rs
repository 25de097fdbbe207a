//! Who may ask how often: a bucket of requests for every address and every token, refilled as time goes on.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What a server lets through.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerLimits {
    /// Bytes of a submitted bundle.
    pub bundle_bytes: usize,
    /// Requests a second of one address; 0 for no limit.
    pub requests_per_second: f64,
    /// Submissions an hour with one token, or from one address where a token is wrong.
    pub submissions_per_hour: f64,
    /// Connections at once, and of one address.
    pub connections: usize,
    /// Of these, from one address.
    pub connections_per_address: usize,
    /// Submissions that wait to be verified.
    pub queue: i64,
    /// Graphs of an entry that are judged again.
    pub rejudged_graphs: usize,
    /// Bytes of pages that are kept.
    pub cache_bytes: usize,
}

impl Default for ServerLimits {
    fn default() -> Self {
        ServerLimits {
            bundle_bytes: 64 << 20,
            requests_per_second: 50.0,
            submissions_per_hour: 30.0,
            connections: 1024,
            connections_per_address: 64,
            queue: 256,
            rejudged_graphs: 12,
            cache_bytes: 48 << 20,
        }
    }
}

/// Requests that may come at once, in seconds of their rate.
const BURST_SECONDS: f64 = 10.0;
/// Buckets that are remembered; beyond it full ones are forgotten.
const MAX_BUCKETS: usize = 10_000;

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// Counts requests by who sends them.
#[derive(Debug, Default)]
pub struct Limiter {
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

impl Limiter {
    /// Takes one request of `who`; `false` where there was none left. A rate of 0 lets everything through.
    pub fn take(&self, who: &str, per_second: f64, now: Instant) -> bool {
        if per_second <= 0.0 {
            return true;
        }
        let most = (per_second * BURST_SECONDS).max(1.0);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(who) {
            buckets.retain(|_, bucket| {
                bucket.left + now.saturating_duration_since(bucket.at).as_secs_f64() * per_second
                    < most
            });
            // All of them are busy: whoever is new waits.
            if buckets.len() >= MAX_BUCKETS {
                return false;
            }
        }
        let bucket = buckets.entry(who.to_string()).or_insert(Bucket { left: most, at: now });
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.left = (bucket.left + passed * per_second).min(most);
        bucket.at = now;
        let is_allowed = bucket.left >= 1.0;
        if is_allowed {
            bucket.left -= 1.0;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_bucket_empties_and_fills_again() {
        let limiter = Limiter::default();
        let start = Instant::now();
        let allowed = (0..30).filter(|_| limiter.take("a", 1.0, start)).count();
        assert_eq!(allowed, 10);
        assert!(limiter.take("b", 1.0, start), "others are not concerned");
        let later = start + Duration::from_secs(3);
        assert_eq!((0..30).filter(|_| limiter.take("a", 1.0, later)).count(), 3);
        assert!((0..1000).all(|_| limiter.take("c", 0.0, start)));
    }

    #[test]
    fn buckets_do_not_fill_memory() {
        let limiter = Limiter::default();
        let start = Instant::now();
        for who in 0..MAX_BUCKETS {
            assert!(limiter.take(&who.to_string(), 1.0, start));
        }
        assert!(!limiter.take("new", 1.0, start));
        assert!(limiter.take("new", 1.0, start + Duration::from_secs(60)));
        assert!(limiter.buckets.lock().unwrap().len() < 10);
    }
}
