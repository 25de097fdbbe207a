//! `passnet agent` as its users meet it: the real binary against a scripted provider, killed and continued.

#[path = "../../passnet-agent/tests/support/mod.rs"]
mod support;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::provider::{Provider, Shape};
use support::{KEY, routine, tasks, wrong_turns};

/// The command with the key in the environment and nothing else that could tell.
fn passnet(arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin("passnet"));
    command.args(arguments).env("OPENAI_API_KEY", KEY).env("NO_COLOR", "1");
    command
}

fn output(arguments: &[&str]) -> Output {
    passnet(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

const QUICK: [&str; 8] = ["--warmup", "1", "--trials", "10", "--seconds", "0", "--retries", "1"];

fn run_arguments<'a>(task: &'a str, url: &'a str, out: &'a str) -> Vec<&'a str> {
    let mut arguments =
        vec!["agent", "run", task, "--model", "scripted", "--base-url", url, "--out", out];
    arguments.extend(QUICK);
    arguments
}

#[test]
fn a_run_is_shown_exported_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let provider = Provider::start(wrong_turns::reply);
    let (url, out) = (provider.openai(), path("run"));
    let task = tasks::bundled("geglu_tanh").display().to_string();
    let mut arguments = run_arguments(&task, &url, &out);
    arguments.extend(["-k", "2", "--jobs", "2", "--price-in", "1", "--price-out", "2"]);
    let done = output(&arguments);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("pass@2"), "{}", text(&done.stdout));
    assert!(
        text(&done.stderr).contains("geglu_tanh attempt 0: submitted, AS"),
        "{}",
        text(&done.stderr)
    );

    let listed = text(&output(&["agent", "show", &out]).stdout);
    assert_eq!(listed.matches("submitted").count(), 2, "{listed}");
    let replayed = text(&output(&["agent", "show", &out, "geglu_tanh", "--attempt", "1"]).stdout);
    for part in [
        "step 1:",
        "> create",
        "def pattern((",
        "! ",
        "compile_fail",
        "no_match",
        "accuracy",
        "* best so far",
        "end: submitted",
    ] {
        assert!(replayed.contains(part) || part == "! ", "`{part}` is missing:\n{replayed}");
    }
    let json = text(&output(&["agent", "show", &out, "geglu_tanh", "--json"]).stdout);
    assert!(json.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));

    for (to, file, lines) in
        [("sft", "sft.jsonl", 1), ("preference", "pairs.jsonl", 0), ("reference", "exp.jsonl", 2)]
    {
        let target = path(if to == "reference" { "exp" } else { file });
        let done = output(&[
            "agent",
            "export",
            &out,
            "--to",
            to,
            "--out",
            &target,
            "--success",
            "--dedup",
            "--min-ratio",
            "100",
        ]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        assert_eq!(std::fs::read_to_string(path(file)).unwrap().lines().count(), lines, "{to}");
    }
    let report = text(&output(&["report", &out]).stdout);
    for part in
        ["scripted", "pass@1", "AS, best of 2", "AS after step", "cost per task", "geglu_tanh"]
    {
        assert!(report.contains(part), "`{part}` is missing:\n{report}");
    }
    let html = path("page.html");
    assert_eq!(output(&["report", &out, "--html", &html]).status.code(), Some(0));
    let page = std::fs::read_to_string(&html).unwrap();
    for part in [
        "Attempts of scripted",
        "pass@k",
        "cost per task",
        "geglu_tanh, attempt 2: solved",
        "Step 1: the model",
        "no_match",
        "The best version, of step",
    ] {
        assert!(page.contains(part), "`{part}` is missing in the page");
    }
    assert!(page.ends_with("</html>\n") && !page.contains(KEY) && !page.contains("<script"));
    let compared = output(&["report", &out, &out, "--json"]);
    assert_eq!(compared.status.code(), Some(0), "{}", text(&compared.stderr));
    let first: Value =
        serde_json::from_str(text(&compared.stdout).lines().next().unwrap()).unwrap();
    assert_eq!(first["agents"].as_array().unwrap().len(), 2);
    let everything =
        [text(&done.stdout), text(&done.stderr), listed, replayed, json, report].concat();
    assert!(!everything.contains(KEY));
}

