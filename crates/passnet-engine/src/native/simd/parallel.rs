//! Work over chunks of an output, on all threads of the current pool.
//!
//! Chunk sizes depend on the data alone, so results do not depend on the number of threads.

use crate::native::tensor::element::Plain;
use rayon::prelude::*;

/// Elements below which another thread costs more than it brings.
pub(crate) const GRAIN: usize = 32 * 1024;

/// Calls `work(index, chunk)` for each chunk of `out`; serially where there is little to do.
pub(crate) fn for_each_chunk<T: Plain>(
    out: &mut [T],
    chunk: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    for_each_weighted_chunk(out, chunk, 1, work);
}

/// As `for_each_chunk`, where each element of `out` stands for `weight` elements of work.
pub(crate) fn for_each_weighted_chunk<T: Plain>(
    out: &mut [T],
    chunk: usize,
    weight: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    let chunk = chunk.max(1);
    if out.len() <= chunk
        || out.len().saturating_mul(weight) < 2 * GRAIN
        || rayon::current_num_threads() == 1
    {
        out.chunks_mut(chunk).enumerate().for_each(|(i, piece)| work(i, piece));
    } else {
        out.par_chunks_mut(chunk).enumerate().for_each(|(i, piece)| work(i, piece));
    }
}
