//! Progress on stderr for anything that takes more than two seconds.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use passnet_work::progress::Progress;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar with count, rate and estimate; silent where stderr is not a terminal.
#[derive(Debug)]
pub struct Bar {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    bar: ProgressBar,
    started: Instant,
}

impl Bar {
    pub fn new() -> Self {
        Bar { state: Mutex::new(State { bar: ProgressBar::hidden(), started: Instant::now() }) }
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
            *state = State { bar, started: Instant::now() };
        });
    }

    fn advance(&self, steps: u64) {
        self.with(|state| {
            if state.bar.is_hidden() && state.started.elapsed() > PATIENCE {
                state.bar.set_draw_target(ProgressDrawTarget::stderr());
            }
            state.bar.inc(steps);
        });
    }

    fn expect(&self, total: u64) {
        self.with(|state| state.bar.set_length(total));
    }

    fn finish(&self) {
        self.with(|state| state.bar.finish_and_clear());
    }
}
