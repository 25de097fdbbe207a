//! The worker process: started, spoken to, watched, and replaced when it falls.

use super::frames::{self, Frame, VERSION};
use super::shared_memory::SharedMemory;
use crate::engine::{EngineError, ErrorKind, Tier};
use serde_json::{Map, Value as Json, json};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a fallen worker's last words may take to arrive: whoever it started may hold its pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How often the worker is looked after while it works.
const WATCH: Duration = Duration::from_millis(50);
/// Importing PyTorch and opening a device takes its time.
const START_LIMIT: Duration = Duration::from_secs(180);
/// The end of the worker's standard error that is kept for messages.
const KEPT_ERRORS: usize = 4096;

/// How long a thread of PyTorch's turns in a loop for more work before it sleeps. By itself it would turn for
/// milliseconds: eager's threads would take the cores away from the candidate that is timed next.
const SPINS: &str = "1000";

/// The variable by which CUDA knows the GPUs that a process may see.
const VISIBLE_GPUS: &str = "CUDA_VISIBLE_DEVICES";

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// A Python with PyTorch.
    pub python: PathBuf,
    /// The native plan runner, where plans are to run.
    pub runner: Option<PathBuf>,
    /// Where compiled kernels are kept.
    pub cache: PathBuf,
    /// `cpu` or `cuda`.
    pub device: String,
    /// Which of the GPUs that are visible here is the worker's own; `None` leaves it to CUDA.
    pub gpu: Option<u32>,
    /// Threads that PyTorch may use on the CPU; 0 leaves it to PyTorch.
    pub threads: usize,
    /// The most memory the process may hold, in bytes.
    pub memory_limit: u64,
    /// How long one call may take, where the caller does not allow more.
    pub call_limit: Duration,
    /// Whether passes that cannot become launch plans may run in the sandbox.
    pub tier: Tier,
}

/// What the worker says of itself.
#[derive(Debug, Clone, Default)]
pub struct WorkerInfo {
    /// The version.
    pub python: String,
    /// The version.
    pub torch: String,
    /// The version; `None` where Triton is not installed.
    pub triton: Option<String>,
    /// The CUDA that PyTorch was built for.
    pub cuda: Option<String>,
    /// As the device calls itself.
    pub device: String,
    /// NVIDIA's compute capability.
    pub capability: Option<[u32; 2]>,
}

/// A living worker.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    input: BufWriter<ChildStdin>,
    /// Where the raw bytes of requests lie, if the worker could open it.
    shared: Option<File>,
    replies: Receiver<io::Result<Frame>>,
    errors: Arc<Mutex<Vec<u8>>>,
    /// Closed when everything that the worker said is in `errors`.
    errors_end: Receiver<()>,
    memory_limit: u64,
    pub(super) info: WorkerInfo,
    next: u64,
}

/// A request that gave no reply: the worker is gone.
#[derive(Debug)]
pub(super) struct Fallen {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
}

impl From<Fallen> for EngineError {
    fn from(fallen: Fallen) -> EngineError {
        EngineError::graph(fallen.kind, fallen.message)
    }
}

/// Answers the worker's requests for plans, or for calls of sandboxed passes, in the middle of a call.
pub(super) type Planner<'a> = dyn FnMut(&Frame) -> (Json, Vec<Vec<u8>>) + 'a;

impl WorkerInfo {
    /// What a worker's greeting says.
    fn of(reply: &Map<String, Json>) -> WorkerInfo {
        let text = |key: &str| reply.get(key).and_then(Json::as_str).map(str::to_string);
        let capability = reply.get("capability").and_then(super::wire::sizes);
        WorkerInfo {
            python: text("python").unwrap_or_default(),
            torch: text("torch").unwrap_or_default(),
            triton: text("triton"),
            cuda: text("cuda"),
            device: text("device").unwrap_or_default(),
            capability: match capability.as_deref() {
                Some([major, minor]) => Some([*major as u32, *minor as u32]),
                _ => None,
            },
        }
    }
}

