//! `passnet library` as people and machines call it, and on input that is wrong.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn library(place: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(ROOT)
        .arg("library")
        .args(arguments)
        .arg("--library")
        .arg(place)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn passes_are_added_judged_merged_and_exported() {
    let place = tempfile::tempdir().unwrap();
    let (mine, other) = (place.path().join("mine"), place.path().join("other"));
    let swiglu = [
        "add",
        "bench/passes/swiglu",
        "--tasks",
        "bench/tasks",
        "--author",
        "A",
        "--licence",
        "MIT",
    ];
    let (code, out, errors) = library(&mine, &swiglu);
    assert_eq!((code, out.contains("swiglu: added")), (0, true), "{out}{errors}");
    let (_, again, _) = library(&mine, &swiglu);
    assert!(again.contains("swiglu: known"), "{again}");
    library(&mine, &["add", "bench/passes/geglu_tanh"]);
    let (_, listed, _) = library(&mine, &["list", "--json"]);
    let listed = lines(&listed);
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|entry| entry["standing"] == "nothing"));
    let entry = listed.iter().find(|entry| entry["name"] == "swiglu").unwrap();
    let name = entry["entry"].as_str().unwrap();
    let quick = ["verify", name, "--quick", "--warmup", "0", "--trials", "3", "--seconds", "0.01"];
    let (code, out, errors) = library(&mine, &quick);
    assert_eq!((code, out.contains("swiglu: correct")), (0, true), "{out}{errors}");
    let (code, out, errors) = library(&mine, &["verify", "--quick"]);
    assert_eq!(code, 3, "there is nothing to judge the other one on: {out}");
    assert!(errors.contains("no graphs"), "{errors}");
    let (code, _, _) = library(&mine, &["export", other.to_str().unwrap(), "--licensed"]);
    assert_eq!(code, 0);
    let (_, exported, _) = library(&other, &["list", "--json"]);
    let exported = lines(&exported);
    assert_eq!(exported.len(), 1, "one has a licence");
    assert!(exported[0]["standing"].as_str().unwrap().starts_with("correct"));
    let (code, merged, _) = library(&other, &["merge", mine.to_str().unwrap()]);
    assert_eq!((code, merged.contains("geglu_tanh: added")), (0, true), "{merged}");
    let strangers = place.path().join("strangers");
    for (option, standing) in [(&[][..], "nothing"), (&["--believe"], "correct")] {
        library(&strangers, &[&["merge", mine.to_str().unwrap()], option].concat());
        let (_, listed, _) = library(&strangers, &["list", "--json"]);
        let listed = lines(&listed);
        let entry = listed.iter().find(|entry| entry["name"] == "swiglu").unwrap();
        assert!(entry["standing"].as_str().unwrap().starts_with(standing), "{entry}");
    }
}

#[test]
fn a_run_brings_its_verdicts() {
    let place = tempfile::tempdir().unwrap();
    let run = place.path().join("run");
    let judged = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(ROOT)
        .args(["bench", "bench/tasks/swiglu", "--passes", "bench/passes/swiglu", "--quick"])
        .args(["--warmup", "0", "--trials", "3", "--seconds", "0.01", "--out"])
        .arg(&run)
        .output()
        .unwrap();
    assert!(judged.status.success());
    let mine = place.path().join("mine");
    let (code, out, errors) = library(&mine, &["add", run.to_str().unwrap()]);
    assert_eq!((code, out.contains("new verdicts")), (0, true), "{out}{errors}");
    let (_, listed, _) = library(&mine, &["list"]);
    assert!(listed.contains("correct, "), "{listed}");
}

#[test]
fn the_bundled_passes_are_a_library() {
    let place = tempfile::tempdir().unwrap();
    let (code, out, errors) = library(place.path(), &["add", "--bundled"]);
    assert_eq!(code, 0, "{errors}");
    let there = std::fs::read_dir(Path::new(ROOT).join("bench/passes")).unwrap().count();
    assert_eq!(out.lines().count(), there);
}

#[test]
fn what_is_wrong_is_said() {
    let place = tempfile::tempdir().unwrap();
    let (code, out, _) = library(&place.path().join("none"), &["list"]);
    assert_eq!((code, out.contains("empty")), (0, true));
    for (arguments, part) in [
        (&["add", "no/such/folder"][..], "no such file or folder"),
        (&["add", "docs"][..], "neither a run nor passes"),
        (&["merge", "no/such/folder"][..], "no such folder"),
        (&["verify", "0123456789abcdef"][..], "0123456789abcdef"),
        (&["export", "out", "0123456789abcdef"][..], "0123456789abcdef"),
    ] {
        let (code, _, errors) = library(place.path(), arguments);
        assert_eq!((code, errors.contains(part)), (2, true), "{arguments:?}: {errors}");
    }
    let bad = place.path().join("bad.py");
    std::fs::write(&bad, "def pattern(x):\n    return x +\n").unwrap();
    let (code, _, errors) = library(place.path(), &["add", bad.to_str().unwrap()]);
    assert_eq!((code, errors.contains("bad.py:2:")), (1, true), "{errors}");
}
