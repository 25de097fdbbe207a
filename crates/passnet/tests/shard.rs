//! `--shard I/N` and `passnet merge`: parts that were made apart are the run of one process.

use assert_cmd::Command;
use passnet_bench::run::{self, RunStore};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn bundled(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench").join(path)
}

fn passnet() -> Command {
    Command::cargo_bin("passnet").unwrap()
}

/// Little timing and few checks: what is looked at here is how parts become a whole.
const QUICK: [&str; 7] = ["--quick", "--warmup", "1", "--trials", "10", "--seconds", "0"];
const SHARDS: u32 = 8;

/// The bundled tasks, one graph of each.
fn small_tasks(folder: &Path) -> PathBuf {
    let tasks = folder.join("tasks");
    for item in std::fs::read_dir(bundled("tasks")).unwrap() {
        let from = item.unwrap().path();
        let to = tasks.join(from.file_name().unwrap());
        let list = std::fs::read_to_string(from.join("graph_list.txt")).unwrap();
        let graph = list.lines().last().unwrap();
        std::fs::create_dir_all(to.join(graph)).unwrap();
        for file in std::fs::read_dir(from.join(graph)).unwrap() {
            let file = file.unwrap().path();
            std::fs::copy(&file, to.join(graph).join(file.file_name().unwrap())).unwrap();
        }
        std::fs::write(to.join("graph_list.txt"), format!("{graph}\n")).unwrap();
    }
    tasks
}

fn said(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    format!("{out}{err}")
}

fn bench(tasks: &Path, out: &Path) -> Command {
    let mut command = passnet();
    command.arg("bench").arg(tasks).arg("--passes").arg(bundled("passes")).args(QUICK);
    command.arg("--out").arg(out);
    command
}

fn merge(parts: &[PathBuf], out: &Path) -> Command {
    let mut command = passnet();
    command.arg("merge").args(parts).arg("--out").arg(out);
    command
}

/// What is measured, drawn or said of the time; the rest must be the same in every byte.
const MEASURED: [&str; 18] = [
    "seal",
    "time",
    "noise_floor",
    "ladder",
    "secret",
    "interval",
    "decision",
    "speedup",
    "eager_ms",
    "candidate_ms",
    "eager_costs",
    "candidate_costs",
    "spent",
    "measured_seconds",
    "seconds",
    "outputs",
    "accuracy",
    "roofline_ms",
];

fn without_measurements(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            MEASURED.iter().for_each(|name| drop(fields.shift_remove(*name)));
            fields.values_mut().for_each(without_measurements);
        }
        Value::Array(items) => items.iter_mut().for_each(without_measurements),
        _ => {}
    }
}

/// Every file of a folder by path; lines of JSON without measurements.
fn content(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for item in std::fs::read_dir(&next).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let line = |line: &str| match serde_json::from_str::<Value>(line) {
                Ok(mut value) => {
                    without_measurements(&mut value);
                    value.to_string() + "\n"
                }
                Err(_) => line.to_string() + "\n",
            };
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            let is_json = name.ends_with(".jsonl");
            found.insert(name, if is_json { text.lines().map(line).collect() } else { text });
        }
    }
    found
}

fn assert_same(one: &Path, two: &Path) {
    let (one, two) = (content(one), content(two));
    assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
    for (name, text) in &one {
        assert!(*text == two[name], "{name} differs:\n{text}\n{}", two[name]);
    }
}

/// All parts of a run of bench.
fn bench_parts(tasks: &Path, folder: &Path) -> Vec<PathBuf> {
    let part = |index| {
        let out = folder.join(format!("part{index}"));
        said(bench(tasks, &out).args(["--shard", &format!("{index}/{SHARDS}")]), 0);
        out
    };
    (0..SHARDS).map(part).collect()
}

#[test]
fn eight_parts_of_a_bench_are_the_run_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let tasks = small_tasks(folder.path());
    said(&mut bench(&tasks, &at("alone")), 0);
    let parts = bench_parts(&tasks, folder.path());
    // The order in which they are named does not matter.
    let mut named = parts.clone();
    named.reverse();
    let text = said(&mut merge(&named, &at("whole")), 0);
    assert!(text.contains("units of 8 parts of `bench`") && text.contains("AS  "), "{text}");
    assert_same(&at("alone"), &at("whole"));
    // Nothing is judged again by a command that goes on with the whole.
    let before = std::fs::read_to_string(at("whole").join("events.jsonl")).unwrap();
    said(&mut bench(&tasks, &at("whole")), 0);
    let after = std::fs::read_to_string(at("whole").join("events.jsonl")).unwrap();
    let graphs = |text: &str| text.matches("\"event\":\"graph\"").count();
    assert_eq!(graphs(&before), graphs(&after));
    refusals(&tasks, &parts, folder.path());
}

