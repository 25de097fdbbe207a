//! The engine that runs graphs with PyTorch, on a CPU or a GPU, in a trusted process of its own.
//!
//! Graphs go to the worker as text that we print, replaced nodes as launch plans that we make; pass files stay here.
//! The worker may fall (a kernel crashes it, memory runs out, a call hangs): the call that felled it reports what
//! happened, and the next one finds a new worker with its graph loaded again.

mod bounds;
mod compat;
pub mod compile;
pub mod frames;
mod graph;
mod host;
pub mod package;
mod planner;
mod prepared;
mod shared_memory;
mod staged;
mod text;
mod wire;
mod worker;

pub use planner::PlanMaker;
pub use worker::{WorkerInfo, WorkerOptions};

use crate::engine::{
    Engine, EngineError, ErrorKind, Faults, GraphCompiler, Precision, Prepared, Tier,
};
use crate::identity::{DeviceIdentity, Identity, file_digest, nvidia_driver};
use crate::native::{NativeEngine, Wrappers};
use crate::sandbox::Sandbox;
use compile::Compiler;
use graph::TorchGraph;
use host::Host;
use package::Package;
use passnet_graph::graph::Annotation;
use passnet_graph::graph::effects::Effects;
use passnet_graph::{DType, Device, Graph, NodeKind};
use passnet_kernel::ModuleSet;
use passnet_kernel::plan::LaunchPlan;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Runs graphs with PyTorch.
#[derive(Debug, Clone)]
pub struct TorchEngine {
    host: Arc<Host>,
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
        prepared.with(|_, _| Ok(()))?;
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

    fn compile_ahead(&self, files: &ModuleSet, plan: &LaunchPlan) {
        if let Some(compiler) = &self.host.compiler {
            // Whoever prepares a graph with this plan asks again, and hears why there is no cubin.
            let _ = compiler.compile_plan(files, plan, &vec![true; plan.buffers.len()]);
        }
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
