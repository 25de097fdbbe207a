//! What a program reads and writes in buffers: where its pointers may reach, scalars, and what the bookkeeping is told.

use super::{Machine, Result, read_lane};
use crate::exec::fault::{Fault, FaultKind};
use crate::exec::simd;
use crate::exec::track::Write;
use crate::ir::Loc;
use crate::lane::Lane;
use crate::types::Elem;
use passnet_cpu::Isa;

impl Machine<'_, '_> {
    /// Like [`Memory::resolve`](crate::exec::Memory::resolve), for bytes in the buffer that the pointer belongs to; where that is not known, in some
    /// buffer of this launch. What was proved about a launch (what it writes, that its programs keep apart) holds only
    /// while no pointer wanders from one buffer into another.
    #[inline]
    pub(in crate::exec) fn reach(
        &self,
        own: Option<usize>,
        address: i64,
        low: i64,
        high: i64,
    ) -> Option<(usize, *mut u8)> {
        let found = self.memory.resolve(address, low, high)?;
        let allowed = match own {
            Some(own) => own == found.0,
            None => self.tape.buffers.contains(&found.0),
        };
        allowed.then_some(found)
    }

    pub(super) fn load_scalar(
        &mut self,
        (address, own): (i64, Option<usize>),
        elem: Elem,
        loc: Loc,
    ) -> Result<u64> {
        let size = elem.size();
        let Some((buffer, ptr)) = self.reach(own, address, 0, size as i64) else {
            return Err(self.out_of_bounds(address, 0, elem, false, loc));
        };
        self.track(buffer, address, size, loc);
        let mut word = [0u64; 1];
        let f = simd::load_row(Isa::Base, elem);
        // SAFETY: the element is inside a buffer; the word is large enough for one lane.
        unsafe { f(word.as_mut_ptr().cast(), ptr, 0, 1) };
        Ok(read_lane(word.as_mut_ptr().cast(), Lane::of_elem(elem)))
    }

    pub(super) fn store_scalar(
        &mut self,
        (address, own): (i64, Option<usize>),
        bits: u64,
        elem: Elem,
        loc: Loc,
    ) -> Result<()> {
        let size = elem.size();
        let Some((buffer, ptr)) = self.reach(own, address, 0, size as i64) else {
            return Err(self.out_of_bounds(address, 0, elem, true, loc));
        };
        let f = simd::store_row(Isa::Base, elem);
        let word = [bits; 1];
        let before = self.before_write(ptr, size);
        // SAFETY: the element is inside a buffer; the low bytes of the word are the lane.
        unsafe { f(ptr, word.as_ptr().cast(), size as isize, 1) };
        self.after_write(buffer, address, ptr, size, before, loc)
    }

    /// Bytes are read in the plain way.
    pub(super) fn track(&mut self, buffer: usize, address: i64, bytes: usize, loc: Loc) {
        let (_, offset) = self.memory.locate(address);
        let program = self.program;
        if let Some(t) = &mut self.tracker {
            t.read(buffer, offset as usize, offset as usize + bytes, (loc, program));
        }
    }

    /// Bytes are read by an atomic operation.
    pub(super) fn track_atomic(&mut self, buffer: usize, address: i64, bytes: usize, loc: Loc) {
        let (_, offset) = self.memory.locate(address);
        let program = self.program;
        if let Some(t) = &mut self.tracker {
            t.look(buffer, offset as usize, offset as usize + bytes, (loc, program));
        }
    }

    pub(super) fn after_atomic(
        &mut self,
        buffer: usize,
        address: i64,
        bytes: usize,
        changed: bool,
        loc: Loc,
    ) {
        let (_, offset) = self.memory.locate(address);
        let program = self.program;
        if let Some(t) = &mut self.tracker {
            let range = (offset as usize, offset as usize + bytes);
            t.write_atomically(buffer, range, changed, (loc, program));
        }
    }

    /// The bytes about to be overwritten, when someone wants to know whether they change.
    pub(super) fn before_write(&self, ptr: *const u8, bytes: usize) -> Vec<u8> {
        if self.tracker.is_none() {
            return Vec::new();
        }
        // SAFETY: the caller has resolved `bytes` bytes at `ptr` inside a buffer.
        unsafe { std::slice::from_raw_parts(ptr, bytes) }.to_vec()
    }

    pub(super) fn after_write(
        &mut self,
        buffer: usize,
        address: i64,
        ptr: *const u8,
        bytes: usize,
        before: Vec<u8>,
        loc: Loc,
    ) -> Result<()> {
        let (_, offset) = self.memory.locate(address);
        let program = self.program;
        if let Some(t) = &mut self.tracker {
            // SAFETY: as above.
            let after = unsafe { std::slice::from_raw_parts(ptr, bytes) };
            let write = Write { buffer, from: offset as usize, before: &before, after };
            t.write(&write, (loc, program));
        }
        Ok(())
    }

    pub(super) fn out_of_bounds(
        &self,
        address: i64,
        lane: usize,
        elem: Elem,
        store: bool,
        loc: Loc,
    ) -> Box<Fault> {
        let (buffer, offset) = self.memory.locate(address);
        let size = elem.size() as i64;
        let kind = FaultKind::OutOfBounds {
            store,
            buffer,
            element: offset.div_euclid(size),
            len: self.memory.len(buffer) as i64 / size,
            lane,
            elem,
        };
        self.fault(kind, loc)
    }
}
