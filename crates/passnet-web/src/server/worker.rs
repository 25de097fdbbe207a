//! The one thread that looks at submissions: verifies them, puts them on the board, judges some of their graphs again,
//! watches their kernels.
//!
//! Whatever it has not finished when the process ends is in the same state as before, and is taken up again.

use super::State;
use crate::Error;
use crate::bundle::{Bundle, verify};
use crate::pages::run_of;
use crate::rejudge::{Rejudger, again, draw, is_like_here};
use crate::store::{Entry, Submission, SubmissionState, readied};
use crate::watch::{Subject, Watched};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Sets of passes of one entry whose kernels cannot be watched, for instance because they take too long; the rest is let be.
const MOST_FAILED: usize = 3;
/// How often the queue is looked at where nobody rings.
const PATIENCE: Duration = Duration::from_secs(2);

/// Works until the server stops.
pub(super) fn work(state: &Arc<State>) {
    while !state.is_stopping() {
        match step(state) {
            Ok(true) => {}
            Ok(false) => state.bell.wait(PATIENCE),
            Err(error) => {
                state.log(&json!({ "event": "worker_failed", "error": error.message }));
                state.bell.wait(PATIENCE);
            }
        }
    }
}

/// Does one thing; `false` where there was nothing to do.
pub fn step(state: &State) -> Result<bool, Error> {
    if let Some(submission) = state.store.next_submission(SubmissionState::Queued)? {
        look_at(state, &submission)?;
        return Ok(true);
    }
    if let Some(submission) = state.store.next_submission(SubmissionState::Accepted)? {
        rejudge(state, &submission)?;
        return Ok(true);
    }
    let Some(rejudger) = state.rejudger.as_deref().filter(|_| !state.tasks.is_empty()) else {
        return Ok(false);
    };
    let tasks = state.tasks.digest();
    let Some(entry) = state.store.next_unwatched(&tasks)? else { return Ok(false) };
    if !watch_next(state, rejudger, &entry)? {
        state.store.end_watching(&entry, &tasks)?;
        state.log(&json!({ "event": "watched", "entry": entry.id }));
    }
    Ok(true)
}

/// Watches the kernels of one set of passes of an entry, so that submissions wait for no more than that; `false` where
/// nothing is left to be watched.
fn watch_next(state: &State, rejudger: &dyn Rejudger, entry: &Entry) -> Result<bool, Error> {
    let Some(bundle) = state.store.bundle(&entry.digest)? else { return Ok(false) };
    let run = run_of(&bundle)?;
    let mut failed = 0;
    for subject in Subject::of_run(&state.tasks, &run) {
        let key = subject.key();
        match state.store.watched(&key)? {
            Some(known) => failed += usize::from(known.error.is_some()),
            None if failed >= MOST_FAILED => return Ok(false),
            None => {
                let seen = subject.job(&bundle).and_then(|job| rejudger.watch(&job));
                let found = match seen {
                    Ok(plans) => Watched { plans, error: None },
                    Err(error) => Watched { plans: Vec::new(), error: Some(error.message) },
                };
                state.store.keep_watched(&key, &found)?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn look_at(state: &State, submission: &Submission) -> Result<(), Error> {
    let reasons = match state.store.bundle(&submission.digest) {
        // The store's own failure is not the submission's: it stays in the queue.
        Err(error) if error.kind == crate::ErrorKind::Storage => return Err(error),
        Err(error) => vec![error.message],
        Ok(None) => vec!["the bundle is not there any more".into()],
        Ok(Some(bundle)) => {
            match accept(state, submission, &bundle)? {
                Ok(entry) => {
                    state.log(&json!({ "event": "accepted", "submission": submission.id, "entry": entry }));
                    return Ok(());
                }
                Err(reasons) => reasons,
            }
        }
    };
    state.store.refuse(submission, &reasons)?;
    state
        .log(&json!({ "event": "refused", "submission": submission.id, "reasons": reasons.len() }));
    Ok(())
}

/// The entry that a submission became, or why it did not.
fn accept(
    state: &State,
    submission: &Submission,
    bundle: &Bundle,
) -> Result<Result<String, Vec<String>>, Error> {
    let found = match verify(bundle) {
        Ok(found) => found,
        Err(error) if error.kind == crate::ErrorKind::Lacking => return Err(error),
        Err(error) => return Ok(Err(vec![error.message])),
    };
    if !found.holds() {
        return Ok(Err(found.reasons()));
    }
    let Some(ready) = readied(&found.run, Some(&bundle.manifest)) else {
        return Ok(Err(vec!["the run has no results".into()]));
    };
    let id = state.store.accept(submission, bundle, &found.run, &ready)?;
    rank_board_of(state, &id)?;
    Ok(Ok(id))
}

fn rank_board_of(state: &State, id: &str) -> Result<(), Error> {
    let Some(entry) = state.store.entry(id)? else { return Ok(()) };
    match state.store.board(&entry.board())? {
        Some(board) => state.store.rank(&board),
        None => Ok(()),
    }
}

/// Judges a random part of an entry again, and writes it down beside what was claimed.
fn rejudge(state: &State, submission: &Submission) -> Result<(), Error> {
    let entry = submission.entry.as_deref().map(|id| state.store.entry(id)).transpose()?.flatten();
    let (Some(entry), Some(bundle)) = (entry, state.store.bundle(&submission.digest)?) else {
        return state.store.refuse(submission, &["its entry is gone".to_string()]);
    };
    let found = match &state.rejudger {
        Some(rejudger) => {
            let run = verify(&bundle)?.run;
            let results = state.store.results(&entry)?;
            let is_like = is_like_here(&run);
            let mut found = Vec::new();
            for row in draw(&results, &state.tasks, state.limits.rejudged_graphs) {
                if state.is_stopping() {
                    return Ok(());
                }
                found.push(again(rejudger.as_ref(), &state.tasks, &bundle, &run, row, is_like));
            }
            found
        }
        None => Vec::new(),
    };
    let disagreed = found.iter().filter(|one| one.agrees == Some(false)).count();
    state.metrics.rejudged.fetch_add(found.len() as u64, Ordering::Relaxed);
    state.metrics.disagreed.fetch_add(disagreed as u64, Ordering::Relaxed);
    state.store.note_rejudged(&entry, &found)?;
    tell(state, &entry, found.len(), disagreed);
    Ok(())
}

fn tell(state: &State, entry: &Entry, graphs: usize, disagreed: usize) {
    state.log(&json!({
        "event": "rejudged",
        "entry": entry.id,
        "graphs": graphs,
        "disagreed": disagreed,
    }));
}
