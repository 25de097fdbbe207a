//! The torch engine against the native one, live: needs a Python with PyTorch, named by `PASSNET_PYTHON`.

use passnet_bench::candidate::Candidate;
use passnet_bench::evaluate::{EvaluateOptions, Subject, evaluate};
use passnet_bench::sample::Sample;
use passnet_bench::timing::TimingOptions;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::torch::{TorchEngine, WorkerOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The runner that the build left beside the tests.
fn runner() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    let path = exe.parent()?.parent()?.join("libpassnet_runner.so");
    path.is_file().then_some(path)
}

fn engine() -> Option<TorchEngine> {
    let say = |text: &[u8]| {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), text);
    };
    let Some(python) = std::env::var_os("PASSNET_PYTHON") else {
        say(b"skipped: PASSNET_PYTHON names no Python with PyTorch\n");
        return None;
    };
    let Some(runner) = runner() else {
        say(b"skipped: the plan runner is not built (`cargo build --workspace`)\n");
        return None;
    };
    let options = WorkerOptions {
        python: python.into(),
        runner: Some(runner),
        cache: std::env::temp_dir(),
        device: "cpu".into(),
        threads: 2,
        memory_limit: 8 << 30,
        call_limit: Duration::from_secs(120),
    };
    Some(TorchEngine::start(options).unwrap())
}

fn options() -> EvaluateOptions {
    EvaluateOptions {
        timing: TimingOptions { warmup: 1, trials: 10, seconds: 0.0, ..TimingOptions::default() },
        draws: 0,
        ..EvaluateOptions::default()
    }
}

/// Every bundled pass, replayed on PyTorch's memory and held against eager PyTorch.
#[test]
fn bundled_passes_are_right_beside_eager_pytorch() {
    let Some(engine) = engine() else { return };
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let mut tasks: Vec<PathBuf> = std::fs::read_dir(bundled.join("tasks"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    tasks.sort();
    let mut wrong = Vec::new();
    for task in tasks {
        let sample = Sample::read(&task).unwrap();
        let candidate = Candidate::load(&bundled.join("passes").join(&sample.name), None, true);
        let candidate = candidate.unwrap_or_else(|verdict| panic!("{}: {verdict}", sample.name));
        for graph in &sample.graphs {
            let files = sample.graph_files(graph).unwrap();
            let evaluation = evaluate(&engine, &files, Some(&candidate), &options());
            let verdict = evaluation.judged.verdict;
            if verdict.kind != VerdictKind::Correct {
                wrong.push(format!("{} {graph}: {verdict}", sample.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(engine.workers_started(), 1, "no worker fell");
}

/// Eager PyTorch against itself through the same door.
#[test]
fn eager_pytorch_is_equal_to_itself() {
    let Some(engine) = engine() else { return };
    let task = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/tasks/swiglu");
    let sample = Sample::read(&task).unwrap();
    for graph in &sample.graphs {
        let files = sample.graph_files(graph).unwrap();
        let evaluation = evaluate(&engine, &files, Subject::Eager, &options());
        assert_eq!(evaluation.judged.verdict.kind, VerdictKind::Correct, "{evaluation:?}");
        assert_eq!(evaluation.judged.ladder.first_right(), Some(-10));
    }
}
