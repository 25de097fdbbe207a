//! Fetching what comes next from memory while the current lanes are computed.
//!
//! A core can wait for about a dozen cache lines at once, so requests are handed out a few at a time between the
//! kernels of a group, the longer ones cut into pieces: memory and arithmetic then run side by side, not in turns.

/// Ranges that wait to be requested.
const WAITING: usize = 16;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines requested at once, at most: about twice what a core can wait for.
const MOST: usize = 32;

#[derive(Debug)]
pub(super) struct Prefetch {
    ranges: [(usize, usize); WAITING],
    count: usize,
    /// Lines to request at each step.
    quota: usize,
}

impl Prefetch {
    pub(super) fn new() -> Prefetch {
        Prefetch { ranges: [(0, 0); WAITING], count: 0, quota: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Asks for `bytes` at an address, which need not be valid.
    pub(super) fn push(&mut self, start: *const u8, bytes: usize) {
        if self.count < WAITING {
            let start = start.addr();
            self.ranges[self.count] = (start & !(LINE - 1), start.wrapping_add(bytes));
            self.count += 1;
        }
    }

    /// So many steps follow: the waiting lines are spread over them.
    pub(super) fn spread(&mut self, steps: usize) {
        let ranges = &self.ranges[..self.count];
        let lines: usize =
            ranges.iter().map(|(at, end)| end.wrapping_sub(*at).div_ceil(LINE)).sum();
        self.quota = lines.div_ceil(steps.max(1)).min(MOST);
    }

    /// Requests some of the waiting lines, the oldest ranges first.
    #[inline]
    pub(super) fn step(&mut self) {
        if self.count > 0 {
            self.request_some();
        }
    }

    fn request_some(&mut self) {
        let mut left = self.quota;
        let mut first = 0;
        while first < self.count && left > 0 {
            let (at, end) = &mut self.ranges[first];
            while *at < *end && left > 0 {
                request(*at);
                *at = at.wrapping_add(LINE);
                left -= 1;
            }
            if *at >= *end {
                first += 1;
            }
        }
        if first > 0 {
            self.ranges.copy_within(first..self.count, 0);
            self.count -= first;
        }
    }
}

#[inline(always)]
fn request(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_asked_for_once_and_in_order() {
        let mut queue = Prefetch::new();
        queue.push(std::ptr::without_provenance(4100), 3 * 64);
        queue.push(std::ptr::without_provenance(1 << 20), 40 * 64);
        queue.spread(2);
        assert_eq!(queue.quota, 22);
        queue.step();
        // Four lines of the first range, which starts inside a line; the rest from the second.
        assert_eq!(queue.count, 1);
        assert_eq!(queue.ranges[0].0, (1 << 20) + 18 * 64);
        queue.step();
        assert_eq!(queue.count, 0);
        (0..100).for_each(|i| queue.push(std::ptr::without_provenance(i * 4096), 64));
        assert_eq!(queue.count, WAITING);
    }
}
