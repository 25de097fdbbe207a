//! Host wrappers become launch plans: plain data that says which buffers to make, which kernels to launch
//! with what, and what to return. A bounded interpreter evaluates the wrapper on shapes, strides and dtypes;
//! it never sees tensor data.

mod builtins;
mod call_args;
mod calls;
mod class;
mod classes;
mod descriptor;
mod host;
mod interp;
mod launch;
mod methods;
mod objects;
mod state;
mod tensor;
mod tensor_methods;
mod torch_api;
mod tuning;
mod validate;
mod value;
mod views;

pub use host::{HostArg, entry_name, plan, plan_chosen};
pub use interp::PlanLimits;
pub use tensor::TensorSpec;
pub use tuning::Choices;
pub(crate) use validate::MAX_BUFFER_BYTES;
pub use validate::{MAX_BUFFERS, PlanError};

use crate::consts::Const;
use crate::types::Elem;
use passnet_graph::DType;
use serde::{Deserialize, Serialize};

/// Changes whenever the meaning of a field does.
pub const PLAN_VERSION: u32 = 1;

/// Everything needed to run a wrapper's kernels for one input signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchPlan {
    /// The version of this format.
    pub version: u32,
    /// What the steps work on, inputs among them.
    pub buffers: Vec<BufferSpec>,
    /// In order of execution.
    pub steps: Vec<Step>,
    /// What the wrapper returns, flattened.
    pub returns: Vec<View>,
    /// Whether the wrapper returns a tuple or list rather than one tensor.
    pub returns_sequence: bool,
    /// Remarks that do not stop a run, such as ignored prints.
    pub notes: Vec<String>,
}

impl LaunchPlan {
    /// The launches among the steps.
    pub fn launches(&self) -> impl Iterator<Item = &Launch> {
        self.steps.iter().filter_map(|step| match step {
            Step::Launch(launch) => Some(launch),
            _ => None,
        })
    }
}

/// A piece of memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BufferSpec {
    /// For messages.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Length in elements.
    pub elements: u64,
    /// What is in it at the beginning.
    pub init: Init,
}

impl BufferSpec {
    /// The size of its elements together.
    pub fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.dtype.size() as u64)
    }
}

/// What a buffer holds before the first step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Init {
    /// The wrapper's argument of that index.
    Input(usize),
    /// Whatever is there: a kernel must write before it reads.
    Uninitialized,
    /// One number everywhere.
    Fill(Const),
    /// One number for each element.
    Values(Vec<Const>),
}

/// A strided window into a buffer; offset and strides count elements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// Which buffer of the plan.
    pub buffer: usize,
    /// The first element's place in it.
    pub offset: i64,
    /// Its sizes.
    pub shape: Vec<i64>,
    /// Its strides.
    pub stride: Vec<i64>,
    /// The type of its elements.
    pub dtype: DType,
}

impl View {
    /// How many elements it has.
    pub fn numel(&self) -> i64 {
        self.shape.iter().product()
    }
}

/// What a plan does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields are what the sentence of their variant names")]
pub enum Step {
    /// Programs of a kernel.
    Launch(Launch),
    /// Element by element, same shape; made by `.contiguous()`, `.clone()` and `copy_`.
    Copy { from: View, to: View, line: u32 },
    /// Made by `zero_` and `fill_`.
    Fill { view: View, value: Const, line: u32 },
}

impl Step {
    /// Whether the step reads or writes a buffer.
    pub(crate) fn touches(&self, buffer: usize) -> bool {
        match self {
            Step::Launch(launch) => launch
                .args
                .iter()
                .any(|arg| matches!(&arg.value, ArgValue::Buffer(view) if view.buffer == buffer)),
            Step::Copy { from, to, .. } => from.buffer == buffer || to.buffer == buffer,
            Step::Fill { view, .. } => view.buffer == buffer,
        }
    }
}

/// One kernel launch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// Index of the file that defines the kernel.
    pub module: usize,
    /// Programs along each axis.
    pub grid: [u32; 3],
    /// In the order of the kernel's parameters.
    pub args: Vec<LaunchArg>,
    /// As `num_warps` of the launch says.
    pub num_warps: u32,
    /// As `num_stages` of the launch says.
    pub num_stages: u32,
    /// Whether a product and a sum may become one operation with one rounding; a GPU compiler asks.
    #[serde(default = "allowed")]
    pub enable_fp_fusion: bool,
    /// The most registers a thread may use; a GPU compiler asks.
    #[serde(default)]
    pub maxnreg: Option<u32>,
    /// All tuning candidates of the kernel; empty when it has none.
    pub configs: Vec<Config>,
    /// Which of them `args` holds.
    pub config: Option<usize>,
    /// What the candidates are timed for: the kernel with the values of `key`, and the types of its tensors.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The wrapper's file.
    pub file: String,
    /// The line of the launch, counted from one.
    pub line: u32,
}

/// Triton fuses unless it is told not to.
fn allowed() -> bool {
    true
}

/// An argument of run time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaunchArg {
    /// The parameter's name.
    pub name: String,
    /// What is handed over.
    pub value: ArgValue,
}

/// What a kernel gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "fields are the number and its type")]
pub enum ArgValue {
    /// A pointer to the first element of a view.
    Buffer(View),
    Int {
        value: i64,
        elem: Elem,
    },
    /// A float, which Triton hands over as float32.
    Float(#[serde(with = "crate::consts::float_text")] f64),
    /// Compile-time.
    Const(Const),
}

/// A candidate of `@triton.autotune`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    /// Constants that the configuration sets.
    pub values: Vec<(String, Const)>,
    /// Warps of a program.
    pub num_warps: u32,
    /// Stages of software pipelining.
    pub num_stages: u32,
    /// The most registers of a thread; `None`: as many as the compiler wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maxnreg: Option<u32>,
}

impl Default for Config {
    /// What Triton takes where nothing is said.
    fn default() -> Self {
        Config { values: Vec::new(), num_warps: 4, num_stages: 3, maxnreg: None }
    }
}

impl Launch {
    /// How each parameter specialises the kernel.
    pub fn arg_specs(&self) -> std::collections::BTreeMap<String, crate::frontend::ArgSpec> {
        use crate::frontend::ArgSpec;
        let spec = |value: &ArgValue| match value {
            ArgValue::Buffer(view) => {
                ArgSpec::Pointer(Elem::from_dtype(view.dtype).unwrap_or(Elem::U8))
            }
            ArgValue::Int { elem, .. } => ArgSpec::Scalar(*elem),
            ArgValue::Float(_) => ArgSpec::Scalar(Elem::F32),
            ArgValue::Const(c) => ArgSpec::Const(c.clone()),
        };
        self.args.iter().map(|a| (a.name.clone(), spec(&a.value))).collect()
    }

    /// What the parameter of this name points at, if it is a pointer.
    pub(crate) fn view(&self, name: &str) -> Option<&View> {
        match &self.args.iter().find(|arg| arg.name == name)?.value {
            ArgValue::Buffer(view) => Some(view),
            _ => None,
        }
    }

    /// How many programs the grid has.
    pub fn programs(&self) -> u64 {
        self.grid.iter().map(|&g| u64::from(g)).product()
    }
}
