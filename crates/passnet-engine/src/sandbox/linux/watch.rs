//! The parent's side: starts the child, feeds it, reads what it says, and stops it when it has had enough.

use super::child::{self, Ends, SetupStep};
use super::program::{Program, pointers};
use crate::sandbox::{Ending, Finished, Limits, Refusal};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often memory and processes are looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Kept of the error stream: its end.
const KEPT_ERRORS: usize = 16 << 10;

const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS;

/// Runs a program to its end, or to the end of what it may use.
pub(in crate::sandbox) fn run(
    program: &Program,
    input: &[u8],
    limits: Limits,
) -> Result<Finished, Refusal> {
    let mut watched = start(program).map_err(|error| refusal(None, error))?;
    watched.follow(input, limits).map_err(|error| Refusal {
        layer: "watching",
        reason: error.to_string(),
        hint: "the machine may be out of memory or descriptors",
    })?;
    watched.finish()
}

/// Starts a program that the caller speaks to; a thread watches it.
pub(in crate::sandbox) fn start_session(
    program: &Program,
    limits: Limits,
) -> Result<(Running, PipeWriter, PipeReader), Refusal> {
    let missing = || refusal(None, io::Error::other("its pipes are not there"));
    let mut watched = start(program).map_err(|error| refusal(None, error))?;
    let input = watched.input.take().ok_or_else(missing)?;
    let output = watched.output.pipe.take().ok_or_else(missing)?;
    // SAFETY: changes a flag of our own descriptor.
    unsafe { libc::fcntl(input.as_raw_fd(), libc::F_SETFL, 0) };
    let cancelled = Arc::new(AtomicBool::new(false));
    watched.cancelled = cancelled.clone();
    let watcher = std::thread::spawn(move || {
        // Where the pipes cannot be followed any more, the program is ended with them.
        let _ = watched.follow(&[], limits);
        watched.finish()
    });
    Ok((Running { cancelled, watcher: Some(watcher) }, input, output))
}

/// A program that a thread watches; ended when dropped.
#[derive(Debug)]
pub(in crate::sandbox) struct Running {
    cancelled: Arc<AtomicBool>,
    watcher: Option<JoinHandle<Result<Finished, Refusal>>>,
}

