//! Evaluations as units: the nodes of a cluster judge what agents write, here or in a trainer's environment server.

use super::input::{pack_task, read_task};
use super::shared::{admit, program_digest};
use super::unit_worker::{UnitWorker, bundled};
use super::{ClusterArgs, Kind, Started, why_it_ended};
use crate::commands::agent::AgentCommand;
use crate::commands::engine::EngineArgs;
use crate::commands::judging::AgentJudging;
use crate::error::CommandError;
use crate::output::warn;
use passnet_agent::evaluator::{Answer as Judged, Files, Judge, Remote};
use passnet_agent::prompt::Target;
use passnet_agent::task::Task;
use passnet_bench::bench::Bench;
use passnet_bench::evaluate::EvaluateOptions;
use passnet_bench::roofline::Roofline;
use passnet_bench::subject::Subject;
use passnet_cluster::{Answer, Aside, Driven, Hello, Incoming, Input, Job, News, drive};
use passnet_engine::Identity;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// What a worker's hello has besides its identity.
const TARGET: &str = "target";
const STOPPED: &str = "the cluster's evaluators have stopped";

/// An evaluation that somebody waits for.
struct Question {
    /// The task as workers read it.
    task: Arc<Vec<u8>>,
    words: Value,
    reply: SyncSender<Result<Judged, String>>,
}

/// A pool of evaluators on the nodes of a cluster.
pub struct Evaluators {
    ask: Sender<Question>,
    wake: SyncSender<Incoming>,
    target: Target,
    noise: f64,
    /// Packed once each.
    tasks: Mutex<BTreeMap<String, Arc<Vec<u8>>>>,
}

impl Evaluators {
    /// Starts workers on all nodes and waits for the first.
    pub fn start(cluster: &ClusterArgs, kind: Kind) -> Result<Evaluators, CommandError> {
        let Started { bridge, mut process, _package } = cluster.start(kind)?;
        let wake = bridge.waker();
        let (ask, questions) = channel();
        let (first, ready) = sync_channel(1);
        let mut job = EvaluatorJob {
            questions,
            is_over: false,
            program: program_digest()?,
            device: cluster.cluster_device.clone(),
            class: None,
            first: Some(first),
        };
        let limits = cluster.limits();
        std::thread::Builder::new().name("cluster".into()).spawn(move || {
            let Ok(driven) = drive(&mut job, bridge, limits);
            let _ = process.wait();
            drop(_package);
            job.end(&driven);
        })?;
        let (target, noise) = ready.recv().unwrap_or_else(|_| Err(STOPPED.into())).map_err(lost)?;
        Ok(Evaluators { ask, wake, target, noise, tasks: Mutex::default() })
    }

    /// Where evaluations run.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What the first node calls nothing.
    pub fn noise(&self) -> f64 {
        self.noise
    }

    fn packed(&self, task: &Task) -> Result<Arc<Vec<u8>>, String> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = tasks.get(&task.id) {
            return Ok(packed.clone());
        }
        let packed = pack_task(&task.sample, None).map_err(|error| format!("{error:?}"))?;
        Ok(tasks.entry(task.id.clone()).or_insert(Arc::new(packed)).clone())
    }
}

fn lost(message: String) -> CommandError {
    let hint = "`docs/cluster.md` says what nodes need; the same command goes on".into();
    CommandError::Lacking { message, hint }
}

impl Remote for Evaluators {
    fn evaluate(&self, task: &Task, files: &Files) -> std::io::Result<Judged> {
        let words = json!({ "task": task.id, "files": files });
        let (reply, answer) = sync_channel(1);
        let task = self.packed(task).map_err(std::io::Error::other)?;
        let gone = |_| std::io::Error::other(STOPPED);
        self.ask
            .send(Question { task, words, reply })
            .map_err(|_| std::io::Error::other(STOPPED))?;
        // A full channel means that the driver is awake.
        let _ = self.wake.try_send(Incoming::Wake);
        answer.recv().map_err(gone)?.map_err(std::io::Error::other)
    }
}

struct EvaluatorJob {
    questions: Receiver<Question>,
    is_over: bool,
    program: String,
    device: Option<String>,
    /// Of the first worker; others must be like it.
    class: Option<String>,
    /// Whoever waits for it.
    first: Option<SyncSender<Result<(Target, f64), String>>>,
}

impl EvaluatorJob {
    /// Tells those who wait that nothing comes any more.
    fn end(mut self, driven: &Driven) {
        let why = why_it_ended(driven).unwrap_or_else(|| STOPPED.into());
        if let Some(first) = self.first.take() {
            let _ = first.send(Err(why.clone()));
        }
        for question in self.questions.try_iter() {
            let _ = question.reply.send(Err(why.clone()));
        }
    }
}

