//! `passnet doctor`, through the real binary. What it finds differs from machine to machine; what it says of it does not.

use assert_cmd::Command;
use serde_json::Value;

fn doctor(arguments: &[&str]) -> std::process::Output {
    let mut command = Command::cargo_bin("passnet").unwrap();
    // No Python is imported: the empty folder is the whole path.
    let empty = tempfile::tempdir().unwrap();
    command
        .arg("doctor")
        .args(arguments)
        .env("PATH", empty.path())
        .env("HOME", empty.path())
        .env_remove("PASSNET_PYTHON")
        .env_remove("PASSNET_RUNNER")
        .env_remove("XDG_DATA_HOME");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_bare_machine_runs_the_native_engine_and_is_told_the_rest() {
    let output = doctor(&[]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}");
    for expected in ["processor", "no python3 on the path", "--install-torch", "native", "sandbox"]
    {
        assert!(shown.contains(expected), "{expected} is missing in:\n{shown}");
    }
}

#[test]
fn the_json_has_its_keys() {
    let output = doctor(&["--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["works"]["native"], true);
    assert_eq!(found["works"]["torch_cuda"], false);
    assert!(found["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(found["python"]["missing"].is_string());
    let sandbox = &found["sandbox"];
    assert!(sandbox["namespaces"] == true || sandbox["refused"].is_string(), "{sandbox}");
    let gpu = &found["sandbox_gpu"];
    assert!(gpu["devices"].is_array() || gpu["missing"].is_string(), "{gpu}");
    assert_eq!(found["works"]["compat_cuda"], false);
}

#[test]
fn what_is_asked_for_and_missing_gives_code_three_and_a_hint() {
    for arguments in [
        &["--need", "cuda"][..],
        &["--need", "torch"],
        &["--need", "runner", "--need", "triton"],
        &["--python", "/no/such/python"],
        &["--install-torch"],
        &["--measure-target", "target.json"],
    ] {
        let output = doctor(arguments);
        let error = text(&output.stderr);
        // The runner may lie beside the binary; everything else is missing here.
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {error}");
        assert!(error.contains("error: ") && error.contains("hint: "), "{arguments:?}: {error}");
    }
    assert!(text(&doctor(&["--python", "/no/such/python"]).stderr).contains("/no/such/python"));
}

#[test]
fn an_installer_that_fails_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("environment");
    // A program that is no Python stands in for a broken one.
    let output = doctor(&["--install-torch", target.to_str().unwrap(), "--python", "/bin/false"]);
    assert_eq!(output.status.code(), Some(3));
    let error = text(&output.stderr);
    assert!(error.contains("making a virtual environment") && error.contains("failed"), "{error}");
}

#[test]
fn bad_usage_is_code_two() {
    assert_eq!(doctor(&["--need", "luck"]).status.code(), Some(2));
}
