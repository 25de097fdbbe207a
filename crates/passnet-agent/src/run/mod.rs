//! A run: k attempts at each of many tasks, some at a time, all recorded in one folder.
//!
//! The same command on the same folder goes on where it stopped: finished attempts are read, unfinished ones continued
//! from their last event, missing ones begun. When a task's attempts are done, the results of the best one go into a
//! PassBench run store, so every report works on an agent's run.

mod folder;
pub mod merge;
mod record;
mod settings;
mod store;

pub use folder::{RunFolder, is_agent_run};
pub use record::{AttemptRecord, Evaluated, read_attempts};
pub use settings::{Mismatch, STALL_SECONDS, Settings};

use crate::agent::{Agent, AgentError, Hooks, Moved};
use crate::episode::Episode;
use crate::task::Task;
use crate::trajectory::{End, Event, Log, Source};
use passnet_bench::event_log::{self, LogError};
use passnet_bench::run::merge::MergeError;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use store::BestStore;

/// Why a run could not go on.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum RunError {
    /// An attempt failed for a reason of its own.
    Agent(AgentError),
    /// A trajectory cannot be read or written.
    Log(LogError),
    /// Another process works in the folder.
    InUse(std::path::PathBuf),
    /// The folder holds a run under other conditions.
    Settings(Mismatch),
    /// Runs that are not parts of one, or not all of it.
    Unlike(String),
    /// A file that is not what it should be.
    Damaged { path: std::path::PathBuf, message: String },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Agent(error) => error.fmt(f),
            RunError::Log(error) => error.fmt(f),
            RunError::InUse(path) => {
                write!(f, "{}: another process works on this run", path.display())
            }
            RunError::Settings(mismatch) => mismatch.fmt(f),
            RunError::Unlike(text) => f.write_str(text),
            RunError::Damaged { path, message } => write!(f, "{}: {message}", path.display()),
        }
    }
}

impl std::error::Error for RunError {}

impl From<AgentError> for RunError {
    fn from(error: AgentError) -> Self {
        RunError::Agent(error)
    }
}

impl From<LogError> for RunError {
    fn from(error: LogError) -> Self {
        RunError::Log(error)
    }
}

impl From<MergeError> for RunError {
    fn from(error: MergeError) -> Self {
        match error {
            MergeError::Log(error) => RunError::Log(error),
            MergeError::Unlike(text) => RunError::Unlike(text),
        }
    }
}

pub(crate) fn io(path: &Path) -> impl Fn(std::io::Error) -> RunError + '_ {
    |error| RunError::Log(event_log::io(path)(error))
}

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// That are attempted.
    pub tasks: Vec<Arc<Task>>,
    /// Independent attempts at each task.
    pub attempts: u32,
    /// Attempts at a time.
    pub jobs: usize,
    /// Of attempts at them.
    pub order: Order,
}

/// Which attempts come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The first attempt at every task, then the second: a run that is stopped early has seen every task.
    Breadth,
    /// All attempts at one task, then the next one: what they have in common is judged once, however many tasks there are.
    Depth,
}

impl Order {
    /// Attempts of the solver end with the same files; those of models have nothing in common.
    pub fn of(source: Source) -> Order {
        match source {
            Source::Solver | Source::SolverWithMistakes => Order::Depth,
            Source::Provider | Source::Local => Order::Breadth,
        }
    }

    /// Every attempt at every task, as places of tasks and numbers of attempts.
    fn attempts(self, tasks: usize, attempts: u32) -> Vec<(usize, u32)> {
        match self {
            Order::Breadth => (0..attempts)
                .flat_map(|attempt| (0..tasks).map(move |task| (task, attempt)))
                .collect(),
            Order::Depth => (0..tasks)
                .flat_map(|task| (0..attempts).map(move |attempt| (task, attempt)))
                .collect(),
        }
    }
}

/// News for whoever watches.
#[derive(Debug)]
#[allow(missing_docs, reason = "each variant says what its fields are about")]
pub enum News<'a> {
    /// An attempt of an earlier call, finished then.
    Known { task: &'a str, attempt: u32 },
    /// An attempt under way.
    Moved { task: &'a str, attempt: u32, moved: Moved<'a> },
    /// An attempt is over.
    Ended { task: &'a str, attempt: u32, end: &'a End },
}

