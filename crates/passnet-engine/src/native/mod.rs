//! Torch semantics on the CPU.
//!
//! `tensor` holds strided tensors and their views, `random` torch's CPU generator,
//! `ops` the operations by family, `inputs` the drawing of a graph's inputs, `dispatch` the way from an operation of the
//! table to its function, `executor` the running of whole graphs, `profile` their time node by node,
//! `wrapper` the running of replaced nodes as launch plans.

pub(crate) mod dispatch;
pub mod error;
pub mod executor;
pub mod folder;
pub mod inputs;
pub mod ops;
pub mod profile;
pub mod random;
pub mod rates;
pub mod tensor;
pub mod wrapper;

pub use error::{Result, TensorError};
pub use executor::{NativeEngine, Program};
pub use tensor::{Arg, Fingerprint, FingerprintKey, Scalar, Tensor};
pub use wrapper::Wrappers;
