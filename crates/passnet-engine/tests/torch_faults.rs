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
        threads: 1,
        memory_limit: 200 << 20,
        call_limit: Duration::from_secs(6),
        tier: Tier::Plan,
    }
}

/// `false`, said aloud, where there is no Python at all.
fn has_python() -> bool {
    let found = std::process::Command::new("python3").arg("--version").output().is_ok();
    if !found {
        let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: no python3 here\n");
    }
    found
}

#[test]
fn a_fallen_worker_is_replaced_and_the_fault_has_its_name() {
    if !has_python() {
        return;
    }
    let cases = [
        ("killed", ErrorKind::Kernel, "signal: 9"),
        ("exits", ErrorKind::Kernel, "out of luck"),
        ("hangs", ErrorKind::Timeout, "too long"),
        ("hoards", ErrorKind::Memory, "more memory"),
        ("garbage", ErrorKind::Internal, "begins with other bytes"),
        ("half", ErrorKind::Kernel, "it ended"),
        ("empty", ErrorKind::Internal, "are not in the area"),
        ("stranger", ErrorKind::Internal, "another question"),
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
        assert!(error.to_string().contains(evidence), "{fault}: {error}");
        let outputs = run().unwrap_or_else(|error| panic!("after {fault}: {error}"));
        let values = outputs[0].as_tensor().unwrap().to_vec::<f32>().unwrap();
        assert_eq!(values, [1.0, 2.0, 3.0], "after {fault}");
        assert_eq!(engine.workers_started(), 2, "{fault}");
    }
}

#[test]
fn a_python_that_is_not_there_is_an_error_that_names_it() {
    let error = TorchEngine::start(options(Path::new("/no/such/python"))).unwrap_err();
    assert!(error.to_string().contains("/no/such/python"), "{error}");
}
