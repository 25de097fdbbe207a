//! `passnet bench` as a user runs it: results, keys, resuming, and everything that can go wrong around it.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

fn bundled(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench").join(path)
}

/// The bundled task that this file evaluates, and its passes.
const TASK: &str = "swiglu";

fn passnet() -> Command {
    Command::cargo_bin("passnet").unwrap()
}

/// Little timing: no test may depend on it.
const QUICK: [&str; 6] = ["--warmup", "1", "--trials", "10", "--seconds", "0"];

fn bench(out: Option<&Path>) -> Command {
    let mut command = passnet();
    command.arg("bench").arg(bundled("tasks").join(TASK));
    command.arg("--passes").arg(bundled("passes")).args(QUICK);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    command
}

fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{error}"))
}

fn events(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn graph_events(folder: &Path) -> usize {
    events(folder).iter().filter(|event| event["event"] == "graph").count()
}

#[test]
fn a_bundled_task_is_evaluated_with_every_documented_key() {
    let result = json(&mut bench(None));
    assert!(result["as"].is_f64() && result["run"].is_null());
    assert_eq!(result["es"].as_object().unwrap().len(), 15);
    let graphs = result["graphs"].as_array().unwrap();
    assert!(graphs.len() >= 3);
    for graph in graphs {
        assert_eq!(graph["verdict"], "correct", "{graph}");
        assert!(graph["speedup"].as_f64().unwrap() > 0.0);
        assert_eq!(graph["interval"].as_array().unwrap().len(), 2);
        assert!(graph["evidence"].as_array().unwrap().is_empty());
    }
}

#[test]
fn the_table_names_the_task_and_the_score() {
    let output = bench(None).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    for part in [TASK, "ES(t)", "1 = eager", "AS  ", "correct   ", "noise floor"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn a_second_run_into_the_same_folder_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = json(&mut bench(Some(folder.path())));
    let stored = graph_events(folder.path());
    let second = json(&mut bench(Some(folder.path())));
    assert_eq!(graph_events(folder.path()), stored);
    assert_eq!(first["as"], second["as"], "kept results keep their score");
    assert_eq!(first["graphs"], second["graphs"]);
}

#[test]
fn a_killed_run_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let binary = assert_cmd::cargo::cargo_bin("passnet");
    let mut killed = Process::new(binary)
        .arg("bench")
        .arg(bundled("tasks"))
        .arg("--passes")
        .arg(bundled("passes"))
        .args(QUICK)
        .arg("--out")
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let path = folder.path().join("events.jsonl");
    let lines = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    while lines() < 4 && killed.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let before = std::fs::read_to_string(&path).unwrap();
    let whole = &before[..=before.rfind('\n').unwrap()];
    // A torn line, as a kill in the middle of a write leaves it.
    std::fs::write(&path, format!("{whole}{{\"event\":\"gra")).unwrap();
    let known = whole.lines().filter(|line| line.contains("\"event\":\"graph\"")).count();
    assert!(known >= 1, "{before}");
    let first_task = {
        let event: Value = serde_json::from_str(whole.lines().nth(1).unwrap()).unwrap();
        event["sample"].as_str().unwrap().to_string()
    };
    let mut again = passnet();
    again.arg("bench").arg(bundled("tasks").join(&first_task));
    again.arg("--passes").arg(bundled("passes")).args(QUICK).arg("--out").arg(folder.path());
    let result = json(&mut again);
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(whole), "what was done is kept");
    let stored = events(folder.path());
    let of_task = stored.iter().filter(|e| e["event"] == "graph" && e["sample"] == first_task);
    assert_eq!(of_task.count(), result["graphs"].as_array().unwrap().len(), "none done twice");
}

#[test]
fn problems_around_a_run_are_told_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |command: &mut Command, code: i32, expected: &str| {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    };
    fails(passnet().args(["bench", "no/such/folder"]), 2, "no/such/folder");
    fails(passnet().arg("bench").arg(folder.path()), 2, "no sample found here");
    // The sample's own pass folder is empty.
    fails(passnet().arg("bench").arg(bundled("tasks").join(TASK)).args(QUICK), 1, "compile_fail");
    let broken = folder.path().join("broken");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("graph_list.txt"), "graphs/gone\n").unwrap();
    let mut command = passnet();
    command.arg("bench").arg(&broken).arg("--passes").arg(bundled("passes").join(TASK)).args(QUICK);
    fails(&mut command, 1, "reference_fail");
    let busy = folder.path().join("busy");
    std::fs::create_dir_all(&busy).unwrap();
    let held = std::fs::File::create(busy.join("events.jsonl")).unwrap();
    held.lock().unwrap();
    fails(&mut bench(Some(&busy)), 2, "another process is writing this run");
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    fails(&mut bench(Some(&blocked)), 2, "file");
}

/// Reading such a device would never end.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("events.jsonl")).unwrap();
    let output = bench(Some(folder.path())).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("events.jsonl: not a regular file"), "{text}");
}

#[test]
fn compilers_play_against_eager_where_the_engine_has_them() {
    let verdicts = |compiler: &str| -> Vec<String> {
        let mut command = passnet();
        command.arg("bench").arg(bundled("tasks").join(TASK)).args(["--compiler", compiler]);
        let result = json(command.args(QUICK));
        let graphs = result["graphs"].as_array().unwrap().iter();
        graphs.map(|graph| graph["verdict"].as_str().unwrap().to_string()).collect()
    };
    for compiler in ["eager", "joined"] {
        let verdicts = verdicts(compiler);
        assert!(!verdicts.is_empty() && verdicts.iter().all(|it| it == "correct"), "{verdicts:?}");
    }
    let verdicts = verdicts("inductor");
    assert!(!verdicts.is_empty() && verdicts.iter().all(|it| it == "unsupported"), "{verdicts:?}");
}
