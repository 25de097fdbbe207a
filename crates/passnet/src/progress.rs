//! Progress on stderr for anything that takes more than two seconds.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use passnet_work::progress::Progress;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a log is told.
const EVERY: Duration = Duration::from_secs(30);

/// A bar with count, rate and estimate; where stderr is not a terminal, a line now and then.
#[derive(Debug)]
pub struct Bar {
    /// Whether stderr is a terminal.
    is_watched: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bar: ProgressBar,
    started: Instant,
    /// When a log was told last.
    told: Instant,
}

impl State {
    fn of(bar: ProgressBar) -> Self {
        let now = Instant::now();
        State { bar, started: now, told: now }
    }

    fn tell_log(&mut self) {
        if self.told.elapsed() < EVERY {
            return;
        }
        self.told = Instant::now();
        let (done, all) = (self.bar.position(), self.bar.length());
        let line = line(&self.bar.message(), done, all, self.started.elapsed());
        // A log that nobody keeps is no reason to stop.
        drop(writeln!(std::io::stderr(), "{line}"));
    }
}

/// What a log is told.
fn line(task: &str, done: u64, all: Option<u64>, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(1e-3);
    match all.filter(|_| done > 0) {
        Some(all) => {
            let left = all.saturating_sub(done) as f64 / rate / 60.0;
            format!("{task}: {done} of {all}, {rate:.1} a second, {left:.0} min left")
        }
        None => format!("{task}: {done}, {rate:.1} a second"),
    }
}

impl Bar {
    pub fn new() -> Self {
        Bar {
            is_watched: std::io::stderr().is_terminal(),
            state: Mutex::new(State::of(ProgressBar::hidden())),
        }
    }

    fn with(&self, change: impl FnOnce(&mut State)) {
        // A panic while drawing must not take the work down with it.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        change(&mut state);
    }
}

impl Progress for Bar {
    fn begin(&self, task: &str, total: Option<u64>) {
        let template = "{msg} {wide_bar} {pos}/{len} {per_sec} {eta} left";
        let style = ProgressStyle::with_template(template);
        self.with(|state| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
            if let Ok(style) = style {
                bar.set_style(style);
            }
            bar.set_message(task.to_string());
            *state = State::of(bar);
        });
    }

    fn advance(&self, steps: u64) {
        self.with(|state| {
            if self.is_watched && state.bar.is_hidden() && state.started.elapsed() > PATIENCE {
                state.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            state.bar.inc(steps);
            if !self.is_watched {
                state.tell_log();
            }
        });
    }

    fn expect(&self, total: u64) {
        self.with(|state| state.bar.set_length(total));
    }

    fn finish(&self) {
        self.with(|state| state.bar.finish_and_clear());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_how_much_is_left() {
        let minute = Duration::from_secs(60);
        assert_eq!(
            line("cutting", 300, Some(900), minute),
            "cutting: 300 of 900, 5.0 a second, 2 min left"
        );
        assert_eq!(line("reading", 30, None, minute), "reading: 30, 0.5 a second");
        assert_eq!(line("trying", 0, Some(7), minute), "trying: 0, 0.0 a second");
    }
}
