//! Chunk kernels: one operation over up to a few thousand lanes, compiled for several instruction sets.
//!
//! Every kernel exists for each [`passnet_cpu::Isa`]; all variants give the same bits, because the same fused operations
//! are used everywhere.

mod access;
mod arith;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod map;
mod reduce;
mod select;
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
mod transpose;

pub(crate) use access::{LoadRow, StoreRow, load_row, store_row};
pub(crate) use map::Kernel;
pub(crate) use reduce::{DotKernel, ReduceKernel, ScanKernel, dot, partials, reduce, scan};
pub(crate) use select::{
    Mode, binary, bitcast, cast, compare, fma, narrow, select, sigmoid, unary,
};
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
pub(crate) use transpose::{Columns, load_columns, store_columns};
