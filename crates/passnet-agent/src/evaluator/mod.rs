//! One evaluator for all attempts: a thread for each device, which does one thing at a time, so that nothing of ours
//! disturbs its clock.
//!
//! Attempts ask and wait; model calls of other attempts go on meanwhile. Questions without timing (`match`, `check`) need
//! no device. Where evaluations are timed on this machine's own processor they go first and are also answered between two
//! graphs of an evaluation; beside GPUs they have threads of their own, all but one of
//! which also compile the kernels of evaluations that stand in line: a kernel that takes the compiler minutes keeps nobody from
//! an answer. The same passes on the same task are judged once, whoever asks.

mod assessment;
mod judge;

pub use assessment::{Assessment, GraphAssessment, Tier};
pub use judge::Judge;

use crate::prompt::Target;
use crate::task::Task;
use passnet_bench::run::GraphEvent;
use passnet_engine::Engine;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// What is asked about the passes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Do the patterns match, and does the rewritten graph hold together?
    Match,
    /// Is it right? Nothing is timed.
    Check,
    /// Is it right, and how fast?
    Evaluate,
}

/// An answer, shared by all who asked the same.
#[derive(Debug, Serialize, Deserialize)]
pub struct Answer {
    /// What models and trainers are told.
    pub assessment: Assessment,
    /// The full results of an evaluation, for the run store.
    pub events: Vec<GraphEvent>,
}

/// An answer and what it took.
#[derive(Debug, Clone)]
pub struct Answered {
    /// Shared, because others may have asked the same.
    pub answer: Arc<Answer>,
    /// Seconds in line before the evaluator had time.
    pub waited: f64,
    /// Without the time in line.
    pub seconds: f64,
}

/// Devices elsewhere, which evaluate as a judge with them would.
pub trait Remote: Send + Sync {
    /// Asks one of them, and waits. An error is a failure of machines, in words.
    fn evaluate(&self, task: &Task, files: &Files) -> std::io::Result<Answer>;
}

/// The files of a pass folder, by name.
pub type Files = BTreeMap<String, String>;

const STOPPED: &str = "the evaluator has stopped";
/// Answers kept for those who ask again.
const KEPT_ANSWERS: usize = 512;
/// Parsers recurse within limits; this is more than these allow.
const STACK_BYTES: usize = 32 << 20;

/// More threads than this for questions without timing would only heat the machine.
const MOST_CHECKERS: usize = 8;

/// Something that needs a device, done by its thread.
type Errand = Box<dyn FnOnce(&dyn Engine) + Send>;

/// What stands in line.
enum Work {
    Judge(Job),
    Errand(Errand),
    CompileAhead(Ahead),
}

/// What can be compiled before its evaluation begins.
struct Ahead {
    /// Of the evaluation.
    number: u64,
    task: Arc<Task>,
    files: Files,
}

struct Job {
    /// No other job has it.
    number: u64,
    task: Arc<Task>,
    files: Files,
    question: Question,
    asked: Instant,
    reply: SyncSender<Result<Answered, String>>,
}

impl Job {
    /// Tells whoever asked; they may have been stopped meanwhile.
    fn tell(self, answer: Result<(Arc<Answer>, f64), String>, waited: f64) {
        let answer = answer.map(|(answer, seconds)| Answered { answer, waited, seconds });
        let _ = self.reply.send(answer);
    }
}

#[derive(Default)]
struct Lanes {
    quick: VecDeque<Job>,
    slow: VecDeque<Work>,
    /// Evaluations in `slow` whose kernels nobody has begun to compile.
    ahead: VecDeque<Ahead>,
    /// Threads that compile such kernels now.
    compiling: usize,
    is_closed: bool,
}

impl Lanes {
    /// The next that needs a device. Nothing is compiled ahead of an evaluation that begins, so that what waits to be
    /// compiled never grows beyond what waits to be evaluated.
    fn evaluate(&mut self) -> Option<Work> {
        let next = self.slow.pop_front()?;
        if let Work::Judge(job) = &next {
            self.ahead.retain(|ahead| ahead.number != job.number);
        }
        Some(next)
    }

    /// The next to be compiled, by so many threads at most.
    fn compile_ahead(&mut self, most: usize) -> Option<Work> {
        let next = if self.compiling < most { self.ahead.pop_front() } else { None };
        self.compiling += usize::from(next.is_some());
        next.map(Work::CompileAhead)
    }
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    lanes: Mutex<Lanes>,
    arrived: Condvar,
    known: Mutex<Known>,
}

impl Shared {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle that attempts share.
pub struct Evaluator {
    shared: Arc<Shared>,
    target: Target,
    threads: Vec<JoinHandle<()>>,
    /// Threads that may compile kernels at the same time, while others evaluate.
    compilers: usize,
    asked: AtomicU64,
}

impl std::fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluator").finish_non_exhaustive()
    }
}