/// How a worker is started.
fn command(
    options: &WorkerOptions,
    package: &Path,
    shared: Option<&SharedMemory>,
) -> Result<Command, EngineError> {
    let mut command = Command::new(&options.python);
    command.args(["-m", "passnet.worker", "--device", &options.device]);
    if let Some(runner) = &options.runner {
        command.arg("--runner").arg(runner);
    }
    if let Some(shared) = shared {
        command.arg("--shared-memory").args(shared.paths());
    }
    if options.threads > 0 {
        command.args(["--threads", &options.threads.to_string()]);
    }
    if let Some(gpu) = options.gpu {
        let here = std::env::var(VISIBLE_GPUS).ok();
        command.env(VISIBLE_GPUS, only_gpu(here.as_deref(), gpu)?);
    }
    command
        .env("PYTHONPATH", package)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GOMP_SPINCOUNT", std::env::var("GOMP_SPINCOUNT").unwrap_or(SPINS.into()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

impl Worker {
    /// Starts a worker from the package in a folder.
    pub(super) fn start(options: &WorkerOptions, package: &Path) -> Result<Worker, EngineError> {
        let shared = SharedMemory::new();
        let mut command = command(options, package, shared.as_ref())?;
        let missing = |error: &dyn std::fmt::Display| {
            EngineError::graph(
                ErrorKind::Machine,
                format!("cannot start {}: {error}", options.python.display()),
            )
        };
        let mut child = command.spawn().map_err(|error| missing(&error))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(missing(&"its pipes are not there"));
        };
        let (to_worker, from_worker) =
            shared.map(|SharedMemory { to_worker, from_worker }| (to_worker, from_worker)).unzip();
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::with_capacity(1 << 16, stdout);
            loop {
                let frame = frames::read_with(&mut reader, from_worker.as_ref());
                let is_over = frame.is_err();
                if sender.send(frame).is_err() || is_over {
                    return;
                }
            }
        });
        let errors = Arc::new(Mutex::new(Vec::new()));
        let kept = errors.clone();
        let (is_reading, errors_end) = channel();
        std::thread::spawn(move || {
            keep_end(stderr, &kept);
            drop(is_reading);
        });
        let mut worker = Worker {
            child,
            input: BufWriter::with_capacity(1 << 16, stdin),
            shared: None,
            replies,
            errors,
            errors_end,
            memory_limit: options.memory_limit,
            info: WorkerInfo::default(),
            next: 0,
        };
        let hello = json!({"call": "hello", "version": VERSION});
        let reply = worker
            .request(hello, &[], START_LIMIT, &mut |_| (json!({"error": "not now"}), Vec::new()))?
            .message;
        if let Some(error) = refusal(&reply) {
            return Err(error);
        }
        if reply.get("shared_memory").and_then(Json::as_bool) == Some(true) {
            worker.shared = to_worker;
        }
        worker.info = WorkerInfo::of(&reply);
        Ok(worker)
    }

    /// Sends a request and waits for its reply, making plans on the way where the worker asks for them.
    pub(super) fn request(
        &mut self,
        mut message: Json,
        parts: &[Vec<u8>],
        limit: Duration,
        planner: &mut Planner<'_>,
    ) -> Result<Frame, Fallen> {
        self.next += 1;
        message["id"] = json!(self.next);
        let deadline = Instant::now() + limit;
        if let Err(error) = self.send(&message, parts) {
            return Err(self.reads_no_more(&error));
        }
        loop {
            let frame = self.wait(deadline)?;
            if frame.message.contains_key("plan") || frame.message.contains_key("remote") {
                let (answer, parts) = planner(&frame);
                if let Err(error) = self.send(&answer, &parts) {
                    return Err(self.reads_no_more(&error));
                }
                continue;
            }
            if frame.message.get("id").and_then(Json::as_u64) != Some(self.next) {
                return Err(self.fall(ErrorKind::Machine, "it answers another question"));
            }
            if frame.message.get("fatal").and_then(Json::as_bool) == Some(true) {
                // It ends after this reply. Whoever asks next must find it gone, not going.
                self.end();
            }
            return Ok(frame);
        }
    }

    fn send(&mut self, message: &Json, parts: &[Vec<u8>]) -> io::Result<()> {
        frames::write_with(&mut self.input, message, parts, self.shared.as_ref())
    }

    fn wait(&mut self, deadline: Instant) -> Result<Frame, Fallen> {
        loop {
            match self.replies.recv_timeout(WATCH) {
                Ok(Ok(frame)) => return Ok(frame),
                Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(self.fall_by_itself("it ended"));
                }
                Ok(Err(error)) => return Err(self.fall(ErrorKind::Machine, &error.to_string())),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.fall_by_itself("it ended"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() > deadline {
                return Err(self.fall(ErrorKind::Timeout, "it took too long"));
            }
            if resident_bytes(self.child.id()).is_some_and(|held| held > self.memory_limit) {
                return Err(self.fall(ErrorKind::Memory, "it took more memory than it may"));
            }
        }
    }

    /// Ends the process and says why.
    fn fall(&mut self, kind: ErrorKind, why: &str) -> Fallen {
        let status = self.end().status;
        self.last_words(kind, why, status)
    }

    /// A process that was not ended by us: the kernels that it ran are at fault only where it crashed. Nothing else of a
    /// pass runs in it, so one that was killed or that left has met something else.
    fn fall_by_itself(&mut self, why: &str) -> Fallen {
        let Ended { status, by_us } = self.end();
        let kind = match status {
            Some(status) if !by_us && has_crashed(status) => ErrorKind::Kernel,
            _ => ErrorKind::Machine,
        };
        self.last_words(kind, why, status)
    }

    fn reads_no_more(&mut self, error: &io::Error) -> Fallen {
        let why = format!("it reads no more ({error})");
        match error.kind() {
            io::ErrorKind::BrokenPipe => self.fall_by_itself(&why),
            // The memory that both share is full, or the pipe itself failed.
            _ => self.fall(ErrorKind::Machine, &why),
        }
    }

    fn last_words(&mut self, kind: ErrorKind, why: &str, status: Option<ExitStatus>) -> Fallen {
        let how = match status {
            Some(status) if !status.success() => format!(", {status}"),
            _ => String::new(),
        };
        let _ = self.errors_end.recv_timeout(LAST_WORDS);
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let last = String::from_utf8_lossy(&errors);
        let last = last.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let last = if last.is_empty() { String::new() } else { format!(": {}", last.trim()) };
        Fallen { kind, message: format!("the PyTorch worker fell: {why}{how}{last}") }
    }

    /// Whether the process is still there.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn end(&mut self) -> Ended {
        // A process that ended by itself says how; one that hangs is killed.
        if let Ok(Some(status)) = self.child.try_wait() {
            return Ended { status: Some(status), by_us: false };
        }
        std::thread::sleep(WATCH);
        if let Ok(Some(status)) = self.child.try_wait() {
            return Ended { status: Some(status), by_us: false };
        }
        let _ = self.child.kill();
        Ended { status: self.child.wait().ok(), by_us: true }
    }
}

