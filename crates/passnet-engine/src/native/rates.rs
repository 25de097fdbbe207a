//! What this machine can do, measured.

use super::Result;
use super::ops::matmul;
use super::tensor::{Scalar, Tensor};
use passnet_graph::DType;
use rayon::prelude::*;
use std::time::Instant;

/// Copies of one size; the fastest counts.
const COPIES: usize = 12;
const CHUNK: usize = 256 << 10;
/// Large enough that no cache holds it.
const LARGE: u64 = 128 << 20;
/// Rows and columns of the matrices that are multiplied.
const SIDE: usize = 512;
const PRODUCTS: usize = 3;

/// What this machine reaches at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Bytes a second of a large copy, read and written.
    pub bandwidth: f64,
    /// Floating-point operations a second of a large float32 matrix product.
    pub peak: f64,
}

impl Rates {
    /// Copies and multiplies now, on all cores.
    pub fn measure() -> Result<Self> {
        Ok(Rates {
            bandwidth: LARGE as f64 / copy_seconds(LARGE),
            peak: flops_per_second(DType::Float32)?,
        })
    }
}

/// Seconds to move `bytes` in all, half of them read and half written, on all cores where that is faster. What fits
/// into a cache is copied there, as it is for a pass.
pub fn copy_seconds(bytes: u64) -> f64 {
    let half = usize::try_from(bytes / 2).unwrap_or(0).max(1);
    let from = vec![1u8; half];
    let mut to = vec![0u8; half];
    let mut best = f64::INFINITY;
    for round in 0..COPIES {
        let started = Instant::now();
        match round % 2 {
            0 => to.copy_from_slice(&from),
            _ => to
                .par_chunks_mut(CHUNK)
                .zip(from.par_chunks(CHUNK))
                .for_each(|(to, from)| to.copy_from_slice(from)),
        }
        std::hint::black_box(&mut to);
        best = best.min(started.elapsed().as_secs_f64());
    }
    // A clock that stood still would make everything look slow.
    best.max(1e-9)
}

/// Multiplications and additions a second of a large matrix product.
pub fn flops_per_second(dtype: DType) -> Result<f64> {
    let matrix = Tensor::full(&[SIDE, SIDE], Scalar::Float(0.5), dtype)?;
    let mut best = f64::INFINITY;
    for _ in 0..PRODUCTS {
        let started = Instant::now();
        matmul::mm(&matrix, &matrix)?;
        best = best.min(started.elapsed().as_secs_f64());
    }
    Ok(2.0 * (SIDE as f64).powi(3) / best.max(1e-9))
}
