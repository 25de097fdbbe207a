//! The engine that runs graphs with PyTorch.

pub mod compile;
