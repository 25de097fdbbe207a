//! Work over chunks of an output, on all threads of the current pool.
//!
//! Chunk sizes depend on the data alone, so results do not depend on the number of threads.

use crate::thread_pool::{run_tasks, threads};
use std::marker::PhantomData;

/// Elements below which another thread costs more than it brings.
pub const GRAIN: usize = 32 * 1024;

/// As [`run_tasks`], on as many threads as there are.
pub fn for_each_task(tasks: usize, work: impl Fn(usize, usize) + Sync) {
    run_tasks(tasks, threads(), &work);
}

/// Calls `work(index, chunk)` for each chunk of `out`; serially where there is little to do.
pub fn for_each_chunk<T: Send>(
    out: &mut [T],
    chunk: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    for_each_weighted_chunk(out, chunk, 1, work);
}

/// As `for_each_chunk`, where each element of `out` stands for `weight` elements of work.
pub fn for_each_weighted_chunk<T: Send>(
    out: &mut [T],
    chunk: usize,
    weight: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    let chunk = chunk.max(1);
    let total = out.len();
    if total <= chunk || total.saturating_mul(weight) < 2 * GRAIN {
        out.chunks_mut(chunk).enumerate().for_each(|(i, piece)| work(i, piece));
        return;
    }
    // Threads take several small chunks at a time.
    let together = (GRAIN / 2 / chunk.saturating_mul(weight)).max(1);
    let chunks = total.div_ceil(chunk);
    let shared = Shared::new(out);
    for_each_task(chunks.div_ceil(together), |task, _| {
        for index in task * together..chunks.min((task + 1) * together) {
            let start = index * chunk;
            // SAFETY: every chunk is visited by one task, once.
            work(index, unsafe { shared.slice(start, chunk.min(total - start)) });
        }
    });
}

/// Elements that several threads write at once, each its own.
#[derive(Debug, Clone, Copy)]
pub struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    elements: PhantomData<&'a mut [T]>,
}

// SAFETY: whoever takes a slice promises that nobody else has any of it.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// Lends the elements out.
    pub fn new(elements: &'a mut [T]) -> Self {
        Shared { start: elements.as_mut_ptr(), len: elements.len(), elements: PhantomData }
    }

    /// Some of the elements, for writing.
    ///
    /// # Safety
    /// While the slice is used, no other slice of these elements overlaps it.
    #[expect(clippy::mut_from_ref, reason = "the caller promises that slices do not overlap")]
    pub unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "a slice out of bounds");
        // SAFETY: inside the elements; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}
