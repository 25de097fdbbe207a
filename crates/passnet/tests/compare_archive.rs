//! `tools/compare_archive` with this program: an archive in small, made of bundled tasks and exploits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A sample of the archive: the graphs of a bundled task, passes, and what is recorded for them.
fn write_sample(archive: &Path, name: &str, task: &str, passes: &str, score: Option<&str>) {
    let bench = root().join("bench");
    let (task, sample) = (bench.join("tasks").join(task), archive.join(name));
    fs::create_dir_all(sample.join("pass_dir")).unwrap();
    let list = fs::read_to_string(task.join("graph_list.txt")).unwrap();
    // The same graph twice, and one that is not there.
    let list = format!("{list}\n{}\ngraphs/lost\n", list.lines().next().unwrap());
    fs::write(sample.join("graph_list.txt"), list).unwrap();
    symlink(task.join("graphs"), sample.join("graphs")).unwrap();
    for file in fs::read_dir(bench.join(passes)).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), sample.join("pass_dir").join(file.file_name())).unwrap();
    }
    if let Some(score) = score {
        fs::write(sample.join("pass_dir/score.txt"), score).unwrap();
    }
}

fn compare(archive: &Path, out: &Path, more: &[&str]) -> String {
    let output = Command::new("python3")
        .arg(root().join("tools/compare_archive"))
        .arg(archive)
        .arg("--out")
        .arg(out)
        .arg("--passnet")
        .arg(assert_cmd::cargo::cargo_bin("passnet"))
        .args(["--limit", "600"])
        .args(more)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn disagreements_of_an_archive_have_causes_and_are_judged_once() {
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (archive, out) = (folder.path().join("archive"), folder.path().join("out"));
    let gelu = "gelu_dropout_add";
    write_sample(&archive, "model/a/honest", gelu, "passes/gelu_dropout_add", Some("1.25\n"));
    write_sample(&archive, "model/b/cheat", gelu, "redteam/framework_alias/exploit", Some("1.5"));
    let constant = "redteam/constant_output/exploit";
    write_sample(&archive, "model/c/luck", "biased_softmax", constant, None);
    fs::write(archive.join("model/c/luck/aggregated_score.json"), r#"{"id": 1, "score": 0.99}"#)
        .unwrap();
    write_sample(&archive, "model/d/unknown", gelu, "passes/swiglu", Some("1.1"));
    write_sample(&archive, "model/e/bad", gelu, "passes/swiglu", Some("0.1"));
    write_sample(&archive, "model/f/unscored", gelu, "passes/swiglu", None);

    let text = compare(&archive, &out, &[]);
    for row in [
        "| 0.5 and more | 4 | 12 |",
        "| less | 0 | 4 |",
        "| their cheat | rule no-kernel | 4 | 1 |",
        "| their luck | accuracy | 4 | 1 |",
        "| our mistake | no match | 4 | 1 |",
        "| | all | 12 | 3 |",
        "1 samples without passes or score, 5 listed graphs not there.",
    ] {
        assert!(text.contains(row), "{row} is missing in\n{text}");
    }
    let table = fs::read_to_string(out.join("table.csv")).unwrap();
    assert_eq!(table.lines().count(), 13, "{table}");
    assert!(!table.contains(folder.path().to_str().unwrap()), "paths of this machine: {table}");

    // Nothing is judged twice; a line that a kill cut off is; a review decides.
    let results = out.join("results.jsonl");
    let known = fs::read_to_string(&results).unwrap();
    let (whole, last) = known.trim_end().rsplit_once('\n').unwrap();
    fs::write(&results, format!("{whole}\n{}\n", &last[..last.len() / 2])).unwrap();
    let reviews = folder.path().join("reviews.csv");
    let review =
        "sample,graph,message,cause,why\n/d/unknown,,^no_match,their luck,other operators\n";
    fs::write(&reviews, review).unwrap();
    let text = compare(&archive, &out, &["--reviews", reviews.to_str().unwrap()]);
    assert!(text.contains("| their luck | other operators | 4 | 1 |"), "{text}");
    let after = fs::read_to_string(&results).unwrap();
    assert_eq!(after.lines().count(), known.lines().count() + 1, "one more, after the torn one");
    assert!(after.starts_with(whole));
}
