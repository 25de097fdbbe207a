//! How long work says how far it is. Libraries call a [`Progress`]; only the command line draws one.

/// Receives the progress of one long task at a time. All methods may be called from any thread.
pub trait Progress: Sync {
    /// A task starts. `total` is the number of steps it will take, where that is known beforehand.
    fn begin(&self, task: &str, total: Option<u64>);
    /// `steps` more steps are done.
    fn advance(&self, steps: u64);
    /// A better guess of the total than the one given to `begin`; it may change at every call.
    fn expect(&self, total: u64);
    /// The task ended, with or without success.
    fn finish(&self);
}

/// Progress nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _task: &str, _total: Option<u64>) {}
    fn advance(&self, _steps: u64) {}
    fn expect(&self, _total: u64) {}
    fn finish(&self) {}
}

/// Ends the task when dropped, so that no early return leaves a progress bar on the screen.
pub struct Task<'a> {
    progress: &'a dyn Progress,
    done: u64,
}

impl std::fmt::Debug for Task<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").field("done", &self.done).finish_non_exhaustive()
    }
}

impl<'a> Task<'a> {
    /// Announces work; `None` where it is not known how much.
    pub fn begin(progress: &'a dyn Progress, task: &str, total: Option<u64>) -> Self {
        progress.begin(task, total);
        Self { progress, done: 0 }
    }

    /// Says that so many steps more are done.
    pub fn advance(&mut self, steps: u64) {
        self.done += steps;
        self.progress.advance(steps);
    }

    /// Like [`Task::advance`], for work of unknown length of which `fraction` (0 to 1) has been read.
    pub fn advance_to_fraction(&mut self, steps: u64, fraction: f64) {
        self.advance(steps);
        if fraction > 0.0 {
            // Saturating by definition of `as`; a wild fraction gives a wild guess, never a panic.
            let total = (self.done as f64 / fraction.min(1.0)).round() as u64;
            self.progress.expect(total.max(self.done));
        }
    }
}

impl Drop for Task<'_> {
    fn drop(&mut self) {
        self.progress.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Recorder {
        fn note(&self, text: String) {
            self.0.lock().unwrap().push(text);
        }
    }

    impl Progress for Recorder {
        fn begin(&self, task: &str, total: Option<u64>) {
            self.note(format!("begin {task} {total:?}"));
        }
        fn advance(&self, steps: u64) {
            self.note(format!("advance {steps}"));
        }
        fn expect(&self, total: u64) {
            self.note(format!("expect {total}"));
        }
        fn finish(&self) {
            self.note("finish".into());
        }
    }

    #[test]
    fn a_task_guesses_its_total_and_always_finishes() {
        let recorder = Recorder::default();
        {
            let mut task = Task::begin(&recorder, "import", None);
            task.advance_to_fraction(5, 0.25);
            task.advance_to_fraction(1, 0.0);
        }
        let notes = recorder.0.into_inner().unwrap();
        assert_eq!(notes, ["begin import None", "advance 5", "expect 20", "advance 1", "finish"]);
    }
}
