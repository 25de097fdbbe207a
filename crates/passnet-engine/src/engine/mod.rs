//! What an engine is: it takes a graph once and runs it many times, or says which node it cannot run and why.

use crate::identity::Identity;
use crate::native::{Scalar, Tensor, TensorError, Wrappers};
use crate::tuning::TunedKernel;
use passnet_graph::{DType, Graph};
use passnet_kernel::check::Finding;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
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

/// Compilers of whole graphs, to hold against eager as passes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphCompiler {
    /// TorchInductor, in one of its modes.
    Inductor(InductorMode),
    /// Eager's launches recorded in a CUDA graph: the limit for code that is not fused.
    CudaGraph,
    /// The native engine's joining of neighbouring elementwise operations.
    Joined,
}

/// What TorchInductor is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InductorMode {
    #[default]
    Default,
    /// With CUDA graphs.
    ReduceOverhead,
    /// Kernels chosen by measuring, with CUDA graphs.
    MaxAutotune,
    /// Kernels chosen by measuring.
    MaxAutotuneNoCudagraphs,
}

impl InductorMode {
    /// The name that `torch.compile` takes.
    pub const fn name(self) -> &'static str {
        match self {
            InductorMode::Default => "default",
            InductorMode::ReduceOverhead => "reduce-overhead",
            InductorMode::MaxAutotune => "max-autotune",
            InductorMode::MaxAutotuneNoCudagraphs => "max-autotune-no-cudagraphs",
        }
    }
}

impl GraphCompiler {
    pub const ALL: [GraphCompiler; 6] = [
        GraphCompiler::Inductor(InductorMode::Default),
        GraphCompiler::Inductor(InductorMode::ReduceOverhead),
        GraphCompiler::Inductor(InductorMode::MaxAutotune),
        GraphCompiler::Inductor(InductorMode::MaxAutotuneNoCudagraphs),
        GraphCompiler::CudaGraph,
        GraphCompiler::Joined,
    ];

    /// The name under which results are kept: another mode is another compiler.
    pub const fn name(self) -> &'static str {
        match self {
            GraphCompiler::Inductor(InductorMode::Default) => "inductor",
            GraphCompiler::Inductor(InductorMode::ReduceOverhead) => "inductor-reduce-overhead",
            GraphCompiler::Inductor(InductorMode::MaxAutotune) => "inductor-max-autotune",
            GraphCompiler::Inductor(InductorMode::MaxAutotuneNoCudagraphs) => {
                "inductor-max-autotune-no-cudagraphs"
            }
            GraphCompiler::CudaGraph => "cudagraph",
            GraphCompiler::Joined => "joined",
        }
    }

    pub fn from_name(name: &str) -> Option<GraphCompiler> {
        GraphCompiler::ALL.into_iter().find(|compiler| compiler.name() == name)
    }
}

/// How the code of passes runs, and what its results are therefore worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// As launch plans, replayed by us: nothing of a pass runs but its kernels.
    #[default]
    Plan,
    /// What cannot become a plan runs inside PyTorch in a sandbox, and is not timed.
    Compat,
}

impl Tier {
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Plan => "plan",
            Tier::Compat => "compat",
        }
    }

    pub fn is_plan(&self) -> bool {
        *self == Tier::Plan
    }
}

/// Two graphs whose inputs lie where an engine computes.
pub trait Staged {
    /// Timed calls, one after the other. What the candidate gives for a content is kept until eager is called on the
    /// same content, and then compared with what eager gives.
    fn calls(&mut self, turns: &[Turn]) -> Result<Vec<Called>, EngineError>;

    /// What both sides gave in a call whose outputs differed by more than `Turn::level` allows; the worst of those that
    /// were compared since this was last asked.
    fn doubtful(&mut self) -> Result<Option<Doubtful>, EngineError>;

    /// What a call costs the host and the device, each by itself.
    fn costs(&mut self, side: Side) -> Result<Costs, EngineError>;
}

