//! `passnet solve --target`, through the real binary: passes for a GPU that is not here.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;

const TARGET: &str = r#"{
  "name": "a GPU",
  "source": "made up",
  "compute_capability": [9, 0],
  "multiprocessors": 132,
  "shared_memory_bytes": 233472,
  "bytes_per_second": 4.8e12,
  "seconds_per_launch": 2e-6,
  "flops_per_second": {"bfloat16": 9e14, "float16": 9e14, "float32": 6e13}
}
"#;

fn task() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/tasks/swiglu")
}

fn solve(target: &str, python: &str, cache: &Path, out: &Path) -> Output {
    let mut command = Command::cargo_bin("passnet").unwrap();
    command.arg("solve").arg(task()).args(["--no-tune", "--no-bench", "--target", target]);
    command.arg("--python").arg(python).arg("--out").arg(out).env("XDG_CACHE_HOME", cache);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the cost model expects of the only pass.
fn expected_speedup(out: &Path) -> f64 {
    let text = std::fs::read_to_string(out.join("passes/swiglu/explain.json")).unwrap();
    let explanation: Value = serde_json::from_str(&text).unwrap();
    explanation["passes"][0]["estimate"]["expected_speedup"].as_f64().unwrap()
}

#[test]
fn a_target_decides_what_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    let (out, file) = (folder.path().join("out"), folder.path().join("slow.json"));
    let output = solve("h200", "/no/such/python", folder.path(), &out);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("nothing is compiled"), "{}", text(&output.stderr));
    let named = expected_speedup(&out);
    // Where bytes cost much and launches nothing, fewer launches bring less.
    let slow = TARGET.replace("4.8e12", "4.8e6").replace("2e-6", "1e-12");
    std::fs::write(&file, slow).unwrap();
    let output = solve(file.to_str().unwrap(), "/no/such/python", folder.path(), &out);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!((expected_speedup(&out) - named).abs() > 0.01, "{named}");
}

#[test]
fn a_broken_target_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.json");
    std::fs::write(&file, TARGET.replace("132", "\"many\"")).unwrap();
    for (target, words) in [(file.to_str().unwrap(), "broken.json:5:"), ("h300", "h200")] {
        let output = solve(target, "/no/such/python", folder.path(), &folder.path().join("out"));
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[test]
#[ignore = "needs Triton and a sandbox; tools/full-check runs it"]
fn kernels_are_compiled_for_the_target() {
    let folder = tempfile::tempdir().unwrap();
    let python = std::env::var("PASSNET_PYTHON").expect("PASSNET_PYTHON must name a Python");
    let output = solve("h200", &python, folder.path(), &folder.path().join("out"));
    let said = text(&output.stderr);
    assert!(said.contains("launches compiled for NVIDIA H200"), "{said}");
    assert!(!said.contains("not compiled"), "{said}");
    let cubins = std::fs::read_dir(folder.path().join("passnet/cubins")).unwrap().count();
    assert!(cubins > 0, "{said}");
}
