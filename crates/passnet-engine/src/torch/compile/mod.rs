//! Kernels of a pass compiled to cubins by Triton's own compiler, in a sandboxed process that sees shapes only.
//!
//! What a cubin depends on is one request (the kernel's excerpt, its parameters, its options, the GPU); its digest names
//! the cubin in the cache. The process answers with the cubin and a description, which are checked before they are used.

mod answer;
mod cache;
mod request;

pub use answer::Cubin;

use crate::engine::{EngineError, ErrorKind};
use crate::sandbox::{Ending, Interpreter, Limits, Refusal, Sandbox};
use cache::Cache;
use passnet_kernel::ModuleSet;
use passnet_kernel::plan::{Launch, LaunchPlan, Step};
use request::Request;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The process's program.
const SCRIPT: &str = include_str!("../../../../../python/passnet/sandboxed/compile_kernels.py");

/// What ends a process from outside: a person, or a system that is short of memory.
const KILLED: i32 = 9;

/// Compiles kernels, each once.
#[derive(Debug)]
pub struct Compiler {
    /// None where cubins come from the cache alone.
    process: Option<Process>,
    cache: Cache,
    target: String,
    triton: OnceLock<Result<String, EngineError>>,
}

#[derive(Debug)]
struct Process {
    python: PathBuf,
    sandbox: Sandbox,
    limits: Limits,
    interpreter: OnceLock<Result<Interpreter, EngineError>>,
}

impl Compiler {
    /// A compiler that starts `python`, which must have Triton, in a sandbox for every kernel that is not in the cache.
    pub fn new(python: PathBuf, cache: PathBuf, sandbox: Sandbox) -> Compiler {
        let limits = Limits { time: Duration::from_secs(120), ..Limits::default() };
        let process = Process { python, sandbox, limits, interpreter: OnceLock::new() };
        Compiler {
            process: Some(process),
            cache: Cache::new(cache),
            target: "cuda:90:32".into(),
            triton: OnceLock::new(),
        }
    }

    /// A compiler that knows what another one with that version of Triton has left in the cache, and nothing else: for
    /// machines that cannot run one.
    pub fn from_cache(cache: PathBuf, triton: &str) -> Compiler {
        Compiler {
            process: None,
            cache: Cache::new(cache),
            target: "cuda:90:32".into(),
            triton: OnceLock::from(Ok(triton.to_string())),
        }
    }

    /// Compiles for GPUs of that compute capability, such as 9 and 0.
    #[must_use]
    pub fn with_capability(mut self, major: u32, minor: u32) -> Compiler {
        self.target = format!("cuda:{major}{minor}:32");
        self
    }

    /// The same, with other limits for each compilation.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Compiler {
        if let Some(process) = &mut self.process {
            process.limits = limits;
        }
        self
    }

    /// The version of Triton that compiles.
    pub fn triton(&self) -> Result<&str, EngineError> {
        let version = self.triton.get_or_init(|| {
            let finished = self.process()?.run(&["--version"], Vec::new())?;
            let version = String::from_utf8_lossy(&finished).trim().to_string();
            match version.chars().next() {
                Some('0'..='9') => Ok(version),
                _ => Err(lacking("this Python has no Triton")),
            }
        });
        version.as_deref().map_err(Clone::clone)
    }

    /// The cubin of one launch. `alignment` says of each of the plan's buffers whether it begins at an address divisible
    /// by 16; buffers it does not mention do not.
    pub fn compile(
        &self,
        modules: &ModuleSet,
        launch: &Launch,
        alignment: &[bool],
    ) -> Result<Cubin, EngineError> {
        let request = Request::new(modules, launch, alignment, &self.target)?;
        let key = request.key(self.triton()?, SCRIPT);
        let read = |bytes: Vec<u8>| answer::read(bytes, &request, launch);
        if let Some(known) = self.cache.get(&key)
            && let Ok(cubin) = read(known)
        {
            return Ok(cubin);
        }
        let bytes = self.process()?.run(&[], request.text().into()).map_err(|error| {
            let Launch { kernel, file, line, .. } = launch;
            let message = format!("{file}:{line}: kernel `{kernel}`: {}", error.message);
            EngineError { message, ..error }
        })?;
        let cubin = read(bytes.clone())?;
        self.cache.put(&key, &bytes);
        Ok(cubin)
    }

    /// The cubins of all launches of a plan, in order; several are compiled at a time.
    pub fn compile_plan(
        &self,
        modules: &ModuleSet,
        plan: &LaunchPlan,
        alignment: &[bool],
    ) -> Result<Vec<Cubin>, EngineError> {
        let launches: Vec<&Launch> = plan
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Launch(launch) => Some(launch),
                _ => None,
            })
            .collect();
        // The same kernel launched twice is compiled once.
        let mut distinct: Vec<(&Launch, OnceLock<Result<Cubin, EngineError>>)> = Vec::new();
        let places: Vec<usize> = launches
            .into_iter()
            .map(|launch| {
                let known = distinct.iter().position(|(known, _)| same_kernel(known, launch));
                known.unwrap_or_else(|| {
                    distinct.push((launch, OnceLock::new()));
                    distinct.len() - 1
                })
            })
            .collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((launch, made)) = distinct.get(next.fetch_add(1, Ordering::Relaxed)) {
                made.get_or_init(|| self.compile(modules, launch, alignment));
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for _ in 1..threads.min(distinct.len()) {
                scope.spawn(work);
            }
            work();
        });
        let made = |place: usize| distinct.get(place).and_then(|(_, made)| made.get().cloned());
        let missing = || EngineError::graph(ErrorKind::Machine, "a kernel was not compiled");
        places.into_iter().map(|place| made(place).unwrap_or_else(|| Err(missing()))).collect()
    }

    fn process(&self) -> Result<&Process, EngineError> {
        self.process.as_ref().ok_or_else(|| {
            lacking("this kernel is not among the cubins that were compiled beforehand")
        })
    }
}

impl Process {
    /// What the script prints, if all goes well.
    fn run(&self, arguments: &[&str], input: Vec<u8>) -> Result<Vec<u8>, EngineError> {
        let interpreter = self
            .interpreter
            .get_or_init(|| Interpreter::ask(&self.python).map_err(lacking))
            .as_ref()
            .map_err(Clone::clone)?;
        let job = interpreter.job(SCRIPT, arguments, input, self.limits);
        let finished = self.sandbox.run(&job).map_err(refused)?;
        let failed = |kind| {
            let errors = finished.errors.trim();
            let last = errors.lines().last().unwrap_or_default();
            EngineError::graph(kind, format!("the compiler {}: {last}", finished.ending))
        };
        match finished.ending {
            Ending::Exit(0) => Ok(finished.output),
            Ending::Time => Err(failed(ErrorKind::Timeout)),
            Ending::Memory => Err(failed(ErrorKind::Memory)),
            Ending::Signal(KILLED) => Err(failed(ErrorKind::Machine)),
            _ => Err(failed(ErrorKind::Plan)),
        }
    }
}

/// Whether two launches run the same cubin.
fn same_kernel(a: &Launch, b: &Launch) -> bool {
    let options = |launch: &Launch| {
        (launch.num_warps, launch.num_stages, launch.enable_fp_fusion, launch.maxnreg)
    };
    (&a.kernel, a.module, &a.args, options(a)) == (&b.kernel, b.module, &b.args, options(b))
}

fn lacking(message: impl Into<String>) -> EngineError {
    EngineError::graph(ErrorKind::Machine, message)
}

fn refused(refusal: Refusal) -> EngineError {
    lacking(format!("{refusal} ({})", refusal.hint))
}
