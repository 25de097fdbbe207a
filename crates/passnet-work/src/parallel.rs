//! One parallel loop for all crates: inputs are read on one thread, worked on by several, and the results
//! come back to the caller's thread in input order. At most a fixed number of items is in flight, so memory is
//! bounded however long the input is, and the outcome does not depend on the number of workers.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{Builder, Scope};

/// Parsers recurse as deep as their input nests; the platform's 2 MB default is too little for that.
const STACK_BYTES: usize = 16 << 20;

/// Items in flight for each worker: enough to ride out a slow item, small enough to hold in memory.
const WINDOW_PER_WORKER: usize = 8;

/// How many workers to use when the user has not said.
pub fn default_workers() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A worker panicked on one item. This is a bug of ours, kept from taking the other items down with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Panicked {
    /// What the panic said.
    pub message: String,
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "internal error (please report it): {}", self.message)
    }
}

impl std::error::Error for Panicked {}

impl Panicked {
    fn from_payload(payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "a panic without a message".to_owned());
        Self { message }
    }
}

/// Runs `body`, turning a panic into an error.
pub fn guard<R>(body: impl FnOnce() -> R) -> Result<R, Panicked> {
    // What a panicking body leaves half done is dropped with it: it owns or only reads what it works on.
    catch_unwind(AssertUnwindSafe(body)).map_err(|payload| Panicked::from_payload(&*payload))
}

/// Why the loop ended before its input did.
#[derive(Debug)]
pub enum Stopped<E> {
    /// `consume` returned this.
    Consumer(E),
    /// The operating system gave us no thread.
    NoThread(std::io::Error),
}

impl<E: fmt::Display> fmt::Display for Stopped<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Consumer(error) => error.fmt(f),
            Self::NoThread(error) => write!(f, "cannot start a worker thread: {error}"),
        }
    }
}

impl<E: std::error::Error> std::error::Error for Stopped<E> {}

/// Runs `work` on every input with `workers` threads and hands the results to `consume` in input order, on the
/// calling thread. A panic in `work` arrives in the place of its result; a panic of the input iterator arrives as the
/// last item. An error from `consume` stops the loop.
pub fn ordered<I, R, E>(
    inputs: I,
    workers: NonZeroUsize,
    work: impl Fn(I::Item) -> R + Sync,
    mut consume: impl FnMut(Result<R, Panicked>) -> Result<(), E>,
) -> Result<(), Stopped<E>>
where
    I: Iterator + Send,
    I::Item: Send,
    R: Send,
{
    let window = workers.get().saturating_mul(WINDOW_PER_WORKER);
    let (permit_sender, permits) = sync_channel::<()>(window);
    let (job_sender, jobs) = sync_channel::<(usize, I::Item)>(window);
    let (result_sender, results) = channel::<(usize, Result<R, Panicked>)>();
    let jobs = Mutex::new(jobs);

    std::thread::scope(|scope| {
        // Owned by this closure, so that every way out closes the channels and lets the threads end.
        let (permit_sender, results) = (permit_sender, results);
        for _ in 0..window {
            // The channel holds exactly `window` permits, so this never blocks.
            let _ = permit_sender.send(());
        }

        let mut started = 0;
        let mut refusal = None;
        for _ in 0..workers.get() {
            let (jobs, work, results) = (&jobs, &work, result_sender.clone());
            match spawn(scope, move || run_jobs(jobs, work, &results)) {
                Ok(()) => started += 1,
                Err(error) => {
                    refusal = Some(error);
                    break;
                }
            }
        }
        // Fewer workers than asked for are slower but give the same result; none at all is an error.
        if let (0, Some(error)) = (started, refusal) {
            return Err(Stopped::NoThread(error));
        }
        spawn(scope, move || feed(inputs, &permits, &job_sender, &result_sender))
            .map_err(Stopped::NoThread)?;

        let mut early = BTreeMap::new();
        let mut next = 0;
        for (index, result) in &results {
            early.insert(index, result);
            while let Some(result) = early.remove(&next) {
                next += 1;
                consume(result).map_err(Stopped::Consumer)?;
                // The feeder may already have reached the end of the input.
                let _ = permit_sender.send(());
            }
        }
        Ok(())
    })
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    body: impl FnOnce() + Send + 'scope,
) -> std::io::Result<()> {
    Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, body).map(|_| ())
}

