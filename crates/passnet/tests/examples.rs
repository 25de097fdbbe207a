//! Every example of the help texts and of the READMEs: those that need nothing but this machine run as they are written, in a
//! folder that looks like a small checkout; of the others every word is checked.

#[allow(dead_code, reason = "other tests look at more of it")]
#[path = "../../passnet-dataset/tests/common/checkout.rs"]
mod passnet_checkout;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Parts of a command that this machine may lack what they need, or that would take too long, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("--engine torch", "needs PyTorch"),
    ("--device cuda", "needs a GPU"),
    ("passnet extract", "needs PyTorch"),
    ("passnet explain-model", "needs PyTorch"),
    ("passnet model bench", "needs PyTorch"),
    ("--from-catalogue", "needs PyTorch"),
    ("--cluster auto", "needs a Ray cluster; tools/check_cluster.py has one"),
    ("captured", "is made by `passnet extract`"),
    ("--model ", "needs a model"),
    ("runs/gpt", "is a run of a model; tests/agent.rs runs these commands"),
    ("passnet agent serve", "serves until it is stopped; tests of passnet-agent ask it"),
    ("passnet serve", "serves until it is stopped; tests/leaderboard.rs asks it"),
    ("passnet submit", "needs a leaderboard; tests/leaderboard.rs has one"),
    ("HEX", "stands for a key"),
    ("--judge", "judges every task again"),
    ("--counts counts", "needs counts that PyTorch gave"),
    ("dataset benchmark", "needs a corpus of many models"),
    ("dataset split", "needs a corpus of many models"),
    ("evaluation/samples", "judges hundreds of tasks"),
    ("out/validation.log", "is a log of the reference's harness; tests/checkout.rs has one"),
    ("~/.config", "writes into the user's own folders"),
    ("source <(", "is for a shell that somebody uses"),
];

/// A checkout with one task of one graph, one pass, one exploit, and an archive of three graphs.
fn checkout() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    let from = |path: &str| Path::new(ROOT).join(path);
    copy(&from("examples"), &at("examples"));
    copy(&from("crates/passnet-kernel/tests/checks"), &at("crates/passnet-kernel/tests/checks"));
    for part in ["tasks/swiglu", "passes/swiglu", "redteam/constant_output"] {
        copy(&from("bench").join(part), &at("bench").join(part));
    }
    let case = std::fs::read_to_string(from("bench/redteam/constant_output/case.json")).unwrap();
    for task in std::fs::read_dir(from("bench/tasks")).unwrap() {
        let name = task.unwrap().file_name().into_string().unwrap();
        if case.contains(&format!("\"{name}\"")) && name != "swiglu" {
            copy(&from("bench/tasks").join(&name), &at("bench/tasks").join(&name));
            keep_one_graph(&at("bench/tasks").join(&name));
        }
    }
    keep_one_graph(&at("bench/tasks/swiglu"));
    copy(&from("bench/set"), &at("bench/set"));
    copy(&from("bench/passes/swiglu"), &at("my_pass"));
    std::fs::copy(from("bench/set/evaluation.pnds"), at("evaluation.pnds")).unwrap();
    std::fs::write(at("tasks.txt"), "bench/tasks/swiglu\n").unwrap();
    archive(&from("examples/graphs"), &at("graphs.tar.zst"));
    passnet_checkout::write(&at("PassNet"));
    folder
}

fn keep_one_graph(task: &Path) {
    let list = task.join("graph_list.txt");
    let text = std::fs::read_to_string(&list).unwrap();
    let last = text.lines().last().unwrap();
    std::fs::write(&list, format!("{last}\n")).unwrap();
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for item in std::fs::read_dir(from).unwrap() {
        let path = item.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

fn archive(folder: &Path, path: &Path) {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_dir_all("graphs", folder).unwrap();
    let bytes = zstd::encode_all(&*tar.into_inner().unwrap(), 1).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// The command of a line, without what is said about it; `None` where the line is none.
fn command(line: &str) -> Option<String> {
    let line = line.trim_end();
    let text = line.trim_start();
    let begins = ["passnet ", "source <(passnet "].iter().any(|start| text.starts_with(start));
    if !begins || !line.starts_with("  ") {
        return None;
    }
    Some(text.split("  ").next().unwrap_or(text).trim().to_string())
}

/// Lines of an overview name commands by `a | b | c` and stand for arguments in capitals.
fn is_overview(command: &str) -> bool {
    let is_placeholder = |word: &str| {
        let word = word.trim_end_matches("...");
        word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase())
    };
    command.contains(" | ") && !command.contains("sort")
        || command.split(' ').any(is_placeholder) && !command.contains("HEX")
}

fn shell(folder: &Path, line: &str) -> Output {
    let binary = assert_cmd::cargo::cargo_bin("passnet");
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("bash");
    command.current_dir(folder).arg("-c").arg(line).env("PATH", path).env("NO_COLOR", "1");
    command.env("XDG_CACHE_HOME", folder.join("cache")).env("XDG_DATA_HOME", folder.join("data"));
    command.env_remove("COLUMNS").env_remove("PASSNET_LIBRARY");
    command.output().unwrap()
}

/// With a word in the place of what another command would print, its errors where they go anyway.
fn without_substitution(line: &str) -> String {
    let line = line.replace(" 2>&1", "");
    match line.split_once("$(").and_then(|(before, rest)| Some((before, rest.split_once(')')?.1))) {
        Some((before, after)) => format!("{before}text{after}"),
        None => line,
    }
}

/// Runs a command, or checks its words; what is wrong with it.
fn try_example(folder: &Path, line: &str) -> Result<(), String> {
    let complaint = |output: &Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(format!("`{line}` gives {:?}:\n{said}", output.status.code()))
    };
    if NOT_RUN.iter().any(|(part, _)| line.contains(part)) {
        let line = without_substitution(line);
        let words = line.trim_start_matches("source <(").split([')', '>', '&', '|']).next();
        // Words that are not known are refused before the help is shown.
        let output = shell(folder, &format!("{} --help", words.unwrap_or(&line)));
        return if output.status.success() { Ok(()) } else { complaint(&output) };
    }
    let output = shell(folder, &format!("set -o pipefail; {line}"));
    match output.status.code() {
        // 1 means that something under test failed, as a pass that does not match.
        Some(0 | 1) => Ok(()),
        _ => complaint(&output),
    }
}

/// Help texts by command, those of the commands below them included.
fn helps(folder: &Path, words: &str, all: &mut BTreeMap<String, String>) {
    let output = shell(folder, &format!("{words} --help"));
    assert!(output.status.success(), "{words}");
    let text = String::from_utf8(output.stdout).unwrap();
    let below: Vec<String> = text
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().map(str::to_string))
        .filter(|name| !name.is_empty() && name != "help")
        .collect();
    all.insert(words.to_string(), text);
    for name in below {
        helps(folder, &format!("{words} {name}"), all);
    }
}

