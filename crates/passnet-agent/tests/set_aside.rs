//! Tasks that eager fails on are nobody's failure: they are named, and in no score.

mod support;

use passnet_agent::evaluator::{Evaluator, Judge};
use passnet_agent::metrics::{Metrics, eager_fails};
use passnet_agent::model::Protocol;
use passnet_agent::prompt::Target;
use passnet_agent::run::{AttemptRecord, read_attempts};
use passnet_agent::task::Task;
use passnet_bench::score::Parameters;
use passnet_engine::native::{NativeEngine, Wrappers};
use passnet_engine::{Engine, EngineError, ErrorKind, Precision, Prepared};
use passnet_graph::{DType, Graph};
use std::path::Path;
use std::sync::Arc;
use support::provider::{Asked, Provider, Shape};
use support::tasks::{MANIFEST, PASS, small_task};
use support::{agent, run_in};

/// A device on which eager refuses every graph, as a GPU refuses an operation that only a processor has.
#[derive(Debug)]
struct Refusing;

impl Engine for Refusing {
    fn name(&self) -> &'static str {
        "native"
    }

    fn copy_seconds(&self, _: u64) -> Option<f64> {
        None
    }

    fn flops_per_second(&self, _: DType) -> Option<f64> {
        None
    }

    fn prepare(
        &self,
        _: &Graph,
        _: Precision,
        _: &Wrappers,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        Err(EngineError::graph(ErrorKind::Value, "not on this device"))
    }
}

/// One attempt at each task, which writes this pass and evaluates it.
fn attempts(
    folder: &Path,
    engine: impl Engine + 'static,
    pass: &str,
    tasks: &[Arc<Task>],
) -> Vec<AttemptRecord> {
    let create = |path: &str, text: &str| {
        let arguments = serde_json::json!({ "path": path, "file_text": text });
        ("create".to_string(), arguments.to_string())
    };
    let manifest = create(MANIFEST, "[\"fuse\"]");
    let calls = vec![manifest, create("pass_dir/fuse.py", pass), ("evaluate".into(), "{}".into())];
    let submit = vec![("submit".to_string(), "{}".to_string())];
    let provider = Provider::start(move |asked: &Asked<'_>| {
        Shape::Calls(if asked.replies == 0 { calls.clone() } else { submit.clone() })
    });
    let mut agent = agent(&provider.openai(), Protocol::OpenAi);
    let target = Target::of(&engine);
    let judge = Judge::new(Box::new(engine), support::options(), target);
    agent.evaluator = Arc::new(Evaluator::start(vec![judge]).unwrap());
    run_in(folder, &agent, tasks, 1, 1);
    read_attempts(folder).unwrap()
}

fn metrics(attempts: &[AttemptRecord]) -> Metrics {
    Metrics::of(attempts, Parameters::default()).unwrap()
}

#[test]
fn what_eager_refuses_is_named_and_in_no_score() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let [good, refused] = ["good", "refused"].map(|name| small_task(place.path(), name));
    let solved = attempts(&at("solved"), NativeEngine, PASS, std::slice::from_ref(&good));
    let alone = metrics(&solved);
    assert!(alone.set_aside.is_empty());

    let failed = attempts(&at("failed"), Refusing, PASS, std::slice::from_ref(&refused));
    let both = [solved.clone(), failed.clone()].concat();
    let found = metrics(&both);
    assert_eq!((found.tasks, found.attempts), (2, 2));
    assert_eq!(found.set_aside, ["refused"]);
    assert_eq!((&found.pass_at, &found.best_of), (&alone.pass_at, &alone.best_of));
    assert_eq!(found.over_steps, alone.over_steps);
    assert!(found.failures.is_empty(), "{:?}", found.failures);
    assert!(found.output_tokens > alone.output_tokens, "what it cost still counts");

    let nothing = metrics(&failed);
    assert_eq!(nothing.set_aside, ["refused"]);
    assert!(nothing.pass_at.is_empty() && nothing.best_of.is_empty());
    assert!(nothing.over_steps.is_empty());
}

#[test]
fn a_task_is_set_aside_only_on_what_eager_said() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let task = [small_task(place.path(), "task")];
    let unread = attempts(&at("unread"), Refusing, "nonsense(", &task);
    let found = metrics(&unread);
    assert!(found.set_aside.is_empty(), "eager was not asked");
    assert_eq!(found.failures["compile_fail"], 1);
    assert!((found.best_of[0].value - Parameters::default().b).abs() < 1e-12);

    // The same task, known from another attempt: it fails for both.
    let refused = attempts(&at("refused"), Refusing, PASS, &task);
    let aside = eager_fails(unread.iter().chain(&refused));
    let found = Metrics::without(&aside, &unread, Parameters::default()).unwrap();
    assert_eq!((found.set_aside.len(), found.failures.len()), (1, 0));

    // An attempt that says so of a graph on which eager ran for another is not believed.
    let solved = attempts(&at("solved"), NativeEngine, PASS, &task);
    assert!(eager_fails(refused.iter().chain(&solved)).is_empty());
    assert!(eager_fails(solved.iter().chain(&refused)).is_empty());
}
