//! Where questions are answered: evaluations on the engines asked for, one thing at a time on each, the rest natively.

mod support;

use passnet_agent::chat::ToolCall;
use passnet_agent::episode::Episode;
use passnet_agent::evaluator::{Evaluator, Files, Judge, Question};
use passnet_agent::prompt::Target;
use passnet_agent::task::Task;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::identity::DeviceIdentity;
use passnet_engine::native::{NativeEngine, Wrappers};
use passnet_engine::{Engine, EngineError, Identity, Precision, Prepared};
use passnet_graph::{DType, Graph};
use passnet_kernel::ModuleSet;
use passnet_kernel::plan::LaunchPlan;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use support::tasks::{PASS, small_task};

/// A device that computes as the native engine does, says that it is a GPU, and counts the graphs that it is given.
#[derive(Debug, Clone, Default)]
struct Device {
    graphs: Arc<AtomicUsize>,
    /// Where its first graph waits for those of the other devices.
    meeting: Option<Arc<Barrier>>,
    /// Plans whose kernels it was asked to compile before it was given their graphs.
    compiled: Arc<AtomicUsize>,
    /// Where its first graph waits for the first of these plans.
    compiled_first: Option<Arc<Barrier>>,
}

impl Device {
    fn graphs(&self) -> usize {
        self.graphs.load(Ordering::SeqCst)
    }
}

impl Engine for Device {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn identity(&self) -> Identity {
        let device =
            DeviceIdentity { kind: "cuda".into(), name: "a GPU".into(), ..Default::default() };
        Identity { device, ..Identity::here("torch") }
    }

    fn computes_on_host(&self) -> bool {
        false
    }

    fn copy_seconds(&self, bytes: u64) -> Option<f64> {
        Some(1e-6 + bytes as f64 * 1e-12)
    }

    fn flops_per_second(&self, _: DType) -> Option<f64> {
        Some(1e14)
    }

    fn compile_ahead(&self, _: &ModuleSet, plan: &LaunchPlan) {
        assert!(!plan.steps.is_empty());
        let is_first = self.compiled.fetch_add(1, Ordering::SeqCst) == 0;
        if let (Some(meeting), true) = (&self.compiled_first, is_first) {
            meeting.wait();
        }
    }

    fn prepare(
        &self,
        graph: &Graph,
        precision: Precision,
        wrappers: &Wrappers,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        let is_first = self.graphs.fetch_add(1, Ordering::SeqCst) == 0;
        for meeting in self.meeting.iter().chain(&self.compiled_first).filter(|_| is_first) {
            meeting.wait();
        }
        NativeEngine.prepare(graph, precision, wrappers)
    }
}

fn files(text: &str) -> Files {
    let manifest = "sorted_output_pass_rule_names.json".to_string();
    [(manifest, "[\"fuse\"]".to_string()), ("fuse.py".to_string(), text.to_string())].into()
}

fn evaluator(devices: &[Device]) -> Evaluator {
    let judge = |device: &Device| {
        Judge::new(Box::new(device.clone()), support::options(), Target::of(device))
    };
    Evaluator::start(devices.iter().map(judge).collect()).unwrap()
}

fn task() -> (tempfile::TempDir, Arc<Task>) {
    let folder = tempfile::tempdir().unwrap();
    let task = small_task(folder.path(), "task");
    (folder, task)
}

#[test]
fn only_evaluations_touch_the_device() {
    let (_folder, task) = task();
    let device = Device::default();
    let evaluator = evaluator(std::slice::from_ref(&device));
    assert_eq!(evaluator.target().identity.device.name, "a GPU");
    for question in [Question::Match, Question::Check] {
        let found = evaluator.ask(&task, &files(PASS), question).unwrap();
        assert_eq!(found.answer.assessment.count(VerdictKind::Correct), 2, "{question:?}");
        assert_eq!(device.graphs(), 0, "{question:?} stays native");
    }
    let found = evaluator.ask(&task, &files(PASS), Question::Evaluate).unwrap();
    assert!(found.answer.assessment.is_all_correct() && found.answer.assessment.score.is_some());
    assert!(device.graphs() > 0, "evaluations run where they were asked to");
}

#[test]
fn every_device_works_and_the_same_question_is_answered_once() {
    let (_folder, task) = task();
    // No device goes on before the other one has begun: both work at the same time.
    let meeting = Some(Arc::new(Barrier::new(2)));
    let devices = [(); 2].map(|()| Device { meeting: meeting.clone(), ..Device::default() });
    let evaluator = evaluator(&devices);
    let ask = |text: String| evaluator.ask(&task, &files(&text), Question::Evaluate).unwrap();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asked = |number: usize| format!("# {}\n{PASS}", number % 2);
        let threads: Vec<_> =
            (0..6).map(|number| scope.spawn(move || ask(asked(number)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|found| found.answer.assessment.is_all_correct()));
    for (number, found) in answers.iter().enumerate() {
        assert!(Arc::ptr_eq(&found.answer, &answers[number % 2].answer), "judged once");
    }
    assert!(devices.iter().all(|device| device.graphs() > 0), "both have worked");
}

#[test]
fn kernels_of_evaluations_in_line_are_compiled_by_threads_without_a_device() {
    let (_folder, task) = task();
    let start = |device: &Device, checkers| {
        let judge = Judge::new(Box::new(device.clone()), support::options(), Target::of(device));
        Evaluator::start_with(vec![judge], checkers).unwrap()
    };
    let ask = |evaluator: &Evaluator, text: &str| {
        evaluator.ask(&task, &files(text), Question::Evaluate).unwrap();
    };
    // The device does not go on with its first graph before kernels of some evaluation in line were compiled.
    let device = Device { compiled_first: Some(Arc::new(Barrier::new(2))), ..Device::default() };
    let evaluator = start(&device, 2);
    std::thread::scope(|scope| {
        for text in [PASS.to_string(), format!("# again\n{PASS}")] {
            let evaluator = &evaluator;
            scope.spawn(move || ask(evaluator, &text));
        }
    });
    drop(evaluator);
    assert!(device.compiled.load(Ordering::SeqCst) > 0);
    // One thread answers checks, and nothing else.
    let device = Device::default();
    ask(&start(&device, 1), PASS);
    assert_eq!(device.compiled.load(Ordering::SeqCst), 0);
}

#[test]
fn a_folder_that_changes_nothing_earns_nothing() {
    let (_folder, task) = task();
    let evaluator = support::evaluator();
    let unmatched = PASS.replace("relu(x * y", "relu(x + y");
    let empty = [("sorted_output_pass_rule_names.json".to_string(), "[]".to_string())].into();
    for files in [Files::new(), empty, files("nonsense("), files(&unmatched)] {
        let mut episode = Episode::new(task.clone(), evaluator.clone());
        for (name, text) in &files {
            let arguments = serde_json::json!({ "path": name, "file_text": text }).to_string();
            episode.perform(&call("create", &arguments)).unwrap();
        }
        let seen = episode.perform(&call("evaluate", "{}")).unwrap();
        assert!(!seen.is_best && episode.best().is_none(), "{files:?}: {}", seen.content);
        assert!(seen.content.contains("does not count"), "{}", seen.content);
    }
}

fn call(name: &str, arguments: &str) -> ToolCall {
    let (id, name, arguments) = (String::new(), name.to_string(), arguments.to_string());
    ToolCall { id, name, arguments }
}
