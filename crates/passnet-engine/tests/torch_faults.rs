//! A worker that falls in every way it can: the call that felled it says what happened, the next one works.

#![cfg(unix)]

use passnet_engine::native::{Tensor, Wrappers};
use passnet_engine::torch::{TorchEngine, WorkerOptions};
use passnet_engine::{Engine, ErrorKind, Precision, RunOptions, Tier, Value};
use passnet_graph::Graph;
use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

const FAKE_WORKER: &str = include_str!("torch/fake_worker.py");

fn identity() -> Graph {
    let text = "import torch\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n        y = torch.relu(x)\n        return (y,)\n";
    read_model(&Source::new("model.py", text)).unwrap()
}

fn options(python: &Path) -> WorkerOptions {
    WorkerOptions {
        python: python.to_path_buf(),
        runner: None,
        cache: std::env::temp_dir(),
        device: "cpu".into(),
        gpu: None,
        threads: 1,
        memory_limit: 200 << 20,
        call_limit: Duration::from_secs(6),
        tier: Tier::Plan,
    }
}

#[test]
#[ignore = "needs python3; tools/full-check runs it"]
fn a_fallen_worker_is_replaced_and_the_fault_has_its_name() {
    let cases = [
        ("killed", ErrorKind::Machine, "signal: 9"),
        ("crashes", ErrorKind::Kernel, "signal: 11"),
        ("exits", ErrorKind::Machine, "out of luck"),
        ("hangs", ErrorKind::Timeout, "too long"),
        ("hoards", ErrorKind::Memory, "more memory"),
        ("garbage", ErrorKind::Machine, "begins with other bytes"),
        ("half", ErrorKind::Machine, "it ended"),
        ("empty", ErrorKind::Machine, "are not in the shared memory"),
        ("stranger", ErrorKind::Machine, "another question"),
        ("lost", ErrorKind::Kernel, "an illegal memory access"),
        ("unequipped", ErrorKind::Machine, "without the native runner"),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (fault, kind, evidence) in cases {
        let script = folder.path().join(format!("{fault}.py"));
        std::fs::write(&script, FAKE_WORKER).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let engine = TorchEngine::start(options(&script)).unwrap();
        let graph =
            engine.prepare(&identity(), Precision::AsWritten, &Wrappers::default()).unwrap();
        let input = Value::Tensor(Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap());
        let run = || graph.run(std::slice::from_ref(&input), &RunOptions::default());
        let error = run().unwrap_err();
        assert_eq!(error.kind, kind, "{fault}: {error}");
        let counted = usize::from(kind == ErrorKind::Machine);
        assert_eq!(engine.faults().count, counted, "{fault}: whose fault it is");
        assert!(error.to_string().contains(evidence), "{fault}: {error}");
        let outputs = run().unwrap_or_else(|error| panic!("after {fault}: {error}"));
        let values = outputs[0].as_tensor().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(values, [1.0, 2.0, 3.0], "after {fault}");
        let started = if fault == "unequipped" { 1 } else { 2 };
        assert_eq!(engine.workers_started(), started, "{fault}");
    }
}

#[test]
fn a_python_that_is_not_there_is_an_error_that_names_it() {
    let error = TorchEngine::start(options(Path::new("/no/such/python"))).unwrap_err();
    assert!(error.to_string().contains("/no/such/python"), "{error}");
}

#[test]
#[ignore = "needs python3; tools/full-check runs it"]
fn an_engine_says_what_it_works_with() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("faultless.py");
    std::fs::write(&script, FAKE_WORKER).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let bare = TorchEngine::start(options(&script)).unwrap().identity();
    assert_eq!((bare.engine.as_str(), bare.device.kind.as_str()), ("torch", "cpu"));
    assert_eq!((bare.torch.as_deref(), bare.python.as_deref()), (Some("none"), Some("3")));
    assert_eq!((bare.runner.as_deref(), bare.tier), (None, Tier::Plan));
    assert!(bare.cores > 0 && !bare.processor.is_empty());
    let runner = folder.path().join("runner.so");
    std::fs::write(&runner, "a library").unwrap();
    let with_runner = WorkerOptions { runner: Some(runner), ..options(&script) };
    let equipped = TorchEngine::start(with_runner).unwrap().identity();
    assert!(equipped.runner.is_some());
    assert_ne!(equipped.digest(), bare.digest(), "results of one do not answer for the other");
}