/// Seconds of one call, taken apart.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Costs {
    /// Until the call returns, its work queued; on a CPU that is all of it.
    pub host: Option<f64>,
    /// The device at work, without the gaps between launches; `None` where it cannot tell.
    pub device: Option<f64>,
    /// The same with nothing of the inputs left in the device's cache.
    pub cold: Option<f64>,
}

/// Whose call it is: that of the graph as it is, or of what is compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Eager,
    Candidate,
}

/// Of every float type: `rtol` and `atol` of each level of the tolerance ladder, the strictest first.
pub type Tolerances = Vec<(DType, Vec<[f64; 2]>)>;

/// A timed call.
#[derive(Debug, Clone)]
pub struct Turn {
    pub side: Side,
    /// What numbers the content: the candidate's call and eager's call on it have the same number.
    pub number: u64,
    pub content: Content,
    /// Of a call of eager: the strictest level of the tolerance ladder at which the candidate's outputs are compared
    /// with these; `None` where they are not compared.
    pub level: Option<i32>,
}

/// The inputs of a timed call, made outside the clock: values that no earlier call had, in memory of their own.
#[derive(Debug, Clone)]
pub enum Content {
    /// These values.
    Given(Vec<Value>),
    /// A draw whose tensors are rolled, each by so many elements of its row-major order.
    Rolled { draw: usize, by: Vec<usize> },
}

/// What one timed call showed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Called {
    /// From before the call until its outputs are there.
    pub seconds: f64,
    /// Of a call of eager that was compared: how the candidate's outputs for the same content were.
    pub compared: Option<Compared>,
}

/// How the candidate's outputs of a timed call compare with eager's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Right from this level on, and not below.
    RightFrom(i32),
    /// Right at no level, or of another type, shape or number.
    Wrong,
    /// An input is not as eager leaves it.
    InputChanged(usize),
}

/// What both sides gave for one content.
#[derive(Debug)]
pub struct Doubtful {
    pub number: u64,
    pub eager: Vec<Value>,
    pub candidate: Vec<Value>,
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

/// A value of a graph while it runs.
#[derive(Debug, Clone)]
pub enum Value {
    Tensor(Tensor),
    Number(Scalar),
    /// A tuple, a list, a `torch.Size`.
    Sequence(Arc<[Value]>),
    None,
    Text(Arc<str>),
    Dtype(DType),
    /// Devices have no meaning here: everything runs where the engine runs.
    Device,
    Ellipsis,
    Slice(Arc<[Value; 3]>),
    /// A constant of torch such as `torch.channels_last`.
    Constant(Arc<str>),
    /// An opaque object: an autocast mode, a function context.
    Object,
    /// A tensor inside vmap; `Mapped` says which leading dimensions are hidden.
    Mapped(Arc<Mapped>),
}

/// A tensor inside vmap: its first `levels.len()` dimensions are hidden, one for each nesting level, in order.
#[derive(Debug, Clone)]
pub struct Mapped {
    pub tensor: Tensor,
    pub levels: Vec<i64>,
}

impl Value {
    pub fn sequence(items: impl IntoIterator<Item = Value>) -> Self {
        Value::Sequence(items.into_iter().collect())
    }

    pub fn int(value: i64) -> Self {
        Value::Number(Scalar::Int(value))
    }

    pub fn bool(value: bool) -> Self {
        Value::Number(Scalar::Bool(value))
    }

    pub fn float(value: f64) -> Self {
        Value::Number(Scalar::Float(value))
    }

    pub fn sizes(sizes: &[usize]) -> Self {
        Value::sequence(sizes.iter().map(|size| Value::int(*size as i64)))
    }

    pub fn tensors(tensors: impl IntoIterator<Item = Tensor>) -> Self {
        Value::sequence(tensors.into_iter().map(Value::Tensor))
    }

    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Calls `visit` for every tensor in the value.
    pub fn for_each_tensor<'a>(&'a self, visit: &mut impl FnMut(&'a Tensor)) {
        match self {
            Value::Tensor(tensor) => visit(tensor),
            Value::Sequence(items) => items.iter().for_each(|item| item.for_each_tensor(visit)),
            _ => {}
        }
    }

