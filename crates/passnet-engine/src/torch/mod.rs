//! The engine that runs graphs with PyTorch, on a CPU or a GPU, in a trusted process of its own.
//!
//! Graphs go to the worker as text that we print, replaced nodes as launch plans that we make; pass files stay here.
//! The worker may fall (a kernel crashes it, memory runs out, a call hangs): the call that felled it reports what
//! happened, and the next one finds a new worker with its graph loaded again.

mod bounds;
mod compat;
pub mod compile;
pub mod frames;
pub mod package;
mod planner;
mod shared_memory;
mod staged;
mod text;
mod wire;
mod worker;

pub use planner::PlanMaker;
pub use worker::{WorkerInfo, WorkerOptions};

use crate::engine::{
    Engine, EngineError, ErrorKind, Faults, GraphCompiler, InductorMode, Precision, Prepared,
    RunOptions, Staged, Tier, Tolerances, Value,
};
use crate::identity::{DeviceIdentity, Identity, file_digest, nvidia_driver};
use crate::native::{NativeEngine, Tensor, Wrappers};
use crate::sandbox::{Sandbox, nvidia};
use crate::tuning::TunedKernel;
use compat::Compat;
use compile::Compiler;
use frames::Frame;
use package::Package;
use passnet_graph::graph::effects::Effects;
use passnet_graph::graph::{Annotation, Replacement};
use passnet_graph::{DType, Device, Graph, NodeKind};
use passnet_kernel::check::Finding;
use serde_json::{Map, Value as Json, json};
use staged::StagedGraphs;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wire::Outgoing;
use worker::{Worker, refusal};

/// Compiling with TorchInductor happens inside the first call.
const COMPILE_LIMIT: Duration = Duration::from_secs(300);
/// It takes longer where kernels are chosen by measuring.
const AUTOTUNE_LIMIT: Duration = Duration::from_secs(1800);

/// Runs graphs with PyTorch.
#[derive(Debug, Clone)]
pub struct TorchEngine {
    host: Arc<Host>,
}

/// The worker and what must be known to replace it.
#[derive(Debug)]
struct Host {
    options: WorkerOptions,
    device: Device,
    package: Package,
    /// Where the worker computes on a GPU.
    compiler: Option<Arc<Compiler>>,
    /// Where the compatibility tier was asked for.
    compat: Option<Arc<Compat>>,
    /// Of the first worker: those that follow are started the same way.
    identity: Identity,
    state: Mutex<State>,
    next_graph: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    worker: Option<Worker>,
    /// Graphs that the living worker knows.
    loaded: BTreeSet<u64>,
    /// Workers started so far.
    started: usize,
    faults: Faults,
}

impl State {
    /// Remembers what was nobody's fault under test.
    fn note<R>(&mut self, result: &Result<R, EngineError>) {
        if let Err(error) = result
            && error.kind == ErrorKind::Machine
        {
            self.faults.count += 1;
            self.faults.last = error.to_string();
        }
    }
}

impl TorchEngine {
    /// Starts a worker, so that what is missing on this machine shows at once.
    pub fn start(options: WorkerOptions) -> Result<TorchEngine, EngineError> {
        let device = Device::from_name(&options.device).ok_or_else(|| {
            EngineError::graph(ErrorKind::Arguments, format!("no device `{}`", options.device))
        })?;
        let package = Package::lay_out(&package::WORKER).map_err(|error| {
            let text = format!("the worker's files cannot be laid out: {error}");
            EngineError::graph(ErrorKind::Machine, text)
        })?;
        let mut host = Host {
            options,
            device,
            package,
            compiler: None,
            compat: None,
            identity: Identity::default(),
            state: Mutex::default(),
            next_graph: AtomicU64::new(0),
        };
        if host.options.tier == Tier::Compat {
            host.compat = Some(Arc::new(host.compatibility()?));
        }
        let info = host.living()?.worker.as_ref().map(|worker| worker.info.clone());
        let info = info.unwrap_or_default();
        host.identity = identity_of(&host.options, &info);
        if let Some([major, minor]) = info.capability {
            let sandbox = Sandbox::strongest().map_err(|refusal| {
                let text = format!("kernels are compiled in a sandbox only: {refusal}");
                EngineError::graph(ErrorKind::Machine, text)
            })?;
            let cache = host.options.cache.clone();
            let compiler = Compiler::new(host.options.python.clone(), cache, sandbox);
            host.compiler = Some(Arc::new(compiler.with_capability(major, minor)));
        }
        Ok(TorchEngine { host: Arc::new(host) })
    }

