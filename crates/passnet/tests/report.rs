//! `passnet report` and `passnet score RUN` as people and machines see them, on runs made by hand; and the
//! reference's entry point on a real sample.

#[path = "../../passnet-bench/tests/runs/mod.rs"]
mod runs;

use assert_cmd::Command;
use passnet_bench::run::{Event, RunStore};
use runs::{finished, mixed, twelve_tasks};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn store(folder: &Path, events: &[Event]) {
    let mut store = RunStore::open(folder).unwrap();
    events.iter().for_each(|event| store.append(event).unwrap());
}

/// A folder with the runs `mixed`, `before`, `after` and `third`.
fn runs_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let speed = |task: usize, graph: usize| match (task, graph) {
        (3, 1) => 0.6,
        _ => 1.44,
    };
    for (name, events) in [
        ("mixed", mixed()),
        ("before", finished(twelve_tasks(|_, _| 1.2))),
        ("after", finished(twelve_tasks(speed))),
        ("third", finished(twelve_tasks(|_, _| 0.9))),
    ] {
        store(&folder.path().join(name), &events);
    }
    folder
}

fn passnet(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn text(folder: &Path, arguments: &[&str]) -> String {
    let (code, out, err) = passnet(folder, arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    assert_eq!(passnet(folder, arguments).1, out, "the same twice");
    out
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&text(folder, &[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn people_see_one_run() {
    let folder = runs_folder();
    insta::assert_snapshot!(text(folder.path(), &["report", "mixed"]));
}

#[test]
fn people_see_what_changed_between_two_runs() {
    let folder = runs_folder();
    insta::assert_snapshot!(text(folder.path(), &["report", "before", "after"]));
}

#[test]
fn people_see_a_leaderboard() {
    let folder = runs_folder();
    insta::assert_snapshot!(text(folder.path(), &["report", "before", "after", "third"]));
}

#[test]
fn people_see_both_scorings_of_a_run() {
    let folder = runs_folder();
    insta::assert_snapshot!(text(folder.path(), &["score", "mixed"]));
}

#[test]
fn machines_see_the_same_keys_for_runs_as_for_logs() {
    let folder = runs_folder();
    let of_run = json(folder.path(), &["score", "mixed"]);
    let data = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/score"));
    let of_log = json(data, &["score", "validation.log"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&of_run), keys(&of_log));
    let reference = json(folder.path(), &["score", "mixed", "--scoring", "reference"]);
    assert_eq!(reference["as"], of_run["other"]["as"]);
    let report = json(folder.path(), &["report", "mixed"]);
    assert_eq!((&report["as"], &report["reference_as"]), (&of_run["as"], &reference["as"]));
    assert_eq!(report["graphs"].as_array().unwrap().len(), 10);
    assert_eq!(report["graphs"][1]["verdict"], "correct");
    let compared = json(folder.path(), &["report", "before", "after"]);
    assert_eq!(compared["pairs"][0]["change"], "slower");
    assert_eq!(compared["speed"]["conclusion"], "better");
    assert_eq!(
        (&compared["unlike"], &compared["differences"]),
        (&false.into(), &Value::Array(vec![]))
    );
    assert_eq!(compared["seals"][1]["seal"]["state"], "sealed");
    let ranked = json(folder.path(), &["report", "before", "after", "third"]);
    let [group] = &ranked["leaderboard"].as_array().unwrap()[..] else { panic!("{ranked}") };
    assert_eq!(group["conditions"][0]["identity"]["processor"], "a processor");
    assert_eq!(
        (&group["standings"][2]["run"], &group["standings"][2]["rank"]),
        (&"third".into(), &3.into())
    );
    assert_eq!(ranked["seals"].as_array().unwrap().len(), 3);
}

/// Runs of other places, among them one with a GPU.
#[test]
fn people_see_unlike_runs_apart() {
    let folder = runs_folder();
    let mut there = runs::identity();
    there.engine = "torch".into();
    there.device.kind = "cuda".into();
    there.device.name = "a GPU".into();
    there.torch = Some("2.9.0".into());
    let events = runs::begun_at(there, finished(twelve_tasks(|_, _| 5.0)));
    store(&folder.path().join("there"), &events);
    insta::assert_snapshot!(text(folder.path(), &["report", "before", "there"]));
    insta::assert_snapshot!(text(folder.path(), &["report", "before", "there", "third"]));
}

#[test]
fn people_see_what_does_not_hold() {
    let folder = runs_folder();
    let path = folder.path().join("mixed/events.jsonl");
    let events = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, events.replacen("\"speedup\":1.75", "\"speedup\":17.5", 1)).unwrap();
    for command in ["report", "score"] {
        let (code, out, err) = passnet(folder.path(), &[command, "mixed"]);
        assert_eq!((code, err.as_str()), (1, ""), "{command}");
        let said: Vec<&str> =
            out.lines().skip_while(|line| !line.starts_with("What does not hold")).collect();
        insta::assert_snapshot!(format!("changed_{command}"), said.join("\n"));
        let (code, out, _) = passnet(folder.path(), &[command, "mixed", "--json"]);
        let value: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &value["seal"]["state"]), (1, &"broken".into()));
        assert_eq!(value["seal"]["doubts"][0]["line"], 2);
    }
    let path = folder.path().join("before/events.jsonl");
    let events = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, events.replacen("\"speedup\":1.2", "\"speedup\":12.0", 1)).unwrap();
    let (code, _, err) = passnet(folder.path(), &["report", "before", "after"]);
    assert_eq!(code, 1, "among others, too: {err}");
}

#[test]
fn one_page_is_written_whole() {
    let folder = runs_folder();
    for runs in [&["mixed"][..], &["before", "after"], &["before", "after", "third"]] {
        text(folder.path(), &[&["report"], runs, &["--html", "page.html"]].concat());
        let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        runs.iter().for_each(|run| assert!(page.contains(run)));
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 5, "four runs and the page: {left:?}");
}

#[test]
fn bad_input_is_named() {
    let folder = runs_folder();
    store(&folder.path().join("begun"), &[runs::start()]);
    std::fs::write(folder.path().join("third/events.jsonl"), "!!\n").unwrap();
    for (arguments, message) in [
        (&["report", "nowhere"][..], "nowhere: no run here"),
        (&["report", "begun"], "begun: the run has no results yet"),
        (&["score", "begun"], "begun: the run has no results yet"),
        (&["report", "third"], "third/events.jsonl:1:1: not an event"),
        (&["report", "mixed", "--html", "no/where.html"], "no/where.html"),
        (&["report", "mixed", "before", "--reference-files", "x"], "takes one run"),
        (&["report", "mixed", "--b", "0"], "b must be above 0"),
        (&["score", "mixed", "--graph-list", "x"], "`--graph-list` is for logs"),
    ] {
        let (code, out, err) = passnet(folder.path(), arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
}

/// The number in an `aggregated_score.json`, digit by digit.
fn score_in(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let (id, score) = text.split_once(",\n    \"score\": ").unwrap();
    assert_eq!(id, "{\n    \"id\": 1");
    score.strip_suffix("\n}").unwrap().to_string()
}

/// The two files of each task, and a score that anybody gets from the log again.
#[test]
fn the_references_files_are_written_for_each_task() {
    let folder = runs_folder();
    let printed = text(folder.path(), &["report", "mixed", "--reference-files", "files"]);
    for task in ["add_norm", "gelu", "softmax"] {
        let files = folder.path().join("files").join(task);
        let written = score_in(&files.join("aggregated_score.json"));
        let log = files.join("validation.log");
        let scored = text(
            folder.path(),
            &["score", "--json", "--scoring", "reference", log.to_str().unwrap()],
        );
        assert!(scored.contains(&format!("\"as\":{written},")), "{task}: {written} {scored}");
        assert!(printed.contains(&std::fs::read_to_string(&log).unwrap()));
        assert!(printed.contains(&format!("aggregated_speedup={written}\n")));
        assert!(
            printed.contains(&format!("Result is saved to files/{task}/aggregated_score.json"))
        );
    }
}

/// A link to `bench/entry.sh` in a sample evaluates that sample.
#[cfg(unix)]
#[test]
fn the_entry_script_evaluates_the_sample_it_lies_in() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sample = folder.path().join("sample");
    let task = repository.join("bench/tasks/channel_glu");
    let list = std::fs::read_to_string(task.join("graph_list.txt")).unwrap();
    let graph = list.lines().next().unwrap();
    copy(&task.join(graph), &sample.join(graph));
    copy(&repository.join("bench/passes/channel_glu"), &sample.join("pass_dir"));
    std::fs::write(sample.join("graph_list.txt"), format!("{graph}\n")).unwrap();
    std::os::unix::fs::symlink(repository.join("bench/entry.sh"), sample.join("entry.sh")).unwrap();
    let output = folder.path().join("output");
    let entry = |extra: &[&str]| {
        std::process::Command::new("bash")
            .arg(sample.join("entry.sh"))
            .args(extra)
            .env("PASSNET", assert_cmd::cargo::cargo_bin("passnet"))
            .env("PASSNET_OUTPUT", &output)
            .output()
            .unwrap()
    };
    let done = entry(&["--engine", "native", "--quick", "--seconds", "0.01"]);
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{printed}\n{}", String::from_utf8_lossy(&done.stderr));
    let score = score_in(&output.join("aggregated_score.json"));
    let last = format!(
        "aggregated_speedup={score}\nResult is saved to {}\n",
        output.join("aggregated_score.json").display()
    );
    assert!(printed.ends_with(&last), "{printed}");
    let processed = format!("[Processing] {}\n", sample.join(graph).display());
    assert!(printed.contains(&processed), "{printed}");
    let log = output.join("validation.log");
    let again = json(folder.path(), &["score", "--scoring", "reference", log.to_str().unwrap()]);
    assert!((again["as"].as_f64().unwrap() - score.parse::<f64>().unwrap()).abs() < 1e-12);
    assert_eq!(again["graphs"][0]["verdict"], "correct");
    // What fails to start leaves no score of an earlier evaluation behind.
    let refused = entry(&["--no-such-option"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(!output.join("aggregated_score.json").exists());
}

#[cfg(unix)]
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => {
                std::fs::copy(entry.path(), to).unwrap();
            }
        }
    }
}