    /// Python's name of the value's type, for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Tensor(_) | Value::Mapped(_) => "Tensor",
            Value::Number(Scalar::Bool(_)) => "bool",
            Value::Number(Scalar::Int(_)) => "int",
            Value::Number(Scalar::Float(_)) => "float",
            Value::Number(Scalar::Complex(..)) => "complex",
            Value::Sequence(_) => "tuple",
            Value::None => "NoneType",
            Value::Text(_) => "str",
            Value::Dtype(_) => "torch.dtype",
            Value::Device => "torch.device",
            Value::Ellipsis => "ellipsis",
            Value::Slice(_) => "slice",
            Value::Constant(_) => "torch constant",
            Value::Object => "object",
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}

/// What kind of thing went wrong, for counting and for verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// Legal in torch, missing in this engine.
    Unsupported,
    /// The call does not fit the operation's signature.
    Arguments,
    Shape,
    Index,
    Type,
    Value,
    Arithmetic,
    Memory,
    /// An assertion of the graph itself does not hold.
    Assertion,
    /// The wrapper or a kernel of a pass cannot be made into a launch plan for these arguments.
    Plan,
    /// A kernel of a pass failed while it ran.
    Kernel,
    /// The kernels of passes took longer than they may.
    Timeout,
    /// The machine or what is installed on it: a process that was killed, a library that is missing, a sandbox that
    /// does not start, a full disk. Neither the graph nor a pass is at fault, and another try may succeed.
    Machine,
    /// A mistake of the engine.
    Internal,
}

impl ErrorKind {
    pub const fn name(self) -> &'static str {
        match self {
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Arguments => "arguments",
            ErrorKind::Shape => "shape",
            ErrorKind::Index => "index",
            ErrorKind::Type => "type",
            ErrorKind::Value => "value",
            ErrorKind::Arithmetic => "arithmetic",
            ErrorKind::Memory => "memory",
            ErrorKind::Assertion => "assertion",
            ErrorKind::Plan => "plan",
            ErrorKind::Kernel => "kernel",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Machine => "machine",
            ErrorKind::Internal => "internal",
        }
    }
}

/// Why a graph did not run, and at which node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError {
    pub kind: ErrorKind,
    /// The node's name; empty where the graph as a whole is meant.
    pub node: String,
    /// What the node calls, as a person would write it.
    pub operation: String,
    /// Line of `model.py`; 0 where there is none.
    pub line: u32,
    pub message: String,
}

impl EngineError {
    /// An error about the graph as a whole.
    pub fn graph(kind: ErrorKind, message: impl Into<String>) -> Self {
        EngineError {
            kind,
            node: String::new(),
            operation: String::new(),
            line: 0,
            message: message.into(),
        }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.node.is_empty() {
            write!(f, "`{}` ({}): ", self.node, self.operation)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for EngineError {}

impl From<&TensorError> for ErrorKind {
    fn from(error: &TensorError) -> Self {
        match error {
            TensorError::Shape(_) => ErrorKind::Shape,
            TensorError::Index(_) => ErrorKind::Index,
            TensorError::DType(_) => ErrorKind::Type,
            TensorError::Value(_) => ErrorKind::Value,
            TensorError::Arithmetic(_) => ErrorKind::Arithmetic,
            TensorError::Allocation { .. } => ErrorKind::Memory,
            TensorError::Unsupported(_) => ErrorKind::Unsupported,
            TensorError::Plan(_) => ErrorKind::Plan,
            TensorError::Kernel(_) => ErrorKind::Kernel,
            TensorError::Timeout(_) => ErrorKind::Timeout,
            TensorError::Busy => ErrorKind::Internal,
        }
    }
}
