//! No exploit scores, with the integrity rules on or off, each is stopped by the layer that its case names, and no
//! honest control is refused.

use passnet_bench::redteam;
use passnet_engine::native::NativeEngine;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

const BEGIN: &str =
    "<!-- made from the cases by `UPDATE=1 cargo test -p passnet-bench --test redteam` -->\n";
const END: &str = "<!-- end -->\n";

fn bench() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench")
}

#[test]
fn no_exploit_scores_and_no_control_is_refused() {
    let cases = redteam::cases(&bench().join("redteam"), &bench().join("tasks")).unwrap();
    let adaptive = cases.iter().filter(|case| case.is_adaptive()).count();
    assert!(cases.len() >= 140, "{} cases", cases.len());
    assert!(adaptive >= 40, "{adaptive} adaptive cases");
    let wrong: Vec<String> = cases
        .par_iter()
        .map(|case| case.attempt(&NativeEngine).unwrap())
        .flat_map_iter(|result| result.complaints())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Git stores no pipe, so this case is made here. Before pipes were refused, reading one never ended.
#[cfg(unix)]
#[test]
fn a_pipe_as_a_pass_file_is_refused() {
    let suite = tempfile::tempdir().unwrap();
    let case = suite.path().join("pipe_as_pass_file");
    let honest = bench().join("passes/swiglu");
    let list = "sorted_output_pass_rule_names.json";
    for folder in ["exploit", "control"] {
        std::fs::create_dir_all(case.join(folder)).unwrap();
        std::fs::copy(honest.join(list), case.join(folder).join(list)).unwrap();
    }
    std::fs::copy(honest.join("swiglu.py"), case.join("control/swiglu.py")).unwrap();
    let pipe = case.join("exploit/swiglu.py");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let description = r#"{
        "class": "pipe_as_pass_file", "task": "swiglu", "threat": "a file that is never read to its end",
        "stopped_by": {"layer": ["read"], "says": ["not a regular file", "not a plain file"], "why": "only files are read"}
    }"#;
    std::fs::write(case.join("case.json"), description).unwrap();
    for case in redteam::cases(suite.path(), &bench().join("tasks")).unwrap() {
        let result = case.attempt(&NativeEngine).unwrap();
        assert!(result.holds(), "{}", result.complaints().join("\n"));
    }
}

#[test]
fn the_page_of_the_suite_is_made_from_its_cases() {
    let page = bench().join("redteam/README.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the mark where the tables begin");
    let (_, after) = rest.split_once(END).expect("the mark where they end");
    let tables = redteam::markdown(&bench().join("redteam")).unwrap();
    let made = format!("{before}{BEGIN}\n{tables}\n{END}{after}");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&page, &made).unwrap();
        return;
    }
    assert!(text == made, "the page is not what the cases say: run with `UPDATE=1`");
}
