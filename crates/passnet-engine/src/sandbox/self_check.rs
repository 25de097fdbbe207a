//! Tries to break out of the sandbox in every way it claims to stop, and to do what a program must be able to do.

use super::{Devices, Ending, Finished, Interpreter, Job, Limits, Refusal, Sandbox};
use std::time::Duration;

/// One claim of the sandbox, tried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// `files`, `network`, `processes`, `memory`, `time`, `devices`, `output` or `work`.
    pub area: &'static str,
    /// What is so inside.
    pub claim: String,
    /// Whether the trial bore it out.
    pub holds: bool,
}

const SCRIPT: &str = include_str!("self_check.py");
const DEVICE_SCRIPT: &str = include_str!("device_check.py");

/// Runs all checks with a Python in the sandbox. The file named `secret` must be one that the sandbox does not show.
pub fn self_check(sandbox: &Sandbox, python: &Interpreter) -> Result<Vec<Check>, Refusal> {
    let limits = Limits {
        // None of them needs it, however busy the machine is.
        time: Duration::from_secs(120),
        memory: 512 << 20,
        processes: 8,
        scratch: 8 << 20,
        output: 1 << 20,
        ..Limits::default()
    };
    let run = |mode: &str, limits: Limits| -> Result<Finished, Refusal> {
        // What the parent has must not be seen: its process number, a file of its own.
        let parent = std::process::id().to_string();
        let job: Job = python.job(SCRIPT, &[mode, &parent], Vec::new(), limits);
        sandbox.run(&job)
    };
    let probes = run("probes", limits)?;
    let mut checks = read(&probes);
    let mut note = |area, claim: &str, holds: bool| {
        checks.push(Check { area, claim: claim.into(), holds });
    };
    note("work", "a program runs to its end", probes.ending == Ending::Exit(0));
    let short = Limits { time: Duration::from_millis(500), ..limits };
    note("time", "an endless loop is stopped", run("loop", short)?.ending == Ending::Time);
    note(
        "time",
        "a process that leaves its session is stopped too",
        run("daemon", short)?.ending == Ending::Time,
    );
    let bomb = run("fork", limits)?.ending;
    note(
        "processes",
        "a fork bomb is stopped",
        matches!(bomb, Ending::Processes | Ending::Exit(3)),
    );
    note(
        "memory",
        "one large allocation fails",
        run("allocate", limits)?.ending == Ending::Exit(3),
    );
    let shared = run("share", limits)?.ending;
    note(
        "memory",
        "several processes cannot take more together",
        matches!(shared, Ending::Memory | Ending::Exit(3)),
    );
    note("output", "endless output is stopped", run("print", limits)?.ending == Ending::Output);
    Ok(checks)
}

/// Runs the checks of a sandbox that lets devices in: what it must still stop, and whether CUDA starts where they are
/// NVIDIA's.
pub fn device_check(
    sandbox: &Sandbox,
    python: &Interpreter,
    devices: &Devices,
) -> Result<Vec<Check>, Refusal> {
    let limits = Limits {
        time: Duration::from_secs(120),
        memory: 4 << 30,
        processes: 8,
        open_files: 1024,
        scratch: 8 << 20,
        output: 1 << 20,
    };
    let parent = std::process::id().to_string();
    let lines = |paths: &[std::path::PathBuf]| {
        let shown: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        shown.join("\n")
    };
    let (files, seen) = (lines(&devices.files), lines(&devices.seen));
    let mut job = python.job(DEVICE_SCRIPT, &[&parent, &files, &seen], Vec::new(), limits);
    job.let_in(devices);
    let probes = sandbox.run(&job)?;
    let mut checks = read(&probes);
    let mut claim = "a program with devices runs to its end".to_string();
    if let Some(last) = probes.errors.lines().last().filter(|_| probes.ending != Ending::Exit(0)) {
        claim = format!("{claim}, but {}: {last}", probes.ending);
    }
    checks.push(Check { area: "work", claim, holds: probes.ending == Ending::Exit(0) });
    // The limits of memory, which are others than without devices.
    let small = Limits { memory: 512 << 20, scratch: 256 << 20, ..limits };
    for (mode, claim) in [
        ("allocate", "with devices one large allocation fails"),
        ("share", "with devices several processes cannot take more together"),
        ("hide", "with devices files in memory count"),
    ] {
        let mut job = python.job(SCRIPT, &[mode, &parent], Vec::new(), small);
        job.let_in(devices);
        let ending = sandbox.run(&job)?.ending;
        let holds = matches!(ending, Ending::Memory | Ending::Exit(3));
        checks.push(Check { area: "memory", claim: claim.into(), holds });
    }
    Ok(checks)
}

/// What a script said, one check in a line.
fn read(probes: &Finished) -> Vec<Check> {
    let mut checks = Vec::new();
    for line in String::from_utf8_lossy(&probes.output).lines() {
        let mut parts = line.splitn(3, ' ');
        if let (Some(holds), Some(area), Some(claim)) = (parts.next(), parts.next(), parts.next()) {
            let area = AREAS.iter().find(|known| **known == area).copied().unwrap_or("work");
            checks.push(Check { area, claim: claim.into(), holds: holds == "ok" });
        }
    }
    checks
}

const AREAS: &[&str] =
    &["files", "network", "processes", "memory", "time", "devices", "output", "work"];
