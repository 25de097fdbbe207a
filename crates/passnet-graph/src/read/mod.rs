//! From text to graphs and their metadata, without running Python.

mod constraints;
mod expression;
mod folder;
mod literal;
mod meta;
mod model;

pub use constraints::{Constraints, ShapeDim, read_constraints};
pub use folder::{GraphFiles, GraphFolder, is_graph_folder, read_folder};
pub use meta::{Number, TensorMeta, read_tensor_metas};
pub use model::read_model;
