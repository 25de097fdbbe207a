//! `passnet learn` from nothing to a report, killed on the way.

#[path = "../../passnet-agent/tests/support/mod.rs"]
mod support;

use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::tasks::write_task;

fn python() -> OsString {
    std::env::var_os("PASSNET_PYTHON").unwrap_or_else(|| "python3".into())
}

/// The model that PASSNET_SMALL_MODEL names, or one of random weights.
fn model(place: &Path) -> PathBuf {
    if let Some(named) = std::env::var_os("PASSNET_SMALL_MODEL") {
        return named.into();
    }
    let folder = place.join("model");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
    let make = "import sys, pathlib; from tests.test_learn import write_model; write_model(pathlib.Path(sys.argv[1]))";
    let made = Command::new(python())
        .current_dir(sources)
        .args(["-B", "-c", make])
        .arg(&folder)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    folder
}

/// Twenty tasks of one structure to learn from, one of them in the place of two evaluation tasks of another.
fn write_tasks(place: &Path) {
    for number in 1..=20 {
        let shape = format!("[{number}, 7]");
        write_task(&place.join(format!("train/task-{number}")), &[("one", &shape)]);
    }
    for name in ["held-out/first", "held-out/second", "train/seen"] {
        let folder = place.join(name);
        write_task(&folder, &[("one", "[3, 8]")]);
        let path = folder.join("graphs/one/model.py");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("x * y", "x + y")).unwrap();
    }
    let prompts = place.join("prompts");
    std::fs::create_dir(&prompts).unwrap();
    for (name, text) in [
        ("system.md", "You write compiler passes."),
        ("task.md", "{{code}}"),
        ("text_calls.md", "Answer with JSON in fences."),
        ("example.py", ""),
    ] {
        std::fs::write(prompts.join(name), text).unwrap();
    }
}

fn learn(place: &Path, model: &Path) -> Command {
    let mut command = Command::new(cargo_bin("passnet"));
    let path = |name: &str| place.join(name);
    command
        .arg("learn")
        .arg("--model")
        .arg(model)
        .arg("--tasks")
        .arg(path("train"))
        .arg("--evaluate")
        .arg(path("held-out"))
        .arg("--also")
        .arg(path("held-out/first"))
        .arg("--prompts")
        .arg(path("prompts"))
        .arg("--out")
        .arg(path("out"));
    let small = "--solver-attempts 1 --rounds 1 --best-of 2 --round-tasks 2 --samples 1 --max-steps 3 --max-output 8 --epochs 1 --rank 4 --blocks 1 \
                 --checkpoint-steps 1 --length 8192 --batch 4 --warmup 1 --trials 5 --seconds 0 --quick";
    command.args(small.split_whitespace()).env("NO_COLOR", "1").stdout(Stdio::null());
    command
}

fn with_python(place: &Path, model: &Path) -> Command {
    let mut command = learn(place, model);
    command.arg("--python").arg(python());
    command
}

/// Starts it, waits until something is there, and kills it.
fn killed_at(place: &Path, model: &Path, there: &dyn Fn() -> bool) {
    let mut child: Child = with_python(place, model).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !there() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        assert!(started.elapsed() < Duration::from_secs(1800), "nothing happens");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A conversation about a task's graph, as an export holds it.
fn conversation(task: &Path) -> String {
    let code = std::fs::read_to_string(task.join("graphs/one/model.py")).unwrap();
    let messages = json!([
        { "role": "user", "content": format!("Make it fast.\n```python\n{code}\n```") },
        { "role": "assistant", "content": "Done." },
    ]);
    format!("{}\n", json!({ "messages": messages }))
}

#[test]
fn conversations_about_what_is_evaluated_are_not_learned() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    write_tasks(place);
    let data = place.join("data.jsonl");
    let (seen, other) =
        (conversation(&place.join("train/seen")), conversation(&place.join("train/task-1")));
    // Everything is checked before a Python is asked for.
    let learn = |text: &str| {
        std::fs::write(&data, text).unwrap();
        let mut command = learn(place, place);
        command.arg("--data").arg(&data).args(["--python", "/no/python"]).stderr(Stdio::piped());
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, said) = learn(&seen);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no conversation is left to learn from"), "{said}");
    let (code, said) = learn("{}\n");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("data.jsonl:1:1: not a conversation"), "{said}");
    let (code, said) = learn(&(seen + &other));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("1 conversations are about a structure of an evaluation task"), "{said}");
    assert_eq!(std::fs::read_to_string(place.join("out/data-1.jsonl")).unwrap(), other);
}

#[test]
#[ignore = "needs PyTorch; tools/full-check runs it"]
fn learning_is_killed_twice_and_continued() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    write_tasks(place);
    let model = model(place);
    let out = place.join("out");
    let attempts =
        |run: &str| std::fs::read_dir(out.join(run).join("attempts")).map_or(0, Iterator::count);
    killed_at(place, &model, &|| attempts("solver") >= 3);
    let baseline = out.join("baseline/attempts/first/0/trajectory.jsonl");
    let before = std::fs::read(&baseline).unwrap();
    killed_at(place, &model, &|| out.join("sft/checkpoint.pt").exists());
    let done = with_python(place, &model).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert!(said.contains("1 training tasks share a structure"), "{said}");
    assert!(
        said.contains(" on\n") && said.contains("from step"),
        "it went on from a checkpoint: {said}"
    );
    assert_eq!(std::fs::read(&baseline).unwrap(), before, "what was done is not done again");
    let report: Value =
        serde_json::from_slice(&std::fs::read(out.join("report.json")).unwrap()).unwrap();
    assert_eq!(report["stages"][0]["name"], "baseline");
    assert_eq!(report["stages"][1]["tasks"], 2);
    let also: Vec<&Value> = report["also"].as_array().unwrap().iter().collect();
    assert_eq!([&also[0]["name"], &also[1]["name"]], ["baseline", "last"]);
    assert_eq!(also[1]["tasks"], 1);
    assert_eq!(report["stages"].as_array().unwrap().last().unwrap()["name"], "best-of-2");
    assert_eq!(report["identity"]["engine"], "native");
    assert_eq!(report["withheld"], 1);
    assert_eq!(report["data"][0]["attempts"], 20);
    assert_eq!(report["data"][0]["right"], 20);
    let losses = report["trainings"][0]["losses"].as_array().unwrap();
    let lines = std::fs::read_to_string(out.join("sft/losses.jsonl")).unwrap();
    assert_eq!(losses.len(), lines.lines().count());
    assert!(losses.len() > 1 && losses.iter().all(|loss| loss.as_f64() > Some(0.0)));
    for file in ["sft/adapter_model.safetensors", "sft/adapter_config.json", "report.html"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    // Nothing is left to do, and other conditions are refused.
    let again = with_python(place, &model).output().unwrap();
    assert_eq!(again.status.code(), Some(0));
    let other =
        with_python(place, &model).args(["--seed", "5"]).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("begun with other tasks"));
}
