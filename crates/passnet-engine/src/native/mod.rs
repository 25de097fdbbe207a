//! Torch semantics on the CPU.
//!
//! `tensor` holds strided tensors and their views, `random` torch's CPU generator, `simd` the vector kernels,
//! `ops` the operations by family, `inputs` the drawing of a graph's inputs.

pub mod error;
pub mod inputs;
pub mod ops;
pub mod random;
pub(crate) mod simd;
pub mod tensor;

pub use error::{Result, TensorError};
pub use tensor::{Arg, Scalar, Tensor};
