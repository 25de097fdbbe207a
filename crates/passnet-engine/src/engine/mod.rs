//! What an engine is: it takes a graph once and runs it many times, or says which node it cannot run and why.

mod compiler;
mod error;
mod staged;
pub(crate) mod tier;
mod value;

pub use compiler::{GraphCompiler, InductorMode};
pub use error::{EngineError, ErrorKind};
pub use staged::{Called, Compared, Content, Costs, Doubtful, Side, Staged, Tolerances, Turn};
pub use tier::Tier;
pub use value::{Mapped, Value};

use crate::identity::Identity;
use crate::native::Wrappers;
use crate::tuning::TunedKernel;
use passnet_graph::{DType, Graph};
use passnet_kernel::ModuleSet;
use passnet_kernel::check::Finding;
use passnet_kernel::plan::LaunchPlan;
use std::fmt;
use std::time::Duration;

/// Runs graphs. Engines differ in where they compute, never in what a graph means.
pub trait Engine: fmt::Debug + Send + Sync {
    /// The name that `--engine` takes.
    fn name(&self) -> &'static str;

    /// Where the engine's results come from: they answer no question about another place.
    fn identity(&self) -> Identity {
        Identity::here(self.name())
    }

    /// What went wrong so far that is neither a graph's fault nor a pass's. Whoever judges asks before and after: a
    /// result with such a fault in between says nothing about the pass.
    fn faults(&self) -> Faults {
        Faults::default()
    }

    /// Prepares a graph as a compiler makes it, where the engine has that compiler.
    fn prepare_compiled(
        &self,
        _graph: &Graph,
        compiler: GraphCompiler,
    ) -> Result<Box<dyn Prepared>, EngineError> {
        Err(self.lacks(compiler))
    }

    /// The answer of an engine that does not have a compiler.
    fn lacks(&self, compiler: GraphCompiler) -> EngineError {
        let text = match compiler {
            GraphCompiler::Inductor(_) => {
                format!("the {} engine has no TorchInductor", self.name())
            }
            GraphCompiler::CudaGraph => {
                format!("the {} engine has no CUDA graphs on its device", self.name())
            }
            GraphCompiler::Joined => format!("the {} engine joins no operations", self.name()),
        };
        EngineError::graph(ErrorKind::Unsupported, text)
    }

    /// Whether tensors that a graph makes without naming a device lie where it runs.
    fn computes_on_host(&self) -> bool {
        true
    }

    /// The fewest seconds in which the engine's device moves so many bytes, half of them read and half written; `None`
    /// where that cannot be measured.
    fn copy_seconds(&self, bytes: u64) -> Option<f64>;

    /// Multiplications and additions a second of a large product of matrices of that type on the engine's device.
    fn flops_per_second(&self, dtype: DType) -> Option<f64>;

    /// Compiles the kernels of a plan before a graph needs them, where kernels are compiled for a device. Any thread may
    /// ask, also while graphs run. What does not compile says so when a graph is prepared.
    fn compile_ahead(&self, _files: &ModuleSet, _plan: &LaunchPlan) {}

    /// Checks and prepares a graph, whose replaced nodes call `wrappers`.
    fn prepare(
        &self,
        graph: &Graph,
        precision: Precision,
        wrappers: &Wrappers,
    ) -> Result<Box<dyn Prepared>, EngineError>;
}

/// A graph ready to run.
pub trait Prepared: fmt::Debug + Send + Sync {
    /// Runs the graph on one value per placeholder. Where the graph writes into a placeholder, it writes into
    /// the tensor given here, as torch would: pass copies to keep the originals.
    fn run(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Value>, EngineError>;

    /// Puts draws of inputs where the engine computes, for calls of this graph and of `eager` that are timed there and
    /// compared by these tolerances. `None` where the caller can time [`run`](Self::run) itself.
    fn stage<'a>(
        &'a self,
        _eager: &'a dyn Prepared,
        _draws: &[Vec<Value>],
        _tolerances: &Tolerances,
        _options: &RunOptions,
    ) -> Result<Option<Box<dyn Staged + 'a>>, EngineError> {
        Ok(None)
    }

    /// Makes what earlier calls left in memory unreadable. To be called outside the clock, before each timed
    /// [`run`](Self::run) of either side.
    fn scrub_memory(&self) {}

    /// Whether a kernel that never ends is stopped by itself. Elsewhere only the end of a process stops it, and a device may
    /// be busy until then: kernels are watched here before they run there.
    fn stops_endless_kernels(&self) -> bool {
        true
    }

    /// How the replaced nodes have run so far.
    fn tier(&self) -> Tier {
        Tier::Plan
    }

    /// What was chosen for the tuned kernels that ran so far.
    fn tuned(&self) -> Vec<TunedKernel> {
        Vec::new()
    }

    /// The number under which an engine that computes elsewhere knows the graph.
    fn remote_number(&self) -> Option<u64> {
        None
    }

    /// Runs the graph with every kernel of a pass watched: accesses out of bounds, races, reads of memory nothing
    /// wrote, outputs with holes, and what can be proved about them.
    fn check(&self, inputs: &[Value], options: &RunOptions) -> Result<Vec<Finding>, EngineError>;
}

/// Errors of [`ErrorKind::Machine`] that an engine has met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// How many there were.
    pub count: usize,
    /// What the last of them said.
    pub last: String,
}

impl Faults {
    /// What happened since an earlier look.
    pub fn since(&self, earlier: &Faults) -> Option<&str> {
        (self.count > earlier.count).then_some(self.last.as_str())
    }
}

/// In which types a graph computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// In the types the graph and its inputs name.
    #[default]
    AsWritten,
    /// In float64 wherever a float type is named: the yardstick for accuracy.
    Double,
}

impl Precision {
    /// The type that stands for `dtype`.
    pub fn of(self, dtype: DType) -> DType {
        match self {
            Precision::AsWritten => dtype,
            Precision::Double if dtype.is_float() => DType::Float64,
            Precision::Double if dtype.is_complex() => DType::Complex128,
            Precision::Double => dtype,
        }
    }

    /// The type of new float tensors that name none.
    pub fn default_float(self) -> DType {
        self.of(DType::Float32)
    }
}

/// How a graph is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// Seed of the generator that random operations draw from.
    pub seed: u64,
    /// The most bytes that the run may hold at one time.
    pub memory_limit: usize,
    /// How long the kernels of passes may take, all together.
    pub time_limit: Option<Duration>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            seed: crate::native::inputs::DEFAULT_SEED,
            memory_limit: 1 << 36,
            time_limit: None,
        }
    }
}