impl Running {
    /// Ends it and says how it ended; `None` where that was said before.
    pub(in crate::sandbox) fn end(&mut self) -> Option<Result<Finished, Refusal>> {
        // One that ends by itself at this moment may say how.
        std::thread::sleep(LOOK);
        self.cancelled.store(true, Ordering::Relaxed);
        self.watcher.take()?.join().ok()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

/// A running child with our ends of its pipes; ended when dropped.
struct Watched {
    pid: libc::pid_t,
    input: Option<PipeWriter>,
    output: Stream,
    errors: Stream,
    report: Stream,
    status: Stream,
    /// Whether it may make files in memory.
    has_devices: bool,
    stopped: Option<Ending>,
    reaped: bool,
    /// Set by whoever wants it ended.
    cancelled: Arc<AtomicBool>,
}

/// A pipe read until it ends.
struct Stream {
    pipe: Option<PipeReader>,
    content: Vec<u8>,
}

fn start(program: &Program) -> io::Result<Watched> {
    let (input, our_input) = io::pipe()?;
    let (our_output, output) = io::pipe()?;
    let (our_errors, errors) = io::pipe()?;
    let (our_report, report) = io::pipe()?;
    let (our_status, status) = io::pipe()?;
    // SAFETY: changes a flag of our own descriptor.
    unsafe { libc::fcntl(our_input.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    let (arguments, environment) = (pointers(&program.arguments), pointers(&program.environment));
    let ends = Ends {
        input: input.as_raw_fd(),
        output: output.as_raw_fd(),
        errors: errors.as_raw_fd(),
        report: report.as_raw_fd(),
        status: status.as_raw_fd(),
    };
    // SAFETY: the child runs `first_process` only, which uses system calls and the memory prepared above.
    let pid = unsafe { child::clone(libc::SIGCHLD | NAMESPACES) };
    match pid {
        0 => child::first_process(program, &arguments, &environment, ends),
        1.. => Ok(Watched {
            pid,
            input: Some(our_input),
            output: our_output.into(),
            errors: our_errors.into(),
            report: our_report.into(),
            status: our_status.into(),
            has_devices: program.has_devices,
            stopped: None,
            reaped: false,
            cancelled: Arc::default(),
        }),
        _ => Err(io::Error::last_os_error()),
    }
}

impl From<PipeReader> for Stream {
    fn from(pipe: PipeReader) -> Self {
        Stream { pipe: Some(pipe), content: Vec::new() }
    }
}

impl Stream {
    /// Reads what is there.
    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut piece = [0u8; 1 << 14];
        match pipe.read(&mut piece) {
            Ok(0) => self.pipe = None,
            Ok(count) => self.content.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Watched {
    /// Feeds and reads until every pipe has ended, which is when the last process has.
    fn follow(&mut self, input: &[u8], limits: Limits) -> io::Result<()> {
        let begin = Instant::now();
        let mut rest = input;
        let mut next_look = begin + LOOK;
        loop {
            if rest.is_empty() {
                self.input = None;
            }
            let streams = [&self.output, &self.errors, &self.report, &self.status];
            let ends = streams.map(|stream| stream.pipe.as_ref().map(AsRawFd::as_raw_fd));
            if ends.iter().all(Option::is_none) {
                return Ok(());
            }
            let writing = self.input.as_ref().map(AsRawFd::as_raw_fd);
            let ready = wait(ends, writing, LOOK)?;
            if ready[4] {
                self.feed(&mut rest)?;
            }
            for (index, stream) in
                [&mut self.output, &mut self.errors, &mut self.report, &mut self.status]
                    .into_iter()
                    .enumerate()
            {
                if ready[index] {
                    stream.read()?;
                }
            }
            if self.errors.content.len() > 2 * KEPT_ERRORS {
                let surplus = self.errors.content.len() - KEPT_ERRORS;
                self.errors.content.drain(..surplus);
            }
            if self.output.content.len() > limits.output {
                self.stop(Ending::Output);
                self.output.content.clear();
            }
            if self.cancelled.load(Ordering::Relaxed) {
                self.stop(Ending::Signal(libc::SIGKILL));
            }
            let now = Instant::now();
            if now.duration_since(begin) > limits.time {
                self.stop(Ending::Time);
            }
            if now >= next_look {
                next_look = now + LOOK;
                let tree = self.used();
                if tree.processes > u64::from(limits.processes) {
                    self.stop(Ending::Processes);
                } else if tree.bytes > limits.memory {
                    self.stop(Ending::Memory);
                }
            }
        }
    }

    /// What the program and all below it use. The first process is a copy of this one and shares its memory, however
    /// much that is; so does the second until it becomes the program, which closes the report.
    fn used(&self) -> Tree {
        match self.report.pipe {
            Some(_) => Tree::default(),
            None => Tree::below(self.pid, self.has_devices),
        }
    }

    fn feed(&mut self, rest: &mut &[u8]) -> io::Result<()> {
        let Some(pipe) = &mut self.input else { return Ok(()) };
        match pipe.write(rest) {
            Ok(count) => *rest = &rest[count..],
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                // It does not want to know; how it ends will say why.
                io::ErrorKind::BrokenPipe => *rest = &[],
                _ => return Err(error),
            },
        }
        Ok(())
    }

    /// Ends every process: the kernel ends a namespace with its first process.
    fn stop(&mut self, why: Ending) {
        if self.stopped.is_none() && !self.reaped {
            self.stopped = Some(why);
            // SAFETY: our own child, not yet waited for, so the number is still its.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
        }
    }

    fn finish(mut self) -> Result<Finished, Refusal> {
        self.reap();
        if let [stage, error, ..] = self.report.content[..] {
            let error = io::Error::from_raw_os_error(i32::from(error));
            return Err(refusal(SetupStep::from_byte(stage), error));
        }
        let status = self.status.content.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
        let ending = match (self.stopped, status) {
            (Some(why), _) => why,
            (None, Some(status)) if libc::WIFEXITED(status) => {
                Ending::Exit(libc::WEXITSTATUS(status))
            }
            (None, Some(status)) => Ending::Signal(libc::WTERMSIG(status)),
            // Ended from outside, together with its first process.
            (None, None) => Ending::Signal(libc::SIGKILL),
        };
        let errors = std::mem::take(&mut self.errors.content);
        let kept = errors.len().saturating_sub(KEPT_ERRORS);
        Ok(Finished {
            ending,
            output: std::mem::take(&mut self.output.content),
            errors: String::from_utf8_lossy(&errors[kept..]).into_owned(),
        })
    }

    fn reap(&mut self) {
        if self.reaped {
            return;
        }
        self.reaped = true;
        loop {
            // SAFETY: waits for our own child, once.
            let ended = unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), 0) };
            if ended >= 0 || super::errno::errno() != libc::EINTR {
                return;
            }
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.stop(Ending::Signal(libc::SIGKILL));
        self.reap();
    }
}

/// Which of the pipes can be read, and whether the last can be written, after some time at most.
fn wait(
    reading: [Option<RawFd>; 4],
    writing: Option<RawFd>,
    time: Duration,
) -> io::Result<[bool; 5]> {
    // A negative descriptor is passed over.
    let entry =
        |fd: Option<RawFd>, events| libc::pollfd { fd: fd.unwrap_or(-1), events, revents: 0 };
    let [a, b, c, d] = reading.map(|fd| entry(fd, libc::POLLIN));
    let mut entries = [a, b, c, d, entry(writing, libc::POLLOUT)];
    // SAFETY: as many entries as it says, all our own.
    let count = unsafe {
        libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, time.as_millis() as i32)
    };
    match io::Error::last_os_error() {
        error if count < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ if count <= 0 => Ok([false; 5]),
        _ => Ok(entries.map(|entry| entry.revents != 0)),
    }
}

/// What processes use together.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tree {
    processes: u64,
    bytes: u64,
}

impl Tree {
    /// Everything below a process, itself left out.
    fn below(pid: libc::pid_t, has_files_in_memory: bool) -> Tree {
        let mut tree = Tree::default();
        let mut waiting = children(pid);
        while let Some(pid) = waiting.pop() {
            tree.processes += 1;
            tree.bytes += resident(pid);
            if has_files_in_memory {
                tree.bytes += files_in_memory(pid);
            }
            waiting.extend(children(pid));
        }
        tree
    }
}

fn resident(pid: libc::pid_t) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    // SAFETY: asks for a number.
    pages * u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// What a process keeps in files without a name. One that is also mapped counts twice, one shared by two processes too:
/// nothing honest comes near the limit that way.
fn files_in_memory(pid: libc::pid_t) -> u64 {
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return 0 };
    let paths = open.flatten().map(|entry| entry.path());
    let unnamed = paths.filter(|path| {
        path.read_link()
            .is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"/memfd:"))
    });
    unnamed.filter_map(|path| path.metadata().ok()).map(|file| file.blocks() * 512).sum()
}