fn try_all(folder: &Path, lines: &[String]) {
    let failed: Vec<String> =
        lines.iter().filter_map(|line| try_example(folder, line).err()).collect();
    assert!(
        failed.is_empty(),
        "{} of {} examples:\n{}",
        failed.len(),
        lines.len(),
        failed.join("\n")
    );
}

#[test]
fn the_examples_of_all_help_texts_run() {
    let folder = checkout();
    let mut texts = BTreeMap::new();
    helps(folder.path(), "passnet", &mut texts);
    // What later examples go on with.
    for line in [
        "passnet dataset import graphs.tar.zst --store corpus.pnds",
        "passnet bench bench/tasks/swiglu --passes bench/passes --out runs/two --warmup 1 --trials 10 --seconds 0",
    ] {
        let output = shell(folder.path(), line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut lines = Vec::new();
    for text in texts.values() {
        let text = text.split("\\\n").map(str::trim_start).collect::<String>();
        for line in text.lines().skip_while(|line| !line.starts_with("Example")).filter_map(command)
        {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    assert!(lines.len() > 60, "{lines:#?}");
    // Runs and keys are made before they are looked at.
    lines.sort_by_key(|line| {
        let makes = [
            "passnet bench ",
            "passnet init ",
            "passnet bundle key",
            "passnet solve ",
            "passnet dataset import ",
        ];
        let is_late = line.contains("my_task") && line.starts_with("passnet bench")
            || line.contains("verify one.bundle")
            || line.contains("leaderboard list")
            || line.contains("leaderboard backup");
        (is_late, !makes.iter().any(|start| line.starts_with(start)))
    });
    try_all(folder.path(), &lines);
}

#[test]
fn the_examples_of_the_readmes_run() {
    let mut lines: Vec<String> = Vec::new();
    for name in ["README.md", "README.zh.md"] {
        let text = std::fs::read_to_string(PathBuf::from(ROOT).join(name)).unwrap();
        let found: Vec<String> =
            text.lines().filter(|line| line.starts_with("    ")).filter_map(command).collect();
        assert!(found.len() > 15, "{name}: {found:#?}");
        found.into_iter().for_each(|line| {
            if !lines.contains(&line) {
                lines.push(line);
            }
        });
    }
    let (overview, examples): (Vec<String>, Vec<String>) =
        lines.into_iter().partition(|line| is_overview(line));
    let folder = checkout();
    try_all(folder.path(), &examples);
    assert!(overview.len() > 10, "{overview:#?}");
    for line in overview {
        let words: Vec<&str> = line.split(' ').collect();
        let Some((group, names)) = words[1..].split_first() else { continue };
        let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
        let names: Vec<&str> = match words.get(3) {
            Some(&"|") => names.iter().filter(is_name).copied().collect(),
            _ => vec![""],
        };
        for name in names {
            let output = shell(folder.path(), &format!("passnet {group} {name} --help"));
            assert!(output.status.success(), "`{line}` names `passnet {group} {name}`");
        }
    }
}

#[test]
fn what_is_not_run_is_there_and_has_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut texts = BTreeMap::new();
    helps(folder.path(), "passnet", &mut texts);
    let mut all: String = texts.into_values().collect();
    for name in ["README.md", "README.zh.md"] {
        all.push_str(&std::fs::read_to_string(PathBuf::from(ROOT).join(name)).unwrap());
    }
    for (part, reason) in NOT_RUN {
        assert!(all.contains(part), "nothing is `{part}` any more, which {reason}");
    }
}
