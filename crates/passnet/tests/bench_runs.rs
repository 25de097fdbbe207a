//! Runs of `passnet bench` in a folder: what is known is not repeated, what was stopped goes on, what is damaged is told.

mod benched;

use assert_cmd::Command;
use benched::{QUICK, TASK, bench, bundled, events, graph_events, json, passnet};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};

#[test]
fn a_second_run_into_the_same_folder_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = json(&mut bench(Some(folder.path())));
    let stored = graph_events(folder.path());
    let second = json(&mut bench(Some(folder.path())));
    assert_eq!(graph_events(folder.path()), stored);
    assert_eq!(first["as"], second["as"], "kept results keep their score");
    assert_eq!(first["graphs"], second["graphs"]);
}

/// A run of all bundled tasks into `folder` as a process of its own, once its events have so many lines, or once it is done.
fn under_way(folder: &Path, lines: usize, output: fn() -> Stdio) -> (PathBuf, Child) {
    let mut run = Process::new(assert_cmd::cargo::cargo_bin("passnet"))
        .arg("bench")
        .arg(bundled("tasks"))
        .arg("--passes")
        .arg(bundled("passes"))
        .args(QUICK)
        .arg("--out")
        .arg(folder)
        .stdout(output())
        .stderr(output())
        .spawn()
        .unwrap();
    let path = folder.join("events.jsonl");
    let written = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    while written() < lines && run.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    (path, run)
}

#[test]
fn a_killed_run_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut killed) = under_way(folder.path(), 4, Stdio::null);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let before = std::fs::read_to_string(&path).unwrap();
    let whole = &before[..=before.rfind('\n').unwrap()];
    // A torn line, as a kill in the middle of a write leaves it.
    std::fs::write(&path, format!("{whole}{{\"event\":\"gra")).unwrap();
    let known = whole.lines().filter(|line| line.contains("\"event\":\"graph\"")).count();
    assert!(known >= 1, "{before}");
    let first_task = {
        let event: Value = serde_json::from_str(whole.lines().nth(1).unwrap()).unwrap();
        event["sample"].as_str().unwrap().to_string()
    };
    let mut again = passnet();
    again.arg("bench").arg(bundled("tasks").join(&first_task));
    again.arg("--passes").arg(bundled("passes")).args(QUICK).arg("--out").arg(folder.path());
    let result = json(&mut again);
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.starts_with(whole), "what was done is kept");
    let stored = events(folder.path());
    let of_task = stored.iter().filter(|e| e["event"] == "graph" && e["sample"] == first_task);
    assert_eq!(of_task.count(), result["graphs"].as_array().unwrap().len(), "none done twice");
}

#[test]
fn problems_around_a_run_are_told_clearly() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |command: &mut Command, code: i32, expected: &str| {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    };
    fails(passnet().args(["bench", "no/such/folder"]), 2, "no/such/folder");
    fails(passnet().arg("bench").arg(folder.path()), 2, "no sample found here");
    // The sample's own pass folder is empty.
    fails(passnet().arg("bench").arg(bundled("tasks").join(TASK)).args(QUICK), 1, "compile_fail");
    let broken = folder.path().join("broken");
    std::fs::create_dir_all(&broken).unwrap();
    std::fs::write(broken.join("graph_list.txt"), "graphs/gone\n").unwrap();
    let mut command = passnet();
    command.arg("bench").arg(&broken).arg("--passes").arg(bundled("passes").join(TASK)).args(QUICK);
    fails(&mut command, 1, "reference_fail");
    let busy = folder.path().join("busy");
    std::fs::create_dir_all(&busy).unwrap();
    let held = std::fs::File::create(busy.join("events.jsonl")).unwrap();
    held.lock().unwrap();
    fails(&mut bench(Some(&busy)), 2, "another process is writing this run");
    let blocked = folder.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    fails(&mut bench(Some(&blocked)), 2, "file");
}

/// Reading such a device would never end.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("events.jsonl")).unwrap();
    let output = bench(Some(folder.path())).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("events.jsonl: not a regular file"), "{text}");
}

#[test]
fn stored_failures_are_repeated_where_that_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = passnet();
        command.arg("bench").arg(bundled("tasks").join(TASK)).args(QUICK).args(more);
        // The sample's own pass folder is empty: every graph fails.
        let output = command.arg("--out").arg(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        graph_events(folder.path())
    };
    let first = run(&[]);
    assert!(first > 0);
    assert_eq!(run(&[]), first, "failures are known");
    assert_eq!(run(&["--retry-failed"]), 2 * first);
    assert_eq!(run(&[]), 2 * first);
}

/// A worker that is killed is nobody's failure: exit 3, nothing stored, and the next run takes the graphs up.
#[cfg(unix)]
#[test]
fn what_the_machine_kept_from_being_judged_is_taken_up_by_the_next_run() {
    use std::os::unix::fs::PermissionsExt;
    if Process::new("python3").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("killed.py");
    let fake =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../passnet-engine/tests/torch/fake_worker.py");
    std::fs::copy(fake, &worker).unwrap();
    std::fs::set_permissions(&worker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let armed = folder.path().join("killed.armed");
    std::fs::write(&armed, "").unwrap();
    let run = folder.path().join("run");
    let bench = || {
        let mut command = passnet();
        command.arg("bench").arg(bundled("tasks").join(TASK)).args(["--compiler", "eager"]);
        command.args(["--engine", "torch", "--json"]).arg("--python").arg(&worker);
        let output = command.args(QUICK).arg("--out").arg(&run).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let result: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{error}"));
        (output.status.code(), result)
    };
    let (code, result) = bench();
    assert_eq!(code, Some(3), "{result}");
    let lost = result["not_judged"].as_array().unwrap();
    assert!(lost.len() >= 3 && result["graphs"].as_array().unwrap().is_empty(), "{result}");
    let reason = lost[0]["reason"].as_str().unwrap();
    assert!(reason.contains("the PyTorch worker fell") && reason.contains("signal: 9"), "{reason}");
    let stored = |kind: &str| events(&run).iter().filter(|event| event["event"] == kind).count();
    assert_eq!((stored("graph"), stored("end")), (0, 0), "nothing is a verdict, and nothing ended");
    std::fs::remove_file(armed).unwrap();
    let (code, result) = bench();
    assert_eq!((code, result["not_judged"].as_array().unwrap().len()), (Some(0), 0), "{result}");
    assert_eq!((stored("graph"), stored("end")), (lost.len(), 1));
}

/// A signal as Ctrl-C sends it, once the first result is there.
#[test]
fn ctrl_c_ends_after_the_graph_under_way_and_the_same_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut stopped) = under_way(folder.path(), 3, Stdio::piped);
    assert!(stopped.try_wait().unwrap().is_none(), "all was judged before it could be stopped");
    let pid = stopped.id().to_string();
    assert!(Process::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = stopped.wait_with_output().unwrap();
    let (text, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("stopping after what is under way"), "{said}");
    assert!(
        text.contains("graphs were not begun; the same command with `--out` goes on"),
        "{text}"
    );
    let known = graph_events(folder.path());
    let end = events(folder.path()).iter().filter(|event| event["event"] == "end").count();
    assert!((2..128).contains(&known) && end == 0, "{known} {end}");
    let first = events(folder.path()).into_iter().find(|event| event["event"] == "graph").unwrap();
    let mut again = passnet();
    again.arg("bench").arg(bundled("tasks").join(first["sample"].as_str().unwrap()));
    again.arg("--passes").arg(bundled("passes")).args(QUICK).arg("--out").arg(folder.path());
    assert!(json(&mut again)["as"].is_f64());
}