fn children(pid: libc::pid_t) -> Vec<libc::pid_t> {
    let mut found = Vec::new();
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return found };
    for thread in threads.flatten() {
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(text) => {
                found.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()))
            }
            // Some kernels do not list them; then every process is asked for its parent.
            Err(error) if error.kind() == io::ErrorKind::NotFound && thread.path().exists() => {
                return children_by_search(pid);
            }
            Err(_) => {}
        }
    }
    found
}

fn children_by_search(parent: libc::pid_t) -> Vec<libc::pid_t> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let processes = processes.flatten();
    let parent_of = |pid: i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name is in brackets and may hold anything.
        text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse::<i32>().ok()
    };
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}

fn refusal(stage: Option<SetupStep>, error: io::Error) -> Refusal {
    const NAMESPACES: &str = "allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1 \
        user.max_user_namespaces=10000`, on Ubuntu also `kernel.apparmor_restrict_unprivileged_userns=0`); \
        in a container, start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined` \
        or give it its own virtual machine";
    let (layer, hint) = match stage {
        None => ("namespaces", NAMESPACES),
        Some(SetupStep::Identity) => ("user namespace", NAMESPACES),
        Some(SetupStep::Mounts) => ("mount namespace", NAMESPACES),
        Some(SetupStep::Processes) => (
            "a `/proc` of its own, which devices need",
            "the kernel gives one only where nothing hides parts of the machine's: in a container, start it with \
             `--security-opt systempaths=unconfined`, or run on the machine itself",
        ),
        Some(SetupStep::Root) => ("a root of its own", NAMESPACES),
        Some(SetupStep::Fork | SetupStep::Limits) => {
            ("resource limits", "the machine's own limits may be lower than those asked for")
        }
        Some(SetupStep::Capabilities) => ("capabilities", NAMESPACES),
        Some(SetupStep::Landlock) => ("landlock", "this is a kernel whose landlock misbehaves"),
        Some(SetupStep::Filter) => ("system-call filter", "the kernel needs CONFIG_SECCOMP_FILTER"),
        Some(SetupStep::Exec) => {
            ("starting the program", "it must exist, be executable and have its libraries")
        }
    };
    let reason = match (stage, error.raw_os_error()) {
        // `clone` says so where `user.max_user_namespaces` is reached; no disk is meant.
        (None, Some(libc::ENOSPC | libc::EUSERS)) => "no more of them are allowed".into(),
        _ => error.to_string(),
    };
    Refusal { layer, reason, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_counts_what_is_below_a_process_and_not_the_process() {
        let me = std::process::id() as libc::pid_t;
        let mut sleeper = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let below = Tree::below(me, false);
        let beneath = Tree::below(sleeper.id() as libc::pid_t, false);
        let searched = children_by_search(me);
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(below.processes >= 1 && below.bytes > 0, "{below:?}");
        assert_eq!(beneath, Tree::default());
        assert!(searched.contains(&(sleeper.id() as i32)));
    }
}