/// What is no whole run is refused in words that name both sides, and leaves nothing behind.
fn refusals(tasks: &Path, parts: &[PathBuf], folder: &Path) {
    let out = folder.join("refused");
    let refused = |parts: &[PathBuf]| {
        let text = said(&mut merge(parts, &out), 2);
        assert!(!out.exists(), "{text}");
        text
    };
    let text = refused(&parts[1..]);
    assert!(text.contains("7 of 8 shards are there; missing: 0/8"), "{text}");
    let text = refused(&[parts, &parts[..1]].concat());
    assert!(text.contains("are both shard 0/8"), "{text}");
    let text = refused(&[folder.join("alone")]);
    assert!(text.contains("alone: here is no part of a run"), "{text}");

    // Another way of judging.
    let other = folder.join("other");
    said(bench(tasks, &other).args(["--no-rules", "--shard", "0/8"]), 0);
    let text = refused(&[std::slice::from_ref(&other), &parts[1..]].concat());
    assert!(text.contains("other and ") && text.contains("without rules`"), "{text}");

    // Another machine, as an event says it.
    let first = parts.iter().find(|part| graphs_of(part) > 0).unwrap();
    let events = first.join("events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    let unsealed: String = text.lines().map(|line| format!("{{{}\n", &line[75..])).collect();
    let elsewhere = unsealed.replacen("\"cores\":", "\"cores\":1", 1);
    std::fs::write(&events, elsewhere).unwrap();
    assert!(refused(parts).contains("of its lines are not sealed"), "sealed by the merge");
    // Sealed anew, as a program there would have done: what is refused is the difference.
    let edited = run::read(first).unwrap();
    std::fs::remove_file(&events).unwrap();
    RunStore::open(first).unwrap().append_all(&edited).unwrap();
    let said_why = refused(parts);
    assert!(
        said_why.contains("another processor: `") && said_why.contains(" cores` and `"),
        "{said_why}"
    );
    // A line that was changed.
    std::fs::write(&events, text.replacen("\"cores\":", "\"cores\":1", 1)).unwrap();
    assert!(refused(parts).contains("events.jsonl:1:1: this run was changed"));
    // A part that was stopped.
    let stopped: Vec<&str> =
        text.lines().filter(|line| !line.contains("\"event\":\"end\"")).collect();
    std::fs::write(&events, stopped.join("\n") + "\n").unwrap();
    assert!(refused(parts).contains("this run has not come to its end"));
    std::fs::write(&events, text).unwrap();

    // The folder of one part takes no other one, and not the whole.
    let text = said(bench(tasks, &parts[0]).args(["--shard", "1/8"]), 2);
    assert!(text.contains("here is shard 0/8, not 1/8"), "{text}");
    let text = said(&mut bench(tasks, &parts[0]), 2);
    assert!(text.contains("here is shard 0/8 of a run"), "{text}");
    let text = said(&mut merge(parts, &folder.join("whole")), 2);
    assert!(text.contains("whole: is there already"), "{text}");
}

fn graphs_of(part: &Path) -> usize {
    let text = std::fs::read_to_string(part.join("events.jsonl")).unwrap();
    text.matches("\"event\":\"graph\"").count()
}

#[test]
fn parts_of_solve_are_put_together_with_their_passes() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = small_tasks(folder.path());
    let solve = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let mut command = passnet();
        command.arg("solve").arg(&tasks).args(["--no-tune", "--quick", "--seconds", "0"]);
        said(command.arg("--out").arg(&out).args(more), 0);
        out
    };
    let alone = solve("alone", &[]);
    let parts: Vec<PathBuf> = (0..3)
        .map(|index| solve(&format!("part{index}"), &["--shard", &format!("{index}/3")]))
        .collect();
    let whole = folder.path().join("whole");
    said(&mut merge(&parts, &whole), 0);
    let passes = |folder: &Path| {
        let mut found = content(folder);
        // It says how long solving took.
        found.retain(|name, _| !name.ends_with("explain.json"));
        found
    };
    let (one, two) = (passes(&alone), passes(&whole));
    assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>());
    assert!(one.keys().any(|name| name.ends_with("sorted_output_pass_rule_names.json")));
    assert_eq!(one, two);
}