impl Evaluator {
    /// Starts a thread for each judge. They differ in their engines alone, and these are of one kind.
    pub fn start(judges: Vec<Judge>) -> std::io::Result<Evaluator> {
        let on_host = judges.iter().any(|judge| judge.engine.computes_on_host());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let checkers = checkers(on_host, cores, judges.len());
        Evaluator::start_with(judges, checkers)
    }

    /// As [`start`](Self::start), with so many threads beside the judges' for what needs no device.
    pub fn start_with(judges: Vec<Judge>, checkers: usize) -> std::io::Result<Evaluator> {
        let Some(target) = judges.first().map(|judge| judge.target.clone()) else {
            return Err(std::io::Error::other("an evaluator needs a judge"));
        };
        let judges: Vec<Arc<Judge>> = judges.into_iter().map(Arc::new).collect();
        let lanes = if checkers == 0 { Serves::Both } else { Serves::Slow };
        let evaluating = judges.iter().map(|judge| (judge.clone(), lanes));
        let checking = judges.iter().cycle().take(checkers);
        let checking = checking.map(|judge| (judge.clone(), Serves::Quick));
        let mut evaluator = Evaluator::without_threads(target, checkers.saturating_sub(1));
        for (judge, serves) in evaluating.chain(checking) {
            evaluator.spawn(judge, serves, None)?;
        }
        Ok(evaluator)
    }

    /// Evaluates on devices elsewhere, so many at a time; questions without timing are answered here, where no clock runs.
    pub fn start_remote(
        judge: Judge,
        remote: Arc<dyn Remote>,
        evaluations: usize,
    ) -> std::io::Result<Evaluator> {
        let target = judge.target.clone();
        let checkers =
            std::thread::available_parallelism().map_or(1, usize::from).min(MOST_CHECKERS);
        let judge = Arc::new(judge);
        let lanes = [(Serves::Slow, evaluations.max(1)), (Serves::Quick, checkers)];
        let mut evaluator = Evaluator::without_threads(target, 0);
        for (serves, count) in lanes {
            for _ in 0..count {
                evaluator.spawn(judge.clone(), serves, Some(remote.clone()))?;
            }
        }
        Ok(evaluator)
    }

    fn without_threads(target: Target, compilers: usize) -> Evaluator {
        let (threads, asked) = (Vec::new(), AtomicU64::new(0));
        Evaluator { shared: Arc::default(), target, threads, compilers, asked }
    }

    fn spawn(
        &mut self,
        judge: Arc<Judge>,
        serves: Serves,
        remote: Option<Arc<dyn Remote>>,
    ) -> std::io::Result<()> {
        let compilers = self.compilers;
        let worker = Worker { shared: self.shared.clone(), judge, serves, compilers, remote };
        let thread = std::thread::Builder::new()
            .name("evaluator".into())
            .stack_size(STACK_BYTES)
            .spawn(move || worker.run())?;
        self.threads.push(thread);
        Ok(())
    }

    /// Where evaluations run.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Asks and waits. An error is a mistake of ours, in words.
    pub fn ask(
        &self,
        task: &Arc<Task>,
        files: &Files,
        question: Question,
    ) -> Result<Answered, String> {
        let (reply, answer) = sync_channel(1);
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let job = Job {
            number,
            task: task.clone(),
            files: files.clone(),
            question,
            asked: Instant::now(),
            reply,
        };
        {
            let mut lanes = self.shared.lanes();
            match question {
                Question::Evaluate => {
                    if self.compilers > 0 {
                        let (task, files) = (task.clone(), files.clone());
                        lanes.ahead.push_back(Ahead { number, task, files });
                    }
                    lanes.slow.push_back(Work::Judge(job));
                }
                Question::Match | Question::Check => lanes.quick.push_back(job),
            }
        }
        // Not every thread serves every lane.
        self.shared.arrived.notify_all();
        answer.recv().unwrap_or_else(|_| Err(STOPPED.into()))
    }

    /// Does something on a device, in line with the evaluations there, so that it disturbs no clock.
    pub fn on_device<T: Send + 'static>(
        &self,
        errand: impl FnOnce(&dyn Engine) -> T + Send + 'static,
    ) -> Result<T, String> {
        let (reply, answer) = sync_channel(1);
        let errand: Errand = Box::new(move |engine| {
            // Whoever asked may have been stopped meanwhile.
            let _ = reply.send(errand(engine));
        });
        self.shared.lanes().slow.push_back(Work::Errand(errand));
        self.shared.arrived.notify_all();
        answer.recv().map_err(|_| STOPPED.into())
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        self.shared.lanes().is_closed = true;
        self.shared.arrived.notify_all();
        for thread in self.threads.drain(..) {
            // It reports its own panics to those who wait.
            let _ = thread.join();
        }
    }
}

/// Threads for questions without timing, beside the clocks of other devices; none beside the clock of this processor.
/// Every device has a thread here and a process that launches its work, which need a core each.
fn checkers(on_host: bool, cores: usize, devices: usize) -> usize {
    match on_host {
        true => 0,
        false => cores.saturating_sub(2 * devices).min(MOST_CHECKERS),
    }
}