/// How a process ended, and by whose hand.
struct Ended {
    status: Option<ExitStatus>,
    by_us: bool,
}

/// Whether a process ended by what it did itself. Hang-up, interrupt, quit, kill and termination come from outside: from
/// a person, or from a system that is short of memory.
#[cfg(unix)]
fn has_crashed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const FROM_OUTSIDE: [i32; 5] = [1, 2, 3, 9, 15];
    status.signal().is_some_and(|signal| !FROM_OUTSIDE.contains(&signal))
}

/// Without signals a crash is any code that no program gives by itself.
#[cfg(not(unix))]
fn has_crashed(status: ExitStatus) -> bool {
    status.code().is_none_or(|code| code < 0)
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The error that a reply reports.
pub(super) fn refusal(reply: &Map<String, Json>) -> Option<EngineError> {
    if reply.get("ok").and_then(Json::as_bool) == Some(true) {
        return None;
    }
    let text = |key: &str| reply.get(key).and_then(Json::as_str).unwrap_or_default();
    let kind = match text("kind") {
        "plan" => ErrorKind::Plan,
        "memory" => ErrorKind::Memory,
        "cuda" | "launch" => ErrorKind::Kernel,
        "unsupported" => ErrorKind::Unsupported,
        "machine" => ErrorKind::Machine,
        "timeout" => ErrorKind::Timeout,
        _ => ErrorKind::Value,
    };
    let line = reply.get("line").and_then(Json::as_u64).unwrap_or(0);
    let mut error = EngineError::graph(kind, text("message"));
    error.line = u32::try_from(line).unwrap_or(0);
    Some(error)
}

fn keep_end(mut from: impl Read, into: &Mutex<Vec<u8>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = from.read(&mut piece) {
        let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..count]);
        let surplus = kept.len().saturating_sub(KEPT_ERRORS);
        kept.drain(..surplus);
    }
}

/// What the variable says for a process that sees one GPU of those that it names here. Such a process cannot touch the
/// others, and calls its own the first one.
fn only_gpu(here: Option<&str>, gpu: u32) -> Result<String, EngineError> {
    let Some(here) = here.filter(|names| !names.trim().is_empty()) else {
        return Ok(gpu.to_string());
    };
    let place = usize::try_from(gpu).unwrap_or(usize::MAX);
    here.split(',').nth(place).map(|name| name.trim().to_string()).ok_or_else(|| {
        let text = format!("there is no GPU {gpu}: {VISIBLE_GPUS} is `{here}`");
        EngineError::graph(ErrorKind::Arguments, text)
    })
}

/// What a process holds in memory; `None` where the system does not say.
fn resident_bytes(process: u32) -> Option<u64> {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

#[cfg(test)]
mod tests {
    use super::only_gpu;

    #[test]
    fn a_worker_sees_one_gpu_of_those_that_are_visible_here() {
        assert_eq!(only_gpu(None, 3).as_deref(), Ok("3"));
        assert_eq!(only_gpu(Some(""), 1).as_deref(), Ok("1"));
        assert_eq!(only_gpu(Some("4, 6"), 1).as_deref(), Ok("6"));
        assert_eq!(only_gpu(Some("GPU-8932f937"), 0).as_deref(), Ok("GPU-8932f937"));
        let error = only_gpu(Some("4,6"), 2).unwrap_err();
        assert!(error.message.contains("no GPU 2") && error.message.contains("4,6"), "{error}");
    }
}
