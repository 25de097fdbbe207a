//! Space for materialised blocks, reused once nothing needs them.

use std::collections::BTreeMap;

/// Blocks start on cache lines.
const ALIGN: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    end: usize,
    /// Offset, size and number of values in each block.
    blocks: Vec<(usize, usize, u32)>,
    /// Free offsets by size.
    free: BTreeMap<usize, Vec<usize>>,
    /// Blocks to free when the open group has run.
    after_group: Vec<usize>,
    /// Blocks to free when the loop depth falls to the given one.
    after_loop: Vec<(u16, usize)>,
}

impl Arena {
    /// A block of at least `bytes`, with no value in it yet.
    pub(super) fn allocate(&mut self, bytes: usize) -> (usize, usize) {
        let size = bytes.next_multiple_of(ALIGN);
        match self.free.get_mut(&size).and_then(Vec::pop) {
            Some(offset) => {
                self.blocks.push((offset, size, 0));
                (self.blocks.len() - 1, offset)
            }
            None => self.allocate_unused(bytes),
        }
    }

    /// A block that nothing has used before: whoever writes it may run along with what was lowered already.
    pub(super) fn allocate_unused(&mut self, bytes: usize) -> (usize, usize) {
        let size = bytes.next_multiple_of(ALIGN);
        let offset = self.end;
        self.end += size;
        self.blocks.push((offset, size, 0));
        (self.blocks.len() - 1, offset)
    }

    pub(super) fn high_water(&self) -> usize {
        self.end
    }

    /// One more value lives in the block.
    pub(super) fn retain(&mut self, block: usize) {
        self.blocks[block].2 += 1;
    }

    /// Values that live in the block.
    pub(super) fn values(&self, block: usize) -> u32 {
        self.blocks[block].2
    }

    /// The value defined at `depth` is dead; `now` is the current loop depth.
    pub(super) fn release(&mut self, block: usize, depth: u16, now: u16, group_open: bool) {
        if now > depth {
            self.after_loop.push((depth, block));
        } else if group_open {
            self.after_group.push(block);
        } else {
            self.drop_value(block);
        }
    }

    fn drop_value(&mut self, block: usize) {
        let (offset, size, values) = &mut self.blocks[block];
        *values = values.saturating_sub(1);
        if *values == 0 && *size > 0 {
            self.free.entry(*size).or_default().push(*offset);
            // A block is freed once.
            *size = 0;
        }
    }

    pub(super) fn group_closed(&mut self) {
        for block in std::mem::take(&mut self.after_group) {
            self.drop_value(block);
        }
    }

    pub(super) fn loop_left(&mut self, depth: u16) {
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.after_loop).into_iter().partition(|(d, _)| *d >= depth);
        self.after_loop = later;
        for (_, block) in now {
            self.drop_value(block);
        }
    }
}
