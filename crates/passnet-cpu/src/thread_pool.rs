//! Threads that wait for work without going to sleep at once, shared by kernels and by the engine's own operations.
//!
//! Most steps of a graph take microseconds, as long as waking a sleeping thread does. Helpers therefore look for the
//! next step's work for a while before they sleep, and the thread that runs the graph takes tasks itself instead of
//! waiting for them: at worst it does them all.
//!
//! Rayon's pool is there anyway and could do the same. Steps of 2, 8 and 32 tasks of 2 to 200 µs took 1.07 to 7.5 times as long
//! on it, 1.5 times in the median (`examples/pool_against_rayon.rs`, two threads on two cores with eight other runnable
//! threads, 2026-11-18): its caller may wait for a helper that has no core, ours does the work itself.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long a helper looks for more work before it sleeps.
const PATIENCE: Duration = Duration::from_micros(200);

/// In `gate`: whether the job takes helpers; below it the number that joined, above it the number of the job.
const OPEN: u64 = 1 << 16;
const JOINED: u64 = OPEN - 1;
const JOB: u64 = OPEN << 1;

/// What all threads work on.
#[derive(Clone, Copy)]
struct Job {
    work: *const (dyn Fn(usize, usize) + Sync),
    tasks: usize,
    /// Those that take part, the owner among them; helpers beyond this number stay out.
    threads: usize,
}

impl Job {
    /// Where the share of a thread begins, and that of the one before ends.
    fn share(&self, thread: usize) -> usize {
        self.tasks * thread / self.threads
    }
}

/// Alone on its lines of the caches, for every thread counts on its own.
#[repr(align(128))]
#[derive(Default)]
struct Next(AtomicUsize);

struct ThreadPool {
    /// Held by the thread whose job it is.
    owner: Mutex<()>,
    helpers: usize,
    gate: AtomicU64,
    job: JobCell,
    /// The next task of each thread's share.
    next: Box<[Next]>,
    finished: AtomicU64,
    panicked: AtomicUsize,
    sleeping: AtomicUsize,
    sleep_lock: Mutex<()>,
    wake: Condvar,
}

/// Written by the owner while the gate is shut, read by helpers that passed the gate.
struct JobCell(Cell<Option<Job>>);
// SAFETY: the gate orders all accesses: the owner writes only while it is shut and nobody is inside, and helpers read only
// between joining (which sees the owner's write) and reporting that they finished.
unsafe impl Sync for JobCell {}
// SAFETY: as above; the work itself is `Sync`, and the owner waits for every helper before the work ends.
unsafe impl Send for JobCell {}

static POOL: OnceLock<ThreadPool> = OnceLock::new();

thread_local! {
    /// Whether this thread is doing a task: tasks start no further ones.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work(task, thread)` for each task once, on at most `threads` threads and on no more than there are tasks. Threads are
/// numbered from zero; tasks of one number never overlap. A task that starts further ones does them itself.
///
/// # Panics
/// Where a task does. No task is running any more then.
pub fn run_tasks(tasks: usize, threads: usize, work: &(dyn Fn(usize, usize) + Sync)) {
    let serially = || (0..tasks).for_each(|task| work(task, 0));
    if tasks < 2 || threads < 2 || BUSY.get() {
        return serially();
    }
    let pool = POOL.get_or_init(ThreadPool::new);
    start_helpers(pool);
    let _owner = match pool.owner.try_lock() {
        Ok(owner) => owner,
        // A task panicked once; the pool was left in order.
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Another graph has the helpers: this one gets on alone.
        Err(TryLockError::WouldBlock) => return serially(),
    };
    pool.run(tasks, threads, work);
}

/// How many threads share the work of one job, at most: as many as the current pool of rayon has, so that
/// `RAYON_NUM_THREADS` and a pool of the caller's decide for both.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// Does work whose tasks no helper takes: for those who keep all cores busy in another way.
pub fn without_helpers<R>(work: impl FnOnce() -> R) -> R {
    let _busy = Busy::new();
    work()
}

fn start_helpers(pool: &'static ThreadPool) {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        for helper in 1..=pool.helpers {
            // Without a thread the others do the work.
            let _ =
                std::thread::Builder::new().name("engine".into()).spawn(move || pool.help(helper));
        }
    });
}