#[test]
fn parts_of_an_agents_run_are_put_together() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = small_tasks(folder.path());
    let names = ["rms_norm_gate", "swiglu"].map(|name| tasks.join(name));
    let agent = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let mut command = passnet();
        command.args(["agent", "run", "--model", "solver", "--jobs", "1"]).args(&names).args(QUICK);
        let output = command.arg("--out").arg(&out).args(more).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
        out
    };
    let alone = agent("alone", &[]);
    let parts: Vec<PathBuf> = (0..2)
        .map(|index| agent(&format!("part{index}"), &["--shard", &format!("{index}/2")]))
        .collect();
    let whole = folder.path().join("whole");
    said(&mut merge(&parts, &whole), 0);
    let tasks_of = |run: &Path| -> Vec<String> {
        let events = std::fs::read_to_string(run.join("best/events.jsonl")).unwrap();
        let graph = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            Some(format!("{} {}", event["sample"].as_str()?, event["verdict"]))
        };
        events.lines().filter_map(graph).collect()
    };
    assert_eq!(tasks_of(&alone), tasks_of(&whole));
    let files =
        |run: &Path| content(run).into_keys().filter(|name| name != "lock").collect::<Vec<_>>();
    let named = |names: Vec<String>| {
        names.into_iter().filter(|n| !n.contains("objects/")).collect::<Vec<_>>()
    };
    assert_eq!(named(files(&alone)), named(files(&whole)));
    let said = said(passnet().args(["agent", "show"]).arg(&whole), 0);
    assert!(said.contains("swiglu"), "{said}");
}

/// `passnet` on a machine without the GPU that files for clusters ask for, and with little timing.
const ON_THIS_MACHINE: &str = r#"#!/bin/sh
command="$1"
shift
[ "$command" = bench ] || exec PROGRAM "$command" "$@"
for word do
  shift
  case "$word" in
    --engine | torch | --device | cuda) ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec PROGRAM bench "$@" QUICK
"#;
/// Slurm's program, which here starts nothing elsewhere.
const SRUN: &str = "#!/bin/sh\nexec \"$@\"\n";

#[test]
fn the_files_for_slurm_give_the_run_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (tasks, tools) = (at("tasks"), at("bin"));
    let all = small_tasks(&at("all"));
    std::fs::create_dir(&tasks).unwrap();
    for name in ["swiglu", "rms_norm_gate", "quick_gelu_add"] {
        std::fs::rename(all.join(name), tasks.join(name)).unwrap();
    }
    std::fs::create_dir(&tools).unwrap();
    let program = assert_cmd::cargo::cargo_bin("passnet");
    let ours = ON_THIS_MACHINE
        .replace("PROGRAM", &program.display().to_string())
        .replace("QUICK", &QUICK.join(" "));
    for (name, text) in [("srun", SRUN), ("passnet", &ours)] {
        std::fs::write(tools.join(name), text).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(tools.join(name), executable).unwrap();
    }
    let script = |name: &str| {
        let mut command = Command::new("bash");
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        command.arg(bundled("../deploy/slurm").join(name)).env("PATH", path);
        command.env("TASKS", &tasks).env("PASSES", bundled("passes")).env("OUT", at("run"));
        command
    };
    for index in 0..3 {
        let mut part = script("array.sbatch");
        part.env("SLURM_ARRAY_TASK_ID", index.to_string()).env("SLURM_ARRAY_TASK_COUNT", "3");
        said(&mut part, 0);
    }
    said(&mut script("merge.sbatch"), 0);
    said(&mut bench(&tasks, &at("alone")), 0);
    assert_same(&at("alone"), &at("run/whole"));
    // What is no result is a failure of the array's task.
    let mut wrong = script("array.sbatch");
    wrong.env("SLURM_ARRAY_TASK_ID", "3").env("SLURM_ARRAY_TASK_COUNT", "3");
    let text = said(&mut wrong, 1);
    assert!(text.contains("a shard is I/N"), "{text}");
}
