//! The FX-like graph: parse and print `model.py`, tensor metadata, shape and dtype inference, identity.

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
