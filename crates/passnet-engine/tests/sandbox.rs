//! The sandbox on this machine. `tools/full-check` runs these tests where the machine has namespaces; in most containers
//! parts of /proc are hidden, and devices cannot be let in.

use passnet_engine::sandbox::{
    Devices, Ending, Interpreter, Limits, Sandbox, device_check, self_check,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn sandbox() -> Sandbox {
    Sandbox::strongest().unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// `PASSNET_PYTHON`, or the first Python of the path.
fn python() -> Interpreter {
    let named = std::env::var_os("PASSNET_PYTHON").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("python3"));
    let python = named.into_iter().chain(found).find_map(|path| Interpreter::ask(&path).ok());
    python.expect("there must be a python3 on the path")
}

fn run(script: &str, input: &[u8], limits: Limits) -> passnet_engine::sandbox::Finished {
    sandbox().run(&python().job(script, &["one", "two"], input.to_vec(), limits)).unwrap()
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn every_claim_holds() {
    let (sandbox, python) = (sandbox(), python());
    let checks = self_check(&sandbox, &python).unwrap();
    let broken: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for area in ["files", "network", "processes", "memory", "time", "devices", "output", "work"] {
        assert!(checks.iter().any(|check| check.area == area), "{area} is not checked");
    }
    assert!(checks.len() > 40, "only {} checks", checks.len());
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn input_arguments_output_and_errors_pass_through() {
    let script = "import sys; d = sys.stdin.buffer.read(); sys.stdout.buffer.write(d[::-1]); \
                  print(sys.argv[1:], file=sys.stderr); sys.exit(5)";
    // More than a pipe holds, both ways.
    let input: Vec<u8> = (0..1 << 20).map(|i| (i % 251) as u8).collect();
    let finished = run(script, &input, Limits::default());
    assert_eq!(finished.ending, Ending::Exit(5));
    assert!(finished.output.iter().eq(input.iter().rev()));
    assert_eq!(finished.errors, "['one', 'two']\n");
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn a_program_that_does_not_read_its_input_ends_as_it_likes() {
    let finished = run("pass", &vec![0; 1 << 20], Limits::default());
    assert_eq!((finished.ending, finished.output.len()), (Ending::Exit(0), 0));
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn a_crash_is_a_signal() {
    let script = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)";
    let finished = run(script, &[], Limits::default());
    assert_eq!(finished.ending, Ending::Signal(11));
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn many_errors_are_cut_and_do_not_stop_it() {
    let script = "import sys\nfor i in range(20000): print('line', i, file=sys.stderr)";
    let finished = run(script, &[], Limits::default());
    assert_eq!(finished.ending, Ending::Exit(0));
    assert!(finished.errors.len() < 40_000 && finished.errors.ends_with("line 19999\n"));
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn background_processes_do_not_outlive_it() {
    let script = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)";
    let begin = Instant::now();
    let limits = Limits { time: Duration::from_secs(300), ..Limits::default() };
    let finished = run(script, &[], limits);
    assert_eq!(finished.ending, Ending::Exit(0));
    assert!(begin.elapsed() < Duration::from_secs(200), "it waited for the one it left behind");
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn several_run_at_once() {
    let (sandbox, python) = (sandbox(), python());
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
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn a_program_that_is_not_there_is_refused() {
    let (sandbox, python) = (sandbox(), python());
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
#[ignore = "needs python3 and a sandbox with /proc; tools/full-check runs it"]
fn every_claim_holds_with_devices_in_it() {
    let (sandbox, python) = (sandbox(), python());
    let checks = device_check(&sandbox, &python, &stand_ins()).unwrap();
    let broken: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for area in ["files", "network", "processes", "memory", "devices", "work"] {
        assert!(checks.iter().any(|check| check.area == area), "{area} is not checked");
    }
}

#[test]
#[ignore = "needs python3 and a sandbox with /proc; tools/full-check runs it"]
fn devices_are_let_in_by_name_and_only_for_the_job_that_names_them() {
    let (sandbox, python) = (sandbox(), python());
    let script = "import os\nnames = ['null', 'full', 'random', 'tty', 'kmsg']\n\
                  print([name for name in names if os.path.exists('/dev/' + name)], os.path.exists('/proc'))";
    let without = python.job(script, &[], Vec::new(), Limits::default());
    let mut with = without.clone();
    with.let_in(&stand_ins());
    let said = |job| sandbox.run(&job).map(|finished| String::from_utf8(finished.output).unwrap());
    assert_eq!(said(with).unwrap(), "['null', 'full', 'random'] True\n");
    assert_eq!(said(without).unwrap(), "['null'] False\n");
}

#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn devices_that_are_none_are_refused() {
    let (sandbox, python) = (sandbox(), python());
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
#[ignore = "needs unshare; tools/full-check runs it"]
fn without_namespaces_there_is_a_refusal_and_no_weaker_sandbox() {
    let this = std::env::current_exe().unwrap();
    let forbid = "echo 0 > /proc/sys/user/max_user_namespaces || exit 42; \
                  exec \"$0\" --exact refusal_names_the_layer --ignored";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", forbid])
        .arg(this)
        .output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "started by the test above, in a namespace that allows no further ones"]
fn refusal_names_the_layer() {
    let refusal = Sandbox::strongest().unwrap_err();
    assert_eq!(refusal.layer, "namespaces");
    assert!(refusal.hint.contains("user namespaces"), "{refusal}");
}

/// The child begins as a copy of this process: what it inherits so is not what it uses.
#[test]
#[ignore = "needs python3 and a sandbox; tools/full-check runs it"]
fn a_small_program_of_a_large_process_stays_within_its_memory() {
    let limits = Limits { memory: 256 << 20, ..Limits::default() };
    // More than the limit, every page written.
    let large = vec![1u8; 512 << 20];
    let script = "import time; time.sleep(0.5); print('done')";
    let finished = run(script, &[], limits);
    assert_eq!(finished.ending, Ending::Exit(0), "{}", finished.errors);
    assert_eq!(finished.output, b"done\n");
    // What it takes itself still counts.
    let script = "import time; hoard = bytearray(b'x') * (400 << 20); time.sleep(30)";
    let finished = run(script, &[], Limits { memory: 300 << 20, ..Limits::default() });
    assert_ne!(finished.ending, Ending::Exit(0));
    std::hint::black_box(&large);
}
