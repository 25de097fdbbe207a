//! Counters for those who watch the server, in the text format of Prometheus.

use crate::store::SubmissionState;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the bins of answer times, in seconds.
const BINS: [f64; 8] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.25, 1.0];

#[derive(Debug, Default)]
pub struct Metrics {
    /// Answers by the first digit of their status, from 1.
    statuses: [AtomicU64; 5],
    bins: [AtomicU64; BINS.len()],
    seconds_micros: AtomicU64,
    pub cache_hits: AtomicU64,
    pub limited: AtomicU64,
    pub connections: AtomicU64,
    pub refused_connections: AtomicU64,
    pub rejudged: AtomicU64,
    pub disagreed: AtomicU64,
}

impl Metrics {
    pub fn answered(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.statuses[class].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.seconds_micros.fetch_add(micros, Ordering::Relaxed);
        let bin = BINS.iter().position(|end| took.as_secs_f64() <= *end);
        if let Some(bin) = bin {
            self.bins[bin].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn text(&self, submissions: &[(SubmissionState, i64)], entries: i64) -> String {
        let mut out = String::new();
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Writing to a string cannot fail.
        let mut line = |text: std::fmt::Arguments<'_>| {
            let _ = writeln!(out, "{text}");
        };
        line(format_args!("# TYPE passnet_http_responses_total counter"));
        for (index, count) in self.statuses.iter().enumerate() {
            let class = index + 1;
            line(format_args!(
                "passnet_http_responses_total{{status=\"{class}xx\"}} {}",
                get(count)
            ));
        }
        line(format_args!("# TYPE passnet_http_seconds histogram"));
        let mut sum = 0;
        for (end, count) in BINS.iter().zip(&self.bins) {
            sum += get(count);
            line(format_args!("passnet_http_seconds_bucket{{le=\"{end}\"}} {sum}"));
        }
        let all: u64 = self.statuses.iter().map(get).sum();
        line(format_args!("passnet_http_seconds_bucket{{le=\"+Inf\"}} {all}"));
        line(format_args!("passnet_http_seconds_sum {}", get(&self.seconds_micros) as f64 / 1e6));
        line(format_args!("passnet_http_seconds_count {all}"));
        for (name, counter) in [
            ("passnet_cache_hits_total", &self.cache_hits),
            ("passnet_rate_limited_total", &self.limited),
            ("passnet_connections_refused_total", &self.refused_connections),
            ("passnet_rejudged_graphs_total", &self.rejudged),
            ("passnet_rejudged_disagreements_total", &self.disagreed),
        ] {
            line(format_args!("# TYPE {name} counter"));
            line(format_args!("{name} {}", get(counter)));
        }
        line(format_args!("# TYPE passnet_connections gauge"));
        line(format_args!("passnet_connections {}", get(&self.connections)));
        line(format_args!("# TYPE passnet_entries gauge"));
        line(format_args!("passnet_entries {entries}"));
        line(format_args!("# TYPE passnet_submissions gauge"));
        for (state, count) in submissions {
            line(format_args!("passnet_submissions{{state=\"{}\"}} {count}", state.name()));
        }
        out
    }
}
