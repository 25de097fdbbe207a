//! The memory a launch may touch: buffers lent by the caller, addressed by one flat 64-bit space.
//!
//! Buffer `i` begins at address `(i + 1) << 40`, so an address names its buffer, arithmetic on addresses is plain,
//! and no buffer reaches another: each may have at most 2^39 bytes.

use crate::plan::MAX_BUFFER_BYTES;
use smallvec::SmallVec;
use std::marker::PhantomData;

const SHIFT: u32 = 40;

/// Memory lent by address, for callers whose buffers may be shared or overlap.
#[derive(Debug, Clone, Copy)]
pub struct LentBuffer {
    /// The first byte.
    pub start: *mut u8,
    /// How many bytes from there on.
    pub bytes: usize,
}

impl LentBuffer {
    /// A buffer without bytes.
    pub const EMPTY: LentBuffer =
        LentBuffer { start: std::ptr::NonNull::dangling().as_ptr(), bytes: 0 };
}

/// Buffers lent to a run. The borrow lasts as long as the value.
#[derive(Debug)]
pub struct Memory<'m> {
    buffers: Vec<(*mut u8, usize)>,
    /// Whether two of them share bytes: then nothing stands in for anything.
    pub(crate) overlapping: bool,
    lent: PhantomData<&'m mut [u8]>,
}

// SAFETY: the buffers are exclusively borrowed for `'m`; the executor hands them to several threads only for
// launches whose programs it has proved to write disjoint bytes that no other program reads.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above; shared use goes through `resolve`, whose callers uphold the same proof.
unsafe impl Sync for Memory<'_> {}

impl<'m> Memory<'m> {
    /// The buffers of a plan, by number.
    pub fn new(buffers: Vec<&'m mut [u8]>) -> Memory<'m> {
        Memory::of(buffers.into_iter().map(|b| (b.as_mut_ptr(), b.len())))
    }

    /// # Safety
    /// Each buffer must stay valid for `'m` and nobody else may write it; those that the run may write nobody
    /// else may read.
    pub(crate) unsafe fn lent(buffers: &[LentBuffer]) -> Memory<'m> {
        Memory::of(buffers.iter().map(|b| (b.start, b.bytes)))
    }

    fn of(buffers: impl Iterator<Item = (*mut u8, usize)>) -> Memory<'m> {
        let buffers: Vec<(*mut u8, usize)> =
            buffers.map(|(start, len)| (start, len.min(MAX_BUFFER_BYTES))).collect();
        let filled = buffers.iter().filter(|b| b.1 > 0);
        let mut ranges: SmallVec<[(usize, usize); 8]> =
            filled.map(|b| (b.0.addr(), b.0.addr() + b.1)).collect();
        ranges.sort_unstable();
        let overlapping = ranges.windows(2).any(|w| w[1].0 < w[0].1);
        Memory { buffers, overlapping, lent: PhantomData }
    }

    pub(crate) fn address(buffer: usize, byte_offset: i64) -> i64 {
        (((buffer as i64) + 1) << SHIFT).wrapping_add(byte_offset)
    }

    /// The buffer an address belongs to and the offset in it; pointers slightly before a buffer count as its own.
    #[inline]
    pub(crate) fn locate(&self, address: i64) -> (usize, i64) {
        let index = (address.wrapping_add(1 << (SHIFT - 1)) >> SHIFT) - 1;
        let index = index.clamp(0, self.buffers.len().max(1) as i64 - 1);
        (index as usize, address.wrapping_sub((index + 1) << SHIFT))
    }

    /// A pointer to bytes `[address + low, address + high)`, if all of them lie in one buffer.
    #[inline]
    pub(crate) fn resolve(&self, address: i64, low: i64, high: i64) -> Option<(usize, *mut u8)> {
        let (index, offset) = self.locate(address.wrapping_add(low));
        let &(start, len) = self.buffers.get(index)?;
        let size = high.checked_sub(low)?;
        let end = offset.checked_add(size)?;
        // A negative size would put the end before the first byte, and so inside whatever that is.
        if offset < 0 || size < 0 || end > len as i64 {
            return None;
        }
        // SAFETY: `offset <= end <= len`, so this is inside the buffer or one past its end.
        let first = unsafe { start.add(offset as usize) };
        // Lane 0, which itself may lie outside: whoever follows the pointer adds at least `low`.
        Some((index, first.wrapping_offset((low as isize).wrapping_neg())))
    }

    pub(crate) fn len(&self, buffer: usize) -> usize {
        self.buffers.get(buffer).map_or(0, |b| b.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_of_one_buffer_are_resolved() {
        let (mut first, mut second) = ([0u8; 16], [0u8; 8]);
        let memory = Memory::new(vec![&mut first, &mut second]);
        let at = |buffer, offset| Memory::address(buffer, offset);
        let found = |address, low, high| memory.resolve(address, low, high).map(|found| found.0);
        assert_eq!(found(at(0, 0), 0, 16), Some(0));
        assert_eq!(found(at(1, 4), -4, 4), Some(1));
        assert_eq!(found(at(0, 16), 0, 0), Some(0));
        for (address, low, high) in [
            (at(0, 0), 0, 17),
            (at(0, 12), 0, 8),
            (at(0, -1), 0, 1),
            (at(1, 0), -1, 1),
            (at(2, 0), 0, 1),
            // Sizes below zero, and numbers that wrap around.
            (at(0, 8), 0, -4),
            (at(0, 8), 4, -4),
            (at(0, 15), 8, -8),
            (at(0, 0), 0, i64::MIN),
            (at(0, 0), i64::MIN, i64::MAX),
            (at(0, 0), 0, i64::MAX),
            (i64::MIN, 0, 1),
            (i64::MAX, 0, 1),
        ] {
            assert_eq!(found(address, low, high), None, "{address:#x} {low} {high}");
        }
    }

    /// The pointer is that of lane 0, wherever that is; with `low` added it is inside.
    #[test]
    fn pointers_are_those_of_lane_zero() {
        let mut bytes = [1u8, 2, 3, 4];
        let start = bytes.as_mut_ptr().addr();
        let memory = Memory::new(vec![&mut bytes]);
        let (_, lane) = memory.resolve(Memory::address(0, -5), 6, 9).unwrap();
        assert_eq!(lane.wrapping_add(6).addr(), start + 1);
    }
}