    /// What the worker says of itself.
    pub fn info(&self) -> Result<WorkerInfo, EngineError> {
        let state = self.host.living()?;
        Ok(state.worker.as_ref().map(|worker| worker.info.clone()).unwrap_or_default())
    }

    /// How many workers were started: one, unless some fell.
    pub fn workers_started(&self) -> usize {
        self.host.lock().started
    }

    fn load(
        &self,
        graph: &Graph,
        wrappers: &Wrappers,
        compiler: Option<GraphCompiler>,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        let text = text::print(graph, self.host.device)?;
        let plans = self.host.plan_maker(&text.replaced, wrappers)?;
        let is_number = |kind: &NodeKind| matches!(kind, NodeKind::Placeholder(Annotation::SymInt));
        let prepared = TorchGraph {
            host: self.host.clone(),
            id: self.host.next_graph.fetch_add(1, Ordering::Relaxed),
            text: text.text,
            compiler,
            plans: Mutex::new(plans),
            numbers: graph.placeholders().iter().map(|node| is_number(&node.kind)).collect(),
            writes_inputs: Effects::of(graph).write_inputs(graph),
            native: crate::native::Program::compile(
                graph,
                Precision::AsWritten,
                &wrappers.untimed(),
            ),
        };
        // What PyTorch cannot compile shows now, not in the first call.
        prepared.host.with(&prepared, |_, _| Ok(()))?;
        Ok(Box::new(prepared))
    }
}

impl Engine for TorchEngine {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn identity(&self) -> Identity {
        self.host.identity.clone()
    }

    fn faults(&self) -> Faults {
        self.host.lock().faults.clone()
    }

    fn computes_on_host(&self) -> bool {
        self.host.device == Device::CPU
    }

    fn copy_seconds(&self, bytes: u64) -> Option<f64> {
        self.host.rate(json!({ "call": "copy", "bytes": bytes }), "seconds")
    }

    fn flops_per_second(&self, dtype: DType) -> Option<f64> {
        self.host.rate(json!({ "call": "product", "dtype": dtype.name() }), "flops_per_second")
    }

    fn prepare(
        &self,
        graph: &Graph,
        precision: Precision,
        wrappers: &Wrappers,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        match precision {
            Precision::AsWritten => self.load(graph, wrappers, None),
            // One yardstick for all engines.
            Precision::Double => NativeEngine.prepare(graph, precision, wrappers),
        }
    }

    fn prepare_compiled(
        &self,
        graph: &Graph,
        compiler: GraphCompiler,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        match compiler {
            GraphCompiler::CudaGraph if self.computes_on_host() => Err(self.lacks(compiler)),
            GraphCompiler::Inductor(_) | GraphCompiler::CudaGraph => {
                self.load(graph, &Wrappers::default(), Some(compiler))
            }
            GraphCompiler::Joined => Err(self.lacks(compiler)),
        }
    }
}

/// What a worker says of itself and what is known here.
fn identity_of(options: &WorkerOptions, info: &WorkerInfo) -> Identity {
    let here = Identity::here("torch");
    let said = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let device = match options.device == "cpu" {
        true => here.device.clone(),
        false => DeviceIdentity {
            kind: options.device.clone(),
            name: info.device.clone(),
            driver: nvidia_driver(),
            capability: info.capability,
        },
    };
    Identity {
        device,
        python: said(&info.python),
        torch: said(&info.torch),
        triton: info.triton.clone(),
        cuda: info.cuda.clone(),
        runner: options.runner.as_deref().and_then(file_digest),
        tier: options.tier,
        ..here
    }
}

impl Host {
    /// What the worker measures of its device.
    fn rate(&self, question: Json, key: &str) -> Option<f64> {
        let mut state = self.living().ok()?;
        let no_plans = &mut |_: &Frame| (json!({"error": "not now"}), Vec::new());
        let reply =
            state.worker.as_mut()?.request(question, &[], self.options.call_limit, no_plans);
        let rate = reply.ok()?.message.get(key)?.as_f64()?;
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }

    /// What the compatibility tier needs, or why this machine does not have it.
    fn compatibility(&self) -> Result<Compat, EngineError> {
        let unsupported = |text: String| EngineError::graph(ErrorKind::Unsupported, text);
        let sandbox = Sandbox::strongest().map_err(|refusal| {
            unsupported(format!("the compatibility tier runs in a sandbox only: {refusal}"))
        })?;
        let WorkerOptions { python, memory_limit, threads, call_limit, .. } = &self.options;
        let devices = match self.device == Device::CPU {
            true => None,
            false => Some(nvidia().map_err(|missing| {
                unsupported(format!(
                    "the compatibility tier finds no GPU for its sandbox: {missing}"
                ))
            })?),
        };
        Compat::new(sandbox, python, devices, *memory_limit, *threads, *call_limit)
            .map_err(unsupported)
    }

