//! A thousand scripted episodes at once, over the real protocol on loopback.
//!
//!     cargo run --release -p passnet-agent --example scripted_episodes -- [EPISODES] [JOBS] [WAVES]
//!
//! The scripted provider runs in the same process, so the figures are upper bounds of what the harness costs.

#[path = "../tests/support/mod.rs"]
mod support;

use passnet_agent::model::Protocol;
use passnet_agent::run::read_attempts;
use passnet_agent::trajectory::Event;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use support::provider::Provider;
use support::{agent, routine, run_in, tasks};

/// One distinct pass for so many episodes: the others are answered from what is known.
const SHARED_BY: usize = 10;

fn main() {
    let argument = |at: usize, default: usize| {
        std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (episodes, jobs, waves) = (argument(1, 1000), argument(2, 1000), argument(3, 2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tasks = [tasks::small_task(folder.path(), "task")];
    let number = AtomicUsize::new(0);
    let provider = Provider::start(move |asked| {
        let number = match asked.replies {
            1 => number.fetch_add(1, Ordering::Relaxed) / SHARED_BY,
            _ => 0,
        };
        routine::reply(asked, number)
    });
    let mut out = std::io::stdout();
    let mut say = |text: String| writeln!(out, "{text}").expect("somebody listens");
    for wave in 1..=waves {
        let run = folder.path().join(format!("run{wave}"));
        let agent = agent(&provider.openai(), Protocol::OpenAi);
        let (started, cpu, seen) = (Instant::now(), cpu_seconds(), provider.seen());
        run_in(&run, &agent, &tasks, episodes as u32, jobs);
        let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        let attempts = read_attempts(&run).expect("the run");
        let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let (mut judged, mut steps) = (0.0, 0);
        for attempt in &attempts {
            let is =
                |wanted: fn(&Event) -> bool| attempt.events.iter().filter(|e| wanted(e)).count();
            let replies = is(|event| matches!(event, Event::Reply(_)));
            steps += replies;
            *counts.entry((replies, is(|event| matches!(event, Event::Result(_))))).or_insert(0) +=
                1;
            for event in &attempt.events {
                if let Event::Result(result) = event {
                    judged += result.seconds;
                }
            }
        }
        drop(attempts);
        // Files and memory of one wave are nothing to the next.
        std::fs::remove_dir_all(&run).expect("the run's folder");
        let asked = provider.seen() - seen;
        say(format!(
            "wave {wave}: {episodes} episodes, {jobs} at a time, {wall:.1} s, {cpu:.1} s of processor time"
        ));
        say(format!(
            "  (replies, results) of the episodes: {counts:?}; {asked} requests seen by the provider"
        ));
        say(format!(
            "  {:.2} ms of processor time a step, everything included",
            cpu * 1e3 / steps as f64
        ));
        say(format!("  {:.2} ms of wall time a step over all episodes", wall * 1e3 / steps as f64));
        say(format!(
            "  {judged:.1} s in tools, as the attempts saw it; {} MiB resident, {} threads",
            resident_mebibytes(),
            threads()
        ));
    }
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn resident_mebibytes() -> u64 {
    status("VmRSS") / 1024
}

fn threads() -> u64 {
    status("Threads")
}

/// User and system time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}
