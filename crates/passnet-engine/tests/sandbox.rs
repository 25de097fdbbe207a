//! The sandbox on this machine. Where the machine has no namespaces, every test says so and checks the refusal instead.

use passnet_engine::sandbox::{
    Devices, Ending, Interpreter, Limits, Sandbox, device_check, self_check,
};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Past the test harness, which would keep it to itself.
fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

fn sandbox() -> Option<Sandbox> {
    match Sandbox::strongest() {
        Ok(sandbox) => Some(sandbox),
        Err(refusal) => {
            skipped(&refusal.to_string());
            assert!(!refusal.reason.is_empty() && !refusal.hint.is_empty());
            None
        }
    }
}

/// `PASSNET_PYTHON`, or the first Python of the path.
fn python() -> Option<Interpreter> {
    let named = std::env::var_os("PASSNET_PYTHON").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let python = named.into_iter().chain(found).find_map(|path| Interpreter::ask(&path).ok());
    if python.is_none() {
        skipped("no python3 on this machine");
    }
    python
}

fn run(script: &str, input: &[u8], limits: Limits) -> Option<passnet_engine::sandbox::Finished> {
    let (sandbox, python) = (sandbox()?, python()?);
    Some(sandbox.run(&python.job(script, &["one", "two"], input.to_vec(), limits)).unwrap())
}

#[test]
fn every_claim_holds() {
    let (Some(sandbox), Some(python)) = (sandbox(), python()) else { return };
    let checks = self_check(&sandbox, &python).unwrap();
    let broken: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for area in ["files", "network", "processes", "memory", "time", "devices", "output", "work"] {
        assert!(checks.iter().any(|check| check.area == area), "{area} is not checked");
    }
    assert!(checks.len() > 40, "only {} checks", checks.len());
}

#[test]
fn input_arguments_output_and_errors_pass_through() {
    let script = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1]); \
                  print(sys.argv[1:], file=sys.stderr); sys.exit(5)";
    // More than a pipe holds, both ways.
    let input: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
    let Some(finished) = run(script, &input, Limits::default()) else { return };
    assert_eq!(finished.ending, Ending::Exit(5));
    assert!(finished.output.iter().eq(input.iter().rev()));
    assert_eq!(finished.errors, "['one', 'two']\n");
}

#[test]
fn a_program_that_does_not_read_its_input_ends_as_it_likes() {
    let Some(finished) = run("pass", &vec![0; 1 << 20], Limits::default()) else { return };
    assert_eq!((finished.ending, finished.output.len()), (Ending::Exit(0), 0));
}

#[test]
fn a_crash_is_a_signal() {
    let script = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)";
    let Some(finished) = run(script, &[], Limits::default()) else { return };
    assert_eq!(finished.ending, Ending::Signal(11));
}

#[test]
fn many_errors_are_cut_and_do_not_stop_it() {
    let script = "import sys\nfor i in range(20000): print('line', i, file=sys.stderr)";
    let Some(finished) = run(script, &[], Limits::default()) else { return };
    assert_eq!(finished.ending, Ending::Exit(0));
    assert!(finished.errors.len() < 40_000 && finished.errors.ends_with("line 19999\n"));
}

#[test]
fn background_processes_do_not_outlive_it() {
    let script = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)";
    let begin = Instant::now();
    let limits = Limits { time: Duration::from_secs(300), ..Limits::default() };
    let Some(finished) = run(script, &[], limits) else { return };
    assert_eq!(finished.ending, Ending::Exit(0));
    assert!(begin.elapsed() < Duration::from_secs(200), "it waited for the one it left behind");
}

#[test]
fn several_run_at_once() {
    let (Some(sandbox), Some(python)) = (sandbox(), python()) else { return };
    std::thread::scope(|scope| {
        for number in 0..6 {
            let (sandbox, python) = (&sandbox, &python);
            scope.spawn(move || {
                let job = python.job(
                    "print(input())",
                    &[],
                    format!("{number}\n").into(),
                    Limits::default(),
                );
                let finished = sandbox.run(&job).unwrap();
                assert_eq!(finished.output, format!("{number}\n").as_bytes());
            });
        }
    });
}

