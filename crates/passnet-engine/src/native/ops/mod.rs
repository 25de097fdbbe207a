//! Operations by family.

pub mod attention;
pub mod composite;
pub mod conv;
pub mod creation;
pub mod einsum;
pub mod fft;
pub mod fold;
pub(crate) mod gemm;
pub mod indexing;
pub mod linalg;
pub mod loss;
pub mod matmul;
pub mod matrix_norm;
pub mod movement;
pub mod norm;
pub mod pointwise;
pub mod pool;
pub mod recurrent;
pub mod reduce;
pub mod resample;
pub mod stft;
pub mod unpool;
pub mod windows;
