//! One evaluator for all attempts: a thread that does one thing at a time, so that nothing of ours disturbs its clock.
//!
//! Attempts ask and wait; model calls of other attempts go on meanwhile. Questions without timing (`match`, `check`) go
//! first and are also answered between two graphs of an evaluation, so they are never long in coming. The same passes
//! on the same task are judged once, whoever asks.

mod assessment;
mod judge;

pub use assessment::{Assessment, GraphAssessment};
pub use judge::Judge;

use crate::task::Task;
use passnet_bench::run::GraphEvent;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// What is asked about the passes of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    Match,
    Check,
    Evaluate,
}

/// An answer, shared by all who asked the same.
#[derive(Debug)]
pub struct Answer {
    pub assessment: Assessment,
    /// The full results of an evaluation, for the run store.
    pub events: Vec<GraphEvent>,
}

/// An answer and what it took.
#[derive(Debug, Clone)]
pub struct Answered {
    pub answer: Arc<Answer>,
    /// Seconds in line before the evaluator had time.
    pub waited: f64,
    pub seconds: f64,
}

/// The files of a pass folder, by name.
pub type Files = BTreeMap<String, String>;

/// Answers kept for those who ask again.
const KEPT_ANSWERS: usize = 512;
/// Parsers recurse within limits; this is more than these allow.
const STACK_BYTES: usize = 32 << 20;

struct Job {
    task: Arc<Task>,
    files: Files,
    question: Question,
    asked: Instant,
    reply: SyncSender<Result<Answered, String>>,
}

#[derive(Default)]
struct Lanes {
    quick: VecDeque<Job>,
    slow: VecDeque<Job>,
    is_closed: bool,
}

#[derive(Default)]
struct Queue {
    lanes: Mutex<Lanes>,
    arrived: Condvar,
}

impl Queue {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handle that attempts share.
pub struct Evaluator {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluator").finish_non_exhaustive()
    }
}

impl Evaluator {
    pub fn start(judge: Judge) -> std::io::Result<Evaluator> {
        let queue = Arc::new(Queue::default());
        let mut worker = Worker { queue: queue.clone(), judge, known: Known::default() };
        let thread = std::thread::Builder::new()
            .name("evaluator".into())
            .stack_size(STACK_BYTES)
            .spawn(move || worker.run())?;
        Ok(Evaluator { queue, thread: Some(thread) })
    }

    /// Asks and waits. An error is a mistake of ours, in words.
    pub fn ask(
        &self,
        task: &Arc<Task>,
        files: &Files,
        question: Question,
    ) -> Result<Answered, String> {
        let (reply, answer) = sync_channel(1);
        let job = Job {
            task: task.clone(),
            files: files.clone(),
            question,
            asked: Instant::now(),
            reply,
        };
        {
            let mut lanes = self.queue.lanes();
            match question {
                Question::Evaluate => lanes.slow.push_back(job),
                Question::Match | Question::Check => lanes.quick.push_back(job),
            }
        }
        self.queue.arrived.notify_one();
        answer.recv().unwrap_or_else(|_| Err("the evaluator has stopped".into()))
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        self.queue.lanes().is_closed = true;
        self.queue.arrived.notify_all();
        if let Some(thread) = self.thread.take() {
            // It reports its own panics to those who wait.
            let _ = thread.join();
        }
    }
}

/// Answers by the digest of their question, oldest first out.
#[derive(Default)]
struct Known {
    answers: BTreeMap<[u8; 32], (Arc<Answer>, f64)>,
    order: VecDeque<[u8; 32]>,
}

struct Worker {
    queue: Arc<Queue>,
    judge: Judge,
    known: Known,
}

impl Worker {
    fn run(&mut self) {
        while let Some(job) = self.next() {
            self.answer(job);
        }
    }

    /// The next job, quick ones first; `None` when nobody can ask any more.
    fn next(&self) -> Option<Job> {
        let mut lanes = self.queue.lanes();
        loop {
            let quick = lanes.quick.pop_front();
            if let Some(job) = quick.or_else(|| lanes.slow.pop_front()) {
                return Some(job);
            }
            if lanes.is_closed {
                return None;
            }
            lanes = self.queue.arrived.wait(lanes).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn answer(&mut self, job: Job) {
        let waited = job.asked.elapsed().as_secs_f64();
        let key = digest(&job);
        if let Some((answer, seconds)) = self.known.answers.get(&key) {
            let known = Answered { answer: answer.clone(), waited, seconds: *seconds };
            // Whoever asked may have been stopped meanwhile.
            let _ = job.reply.send(Ok(known));
            return;
        }
        let started = Instant::now();
        let judged = std::panic::catch_unwind(AssertUnwindSafe(|| self.judged(&job)));
        let seconds = started.elapsed().as_secs_f64();
        let answer = match judged {
            Ok(Ok(answer)) => {
                let answer = Arc::new(answer);
                self.keep(key, answer.clone(), seconds);
                Ok(Answered { answer, waited, seconds })
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the evaluation stopped unexpectedly; this is a bug of passnet".into()),
        };
        let _ = job.reply.send(answer);
    }

    fn judged(&mut self, job: &Job) -> std::io::Result<Answer> {
        match job.question {
            Question::Match => self.judge.matches(&job.task, &job.files),
            Question::Check => self.judge.check(&job.task, &job.files),
            Question::Evaluate => {
                let mut run = self.judge.begin(&job.task, &job.files)?;
                while run.next_graph(&mut self.judge)? {
                    self.serve_quick();
                }
                Ok(run.finish(&self.judge))
            }
        }
    }

    /// What waits in the quick lane now; what arrives meanwhile waits for the next graph.
    fn serve_quick(&mut self) {
        let waiting = std::mem::take(&mut self.queue.lanes().quick);
        for job in waiting {
            self.answer(job);
        }
    }

    fn keep(&mut self, key: [u8; 32], answer: Arc<Answer>, seconds: f64) {
        if self.known.answers.insert(key, (answer, seconds)).is_none() {
            self.known.order.push_back(key);
        }
        while self.known.order.len() > KEPT_ANSWERS {
            if let Some(oldest) = self.known.order.pop_front() {
                self.known.answers.remove(&oldest);
            }
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
