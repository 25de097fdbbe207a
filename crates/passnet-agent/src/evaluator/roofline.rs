//! How fast could it be? The time this machine takes to move so many bytes once.
//!
//! Measured with plain copies of that size, on all cores where that is faster, so caches count as they do for a pass.

use rayon::prelude::*;
use std::collections::BTreeMap;
use std::time::Instant;

/// Sizes are measured in powers of two; larger ones are as the largest.
const SMALLEST: u32 = 12;
const LARGEST: u32 = 27;
/// Copies of one size; the fastest counts.
const ROUNDS: usize = 12;
const CHUNK: usize = 256 << 10;

/// Seconds per byte by size.
#[derive(Debug, Default)]
pub(super) struct Roofline {
    measured: BTreeMap<u32, f64>,
}

impl Roofline {
    /// Milliseconds to read and write `bytes` in all.
    pub(super) fn milliseconds(&mut self, bytes: u64) -> f64 {
        let size = bytes.max(1).ilog2().clamp(SMALLEST, LARGEST);
        let per_byte = *self.measured.entry(size).or_insert_with(|| measure(size));
        bytes as f64 * per_byte * 1e3
    }
}

fn measure(size: u32) -> f64 {
    let half = (1usize << size) / 2;
    let from = vec![1u8; half];
    let mut to = vec![0u8; half];
    let mut best = f64::INFINITY;
    for round in 0..ROUNDS {
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
    best.max(1e-9) / (2 * half) as f64
}
