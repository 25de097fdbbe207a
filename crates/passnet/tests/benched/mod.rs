//! `passnet bench` on the bundled tasks, as tests call it.

#![allow(dead_code, reason = "no file of tests needs all of it")]

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub fn bundled(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench").join(path)
}

/// The bundled task that this file evaluates, and its passes.
pub const TASK: &str = "swiglu";

pub fn passnet() -> Command {
    Command::cargo_bin("passnet").unwrap()
}

/// Little timing: no test may depend on it.
pub const QUICK: [&str; 6] = ["--warmup", "1", "--trials", "10", "--seconds", "0"];

pub fn bench(out: Option<&Path>) -> Command {
    let mut command = passnet();
    command.arg("bench").arg(bundled("tasks").join(TASK));
    command.arg("--passes").arg(bundled("passes")).args(QUICK);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    command
}

pub fn json(command: &mut Command) -> Value {
    let output = command.arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{error}"))
}

pub fn events(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn graph_events(folder: &Path) -> usize {
    events(folder).iter().filter(|event| event["event"] == "graph").count()
}
