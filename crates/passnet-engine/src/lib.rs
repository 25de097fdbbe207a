//! Running graphs. [`native`] is a CPU tensor library with PyTorch's semantics, in process, with no Python; [`torch`] is
//! PyTorch itself, in a trusted process of its own. Both are an [`Engine`].
//!
//! ```
//! use passnet_engine::native::{NativeEngine, Tensor, Wrappers};
//! use passnet_engine::{Engine, Precision, RunOptions, Value, dump};
//! use passnet_graph::{read::read_model, syntax::Source};
//!
//! let text = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n        y = torch.relu(x)\n        return (y,)\n";
//! let graph = read_model(&Source::new("model.py", text)).unwrap();
//! let x = Tensor::from_slice(&[-1.0f32, 2.0], &[2]).unwrap();
//! let prepared = NativeEngine.prepare(&graph, Precision::AsWritten, &Wrappers::default()).unwrap();
//! let outputs = prepared.run(&[Value::Tensor(x)], &RunOptions::default()).unwrap();
//! assert_eq!(dump::output_tensors(&outputs).unwrap()[0].to_vec::<f32>().unwrap(), [0.0, 2.0]);
//! ```
//!
//! An engine never sees a pass file: what replaces a region arrives as a launch plan. What a machine fails at is told apart from what a graph
//! fails at ([`Faults`]).

#![warn(missing_docs)]

pub mod choice;
pub mod dump;
pub mod engine;
pub mod identity;
pub mod native;
pub mod sandbox;
pub mod torch;
mod tuning;

pub use choice::{EngineChoice, EngineName};
pub use engine::{
    Called, Compared, Content, Costs, Doubtful, Engine, EngineError, ErrorKind, Faults,
    GraphCompiler, InductorMode, Precision, Prepared, RunOptions, Side, Staged, Tier, Tolerances,
    Turn, Value,
};
pub use identity::Identity;
pub use tuning::{TimedConfig, TunedKernel};
