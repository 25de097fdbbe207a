//! `passnet extract` as people see it. The extractor itself is tested in `python/tests`; here a script stands in for
//! it; `tools/full-check` runs the real one as well.

use assert_cmd::Command;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Lists four models, and captures those of a list or all: three graphs, one of them with an operation nobody knows, a
/// model that fails, and after a run of all a torn last line. What has a record is passed over.
const STAND_IN: &str = r#"#!/bin/sh
names="a b c d"
while [ "$#" -gt 0 ]; do
  case "$1" in
    --out) out="$2" ;;
    --list) names=$(sed 's/.*"name":"\([a-z]*\)".*/\1/' "$2"); is_part=yes ;;
    --list-only) is_list=yes ;;
    refuse:me) exit 2 ;;
    --configs) test -d "$2" || exit 2 ;;
  esac
  shift
done
test -f "$PYTHONPATH/passnet/extract/capture.py" || exit 9
if [ -n "$is_list" ]; then
  for name in $names; do printf '{"family":"own","name":"%s","source":"file","options":{}}\n' "$name"; done > "$out"
  exit 0
fi
graph() {
  mkdir -p "$out/samples/own/$1"
  printf 'import torch\n\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, L_x_ : torch.Tensor):\n        l_x_ = L_x_\n        y = %s(l_x_);  l_x_ = None\n        return (y,)\n' "$2" > "$out/samples/own/$1/model.py"
  printf 'class Program_weight_tensor_meta_L_x_:\n    name = "L_x_"\n    shape = [2, 3]\n    dtype = "torch.float32"\n    device = "cpu"\n    mean = 0.000\n    std = 1.000\n    data = None\n' > "$out/samples/own/$1/weight_meta.py"
  printf '{"framework": "torch"}\n' > "$out/samples/own/$1/graph_net.json"
}
capture() {
  case "$1" in
    c) graph c torch.no_such_thing ;;
    d) printf '{"id": "own/d", "outcome": "failed", "kind": "time limit", "reason": "more than 9 s while building"}\n'; return ;;
    *) graph "$1" torch.relu ;;
  esac
  printf '{"id": "own/%s", "outcome": "captured", "graphs": 1}\n' "$1"
}
mkdir -p "$out"
touch "$out/results.jsonl"
for name in $names; do
  grep -q "own/$name" "$out/results.jsonl" || capture "$name" >> "$out/results.jsonl"
done
test -n "$is_part" || printf '{"id": "ow' >> "$out/results.jsonl"
exit 1
"#;

