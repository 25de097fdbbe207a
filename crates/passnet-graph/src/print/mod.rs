//! From graphs and metadata to the files of a graph folder, in one canonical style.

mod meta;
mod model;
mod python;

pub use meta::{print_constraints, print_tensor_metas};
pub use model::print_model;
pub use python::{print_arg, python_float, python_string};
