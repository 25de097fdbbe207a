//! The compatibility tier: the wrapper of a pass that cannot become a launch plan, run by PyTorch inside the sandbox.
//!
//! The process sees the pass and the wrapper's arguments, never an expected output, and is not believed: what it gives back
//! is looked at here and compared by the trusted side. It lives as long as its graph is loaded.

use super::frames::{self, Frame};
use super::wire::{self, Outgoing};
use crate::native::wrapper::Wrapper;
use crate::sandbox::{Interpreter, Limits, Sandbox, Session};
use serde_json::{Map, Value as Json, json};
use std::io::{self, BufReader, BufWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Defines the modules that its first argument lists, the last of which does the work.
const SCRIPT: &str = "\
import json, sys, types
for name, text in json.loads(sys.argv[1]):
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, 'exec'), module.__dict__)
";

const MODULES: [(&str, &str); 3] = [
    ("passnet.worker.frames", include_str!("../../../../python/passnet/worker/frames.py")),
    ("passnet.worker.tensors", include_str!("../../../../python/passnet/worker/tensors.py")),
    ("sandboxed_pass", include_str!("../../../../python/passnet/sandboxed_pass.py")),
];

/// Importing PyTorch takes its time.
const START_LIMIT: Duration = Duration::from_secs(120);
/// More bytes than the outputs of any graph we evaluate have.
const MAX_ANSWER: u64 = 4 << 30;
/// A process lives as long as its graph, but not for ever.
const LIFE: Duration = Duration::from_secs(3600);

/// What it takes to start sandboxed passes.
#[derive(Debug)]
pub(super) struct Compat {
    sandbox: Sandbox,
    interpreter: Interpreter,
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

impl Failed {
    fn new(kind: &'static str, message: impl Into<String>) -> Failed {
        Failed { kind, message: message.into() }
    }
}

impl Compat {
    pub(super) fn new(
        sandbox: Sandbox,
        python: &Path,
        memory: u64,
        threads: usize,
        call_limit: Duration,
    ) -> Result<Compat, String> {
        let interpreter = Interpreter::ask(python)?;
        Ok(Compat { sandbox, interpreter, memory, threads: threads.max(1), call_limit })
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
        let limits =
            Limits { time: LIFE, memory: compat.memory, output: usize::MAX, ..Limits::default() };
        let mut job = compat.interpreter.job(SCRIPT, &[&modules], Vec::new(), limits);
        // There is no GPU in the sandbox: kernels run in Triton's interpreter.
        job.environment.push(("TRITON_INTERPRET".into(), "1".into()));
        let mut session = compat
            .sandbox
            .start(&job)
            .map_err(|refusal| Failed::new("unsupported", refusal.to_string()))?;
        let (input, output) = session.pipes().ok_or_else(|| Failed::new("error", "no pipes"))?;
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
        // The wrapper's file comes first.
        let sources = (0..wrapper.files.len()).map(|index| wrapper.files.source(index));
        let files: Vec<Json> = sources
            .map(|source| {
                let name = Path::new(source.path()).file_stem().unwrap_or_default();
                json!({ "name": name.to_string_lossy(), "text": source.text() })
            })
            .collect();
        let name = &*wrapper.replacement.wrapper;
        let first = json!({ "files": files, "wrapper": name, "threads": compat.threads });
        pass.ask(&first, &[], START_LIMIT)?;
        Ok(pass)
    }

    /// Runs the wrapper on arguments as the worker sent them, and gives its tensors as the worker takes them.
    pub(super) fn call(
        &mut self,
        arguments: &Json,
        bytes: &[u8],
        outputs: usize,
    ) -> Result<(Json, Vec<Vec<u8>>), Failed> {
        let frame = self.ask(&json!({ "arguments": arguments }), &[bytes], self.call_limit)?;
        let entries = frame.message.get("outputs").and_then(Json::as_array);
        let entries = entries.map_or(&[][..], Vec::as_slice);
        if entries.len() != outputs {
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