fn stand_in(folder: &Path) -> PathBuf {
    let path = folder.join("python");
    fs::write(&path, STAND_IN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn extract(folder: &Path, python: &Path, arguments: &[&str]) -> (i32, String, String) {
    let words = ["extract", "--out", "out"].iter().chain(arguments);
    passnet(folder, python, &words.copied().collect::<Vec<_>>())
}

/// A command that captures models.
fn passnet(folder: &Path, python: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(folder)
        .env_remove("PYTHONPATH")
        .args(arguments)
        .arg("--python")
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
fn configurations_are_asked_for_like_a_catalogue() {
    let work = TempDir::new().unwrap();
    let python = stand_in(work.path());
    fs::create_dir(work.path().join("mirror")).unwrap();
    let (code, out, err) = extract(work.path(), &python, &["--configs", "mirror"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("4 models tried, 3 captured"), "{out}");
    let (code, _, err) = extract(work.path(), &python, &["--configs", "nowhere"]);
    assert_eq!(code, 2, "{err}");
}

#[test]
fn a_list_is_written_cut_down_and_captured() {
    let work = TempDir::new().unwrap();
    let python = stand_in(work.path());
    let words = ["extract", "--catalogue", "timm", "--list-only", "--out", "models.jsonl"];
    let (code, out, err) = passnet(work.path(), &python, &words);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    let list = fs::read_to_string(work.path().join("models.jsonl")).unwrap();
    assert_eq!(list.lines().count(), 4, "{list}");
    let some: Vec<&str> = list.lines().filter(|line| line.contains(r#""b""#)).collect();
    fs::write(work.path().join("some.jsonl"), some.join("\n")).unwrap();
    let (code, out, err) = extract(work.path(), &python, &["--list", "some.jsonl"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("1 models tried, 1 captured"), "{out}");
    let (code, _, err) =
        extract(work.path(), &python, &["--catalogue", "timm", "--list-only", "--shard", "0/2"]);
    assert_eq!(code, 2, "{err}");
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

const SHARDS: u32 = 3;

/// Makes all parts with a command's words and puts them together in `whole`.
fn merged(folder: &Path, python: &Path, words: &[&str], named_by: &str) {
    let mut merge = Command::cargo_bin("passnet").unwrap();
    merge.current_dir(folder).args(["merge", "--out", "whole"]);
    for index in 0..SHARDS {
        let (shard, part) = (format!("{index}/{SHARDS}"), format!("part{index}"));
        let (code, out, err) =
            passnet(folder, python, &[words, &["--shard", &shard, named_by, &part]].concat());
        assert!(matches!(code, 0 | 1), "{out}{err}");
        merge.arg(part);
    }
    merge.assert().success();
}

/// Every file below a folder; of lines about models those that are whole, without times.
fn content(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for item in fs::read_dir(&next).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut text = fs::read_to_string(&path).unwrap();
            if path.ends_with("results.jsonl") {
                let records = text.lines().filter_map(|line| {
                    let mut record = serde_json::from_str::<serde_json::Value>(line).ok()?;
                    record.as_object_mut()?.retain(|name, _| !TIMES.contains(&&**name));
                    Some(format!("{record}\n"))
                });
                text = records.collect();
            }
            found.insert(path.strip_prefix(folder).unwrap().display().to_string(), text);
        }
    }
    found
}

const TIMES: [&str; 3] = ["seconds", "cpu_seconds", "peak_mb"];

#[test]
fn parts_of_an_extraction_are_that_of_one_process() {
    let work = TempDir::new().unwrap();
    let python = stand_in(work.path());
    let (code, _, err) = extract(work.path(), &python, &["net.py:make"]);
    assert_eq!(code, 1, "{err}");
    merged(work.path(), &python, &["extract", "net.py:make"], "--out");
    let alone = content(&work.path().join("out"));
    assert!(
        alone.contains_key("refused/own/c/model.py") && alone["results.jsonl"].contains("own/d")
    );
    assert_eq!(alone, content(&work.path().join("whole")));
    // Another way of capturing is no part of the same run.
    let words = ["extract", "net.py:make", "--dynamic", "--shard", "0/3", "--out", "dynamic"];
    passnet(work.path(), &python, &words);
    let mut merge = Command::cargo_bin("passnet").unwrap();
    let parts = ["dynamic", "part1", "part2"];
    merge.current_dir(work.path()).args(["merge", "--out", "mixed"]).args(parts);
    let said = String::from_utf8(merge.assert().failure().code(2).get_output().stderr.clone());
    assert!(said.unwrap().contains("way of keeping sizes"), "what differs is named");
    assert!(!work.path().join("mixed").exists());
}

#[test]
fn a_dataset_of_parts_is_that_of_one_process() {
    let work = TempDir::new().unwrap();
    let python = stand_in(work.path());
    let build = |models: &str, store: &str| {
        let words = ["dataset", "build", "--from-catalogue", "timm"];
        let (code, out, err) = passnet(
            work.path(),
            &python,
            &[&words[..], &["--models", models, "--store", store]].concat(),
        );
        assert_eq!(code, 0, "{out}{err}");
        let content = out.lines().last().unwrap().to_string();
        assert!(content.starts_with("content "), "{out}");
        content
    };
    let alone = build("alone", "alone.pnds");
    let words = ["dataset", "build", "--from-catalogue", "timm", "--store", "none.pnds"];
    merged(work.path(), &python, &words, "--models");
    assert!(!work.path().join("none.pnds").exists(), "a part makes no store");
    assert_eq!(content(&work.path().join("alone")), content(&work.path().join("whole")));
    assert_eq!(build("whole", "whole.pnds"), alone);
}

#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn parts_of_a_real_extraction_are_that_of_one_process() {
    let python = std::env::var_os("PASSNET_PYTHON");
    let python = PathBuf::from(python.expect("PASSNET_PYTHON must name a Python with PyTorch"));
    let work = TempDir::new().unwrap();
    let factories: String = (3..7)
        .map(|width| {
            format!("def make{width}():\n    return torch.nn.Linear({width}, 2), torch.ones(3, {width})\n")
        })
        .collect();
    fs::write(work.path().join("net.py"), format!("import torch\n\n{factories}")).unwrap();
    let models = ["net.py:make3", "net.py:make4", "net.py:make5", "net.py:make6", "--jobs", "1"];
    let (code, out, err) = extract(work.path(), &python, &models);
    assert_eq!(code, 0, "{out}{err}");
    merged(work.path(), &python, &[&["extract"], &models[..]].concat(), "--out");
    assert_eq!(content(&work.path().join("out")), content(&work.path().join("whole")));
}
