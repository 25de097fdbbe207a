//! `passnet extract` as people see it. The extractor itself is tested in `python/tests`; here a script stands in for
//! it; `tools/full-check` runs the real one as well.

use assert_cmd::Command;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Writes three graphs, one of them with an operation nobody knows, and results with a torn last line.
const STAND_IN: &str = r#"#!/bin/sh
while [ "$#" -gt 0 ]; do
  if [ "$1" = "--out" ]; then out="$2"; fi
  if [ "$1" = "refuse:me" ]; then exit 2; fi
  shift
done
test -f "$PYTHONPATH/passnet/extract/capture.py" || exit 9
graph() {
  mkdir -p "$out/samples/own/$1"
  printf 'import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, L_x_ : torch.Tensor):\n        l_x_ = L_x_\n        y = %s(l_x_);  l_x_ = None\n        return (y,)\n' "$2" > "$out/samples/own/$1/model.py"
  printf 'class Program_weight_tensor_meta_L_x_:\n    name = "L_x_"\n    shape = [2, 3]\n    dtype = "torch.float32"\n    device = "cpu"\n    mean = 0.000\n    std = 1.000\n    data = None\n' > "$out/samples/own/$1/weight_meta.py"
  printf '{"framework": "torch"}\n' > "$out/samples/own/$1/graph_net.json"
}
graph a torch.relu
graph b torch.relu
graph c torch.no_such_thing
{
  for name in a b c; do printf '{"id": "own/%s", "outcome": "captured", "graphs": 1}\n' "$name"; done
  printf '{"id": "own/d", "outcome": "failed", "kind": "time limit", "reason": "more than 9 s while building"}\n{"id": "ow'
} > "$out/results.jsonl"
exit 1
"#;

fn stand_in(folder: &Path) -> PathBuf {
    let path = folder.join("python");
    fs::write(&path, STAND_IN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn extract(folder: &Path, python: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(folder)
        .env_remove("PYTHONPATH")
        .arg("extract")
        .args(arguments)
        .args(["--out", "out", "--python"])
        .arg(python)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn graphs_are_identified_failures_counted_and_bad_graphs_set_aside() {
    let work = TempDir::new().unwrap();
    let (code, out, err) = extract(work.path(), &stand_in(work.path()), &["net.py:make"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("4 models tried, 3 captured"), "{out}");
    assert!(
        out.contains("3 graphs, 2 unique with shapes, 2 unique structures, 1 refused"),
        "{out}"
    );
    assert!(
        out.contains("refused: out/samples/own/c: unknown operation `torch.no_such_thing`"),
        "{out}"
    );
    assert!(out.contains("time limit      1       own/d: more than 9 s while building"), "{out}");
    assert!(work.path().join("out/samples/own/a/model.py").is_file());
    assert!(!work.path().join("out/samples/own/c").exists());
    assert!(work.path().join("out/refused/own/c/model.py").is_file());
    let reasons = fs::read_to_string(work.path().join("out/refused.jsonl")).unwrap();
    assert!(reasons.contains("no_such_thing") && reasons.contains("own/c"), "{reasons}");
}

#[test]
fn machines_get_a_line_for_each_model_and_graph() {
    let work = TempDir::new().unwrap();
    let (_, out, _) = extract(work.path(), &stand_in(work.path()), &["net.py:make", "--json"]);
    let lines: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line["model"].is_object()).count(), 4);
    let graphs: Vec<_> = lines.iter().filter(|line| line["graph"].is_object()).collect();
    assert_eq!(graphs.len(), 3);
    assert_eq!(graphs[0]["graph"]["full"], graphs[1]["graph"]["full"]);
    assert_ne!(graphs[0]["graph"]["full"], graphs[2]["graph"]["full"]);
}

#[test]
fn what_is_missing_or_refused_is_said() {
    let work = TempDir::new().unwrap();
    let (code, _, err) = extract(work.path(), Path::new("/no/such/python"), &["net.py:make"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("/no/such/python") && err.contains("PASSNET_PYTHON"), "{err}");
    let (code, _, err) = extract(work.path(), &stand_in(work.path()), &["refuse:me"]);
    assert_eq!(code, 2, "{err}");
    let (code, _, err) = extract(work.path(), &stand_in(work.path()), &[]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("FILE.py:FACTORY"), "{err}");
}

#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn a_real_module_becomes_a_graph() {
    let python = std::env::var_os("PASSNET_PYTHON");
    let python = python.expect("PASSNET_PYTHON must name a Python with PyTorch");
    let work = TempDir::new().unwrap();
    let factory =
        "import torch\n\ndef make():\n    return torch.nn.Linear(4, 2), torch.ones(3, 4)\n";
    fs::write(work.path().join("net.py"), factory).unwrap();
    let (code, out, err) = extract(work.path(), Path::new(&python), &["net.py:make"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(
        out.contains("1 graphs, 1 unique with shapes, 1 unique structures, 0 refused"),
        "{out}"
    );
}