/// Threads of attempts mostly wait for the network.
const STACK_BYTES: usize = 1 << 20;

/// An attempt that is not finished yet.
struct Job {
    task: usize,
    attempt: u32,
}

/// Works on all attempts that are not finished. An error stops those that have not begun; the others are recorded.
pub fn run(
    agent: &Agent,
    folder: &RunFolder,
    plan: &Plan,
    news: &(dyn Fn(&News<'_>) + Sync),
) -> Result<(), RunError> {
    let store = Mutex::new(BestStore::open(folder, &agent.evaluator.target().identity)?);
    let mut jobs = Vec::new();
    let mut left: Vec<AtomicUsize> = plan.tasks.iter().map(|_| AtomicUsize::new(0)).collect();
    for (index, attempt) in plan.order.attempts(plan.tasks.len(), plan.attempts) {
        let task = &plan.tasks[index];
        match finished(folder, task, attempt)? {
            Some(cost) => {
                agent.purse.spend(cost);
                news(&News::Known { task: &task.id, attempt });
            }
            None => {
                *left[index].get_mut() += 1;
                jobs.push(Job { task: index, attempt });
            }
        }
    }
    for task in &plan.tasks {
        // Here, where the stack is large: graphs may be deep.
        crate::prompt::facts(task);
    }
    let settle = |task: &Task| -> Result<(), RunError> {
        store.lock().unwrap_or_else(PoisonError::into_inner).settle(folder, task, plan.attempts)
    };
    for (task, left) in plan.tasks.iter().zip(&left) {
        if left.load(Ordering::Relaxed) == 0 {
            settle(task)?;
        }
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failure: Mutex<Option<RunError>> = Mutex::new(None);
    let work = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let task = &plan.tasks[job.task];
            let done = attempt(agent, folder, task, job.attempt, news).and_then(|end| {
                news(&News::Ended { task: &task.id, attempt: job.attempt, end: &end });
                match end.reason.is_final() && left[job.task].fetch_sub(1, Ordering::AcqRel) == 1 {
                    true => settle(task),
                    false => Ok(()),
                }
            });
            if let Err(error) = done {
                stop.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.clamp(1, jobs.len().max(1)) {
            let spawned =
                std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
            if let Err(error) = spawned {
                // Those that run will do the rest; with none there is nobody.
                let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(io(Path::new("threads"))(error));
                break;
            }
        }
    });
    match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None if left.iter().all(|left| left.load(Ordering::Acquire) == 0) => {
            let graphs = plan.tasks.iter().map(|task| task.graphs.len()).sum();
            store.into_inner().unwrap_or_else(PoisonError::into_inner).finish(graphs)
        }
        None => Ok(()),
    }
}

/// What a finished attempt cost; `None` where there is something left to do.
fn finished(folder: &RunFolder, task: &Task, attempt: u32) -> Result<Option<f64>, RunError> {
    let path = folder.trajectory(&task.id, attempt);
    if !path.exists() {
        return Ok(None);
    }
    let events = crate::trajectory::read(&path)?;
    Ok(match events.last() {
        Some(Event::End(end)) if end.reason.is_final() => Some(end.spent.cost.unwrap_or(0.0)),
        _ => None,
    })
}

fn attempt(
    agent: &Agent,
    folder: &RunFolder,
    task: &Arc<Task>,
    number: u32,
    news: &(dyn Fn(&News<'_>) + Sync),
) -> Result<End, RunError> {
    let (log, past) = Log::open(&folder.trajectory(&task.id, number))?;
    let keep = |episode: &Episode| {
        folder
            .keep_best(&task.id, number, episode)
            .map_err(|(path, error)| LogError::Io { path, error })
    };
    let moved = |moved: Moved<'_>| news(&News::Moved { task: &task.id, attempt: number, moved });
    Ok(agent.attempt(task, number, log, &past, &Hooks { keep_best: &keep, moved: &moved })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solver_stays_with_a_task_and_models_see_all_of_them_first() {
        let depth = Order::of(Source::SolverWithMistakes).attempts(2, 3);
        assert_eq!(depth, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        let breadth = Order::of(Source::Provider).attempts(2, 2);
        assert_eq!(breadth, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    }
}
