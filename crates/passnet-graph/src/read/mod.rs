//! From text to graphs and their metadata, without running Python.

mod constraints;
mod expression;
mod folder;
mod literal;
mod meta;
mod metadata;
mod model;
mod plain;

/// Python's own vocabulary, for other readers of Python that build graphs.
pub mod python {
    pub use super::expression::{augmented_operator, binary_operator, comparison};
    pub use super::literal::{device, literal, torch_constant};
}

pub use constraints::{Constraints, ShapeDim};
pub use folder::{GraphFolder, read_folder};
pub use meta::{Number, TensorMeta};
pub(crate) use metadata::read_constraints;
pub use metadata::read_tensor_metas;
pub use model::read_model;