impl Job for EvaluatorJob {
    type Unit = Question;
    type Error = std::convert::Infallible;

    fn next(&mut self) -> Option<Question> {
        use std::sync::mpsc::TryRecvError;
        match self.questions.try_recv() {
            Ok(question) => Some(question),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.is_over = true;
                None
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn total(&self) -> (Option<u64>, u64) {
        (None, 0)
    }

    fn input(&mut self, unit: &Question) -> Result<Input, Self::Error> {
        let input = Input::new(unit.task.to_vec(), unit.words.clone());
        Ok(Input { is_shared: true, ..input })
    }

    fn admit(&mut self, hello: &Hello) -> Result<(), String> {
        admit(hello, &self.program, self.device.as_deref())?;
        match &self.class {
            Some(class) if *class != hello.class => {
                return Err(format!(
                    "unlike the others: `{}`, and they are `{class}`",
                    hello.class
                ));
            }
            Some(_) => return Ok(()),
            None => self.class = Some(hello.class.clone()),
        }
        let target = serde_json::from_value(hello.identity[TARGET].clone());
        let target = target.map_err(|error| format!("it does not say where it runs: {error}"))?;
        if let Some(first) = self.first.take() {
            let _ = first.send(Ok((target, hello.noise.unwrap_or(0.0))));
        }
        Ok(())
    }

    fn accept(
        &mut self,
        unit: &Question,
        answer: &Answer<'_>,
    ) -> Result<Result<(), String>, Self::Error> {
        let judged = serde_json::from_value::<Judged>(answer.reply.words.clone());
        Ok(judged.map_err(|error| error.to_string()).map(|judged| {
            // Whoever asked may have been stopped meanwhile.
            let _ = unit.reply.send(Ok(judged));
        }))
    }

    fn commit(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn set_aside(&mut self, aside: Aside<Question>) -> Result<(), Self::Error> {
        let _ = aside.unit.reply.send(Err(aside.reasons.join("; then ")));
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn news(&mut self, news: News<'_>) {
        if let News::Node { name, what, reason } = news {
            warn(&format!("node {name} is {what}: {reason}"));
        }
    }
}

/// Evaluates for a driver elsewhere.
struct EvaluatorWorker {
    judge: Judge,
}

pub(super) fn worker(command: &AgentCommand) -> Result<Box<dyn UnitWorker>, CommandError> {
    let (engine, judging) = match command {
        AgentCommand::Run(args) => (&args.engine, &args.judging),
        AgentCommand::Serve(args) => (&args.engine, &args.judging),
        _ => return Err(CommandError::input("this command has no units")),
    };
    Ok(Box::new(EvaluatorWorker { judge: judge(engine, judging)? }))
}

fn judge(engine: &EngineArgs, judging: &AgentJudging) -> Result<Judge, CommandError> {
    crate::compute_here();
    let tier = engine.choice().tier;
    let engine = engine.start_one_for_passes()?;
    let mut options = EvaluateOptions { tier, ..judging.judging.options() };
    let rules = judging.judging.rules();
    let bench = Bench {
        engine: &*engine,
        subject: Subject::Eager,
        options: options.clone(),
        rules,
        roofline: Roofline::default(),
    };
    options.noise_floor = bench.measure_noise(&bundled()?);
    let target = Target::of(&*engine);
    let mut judge = Judge::new(engine, options, target);
    judge.rules = rules;
    judge.evaluation_seconds = judging.evaluation_seconds;
    Ok(judge)
}

impl UnitWorker for EvaluatorWorker {
    fn identity(&self) -> Identity {
        self.judge.engine.identity()
    }

    fn about(&self) -> Value {
        let mut about = serde_json::to_value(self.identity()).unwrap_or_default();
        about[TARGET] = serde_json::to_value(&self.judge.target).unwrap_or_default();
        about
    }

    fn noise(&self) -> Option<f64> {
        Some(self.judge.options.noise_floor)
    }

    fn perform(&mut self, words: &Value, input: &Path, _: &Path) -> Result<Value, String> {
        let files: Files =
            serde_json::from_value(words["files"].clone()).map_err(|error| error.to_string())?;
        let mut task = Task::read(&read_task(input)?.folder).map_err(|error| error.to_string())?;
        // As the driver tells tasks of one name apart.
        if let Some(id) = words["task"].as_str() {
            task.id = id.into();
        }
        let judged = self.judge.evaluate(&task, &files).map_err(|error| error.to_string())?;
        serde_json::to_value(&judged).map_err(|error| error.to_string())
    }
}