impl ThreadPool {
    fn new() -> Self {
        let threads = threads().clamp(2, 256);
        ThreadPool {
            owner: Mutex::new(()),
            helpers: threads - 1,
            gate: AtomicU64::new(0),
            job: JobCell(Cell::new(None)),
            next: (0..threads).map(|_| Next::default()).collect(),
            finished: AtomicU64::new(0),
            panicked: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
            sleep_lock: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// The owner's part.
    fn run(&self, tasks: usize, threads: usize, work: &(dyn Fn(usize, usize) + Sync)) {
        // SAFETY: only the lifetime changes. Helpers use the work between joining and reporting; the gate is shut and all
        // of them are waited for before this function returns or unwinds.
        let work: *const (dyn Fn(usize, usize) + Sync) = unsafe {
            std::mem::transmute::<
                *const (dyn Fn(usize, usize) + Sync),
                *const (dyn Fn(usize, usize) + Sync),
            >(work)
        };
        // Callers have room for as many threads as there are tasks: of all that come, the first get them.
        let job = Job { work, tasks, threads: threads.min(tasks).min(self.next.len()) };
        for (thread, next) in self.next[..job.threads].iter().enumerate() {
            next.0.store(job.share(thread), Ordering::Relaxed);
        }
        self.job.0.set(Some(job));
        self.finished.store(0, Ordering::Relaxed);
        self.panicked.store(0, Ordering::Relaxed);
        let number = (self.gate.load(Ordering::Relaxed) / JOB).wrapping_add(1) % (u64::MAX / JOB);
        self.gate.store(number * JOB + OPEN, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            let _asleep = self.sleep_lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.wake.notify_all();
        }
        let own = catch_unwind(AssertUnwindSafe(|| self.take_tasks(job, 0, 0)));
        let joined = self.gate.swap(number * JOB, Ordering::AcqRel) & JOINED;
        let mut looks = 0u32;
        while self.finished.load(Ordering::Acquire) < joined {
            looks += 1;
            if looks.is_multiple_of(64) {
                // On a busy machine the helper may be waiting for this very core.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        self.job.0.set(None);
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        assert!(self.panicked.load(Ordering::Relaxed) == 0, "a task of a parallel loop panicked");
    }

    /// A thread takes the tasks of its own share, then what others have not come to. Its share is the same from one step to
    /// the next, so that most of what it reads is what it wrote, and still in its caches.
    fn take_tasks(&self, job: Job, thread: usize, share: usize) {
        let _busy = Busy::new();
        for whose in (share..job.threads).chain(0..share) {
            let end = job.share(whose + 1);
            loop {
                let task = self.next[whose].0.fetch_add(1, Ordering::Relaxed);
                if task >= end {
                    break;
                }
                // SAFETY: the owner keeps the work alive until all who joined have finished.
                unsafe { (*job.work)(task, thread) };
            }
        }
    }

    /// The life of a helper: one of those numbered from one, whenever it joins.
    fn help(&self, helper: usize) {
        let mut last = 0;
        loop {
            let gate = self.wait_for_job(last);
            last = gate / JOB;
            let joined =
                self.gate.compare_exchange(gate, gate + 1, Ordering::AcqRel, Ordering::Relaxed);
            if joined.is_err() {
                // Another helper came first, or the job is over: look again.
                last = last.wrapping_sub(1);
                std::hint::spin_loop();
                continue;
            }
            let earlier = gate & JOINED;
            if let Some(job) = self.job.0.get()
                && earlier as usize + 1 < job.threads
            {
                let thread = earlier as usize + 1;
                let share = if helper < job.threads { helper } else { thread };
                let own = || self.take_tasks(job, thread, share);
                if catch_unwind(AssertUnwindSafe(own)).is_err() {
                    self.panicked.store(1, Ordering::Relaxed);
                }
            }
            self.finished.fetch_add(1, Ordering::Release);
        }
    }

    /// The gate of a job other than `last`, open.
    fn wait_for_job(&self, last: u64) -> u64 {
        let is_new = |gate: u64| gate & OPEN != 0 && gate / JOB != last;
        let begin = Instant::now();
        loop {
            for _ in 0..64 {
                let gate = self.gate.load(Ordering::Acquire);
                if is_new(gate) {
                    return gate;
                }
                std::hint::spin_loop();
            }
            // Whoever else has work goes first.
            std::thread::yield_now();
            if begin.elapsed() > PATIENCE {
                let mut asleep = self.sleep_lock.lock().unwrap_or_else(PoisonError::into_inner);
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                while !is_new(self.gate.load(Ordering::SeqCst)) {
                    asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
                }
                self.sleeping.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

/// Marks the thread while it does tasks; afterwards it is what it was before.
struct Busy {
    was_busy: bool,
}

impl Busy {
    fn new() -> Self {
        Busy { was_busy: BUSY.replace(true) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.set(self.was_busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_done_once() {
        for tasks in [0, 1, 2, 7, 1000] {
            for threads in [1, 2, 4] {
                let done: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                run_tasks(tasks, threads, &|task, thread| {
                    assert!(thread < threads);
                    // A loop inside a loop runs on the same thread.
                    run_tasks(3, threads, &|_, _| {
                        done[task].fetch_add(1, Ordering::Relaxed);
                    });
                });
                assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 3));
            }
        }
    }

    #[test]
    fn no_more_threads_take_part_than_there_are_tasks() {
        // Nobody comes to help, so that it does not matter who is first: what counts is how many could.
        let pool = ThreadPool::new();
        let threads_of = |pool: &ThreadPool| pool.job.0.get().map(|job| job.threads);
        let all = pool.next.len();
        for (tasks, threads, most) in [(3, 7, 3.min(all)), (7, 2, 2), (1, 4, 1), (999, 999, all)] {
            pool.run(tasks, threads, &|_, _| assert_eq!(threads_of(&pool), Some(most)));
        }
    }

    #[test]
    fn a_thread_does_its_own_share_first_and_then_the_others() {
        static ORDER: Mutex<Vec<usize>> = Mutex::new(Vec::new());
        let work: &'static (dyn Fn(usize, usize) + Sync) =
            &|task, _| ORDER.lock().unwrap().push(task);
        let order = || std::mem::take(&mut *ORDER.lock().unwrap());
        let pool = ThreadPool::new();
        pool.run(7, 2, work);
        assert_eq!(order(), [0, 1, 2, 3, 4, 5, 6]);
        let job = Job { work, tasks: 7, threads: 2 };
        (0..2).for_each(|thread| pool.next[thread].0.store(job.share(thread), Ordering::Relaxed));
        pool.take_tasks(job, 0, 1);
        assert_eq!(order(), [3, 4, 5, 6, 0, 1, 2]);
    }

    #[test]
    fn without_helpers_all_tasks_are_done_here() {
        let here = std::thread::current().id();
        let all_here = || {
            let elsewhere = AtomicUsize::new(0);
            run_tasks(64, 4, &|_, _| {
                if std::thread::current().id() != here {
                    elsewhere.fetch_add(1, Ordering::Relaxed);
                }
            });
            elsewhere.into_inner() == 0
        };
        without_helpers(|| {
            without_helpers(|| assert!(all_here()));
            assert!(all_here(), "the inner guard does not end the outer one");
        });
        assert!(!BUSY.get());
    }

    #[test]
    fn many_short_jobs_from_many_threads_lose_nothing() {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..if cfg!(miri) { 5 } else { 2000 } {
                        let sum = AtomicUsize::new(0);
                        run_tasks(5, 4, &|task, _| {
                            sum.fetch_add(task, Ordering::Relaxed);
                        });
                        assert_eq!(sum.load(Ordering::Relaxed), 10);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_and_spoils_nothing() {
        let result = catch_unwind(|| run_tasks(8, 4, &|task, _| assert!(task != 5, "five")));
        assert!(result.is_err());
        let sum = AtomicUsize::new(0);
        run_tasks(8, 4, &|task, _| {
            sum.fetch_add(task, Ordering::Relaxed);
        });
        assert_eq!(sum.load(Ordering::Relaxed), 28);
    }
}