    fn plan_maker(
        &self,
        replaced: &[Replacement],
        wrappers: &Wrappers,
    ) -> Result<PlanMaker, EngineError> {
        PlanMaker::new(replaced, wrappers, self.compiler.clone(), self.compat.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state with a living worker in it.
    fn living(&self) -> Result<MutexGuard<'_, State>, EngineError> {
        let mut state = self.lock();
        if state.worker.is_none() {
            let started = Worker::start(&self.options, self.package.folder());
            state.note(&started);
            state.worker = Some(started?);
            state.loaded.clear();
            state.started += 1;
        }
        Ok(state)
    }

    /// A reply without what was asked for.
    fn garbled(&self) -> EngineError {
        let text = "the PyTorch worker's reply makes no sense";
        let error = EngineError::graph(ErrorKind::Machine, text);
        self.lock().note::<()>(&Err(error.clone()));
        error
    }

    /// Works with a worker that knows the graph. A worker that falls is forgotten.
    fn with<R>(
        &self,
        graph: &TorchGraph,
        work: impl FnOnce(&mut Worker, &mut PlanMaker) -> Result<R, EngineError>,
    ) -> Result<R, EngineError> {
        let mut state = self.living()?;
        let State { worker: Some(worker), loaded, .. } = &mut *state else {
            return Err(EngineError::graph(ErrorKind::Machine, "there is no worker"));
        };
        let mut plans = graph.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let mut result = Ok(());
        if !loaded.contains(&graph.id) {
            let load = json!({
                "call": "load",
                "graph": graph.id,
                "text": graph.text,
                "plans": plans.count(),
                "compiler": worker_compiler(graph.compiler),
                "writes_inputs": graph.writes_inputs,
            });
            result = answer(worker, load, &[], self.options.call_limit, &mut plans).map(|_| ());
            if result.is_ok() {
                loaded.insert(graph.id);
            }
        }
        let result = result.and_then(|()| work(worker, &mut plans));
        let result = result.map_err(|error| graph.named(error));
        if !worker.is_alive() {
            state.worker = None;
        }
        state.note(&result);
        result
    }
}

/// One request and its reply; a refusal is an error.
fn answer(
    worker: &mut Worker,
    message: Json,
    parts: &[Vec<u8>],
    limit: Duration,
    plans: &mut PlanMaker,
) -> Result<Frame, EngineError> {
    let frame = worker.request(message, parts, limit, &mut |question| plans.answer(question))?;
    match refusal(&frame.message) {
        None => Ok(frame),
        Some(error) => Err(error),
    }
}

/// What the worker makes of a graph: the compiler's name, and the mode of one that has modes.
fn worker_compiler(compiler: Option<GraphCompiler>) -> Json {
    match compiler {
        Some(GraphCompiler::Inductor(mode)) => json!({ "name": "inductor", "mode": mode.name() }),
        Some(other) => json!({ "name": other.name() }),
        None => json!({ "name": "eager" }),
    }
}

fn compile_limit(mode: InductorMode) -> Duration {
    match mode {
        InductorMode::Default | InductorMode::ReduceOverhead => COMPILE_LIMIT,
        InductorMode::MaxAutotune | InductorMode::MaxAutotuneNoCudagraphs => AUTOTUNE_LIMIT,
    }
}

/// A graph that the worker runs.
struct TorchGraph {
    host: Arc<Host>,
    id: u64,
    text: String,
    /// `None` for the graph as it is.
    compiler: Option<GraphCompiler>,
    plans: Mutex<PlanMaker>,
    /// Which placeholders are plain integers.
    numbers: Vec<bool>,
    writes_inputs: bool,
    /// The same graph here, for watching its kernels.
    native: Result<crate::native::Program, EngineError>,
}

impl fmt::Debug for TorchGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TorchGraph")
            .field("id", &self.id)
            .field("compiler", &self.compiler)
            .finish()
    }
}

impl Drop for TorchGraph {
    fn drop(&mut self) {
        let mut state = self.host.lock();
        if state.loaded.remove(&self.id)
            && let Some(worker) = &mut state.worker
        {
            let drop = json!({"call": "drop", "graph": self.id});
            let limit = self.host.options.call_limit;
            let _ = worker.request(drop, &[], limit, &mut |_| (json!({}), Vec::new()));
        }
    }
}