fn feed<I: Iterator, R>(
    mut inputs: I,
    permits: &Receiver<()>,
    jobs: &SyncSender<(usize, I::Item)>,
    results: &Sender<(usize, Result<R, Panicked>)>,
) {
    for index in 0.. {
        if permits.recv().is_err() {
            return;
        }
        match guard(|| inputs.next()) {
            Ok(Some(input)) => {
                if jobs.send((index, input)).is_err() {
                    return;
                }
            }
            Ok(None) => return,
            Err(panic) => {
                let _ = results.send((index, Err(panic)));
                return;
            }
        }
    }
}

fn run_jobs<T, R>(
    jobs: &Mutex<Receiver<(usize, T)>>,
    work: &(impl Fn(T) -> R + Sync),
    results: &Sender<(usize, Result<R, Panicked>)>,
) {
    loop {
        // The lock is held while waiting for a job and released before working on it. Nothing panics while it
        // is held, so it is never poisoned.
        let Ok((index, input)) = (match jobs.lock() {
            Ok(jobs) => jobs.recv(),
            Err(_) => return,
        }) else {
            return;
        };
        if results.send((index, guard(|| work(input)))).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn workers(count: usize) -> NonZeroUsize {
        NonZeroUsize::new(count).unwrap()
    }

    #[test]
    fn results_come_in_input_order_whatever_the_number_of_workers() {
        for count in [1, 2, 7] {
            let mut seen = Vec::new();
            ordered(
                0..500u64,
                workers(count),
                |n| {
                    // Uneven work, so that workers overtake each other.
                    (0..(n % 7) * 1000).fold(n, |sum, k| std::hint::black_box(sum ^ k ^ k))
                },
                |result| {
                    seen.push(result.unwrap());
                    Ok::<(), Infallible>(())
                },
            )
            .unwrap();
            assert_eq!(seen, (0..500).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_input_is_read_no_further_than_the_window() {
        let read = AtomicUsize::new(0);
        let mut consumed = 0;
        ordered(
            (0..1000).inspect(|_| {
                read.fetch_add(1, Ordering::SeqCst);
            }),
            workers(2),
            |n| n,
            |_| {
                let ahead = read.load(Ordering::SeqCst) - consumed;
                assert!(ahead <= 2 * WINDOW_PER_WORKER, "{ahead} items in flight");
                consumed += 1;
                Ok::<(), Infallible>(())
            },
        )
        .unwrap();
        assert_eq!(consumed, 1000);
    }

    #[test]
    fn a_panic_costs_one_item_only() {
        let mut seen = Vec::new();
        ordered(
            0..20,
            workers(3),
            |n| {
                assert!(n != 7, "seven");
                n
            },
            |result| {
                seen.push(result.map_err(|panic| panic.message));
                Ok::<(), Infallible>(())
            },
        )
        .unwrap();
        let expected: Vec<_> =
            (0..20).map(|n| if n == 7 { Err("seven".to_owned()) } else { Ok(n) }).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_panic_in_the_input_ends_it_with_an_error() {
        let mut seen = Vec::new();
        ordered(
            (0..20).inspect(|n| assert!(*n < 3, "bad input")),
            workers(2),
            |n| n,
            |result| {
                seen.push(result.map_err(|panic| panic.message));
                Ok::<(), Infallible>(())
            },
        )
        .unwrap();
        assert_eq!(seen, [Ok(0), Ok(1), Ok(2), Err("bad input".to_owned())]);
    }

    #[test]
    fn an_error_of_the_consumer_stops_an_endless_input() {
        let mut consumed = 0;
        let stopped = ordered(
            0..,
            workers(2),
            |n| n,
            |_| {
                consumed += 1;
                if consumed == 100 { Err("enough") } else { Ok(()) }
            },
        );
        assert!(matches!(stopped, Err(Stopped::Consumer("enough"))));
        assert_eq!(consumed, 100);
    }

    #[test]
    fn workers_have_deep_stacks() {
        fn depth(n: usize) -> usize {
            let frame = std::hint::black_box([n; 16]);
            if n == 0 { 0 } else { 1 + depth(frame[3] - 1) }
        }
        let mut reached = 0;
        ordered(std::iter::once(30_000), workers(1), depth, |result| {
            reached = result.unwrap();
            Ok::<(), Infallible>(())
        })
        .unwrap();
        assert_eq!(reached, 30_000);
    }
}
