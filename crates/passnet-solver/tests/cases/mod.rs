//! Graphs that one pass computes as a whole, solved and held against an engine.

use crate::common::{GraphText, Task, written};
use passnet_bench::evaluate::Evaluation;
use passnet_bench::verdict::VerdictKind;
use passnet_engine::Tier;
use passnet_engine::torch::{TorchEngine, WorkerOptions};
use std::path::PathBuf;
use std::time::Duration;

/// Inputs and statements.
pub type Case = (&'static [&'static str], &'static [&'static str]);

/// Solves every case into one pass and evaluates it.
pub fn all_are_whole_and_right(cases: &[Case], evaluate: impl Fn(&Task) -> Vec<Evaluation>) {
    for (inputs, body) in cases {
        let task = Task::new(&[GraphText { inputs: inputs.to_vec(), body: body.to_vec() }]);
        let explanation = task.solve().unwrap_or_else(|error| panic!("{body:?}: {error}"));
        let text = written(&task.passes());
        assert!(explanation.left.is_empty(), "{body:?}: {:?}", explanation.left);
        let fused: usize = explanation.passes.iter().map(|pass| pass.nodes.len()).sum();
        // After an assignment in place stands the name of what it gives; a number of Python's is no part of a pass.
        let is_name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
        let is_number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let is_other =
            |right: &str| is_name(right) || is_number(right) || right.contains("_nesting(");
        let is_call =
            |line: &&&str| line.split_once(" = ").is_none_or(|(_, right)| !is_other(right));
        let fewest = body.iter().filter(is_call).count() - 1;
        assert!(explanation.passes.len() == 1 && fused >= fewest, "{body:?}:\n{text}");
        for evaluation in evaluate(&task) {
            let verdict = &evaluation.judged.verdict;
            assert_eq!(verdict.kind, VerdictKind::Correct, "{verdict}\n{text}");
        }
    }
}

/// The engine of the PyTorch that `PASSNET_PYTHON` names.
pub fn pytorch() -> TorchEngine {
    let exe = std::env::current_exe().unwrap();
    let runner: PathBuf = exe.parent().unwrap().parent().unwrap().join("libpassnet_runner.so");
    assert!(runner.is_file(), "the plan runner is not built (`cargo build -p passnet-runner`)");
    let python = std::env::var_os("PASSNET_PYTHON");
    let options = WorkerOptions {
        python: python.expect("PASSNET_PYTHON must name a Python with PyTorch").into(),
        runner: Some(runner),
        cache: std::env::temp_dir(),
        device: "cpu".into(),
        gpu: None,
        threads: 2,
        memory_limit: 8 << 30,
        call_limit: Duration::from_secs(120),
        tier: Tier::Plan,
    };
    TorchEngine::start(options).unwrap()
}
