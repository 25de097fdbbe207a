//! `passnet score` as people and machines see it. `tests/data/score` holds a log of three graphs: one right, one
//! less accurate during which a library printed `Error:`, one that did not match; and a list with a fourth graph.

use assert_cmd::Command;
use serde_json::Value;

fn score(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/score"))
        .arg("score")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> Value {
    let (code, out, err) = score(&[arguments, &["--json"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    serde_json::from_str(&out).unwrap()
}

#[test]
fn people_see_the_curve_the_graphs_and_the_differences() {
    let (code, out, err) = score(&["validation.log"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, include_str!("data/score/strict.txt"));
}

#[test]
fn machines_see_the_contracts_keys() {
    let strict = json(&["validation.log"]);
    assert_eq!(strict["scoring"], "strict");
    let levels: Vec<&String> = strict["es"].as_object().unwrap().keys().collect();
    let expected: Vec<String> = (-10..=4).map(|t| t.to_string()).collect();
    assert_eq!(levels, expected.iter().collect::<Vec<_>>());
    assert!((strict["as"].as_f64().unwrap() - 0.441656).abs() < 1e-6);
    assert_eq!(strict["graphs"][2]["verdict"], "no_match");
    assert_eq!(strict["graphs"][2]["reference_status"], "eager_fail");
    assert_eq!(strict["differences"][0]["kind"], "stray_error");
    let reference = json(&["validation.log", "--scoring", "reference"]);
    assert_eq!(reference["scoring"], "reference");
    assert_eq!(reference["as"], strict["other"]["as"]);
    assert_eq!(reference["other"]["as"], strict["as"]);
}

#[test]
fn parameters_and_the_list_count() {
    let base = json(&["validation.log"])["as"].as_f64().unwrap();
    let low = json(&["validation.log", "--b", "0.001"])["as"].as_f64().unwrap();
    let listed = json(&["validation.log", "--graph-list", "graph_list.txt"]);
    assert!(low < base && listed["as"].as_f64().unwrap() < base);
    assert_eq!(listed["graphs"][3]["verdict"], "runtime_fail");
    // A folder stands for the log in it.
    assert_eq!(json(&["."])["as"].as_f64(), Some(base));
}

#[test]
fn bad_input_is_named() {
    for (arguments, message) in [
        (&["missing.log"][..], "missing.log"),
        (&["graph_list.txt"], "no `[Processing]` line"),
        (&["validation.log", "--b", "0"], "b must be above 0"),
        (&["validation.log", "--p", "-1"], "p must be between 0 and 100"),
        (&["validation.log", "--graph-list", "missing.txt"], "missing.txt"),
        (&["validation.log", "--scoring", "kind"], "invalid value 'kind'"),
    ] {
        let (code, out, err) = score(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(message), "{arguments:?}: {err}");
    }
}
