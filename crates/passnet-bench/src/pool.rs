//! Work shared out among several workers of one kind, such as the GPUs of a machine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Parsers recurse within limits; this is more than these allow.
const STACK_BYTES: usize = 32 << 20;

/// Does all jobs and gives what came of them in the order of the jobs, whoever did them. A worker does one job at a time
/// and takes the next one when it is done; the first of them works in the caller's thread. After an error no job is
/// begun; of several errors that of the earliest job is given.
pub fn in_order<W: Sync, T: Sync, R: Send, E: Send>(
    workers: &[W],
    jobs: &[T],
    work: impl Fn(&W, &T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let done: Mutex<Vec<Option<Result<R, E>>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let (work, done_ref) = (&work, &done);
    let take = |worker: &W| {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let result = work(worker, job);
            if result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            done_ref.lock().unwrap_or_else(PoisonError::into_inner)[index] = Some(result);
        }
    };
    let take = &take;
    std::thread::scope(|scope| {
        let Some((first, others)) = workers.split_first() else { return };
        for worker in others {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            // A thread that does not start leaves its share to the others.
            let _ = thread.spawn_scoped(scope, move || take(worker));
        }
        take(first);
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, Condvar};

    /// A worker that notices when it is asked to do two things at once.
    #[derive(Default)]
    struct Worker {
        is_busy: AtomicBool,
        done: AtomicUsize,
    }

    impl Worker {
        fn exclusively<R>(&self, work: impl FnOnce() -> R) -> R {
            assert!(!self.is_busy.swap(true, Ordering::SeqCst), "two jobs at once");
            let result = work();
            self.is_busy.store(false, Ordering::SeqCst);
            self.done.fetch_add(1, Ordering::SeqCst);
            result
        }
    }

    fn workers(count: usize) -> Vec<Worker> {
        (0..count).map(|_| Worker::default()).collect()
    }

    #[test]
    fn results_are_in_order_and_every_job_is_done_once() {
        let jobs: Vec<usize> = (0..500).collect();
        for count in [1, 2, 3, 8] {
            let workers = workers(count);
            let result = in_order(&workers, &jobs, |worker: &Worker, job| {
                worker.exclusively(|| Ok::<_, ()>(job * 2))
            });
            assert_eq!(result, Ok(jobs.iter().map(|job| job * 2).collect()));
            let done: usize = workers.iter().map(|w| w.done.load(Ordering::SeqCst)).sum();
            assert_eq!(done, jobs.len());
        }
    }

    #[test]
    fn all_workers_work_at_the_same_time() {
        let workers = workers(4);
        // Nobody passes before all four have a job.
        let barrier = Barrier::new(4);
        let result = in_order(&workers, &[(); 4], |worker: &Worker, ()| {
            worker.exclusively(|| {
                barrier.wait();
                Ok::<_, ()>(())
            })
        });
        assert_eq!(result, Ok(vec![(); 4]));
        assert!(workers.iter().all(|worker| worker.done.load(Ordering::SeqCst) == 1));
    }

    #[test]
    fn a_slow_job_holds_up_nobody_but_its_worker() {
        // The first job ends only after all the others have ended.
        let (left, bell) = (Mutex::new(9usize), Condvar::new());
        let jobs: Vec<usize> = (0..10).collect();
        let result = in_order(&workers(2), &jobs, |_: &Worker, job| {
            let mut left = left.lock().unwrap();
            if *job == 0 {
                while *left > 0 {
                    left = bell.wait(left).unwrap();
                }
            } else {
                *left -= 1;
                bell.notify_all();
            }
            Ok::<_, ()>(*job)
        });
        assert_eq!(result, Ok(jobs));
    }

    #[test]
    fn after_an_error_nothing_is_begun() {
        let begun = AtomicUsize::new(0);
        let jobs: Vec<usize> = (0..100).collect();
        let result = in_order(&workers(1), &jobs, |_: &Worker, job| {
            begun.fetch_add(1, Ordering::SeqCst);
            if *job == 3 { Err("three") } else { Ok(()) }
        });
        assert_eq!((result, begun.into_inner()), (Err("three"), 4));
    }
}
