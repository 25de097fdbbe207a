//! The graph of a model: its text and files, its operations, types of every value, and its identity.
//!
//! Owned here: reading and printing `model.py` ([`read`], [`print`](mod@print)), the one table of operations ([`ops`]), inference of shapes, dtypes and
//! strides ([`infer`], with the rules of [`view`]s), identity ([`identify`]), cutting ([`cut`]) and what a compiler would fuse ([`fusion`]).
//!
//! ```
//! use passnet_graph::syntax::Source;
//! use passnet_graph::{identify, read::read_model};
//!
//! let structure = |statement: &str| {
//!     let text = format!(
//!         "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x):\n        y = {statement}\n        return (y,)\n"
//!     );
//!     read_model(&Source::new("model.py", text)).map(|graph| identify(&graph, &[]).structure)
//! };
//! // Spelling does not matter, what is computed does.
//! assert_eq!(structure("torch.relu(x)").unwrap(), structure("x.relu()").unwrap());
//! assert_ne!(structure("torch.relu(x)").unwrap(), structure("torch.tanh(x)").unwrap());
//! // A mistake is told with its place.
//! assert!(structure("torch.relu(x").unwrap_err().to_string().contains("model.py"));
//! ```
//!
//! Nothing here runs a tensor. No file outside `ops/` names an operation by a string, and no identity depends on names, on the order of
//! independent statements or on spelling.

#![warn(missing_docs)]

pub mod check;
pub mod cut;
pub mod diagnostic;
pub mod dtype;
pub mod files;
pub mod fusion;
pub mod graph;
pub mod identity;
pub mod infer;
pub mod ops;
pub mod print;
pub mod read;
pub mod resize;
pub mod stats;
pub mod syntax;
pub mod view;

pub use diagnostic::Diagnostic;
pub use dtype::{DType, Device, DeviceKind};
pub use files::{FileName, GraphFiles};
pub use graph::{Arg, Call, Graph, Node, NodeId, NodeKind};
pub use identity::{Digest, Identity, identify};
pub use read::{GraphFolder, TensorMeta};
