//! The tasks, passes and attacks under `bench/`, as far as text can judge them: every pass applies to every graph
//! of its task and keeps the rules, every honest control too, and every exploit is stopped by the layer it names.

use passnet_graph::read::read_model;
use passnet_graph::syntax::Source;
use passnet_pass::load::{Bindings, LoadOptions, load};
use passnet_pass::rewrite::{RunOptions, run};
use passnet_pass::rules::{Severity, check};
use passnet_pass::trace::{Dialect, trace};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn bench() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench")
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// What the text of a pass folder says about it.
#[derive(Debug, Default)]
struct Judged {
    errors: Vec<String>,
    refused: BTreeSet<String>,
    /// Matches that something needs in each graph of the task, all passes together.
    matches: Vec<usize>,
}

fn judge(folder: &Path, task: &Path) -> Judged {
    let mut judged = Judged::default();
    let set = load(folder, &LoadOptions::default());
    judged.errors.extend(set.errors.iter().map(ToString::to_string));
    let bindings = Bindings::of(&set.program);
    let mut passes = Vec::new();
    for file in &set.passes {
        let traced = trace(&set.program, &bindings, file, Dialect::Plain);
        if let Err(errors) = &traced {
            judged.errors.extend(errors.iter().map(ToString::to_string));
        }
        let pass = traced.ok();
        let findings = check(&set.program, &bindings, file, pass.as_ref());
        let refused = findings.iter().filter(|finding| finding.severity == Severity::Refuse);
        judged.refused.extend(refused.map(|finding| finding.rule.to_string()));
        passes.extend(pass);
    }
    let list = std::fs::read_to_string(task.join("graph_list.txt")).unwrap();
    for line in list.lines() {
        let path = task.join(line).join("model.py");
        let source = Source::new(line, std::fs::read_to_string(path).unwrap());
        let graph = read_model(&source).unwrap();
        let report = run(&set.program, &passes, &graph, &RunOptions::default()).unwrap();
        let matches = report.applied.iter().map(|applied| applied.needed);
        judged.matches.push(matches.sum());
    }
    judged
}

#[test]
fn every_pass_applies_once_to_every_graph_of_its_task() {
    let passes = folders(&bench().join("passes"));
    let tasks = folders(&bench().join("tasks"));
    assert_eq!(
        passes.iter().map(|p| name(p)).collect::<Vec<_>>(),
        tasks.iter().map(|t| name(t)).collect::<Vec<_>>()
    );
    assert!(tasks.len() >= 24);
    for (pass, task) in passes.iter().zip(&tasks) {
        let judged = judge(pass, task);
        assert!(judged.errors.is_empty() && judged.refused.is_empty(), "{pass:?}: {judged:?}");
        assert!(judged.matches.len() >= 2, "{task:?} has too few graphs");
        assert!(judged.matches.iter().all(|&n| n == 1), "{pass:?}: {judged:?}");
    }
}

#[test]
fn every_exploit_is_stopped_where_its_case_says_and_no_control_is_refused() {
    for case in folders(&bench().join("redteam")) {
        // Graphs that several cases share.
        if name(&case) == "tasks" {
            continue;
        }
        let text = std::fs::read_to_string(case.join("case.json")).unwrap();
        let facts: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(facts["class"], name(&case));
        let task = bench().join("tasks").join(facts["task"].as_str().unwrap());
        let control = judge(&case.join("control"), &task);
        assert!(control.errors.is_empty() && control.refused.is_empty(), "{case:?}: {control:?}");
        assert!(control.matches.iter().all(|&n| n > 0), "{case:?}: {control:?}");

        let exploit = judge(&case.join("exploit"), &task);
        let named = facts["refused_by"].as_array().cloned().unwrap_or_default();
        let named: BTreeSet<String> =
            named.iter().map(|rule| rule.as_str().unwrap().to_string()).collect();
        assert_eq!(exploit.refused, named, "{case:?}");
        let layers = facts["stopped_by"]["layer"].as_array().unwrap();
        let only = |layer: &str| layers.len() == 1 && layers[0] == layer;
        if only("read") {
            assert!(!exploit.errors.is_empty(), "{case:?} loads and traces");
        } else {
            assert!(exploit.errors.is_empty(), "{case:?}: {exploit:?}");
        }
        if only("match") {
            assert!(exploit.matches.iter().all(|&n| n == 0), "{case:?}: {exploit:?}");
        }
    }
}