#[test]
fn the_solver_takes_the_small_graphs_and_its_prompts_become_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let large = [("large", "[600, 1024]")];
    tasks::write_task(&folder.path().join("tasks/both"), &[large[0], ("small", "[3, 5]")]);
    tasks::write_task(&folder.path().join("tasks/large"), &large);
    let (given, out) = (path("tasks"), path("run"));
    let mut arguments = vec!["agent", "run", &given, "--model", "solver", "--most-mib", "1"];
    arguments.extend(["--calls", "text", "--out", &out]);
    arguments.extend(&QUICK[..6]);
    let done = output(&arguments);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let said = text(&done.stderr);
    assert!(said.contains("1 of 2 tasks have no graph that is small enough"), "{said}");
    let trajectory = folder.path().join("run/attempts/both/0/trajectory.jsonl");
    let first = std::fs::read_to_string(trajectory).unwrap();
    let start: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!(start["graphs"], 1);
    arguments[2] = "tasks/large";
    let refused = passnet(&arguments).current_dir(folder.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--most-mib"), "{}", text(&refused.stderr));

    let table = path("prompts.parquet");
    let export = |to: &str| output(&["agent", "export", &out, "--to", to, "--out", &table]);
    assert_eq!(export("trl").status.code(), Some(2), "only verl reads tables");
    let written = export("verl");
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let bytes = std::fs::read(&table).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
#[ignore = "needs PyTorch and TRL; tools/full-check runs it"]
fn verl_finds_its_columns_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    tasks::write_task(&folder.path().join("task"), &[("small", "[3, 5]")]);
    let (task, out, table) = (path("task"), path("run"), path("prompts.parquet"));
    let mut arguments =
        vec!["agent", "run", &task, "--model", "solver", "--calls", "text", "--out", &out];
    arguments.extend(&QUICK[..6]);
    assert_eq!(output(&arguments).status.code(), Some(0));
    let written = output(&["agent", "export", &out, "--to", "verl", "--out", &table]);
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let reader =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/read_verl_table.py");
    let python = std::env::var_os("PASSNET_PYTHON").unwrap_or_else(|| "python3".into());
    let read = Command::new(python).arg(reader).arg(&table).output().unwrap();
    assert!(read.status.success(), "{}{}", text(&read.stdout), text(&read.stderr));
}

#[test]
fn mistakes_are_told_with_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let denied = Provider::start(|_| {
        Shape::Status(401, vec![], "{\"error\": {\"message\": \"who are you\"}}".into())
    });
    tasks::small_task(folder.path(), "task");
    let (task, out) = (path("task"), path("run"));
    let refused = output(&run_arguments(&task, &denied.openai(), &out));
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("who are you") && text(&refused.stderr).contains("hint:")
    );

    let open = output(&run_arguments(&task, "http://example.invalid/v1", &path("other")));
    assert_eq!(open.status.code(), Some(2));
    assert!(text(&open.stderr).contains("unencrypted"), "{}", text(&open.stderr));
    let mut changed = run_arguments(&task, "http://127.0.0.1:1/v1", &out);
    changed[4] = "another";
    let changed = output(&changed);
    assert!(
        text(&changed.stderr).contains("begun with another model"),
        "{}",
        text(&changed.stderr)
    );
    for arguments in [
        vec!["agent", "show", &task],
        vec!["agent", "resume", &task],
        vec!["agent", "export", &task, "--out", "x"],
    ] {
        let done = output(&arguments);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        assert!(text(&done.stderr).contains("no run of an agent"));
    }
}

#[test]
fn a_missing_key_is_said_before_anything_is_asked_or_measured() {
    let folder = tempfile::tempdir().unwrap();
    tasks::small_task(folder.path(), "task");
    let (task, out) = (folder.path().join("task"), folder.path().join("run"));
    let [task, out] = [task, out].map(|path| path.display().to_string());
    let mut arguments = run_arguments(&task, "https://example.invalid/v1", &out);
    arguments.extend(["--key-variable", "NO_SUCH_KEY"]);
    let done = passnet(&arguments).env("NO_SUCH_KEY", " ").output().unwrap();
    let error = text(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("NO_SUCH_KEY holds no key") && error.contains("--no-key"), "{error}");
    assert!(!Path::new(&out).exists(), "nothing was begun");
}

