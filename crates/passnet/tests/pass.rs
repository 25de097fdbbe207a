//! `passnet pass` on the demonstration passes, as people and machines call it, and on input that is wrong.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SWIGLU: &str = "bench/passes/swiglu";
const GRAPHS: &str = "bench/tasks/swiglu/graphs";

/// A pass that turns a doubling into a doubling of a doubling.
const DOUBLES: &str = "\
def pattern(x):
    return x * 2
def replacement_args(x):
    return (x * 2,)
def wrapper(x):
    return x
def replacement_func():
    return wrapper
";
const DOUBLED: &str = "\
import torch
class GraphModule(torch.nn.Module):
    def forward(self, a):
        b = a * 2
        c = b * 2
        return (c,)
";

fn pass_in(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("passnet")
        .unwrap()
        .current_dir(folder)
        .arg("pass")
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn pass(arguments: &[&str]) -> (i32, String, String) {
    pass_in(Path::new(ROOT), arguments)
}

fn json(arguments: &[&str]) -> Vec<Value> {
    let (_, out, err) = pass(&[arguments, &["--json"]].concat());
    assert_eq!(err, "", "{out}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

#[test]
fn the_demonstration_passes_are_checked_traced_matched_and_applied() {
    let (code, out, _) = pass(&["check", SWIGLU]);
    assert_eq!((code, out.as_str()), (0, "ok: swiglu\n1 pass checked, 0 failed\n"));
    let (code, out, _) = pass(&["trace", SWIGLU]);
    assert!(code == 0 && out.contains("silu = torch.nn.functional.silu(getitem"), "{out}");
    let (code, out, _) = pass(&["match", SWIGLU, "--in", GRAPHS]);
    assert!(code == 0 && out.starts_with("pass swiglu: 4 matches in 4 of 4 graphs\n"), "{out}");
    let (code, out, _) = pass(&["apply", SWIGLU, "--in", GRAPHS]);
    assert!(code == 0 && out.contains("# swiglu: 1 rewrite\n"), "{out}");
    assert_eq!(out.matches("tmp_4 = swiglu(in_0)").count(), 4, "{out}");
}

#[test]
fn a_machine_reads_one_object_for_each_pass_and_graph() {
    for semantics in ["default", "reference"] {
        let rows = json(&["match", SWIGLU, "--in", GRAPHS, "--semantics", semantics]);
        assert_eq!(rows.len(), 4);
        assert!(rows.iter().all(|row| row["matches"] == 1), "{rows:?}");
    }
    let summary = json(&["match", SWIGLU, "--in", GRAPHS, "--summary"]);
    assert_eq!(summary[0]["graphs_matched"], 4);
    let applied = json(&["apply", SWIGLU, "--in", GRAPHS]);
    assert_eq!(applied[0]["applied"][0]["stop"], "saturated");
}

#[test]
fn a_pass_that_matches_nowhere_says_why() {
    let other = "bench/tasks/geglu_tanh/graphs";
    let (code, out, _) = pass(&["match", SWIGLU, "--in", other]);
    assert_eq!(code, 1);
    assert!(out.contains("  no match because:\n       4 graphs: the graph has no"), "{out}");
    let (code, out, _) = pass(&["explain", SWIGLU, "--in", other]);
    assert_eq!(code, 1);
    // The operation that stands where the pattern has another one is shown beside it.
    assert!(out.contains("!     6  tmp_0 = torch.nn.functional.gelu"), "{out}");
    assert!(out.contains("   change   write the graph's operation"), "{out}");
    let explained = json(&["explain", SWIGLU, "--in", other]);
    assert_eq!(explained[0]["differences"][0]["kind"], "operation");
}

#[test]
fn findings_show_the_line_and_rules_explain_themselves() {
    let (code, out, _) = pass(&["check", "crates/passnet-pass/tests/passes/cheat_cache.py"]);
    assert_eq!(code, 1);
    assert!(out.contains("[cached-state]\n --> ") && out.contains("\n  | return "), "{out}");
    let (code, out, _) = pass(&["check", "--rules"]);
    assert_eq!(code, 0);
    assert!(out.contains("  trips   stream = torch.cuda.Stream()\n  fine    sms = "), "{out}");
}

#[test]
fn a_rewrite_that_matches_itself_still_reaches_the_rest() {
    let folder = folder(&[("double.py", DOUBLES.as_bytes()), ("g/model.py", DOUBLED.as_bytes())]);
    let (code, out, _) = pass_in(folder.path(), &["apply", "double.py", "--in", "g"]);
    assert_eq!(code, 0);
    assert!(out.contains("# double: 2 rewrites, stopped: all that still matches"), "{out}");
    assert_eq!(out.matches("wrapper(").count(), 2, "{out}");
}

#[test]
fn what_cannot_be_read_is_located() {
    let deep = format!("def pattern(x):\n    return {}x{}\n", "(".repeat(5000), ")".repeat(5000));
    let huge = format!("{DOUBLES}# {}\n", "a".repeat(5_000_000));
    let list = "sorted_output_pass_rule_names.json";
    let cyclic = "from pass_dir.b import f\ndef g(x):\n    return f(x)\n";
    let cyclic = format!("{cyclic}{}", DOUBLES.replacen("x * 2", "f(x)", 1));
    let folder = folder(&[
        ("empty.py", b""),
        ("bytes.py", b"def pattern(x):\n  return '\xff'\n"),
        ("deep.py", deep.as_bytes()),
        ("huge.py", huge.as_bytes()),
        ("same.py", DOUBLES.replacen("x * 2", "x", 1).as_bytes()),
        ("none/readme.txt", b""),
        ("many/one/sorted_output_pass_rule_names.json", b"[]"),
        (&format!("object/{list}"), b"{}"),
        (&format!("cut/{list}"), b"[\"a\",\n"),
        (&format!("stems/{list}"), b"[\"../a\"]"),
        (&format!("gone/{list}"), b"[\"a\"]"),
        (&format!("cyclic/{list}"), b"[\"a\"]"),
        ("cyclic/a.py", cyclic.as_bytes()),
        ("cyclic/b.py", b"from pass_dir.a import g\ndef f(x):\n    return g(x)\n"),
    ]);
    let cases: [(&str, &[&str]); 14] = [
        ("missing", &["no such file or folder", "hint: give a pass folder or one pass file"]),
        ("gone.py", &["no such file", "gone.py", "hint: "]),
        ("empty.py", &["no function `pattern`", "hint: a pass file defines"]),
        ("bytes.py", &["not valid UTF-8", "bytes.py:2:11"]),
        ("deep.py", &["nested more than 400 levels deep", "deep.py:2:", "hint: split"]),
        ("huge.py", &["more than the limit of", "hint: a pass is a page of source"]),
        ("same.py", &["returns its argument `x` unchanged", "same.py:1:5", "hint: "]),
        ("none", &["no such file, so no pass", list, "hint: it holds a JSON list"]),
        ("many", &["hint: it holds pass folders: give one of them, such as `many/one`"]),
        ("object", &["expected a JSON list", "hint: for example"]),
        ("cut", &["not valid JSON: EOF while parsing", "json:2:1", "hint: "]),
        ("stems", &["entry 1: `../a` is not a file stem", "json:1:2", "hint: "]),
        ("gone", &["no such file", "a.py", "hint: "]),
        ("cyclic", &["more than 32 deep", "cyclic/", "hint: a pattern is a straight line"]),
    ];
    for (path, wanted) in cases {
        let (code, out, err) = pass_in(folder.path(), &["check", path]);
        let said = out + &err;
        assert!(code == 1 || code == 2, "{path}: {code}\n{said}");
        for text in wanted {
            assert!(said.contains(text), "{path}: `{text}` is missing\n{said}");
        }
    }
}
