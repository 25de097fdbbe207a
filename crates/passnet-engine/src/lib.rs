//! Running graphs. `native` is a CPU tensor library with PyTorch's semantics, in process, with no Python.

pub mod native;