impl TorchGraph {
    /// The error with the name of the node at its line: the worker knows lines of the text that it was given.
    fn named(&self, mut error: EngineError) -> EngineError {
        let number = usize::try_from(std::mem::take(&mut error.line)).unwrap_or(0);
        let line = number.checked_sub(1).and_then(|index| self.text.lines().nth(index));
        if let Some((node, call)) = line.and_then(|line| line.split_once(" = ")) {
            error.node = node.trim().to_string();
            error.operation = call.split('(').next().unwrap_or(call).to_string();
        }
        error
    }

    fn limit(&self, options: &RunOptions) -> Duration {
        let limit = options.time_limit.unwrap_or_default().max(self.host.options.call_limit);
        match self.compiler {
            Some(GraphCompiler::Inductor(mode)) => limit.max(compile_limit(mode)),
            _ => limit,
        }
    }

    fn inputs(&self, inputs: &[Value], out: &mut Outgoing) -> Result<Vec<Json>, EngineError> {
        let described = inputs.iter().zip(&self.numbers).map(|(value, is_number)| match value {
            Value::Tensor(tensor) if *is_number => {
                let number = tensor.item().map_err(|error| wire::tensor_error(&error))?;
                out.value(&Value::Number(number))
            }
            value => out.value(value),
        });
        described.collect()
    }
}

impl Prepared for TorchGraph {
    fn stops_endless_kernels(&self) -> bool {
        false
    }

    fn run(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Value>, EngineError> {
        let mut out = Outgoing::default();
        let described = self.inputs(inputs, &mut out)?;
        let message = json!({
            "call": "run",
            "graph": self.id,
            "inputs": described,
            "seed": options.seed,
        });
        let frame = self.host.with(self, |worker, plans| {
            answer(worker, message, &out.parts, self.limit(options), plans)
        })?;
        outputs(&frame, inputs).ok_or_else(|| self.host.garbled())
    }

    fn remote_number(&self) -> Option<u64> {
        Some(self.id)
    }

    fn tier(&self) -> Tier {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).tier()
    }

    fn tuned(&self) -> Vec<TunedKernel> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner).tuned()
    }

    fn stage<'a>(
        &'a self,
        eager: &'a dyn Prepared,
        draws: &[Vec<Value>],
        tolerances: &Tolerances,
        options: &RunOptions,
    ) -> Result<Option<Box<dyn Staged + 'a>>, EngineError> {
        let Some(eager) = eager.remote_number() else { return Ok(None) };
        let by_name = tolerances.iter().map(|(dtype, levels)| (dtype.name().into(), json!(levels)));
        let tolerances = Json::Object(by_name.collect());
        for (index, inputs) in draws.iter().enumerate() {
            let mut out = Outgoing::default();
            let described = self.inputs(inputs, &mut out)?;
            let message = json!({
                "call": "stage",
                "graph": self.id,
                "draw": index,
                "inputs": described,
                "tolerances": tolerances,
            });
            self.host.with(self, |worker, plans| {
                answer(worker, message, &out.parts, self.limit(options), plans)
            })?;
        }
        Ok(Some(Box::new(StagedGraphs { candidate: self, eager, options: options.clone() })))
    }

    fn check(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Finding>, EngineError> {
        match &self.native {
            Ok(program) => program.check(inputs, options),
            Err(error) => Err(error.clone()),
        }
    }
}

/// The outputs of a reply; inputs that the run changed are changed here too.
fn outputs(frame: &Frame, inputs: &[Value]) -> Option<Vec<Value>> {
    let entries = |key: &str| -> Option<Vec<&Map<String, Json>>> {
        frame.message.get(key)?.as_array()?.iter().map(Json::as_object).collect()
    };
    let input = |entry: &Map<String, Json>, key: &str| -> Option<&Tensor> {
        let index = entry.get(key)?.as_u64()?;
        inputs.get(usize::try_from(index).ok()?)?.as_tensor()
    };
    for entry in entries("changed")? {
        input(entry, "index")?.copy_from(&wire::tensor(entry, &frame.bytes)?).ok()?;
    }
    let described = entries("outputs")?;
    let contents: Option<Vec<Tensor>> =
        described.iter().map(|entry| wire::tensor(entry, &frame.bytes)).collect();
    let mut outputs = wire::laid_out(&described, contents?)?;
    for (output, entry) in outputs.iter_mut().zip(&described) {
        if let Some(view) = input(entry, "input").and_then(|i| wire::view_of(i, entry, output)) {
            *output = view;
        }
    }
    Some(outputs.into_iter().map(Value::Tensor).collect())
}