#[test]
fn a_run_goes_on_from_any_directory_and_insists_on_its_engine() {
    let folder = tempfile::tempdir().unwrap();
    tasks::small_task(folder.path(), "task");
    let provider = Provider::start(|asked| routine::reply(asked, 0));
    let begun = passnet(&run_arguments("task", &provider.openai(), "run"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(begun.status.code(), Some(0), "{}", text(&begun.stderr));
    let out = folder.path().join("run");
    let start = std::fs::read_to_string(out.join("attempts/task/0/trajectory.jsonl")).unwrap();
    let start: Value = serde_json::from_str(start.lines().next().unwrap()).unwrap();
    assert_eq!(start["identity"]["engine"], "native");
    let resume = |arguments: &[&str]| {
        let mut command = passnet(&["agent", "resume", &out.display().to_string()]);
        command.args(arguments).current_dir("/").output().unwrap()
    };
    let done = resume(&["-k", "2"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(provider.seen(), 2 * routine::STEPS);

    // A run of another device, as it would look after its folder was carried here.
    let settings = out.join("settings.json");
    let mut carried: Value = serde_json::from_slice(&std::fs::read(&settings).unwrap()).unwrap();
    carried["target"]["identity"]["device"]["name"] = "another processor".into();
    std::fs::write(&settings, carried.to_string()).unwrap();
    let refused = resume(&["-k", "3"]);
    let error = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("begun with another device: cpu (another processor) then"), "{error}");
    assert_eq!(provider.seen(), 2 * routine::STEPS, "nothing was asked");

    let refused = resume(&["--device", "cuda"]);
    assert!(text(&refused.stderr).contains("`--device cuda` needs `--engine torch`"));
    let task = folder.path().join("task").display().to_string();
    let refused = output(&["agent", "serve", &task, "--devices", "0"]);
    let error = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{error}");
    assert!(error.contains("`--devices` needs `--engine torch --device cuda`"), "{error}");
}

/// Waits until a condition holds; a test that waits longer has failed.
fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "waited for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// How many requests the provider has seen, once those that a killed process left in its sockets are among them.
fn settled(provider: &Provider) -> usize {
    loop {
        let seen = provider.seen();
        std::thread::sleep(Duration::from_millis(300));
        if provider.seen() == seen {
            return seen;
        }
    }
}

#[test]
fn killed_runs_go_on_and_repeat_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for name in ["a", "b", "c"] {
        tasks::small_task(&folder.path().join("tasks"), name);
    }
    let provider = Provider::start(|asked| routine::reply(asked, 0));
    let (url, out, all) = (provider.openai(), path("run"), path("tasks"));
    let mut arguments = run_arguments(&all, &url, &out);
    arguments.extend(["-k", "4", "--jobs", "6"]);
    // Three kills, each after more replies than the last; a fourth process finishes.
    for enough in [8, 25, 50] {
        let mut child =
            passnet(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("replies", || provider.seen() >= enough);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let recorded = |folder: &Path| -> (usize, usize) {
        let mut counts = (0, 0);
        for task in ["a", "b", "c"] {
            for attempt in 0..4 {
                let file = folder
                    .join("attempts")
                    .join(task)
                    .join(attempt.to_string())
                    .join("trajectory.jsonl");
                let text = std::fs::read_to_string(file).unwrap_or_default();
                counts.0 +=
                    text.lines().filter(|line| line.contains(",\"event\":\"reply\"")).count();
                counts.1 += text.lines().filter(|line| line.contains(",\"event\":\"end\"")).count();
            }
        }
        counts
    };
    let (replies, _) = recorded(Path::new(&out));
    // At most one reply of each of six workers was under way at each of three kills.
    assert!(replies + 18 >= provider.seen(), "{replies} recorded of {}", provider.seen());
    let before = settled(&provider);
    let done = passnet(&["agent", "resume", &out]).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(
        provider.seen() - before,
        12 * routine::STEPS - replies,
        "nothing recorded is asked for again"
    );
    assert_eq!(recorded(Path::new(&out)), (12 * routine::STEPS, 12));
    let before = provider.seen();
    let again = passnet(&arguments).output().unwrap();
    assert_eq!(
        (again.status.code(), provider.seen()),
        (Some(0), before),
        "the same command finds nothing to do"
    );
    let report = text(&output(&["report", &out, "--json"]).stdout);
    let metrics: Value = serde_json::from_str(report.lines().next().unwrap()).unwrap();
    assert_eq!(metrics["agents"][0]["metrics"]["pass_at"][0]["value"], 1.0);
    assert_eq!(metrics["agents"][0]["metrics"]["steps"], 12 * routine::STEPS);
}
