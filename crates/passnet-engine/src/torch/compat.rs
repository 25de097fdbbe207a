//! The compatibility tier: the wrapper of a pass that cannot become a launch plan, run by PyTorch inside the sandbox.
//!
//! The process sees the pass and the wrapper's arguments, never an expected output, and is not believed: what it gives back
//! is looked at here and compared by the trusted side. It lives as long as its graph is loaded. On a GPU it has a context of
//! its own: arguments go in and results come out as bytes there too.

use super::frames::{self, Frame};
use super::wire::{self, Outgoing};
use crate::native::wrapper::Wrapper;
use crate::sandbox::{Devices, Interpreter, Limits, Refusal, Sandbox, Session, device_check};
use serde_json::{Map, Value as Json, json};
use std::io::{self, BufReader, BufWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Imports the last of the modules that its first argument lists by name; those without text are packages.
const SCRIPT: &str = "\
import importlib.abc, importlib.util, json, sys
class Given(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, texts):
        self.texts = texts
    def find_spec(self, name, path=None, target=None):
        if name in self.texts:
            return importlib.util.spec_from_loader(name, self, is_package=not self.texts[name])
    def exec_module(self, module):
        name = module.__spec__.name
        exec(compile(self.texts[name], name, 'exec'), module.__dict__)
given = json.loads(sys.argv[1])
sys.meta_path.insert(0, Given(dict(given)))
__import__(given[-1][0])
";

/// A module below `python/passnet`, by its name after the package.
macro_rules! module {
    ($package:literal, $name:literal) => {
        (
            concat!("passnet.", $package, ".", $name),
            include_str!(concat!("../../../../python/passnet/", $package, "/", $name, ".py")),
        )
    };
}

const MODULES: [(&str, &str); 8] = [
    ("passnet", ""),
    ("passnet.worker", ""),
    ("passnet.sandboxed", ""),
    module!("worker", "frames"),
    module!("worker", "tensors"),
    module!("sandboxed", "poison"),
    module!("sandboxed", "triton_driver"),
    module!("sandboxed", "run_pass"),
];

/// Importing PyTorch takes its time.
const START_LIMIT: Duration = Duration::from_secs(120);
/// More bytes than the outputs of any graph we evaluate have.
const MAX_ANSWER: u64 = 4 << 30;
/// CUDA opens its devices many times over.
const OPEN_FILES: u32 = 1024;
/// What says which devices CUDA numbers how, in the sandbox as outside.
const NUMBERING: [&str; 2] = ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"];
/// A process lives as long as its graph, but not for ever.
const LIFE: Duration = Duration::from_secs(3600);

/// What it takes to start sandboxed passes.
#[derive(Debug)]
pub(super) struct Compat {
    sandbox: Sandbox,
    interpreter: Interpreter,
    /// Let in, where it computes on a GPU.
    devices: Option<Devices>,
    memory: u64,
    threads: usize,
    call_limit: Duration,
}

/// Why a sandboxed pass gave nothing.
#[derive(Debug)]
pub(super) struct Failed {
    /// The kind as the worker's replies name it.
    pub(super) kind: &'static str,
    pub(super) message: String,
}

/// The kind of what is not the pass's fault.
pub(super) const MACHINE: &str = "machine";

impl Failed {
    fn new(kind: &'static str, message: impl Into<String>) -> Failed {
        Failed { kind, message: message.into() }
    }
}

impl Compat {
    pub(super) fn new(
        sandbox: Sandbox,
        python: &Path,
        devices: Option<Devices>,
        memory: u64,
        threads: usize,
        call_limit: Duration,
    ) -> Result<Compat, String> {
        let interpreter = Interpreter::ask(python)?;
        if let Some(devices) = &devices {
            try_devices(&sandbox, &interpreter, devices)?;
        }
        Ok(Compat { sandbox, interpreter, devices, memory, threads: threads.max(1), call_limit })
    }
}

/// Everything that is claimed of a sandbox with devices in it must hold, and CUDA must start there.
fn try_devices(
    sandbox: &Sandbox,
    interpreter: &Interpreter,
    devices: &Devices,
) -> Result<(), String> {
    let refused = |refusal: Refusal| format!("{refusal}\n{}", refusal.hint);
    let checks = device_check(sandbox, interpreter, devices).map_err(refused)?;
    match checks.iter().find(|check| !check.holds) {
        None => Ok(()),
        Some(broken) => Err(format!("the GPU cannot be let into the sandbox: {}", broken.claim)),
    }
}

/// A wrapper that waits for arguments.
#[derive(Debug)]
pub(super) struct SandboxedPass {
    input: BufWriter<io::PipeWriter>,
    replies: Receiver<io::Result<Frame>>,
    session: Session,
    call_limit: Duration,
}

impl SandboxedPass {
    pub(super) fn start(compat: &Compat, wrapper: &Wrapper) -> Result<SandboxedPass, Failed> {
        let modules = json!(MODULES).to_string();
        let mut limits =
            Limits { time: LIFE, memory: compat.memory, output: usize::MAX, ..Limits::default() };
        if compat.devices.is_some() {
            limits.open_files = OPEN_FILES;
        }
        let mut job = compat.interpreter.job(SCRIPT, &[&modules], Vec::new(), limits);
        // PyTorch asks for a name, and the sandbox has no list of users.
        job.environment.push(("USER".into(), "nobody".into()));
        match &compat.devices {
            None => job.environment.push(("TRITON_INTERPRET".into(), "1".into())),
            Some(devices) => {
                job.let_in(devices);
                job.environment.push(("TRITON_CACHE_DIR".into(), "/tmp/triton".into()));
                job.environment.push(("CUDA_CACHE_DISABLE".into(), "1".into()));
                for name in NUMBERING {
                    if let Ok(value) = std::env::var(name) {
                        job.environment.push((name.into(), value));
                    }
                }
            }
        }
        let mut session = compat
            .sandbox
            .start(&job)
            .map_err(|refusal| Failed::new(MACHINE, refusal.to_string()))?;
        let (input, output) = session.pipes().ok_or_else(|| Failed::new(MACHINE, "no pipes"))?;
        let (sender, replies) = channel();
        std::thread::spawn(move || {
            let mut reader = BufReader::with_capacity(1 << 16, output);
            loop {
                let frame = frames::read_up_to(&mut reader, MAX_ANSWER);
                let is_over = frame.is_err();
                if sender.send(frame).is_err() || is_over {
                    return;
                }
            }
        });
        let mut pass = SandboxedPass {
            input: BufWriter::with_capacity(1 << 16, input),
            replies,
            session,
            call_limit: compat.call_limit,
        };
        let device = if compat.devices.is_some() { "cuda" } else { "cpu" };
        let first = json!({ "device": device, "threads": compat.threads });
        // Nothing of the pass is there yet: what fails now is the machine's fault.
        pass.ask(&first, &[], START_LIMIT).map_err(|failed| Failed {
            kind: MACHINE,
            message: format!("{device} does not start in the sandbox: {}", failed.message),
        })?;
        // The wrapper's file comes first.
        let sources = (0..wrapper.files.len()).map(|index| wrapper.files.source(index));
        let files: Vec<Json> = sources
            .map(|source| {
                let name = Path::new(source.path()).file_stem().unwrap_or_default();
                json!({ "name": name.to_string_lossy(), "text": source.text() })
            })
            .collect();
        let name = &*wrapper.replacement.wrapper;
        pass.ask(&json!({ "files": files, "wrapper": name }), &[], START_LIMIT)?;
        Ok(pass)
    }

    /// Runs the wrapper on arguments as the worker sent them, and gives its tensors as the worker takes them.
    pub(super) fn call(
        &mut self,
        arguments: &Json,
        bytes: &[u8],
        outputs: Option<usize>,
    ) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let frame = self.ask(&json!({ "arguments": arguments }), &[bytes], self.call_limit)?;
        let entries = frame.message.get("outputs").and_then(Json::as_array);
        let entries = entries.map_or(&[][..], Vec::as_slice);
        if let Some(outputs) = outputs.filter(|outputs| *outputs != entries.len()) {
            let text = format!(
                "the wrapper returns {} tensors, but the pattern has {outputs} outputs",
                entries.len()
            );
            return Err(Failed::new("error", text));
        }
        let mut out = Outgoing::default();
        let described = entries.iter().map(|entry| {
            let tensor = wire::tensor(entry.as_object()?, &frame.bytes)?;
            out.tensor(&tensor).ok()
        });
        let described = described.collect::<Option<Vec<Json>>>();
        let described = described.ok_or_else(|| {
            Failed::new("error", "the sandboxed pass gave something that is no tensor")
        })?;
        Ok((json!({ "outputs": described }), out.parts))
    }

    fn ask(&mut self, message: &Json, parts: &[&[u8]], limit: Duration) -> Result<Frame, Failed> {
        if frames::write(&mut self.input, message, parts).is_err() {
            return Err(self.ended());
        }
        let frame = match self.replies.recv_timeout(limit) {
            Ok(Ok(frame)) => frame,
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Failed::new("error", format!("the sandboxed pass: {error}")));
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
            Err(RecvTimeoutError::Timeout) => {
                return Err(Failed::new("timeout", "the sandboxed pass took too long"));
            }
        };
        match said(&frame.message) {
            None => Ok(frame),
            Some(text) => Err(Failed::new("error", format!("the sandboxed pass raised {text}"))),
        }
    }

    fn ended(&mut self) -> Failed {
        let (ending, errors) = self.session.end();
        let last = errors.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let last = if last.is_empty() { String::new() } else { format!(": {}", last.trim()) };
        Failed::new("error", format!("the sandboxed pass {ending}{last}"))
    }
}

/// What went wrong inside, in the words of the inside.
fn said(message: &Map<String, Json>) -> Option<String> {
    if message.get("ok").and_then(Json::as_bool) == Some(true) {
        return None;
    }
    Some(message.get("message").and_then(Json::as_str).unwrap_or("nothing").to_string())
}
