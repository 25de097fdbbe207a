//! Runs a program where it can do no harm: it sees the files it needs and a temporary folder of its own, and no network,
//! no devices, no other processes; time, memory, processes and output are bounded, and nothing survives the end.
//!
//! Layers: namespaces (user, mount, process, network, IPC, host name) with a root of their own; landlock, where the kernel
//! has it; a system-call filter; resource limits and a watcher. Namespaces and the filter are never done without: a
//! machine that has none of them gets a [`Refusal`], not a weaker sandbox. What the child does between `clone` and `exec`
//! is in `linux/child`, prepared in `linux/root`, watched from `linux/watch`. A job may be given [`Devices`], found by
//! [`nvidia`]; nothing else gets any.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[path = "elsewhere.rs"]
mod linux;
mod nvidia;
mod python;
mod self_check;

pub use nvidia::nvidia;
pub use python::Interpreter;
pub use self_check::{Check, device_check, self_check};

use linux::{Program, Running, landlock_version};
use std::ffi::OsString;
use std::fmt;
use std::io::{PipeReader, PipeWriter};
use std::path::PathBuf;
use std::time::Duration;

/// A program to run, and what it may see and use.
#[derive(Debug, Clone)]
pub struct Job {
    /// What is run; inside it has the path that it has outside.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub environment: Vec<(String, String)>,
    /// Files and folders that it may read and execute; system libraries come on their own.
    pub readable: Vec<PathBuf>,
    /// Devices beyond `/dev/null` and its like.
    pub devices: Option<Devices>,
    /// What it reads from its standard input.
    pub input: Vec<u8>,
    /// What it may use.
    pub limits: Limits,
}

impl Job {
    /// Lets devices in, with the folder of their libraries in the loader's path where it is no usual one.
    pub fn let_in(&mut self, devices: &Devices) {
        if let Some(folder) = devices.libraries.first().and_then(|library| library.parent()) {
            let folder = folder.display().to_string();
            self.environment.push(("LD_LIBRARY_PATH".into(), folder));
        }
        self.devices = Some(devices.clone());
    }
}

/// Device files that a program may use, and what their driver's libraries must see of the machine for it.
///
/// With them come what such libraries do and compilers do not: threads that are named through `/proc` (which lists the
/// program's own processes and nothing else of theirs), files in memory, sockets between its own processes, and address
/// space without a limit (a driver reserves terabytes that it never fills; its memory is bounded nevertheless).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Devices {
    /// The device files.
    pub files: Vec<PathBuf>,
    /// Below `/proc` or `/sys`, read-only; what a machine lacks is left out.
    pub seen: Vec<PathBuf>,
    /// The driver's libraries, where they lie outside the system's folders.
    pub libraries: Vec<PathBuf>,
}

/// What a job may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From its start to its end.
    pub time: Duration,
    /// Bytes that all its processes may hold together, and address space of each (without devices: see [`Devices`]).
    pub memory: u64,
    /// Processes and threads at a time.
    pub processes: u32,
    /// Files that each process may have open at a time.
    pub open_files: u32,
    /// Bytes of its temporary folder, which lies in memory.
    pub scratch: u64,
    /// Bytes it may print; errors beyond a few kilobytes are dropped.
    pub output: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            time: Duration::from_secs(60),
            memory: 4 << 30,
            processes: 32,
            open_files: 256,
            scratch: 256 << 20,
            output: 64 << 20,
        }
    }
}

/// What a program left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// What it wrote to its standard output.
    pub output: Vec<u8>,
    /// What it said on its error stream, cut to the end of it.
    pub errors: String,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exit(i32),
    /// Killed by this signal.
    Signal(i32),
    /// It was stopped for taking too much of this.
    Time,
    /// It took more memory than it may.
    Memory,
    /// It started more processes than it may.
    Processes,
    /// It wrote more than it may.
    Output,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exit(code) => write!(f, "ended with code {code}"),
            Ending::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Ending::Time => f.write_str("took longer than it may"),
            Ending::Memory => f.write_str("used more memory than it may"),
            Ending::Processes => f.write_str("started more processes than it may"),
            Ending::Output => f.write_str("printed more than it may"),
        }
    }
}

/// Why nothing runs on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What could not be set up.
    pub layer: &'static str,
    /// Why, in the kernel's words where it has some.
    pub reason: String,
    /// How a person may enable it.
    pub hint: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no sandbox on this machine: {}: {}", self.layer, self.reason)
    }
}

impl std::error::Error for Refusal {}

/// Which layers are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layers {
    /// User, mount, process, network, IPC and host-name namespaces, with a root of their own.
    pub namespaces: bool,
    /// A filter of system calls.
    pub seccomp: bool,
    /// The version of landlock; none where the kernel lacks it, which the mount namespace makes good.
    pub landlock: Option<u32>,
}

/// A machine's sandbox, tried out.
#[derive(Debug, Clone)]
pub struct Sandbox {
    layers: Layers,
}

impl Sandbox {
    /// The strongest sandbox that this machine has, after one trial that runs nothing.
    pub fn strongest() -> Result<Sandbox, Refusal> {
        let sandbox = Sandbox {
            layers: Layers { namespaces: true, seccomp: true, landlock: landlock_version() },
        };
        let finished = linux::run(&Program::trial(&sandbox.layers)?, &[], Limits::default())?;
        match finished.ending {
            Ending::Exit(0) => Ok(sandbox),
            other => Err(Refusal {
                layer: "trial",
                reason: format!("an empty program {other}"),
                hint: "the machine may be short of memory or processes",
            }),
        }
    }

    /// Which walls stand on this machine.
    pub fn layers(&self) -> Layers {
        self.layers
    }

    /// Runs a program to its end, or to the end of what it may use.
    pub fn run(&self, job: &Job) -> Result<Finished, Refusal> {
        linux::run(&Program::new(job, &self.layers)?, &job.input, job.limits)
    }

    /// Starts a program that is spoken to while it runs; its `input` is not used, and its output is the caller's to bound.
    pub fn start(&self, job: &Job) -> Result<Session, Refusal> {
        let (running, input, output) =
            linux::start_session(&Program::new(job, &self.layers)?, job.limits)?;
        Ok(Session { running, pipes: Some((input, output)) })
    }
}

/// A program in the sandbox with the ends of its pipes; it ends with this.
#[derive(Debug)]
pub struct Session {
    running: Running,
    pipes: Option<(PipeWriter, PipeReader)>,
}

impl Session {
    /// Its standard input and output, once.
    pub fn pipes(&mut self) -> Option<(PipeWriter, PipeReader)> {
        self.pipes.take()
    }

    /// Ends it, and says how it ended (where it had not yet, it was killed) and what it wrote on its error stream.
    pub fn end(&mut self) -> (Ending, String) {
        match self.running.end() {
            Some(Ok(finished)) => (finished.ending, finished.errors),
            Some(Err(refusal)) => (Ending::Exit(1), refusal.to_string()),
            None => (Ending::Exit(0), String::new()),
        }
    }
}