/// Answers by the digest of their question, oldest first out.
#[derive(Default)]
struct Known {
    answers: BTreeMap<[u8; 32], (Arc<Answer>, f64)>,
    order: VecDeque<[u8; 32]>,
    /// Questions that are being answered, and who else asked them.
    under_way: BTreeMap<[u8; 32], Vec<Job>>,
}

impl Known {
    fn keep(&mut self, key: [u8; 32], answer: (Arc<Answer>, f64)) {
        if self.answers.insert(key, answer).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > KEPT_ANSWERS {
            if let Some(oldest) = self.order.pop_front() {
                self.answers.remove(&oldest);
            }
        }
    }
}

/// Which questions a thread answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serves {
    Quick,
    Slow,
    Both,
}

struct Worker {
    shared: Arc<Shared>,
    judge: Arc<Judge>,
    serves: Serves,
    /// As in [`Evaluator`].
    compilers: usize,
    remote: Option<Arc<dyn Remote>>,
}

impl Worker {
    fn run(&self) {
        while let Some(work) = self.next() {
            match work {
                Work::Judge(job) => self.answer(job),
                Work::CompileAhead(Ahead { task, files, .. }) => {
                    // The evaluation itself meets what fails here, and says so.
                    let compile = AssertUnwindSafe(|| self.judge.compile_ahead(&task, &files));
                    let _ = std::panic::catch_unwind(compile);
                    self.shared.lanes().compiling -= 1;
                }
                // One that fails loses its answer, and whoever waits for it hears of that.
                Work::Errand(errand) => {
                    let done = AssertUnwindSafe(|| errand(&*self.judge.engine));
                    let _ = std::panic::catch_unwind(done);
                }
            }
        }
    }

    /// The next job, quick ones first; `None` when nobody can ask any more.
    fn next(&self) -> Option<Work> {
        let mut lanes = self.shared.lanes();
        loop {
            let quick = if self.serves == Serves::Slow { None } else { lanes.quick.pop_front() };
            let job = quick.map(Work::Judge).or_else(|| match self.serves {
                Serves::Quick => lanes.compile_ahead(self.compilers),
                Serves::Slow | Serves::Both => lanes.evaluate(),
            });
            if job.is_some() {
                return job;
            }
            if lanes.is_closed {
                return None;
            }
            lanes = self.shared.arrived.wait(lanes).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn answer(&self, job: Job) {
        let waited = job.asked.elapsed().as_secs_f64();
        let key = digest(&job);
        {
            let mut known = self.shared.known();
            if let Some(answer) = known.answers.get(&key).cloned() {
                return job.tell(Ok(answer), waited);
            }
            if let Some(waiting) = known.under_way.get_mut(&key) {
                return waiting.push(job);
            }
            known.under_way.insert(key, Vec::new());
        }
        let started = Instant::now();
        let judged = std::panic::catch_unwind(AssertUnwindSafe(|| self.judged(&job)));
        let seconds = started.elapsed().as_secs_f64();
        let answer = match judged {
            Ok(Ok(answer)) => Ok((Arc::new(answer), seconds)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the evaluation stopped unexpectedly; this is a bug of passnet".into()),
        };
        let waiting = {
            let mut known = self.shared.known();
            if let Ok(answer) = &answer {
                known.keep(key, answer.clone());
            }
            known.under_way.remove(&key)
        };
        for other in waiting.into_iter().flatten() {
            let waited = other.asked.elapsed().as_secs_f64();
            other.tell(answer.clone(), waited);
        }
        job.tell(answer, waited);
    }

    fn judged(&self, job: &Job) -> std::io::Result<Answer> {
        match job.question {
            Question::Match => Ok(self.judge.matches(&job.task, &job.files)),
            Question::Check => self.judge.check(&job.task, &job.files),
            Question::Evaluate => {
                if let Some(remote) = &self.remote {
                    return remote.evaluate(&job.task, &job.files);
                }
                let mut run = self.judge.begin(&job.task, &job.files);
                while run.next_graph(&self.judge)? {
                    if self.serves == Serves::Both {
                        self.serve_quick();
                    }
                }
                Ok(run.finish(&self.judge))
            }
        }
    }

    /// What waits in the quick lane now; what arrives meanwhile waits for the next graph.
    fn serve_quick(&self) {
        let waiting = std::mem::take(&mut self.shared.lanes().quick);
        for job in waiting {
            self.answer(job);
        }
    }
}

fn digest(job: &Job) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(format!("{:?}", job.question).as_bytes());
    add(job.task.sample.folder.as_os_str().as_encoded_bytes());
    for (name, text) in &job.files {
        add(name.as_bytes());
        add(text.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_runs_beside_the_clock_of_this_processor() {
        assert_eq!(checkers(true, 64, 1), 0);
        assert_eq!(checkers(false, 16, 1), MOST_CHECKERS);
        assert_eq!(checkers(false, 16, 6), 4);
        assert_eq!(checkers(false, 2, 1), 0, "the device's own two threads need the cores");
        assert_eq!(checkers(false, 4, 8), 0);
    }
}