#[test]
fn a_program_that_is_not_there_is_refused() {
    let (Some(sandbox), Some(python)) = (sandbox(), python()) else { return };
    let mut job = python.job("", &[], Vec::new(), Limits::default());
    job.program = "/no/such/program".into();
    let refusal = sandbox.run(&job).unwrap_err();
    assert_eq!(refusal.layer, "starting the program");
    job.readable.push("/proc".into());
    assert_eq!(sandbox.run(&job).unwrap_err().layer, "files");
}

/// Devices that every machine has, in the place of a GPU's; and what a driver's library would look at.
fn stand_ins() -> Devices {
    let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
    Devices {
        files: paths(&["/dev/full", "/dev/random"]),
        seen: paths(&[
            "/proc/cpuinfo",
            "/proc/sys/vm/overcommit_memory",
            "/proc/driver/none",
            "/sys/devices/system/cpu",
        ]),
        libraries: Vec::new(),
    }
}

#[test]
fn every_claim_holds_with_devices_in_it() {
    let (Some(sandbox), Some(python)) = (sandbox(), python()) else { return };
    let checks = match device_check(&sandbox, &python, &stand_ins()) {
        Ok(checks) => checks,
        Err(refusal) => {
            // In most containers: parts of /proc are hidden there.
            assert!(refusal.layer.contains("/proc") && refusal.hint.contains("systempaths"));
            return skipped(&refusal.to_string());
        }
    };
    let broken: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for area in ["files", "network", "processes", "memory", "devices", "work"] {
        assert!(checks.iter().any(|check| check.area == area), "{area} is not checked");
    }
}

#[test]
fn devices_are_let_in_by_name_and_only_for_the_job_that_names_them() {
    let (Some(sandbox), Some(python)) = (sandbox(), python()) else { return };
    let script = "import os\nnames = ['null', 'full', 'random', 'tty', 'kmsg']\n\
                  print([name for name in names if os.path.exists('/dev/' + name)], os.path.exists('/proc'))";
    let without = python.job(script, &[], Vec::new(), Limits::default());
    let mut with = without.clone();
    with.let_in(&stand_ins());
    let said = |job| sandbox.run(&job).map(|finished| String::from_utf8(finished.output).unwrap());
    if let Ok(text) = said(with) {
        assert_eq!(text, "['null', 'full', 'random'] True\n");
    }
    assert_eq!(said(without).unwrap(), "['null'] False\n");
}

#[test]
fn devices_that_are_none_are_refused() {
    let (Some(sandbox), Some(python)) = (sandbox(), python()) else { return };
    let path = |path: &str| vec![PathBuf::from(path)];
    let bad = |files, seen| Devices { files, seen, libraries: Vec::new() };
    let lists = ["/dev/nvidia-that-is-not-there", "/dev", "/dev/shm", "/etc/passwd", "/tmp"]
        .map(|file| bad(path(file), Vec::new()));
    let sights =
        ["/proc", "/sys", "/etc", "/proc/../etc", "proc"].map(|seen| bad(Vec::new(), path(seen)));
    for devices in lists.iter().chain(&sights) {
        let mut job = python.job("", &[], Vec::new(), Limits::default());
        job.let_in(devices);
        let refusal = sandbox.run(&job).unwrap_err();
        assert_eq!(refusal.layer, "files", "{devices:?}");
        assert!(!refusal.reason.is_empty(), "{devices:?}");
    }
}

/// Runs the next test where the kernel allows no more namespaces.
#[test]
fn without_namespaces_there_is_a_refusal_and_no_weaker_sandbox() {
    let this = std::env::current_exe().unwrap();
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces || exit 42; \
                  exec \"$0\" --exact refusal_names_the_layer --ignored";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", forbid])
        .arg(this)
        .output();
    match output {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains("1 passed"), "{text}");
        }
        Ok(output) if output.status.code() == Some(101) => {
            panic!("{}", String::from_utf8_lossy(&output.stdout));
        }
        _ => skipped("`unshare` cannot forbid namespaces here"),
    }
}

#[test]
#[ignore = "started by the test above, in a namespace that allows no further ones"]
fn refusal_names_the_layer() {
    let refusal = Sandbox::strongest().unwrap_err();
    assert_eq!(refusal.layer, "namespaces");
    assert!(refusal.hint.contains("user namespaces"), "{refusal}");
}
