//! Torch's CPU generator, bit for bit: the same seed gives the same numbers as PyTorch on an x86-64 machine with AVX2.

mod box_muller;
mod generator;
mod mersenne_twister;

pub(crate) use generator::BLOCK;
pub use generator::Generator;
