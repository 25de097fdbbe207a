//! Bookkeeping of the checked mode: which bytes were written, by which program, and whether readers found data.

use super::fault::{Fault, FaultKind};
use super::run::{Machine, Result};
use crate::ir::Loc;
use crate::types::Elem;

/// No program wrote this byte in the current launch.
const NOBODY: u32 = 0;

/// State of one buffer.
#[derive(Debug, Clone)]
pub(crate) struct BufferState {
    /// One bit a byte: holds defined data.
    pub(crate) defined: Vec<u64>,
    /// Last writer of each byte in this launch, plus one.
    writer: Vec<u32>,
    pub(crate) elem_size: usize,
}

impl BufferState {
    pub(crate) fn new(bytes: usize, elem_size: usize, defined: bool) -> BufferState {
        let word = if defined { u64::MAX } else { 0 };
        BufferState {
            defined: vec![word; bytes.div_ceil(64)],
            writer: Vec::new(),
            elem_size: elem_size.max(1),
        }
    }

    fn is_defined(&self, byte: usize) -> bool {
        self.defined.get(byte / 64).is_some_and(|w| w >> (byte % 64) & 1 != 0)
    }

    fn define(&mut self, byte: usize) {
        if let Some(w) = self.defined.get_mut(byte / 64) {
            *w |= 1 << (byte % 64);
        }
    }

    pub(crate) fn define_range(&mut self, from: usize, to: usize) {
        for byte in from..to {
            self.define(byte);
        }
    }

    /// First byte of a range that holds no defined data.
    pub(crate) fn first_undefined(&self, from: usize, to: usize) -> Option<usize> {
        (from..to).find(|&b| !self.is_defined(b))
    }
}

/// Something worth reporting that does not stop the run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    pub(crate) kind: FaultKind,
    pub(crate) loc: Loc,
    pub(crate) program: [u32; 3],
}

/// Observations kept: one for each kind and place is enough.
const MAX_OBSERVATIONS: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub(crate) buffers: Vec<BufferState>,
    pub(crate) observations: Vec<Observation>,
    grid: [u32; 3],
}

impl Tracker {
    /// A new launch begins: writers of earlier launches no longer race.
    pub(crate) fn begin(&mut self, grid: [u32; 3], lens: &[usize]) {
        self.grid = grid;
        for (state, &len) in self.buffers.iter_mut().zip(lens) {
            state.writer.clear();
            state.writer.resize(len, NOBODY);
        }
    }

    fn linear(&self, program: [u32; 3]) -> u32 {
        let [x, y, z] = program.map(u64::from);
        let [gx, gy, _] = self.grid.map(u64::from);
        ((z * gy + y) * gx + x) as u32
    }

    fn observe(&mut self, kind: FaultKind, loc: Loc, program: [u32; 3]) {
        let same = |o: &Observation| {
            o.loc == loc && std::mem::discriminant(&o.kind) == std::mem::discriminant(&kind)
        };
        if self.observations.len() < MAX_OBSERVATIONS && !self.observations.iter().any(same) {
            self.observations.push(Observation { kind, loc, program });
        }
    }

    fn read(&mut self, buffer: usize, from: usize, to: usize, loc: Loc, program: [u32; 3]) {
        let Some(state) = self.buffers.get(buffer) else { return };
        if let Some(byte) = state.first_undefined(from, to) {
            let element = (byte / state.elem_size) as i64;
            self.observe(FaultKind::Uninitialized { buffer, element }, loc, program);
        }
    }

    fn write(&mut self, buffer: usize, from: usize, changed: &[bool], loc: Loc, program: [u32; 3]) {
        let me = self.linear(program) + 1;
        let Some(state) = self.buffers.get_mut(buffer) else { return };
        let mut race = None;
        for (i, &differs) in changed.iter().enumerate() {
            let byte = from + i;
            state.define(byte);
            let Some(writer) = state.writer.get_mut(byte) else { continue };
            if *writer != NOBODY && *writer != me && differs && race.is_none() {
                race = Some((byte / state.elem_size, *writer - 1));
            }
            *writer = me;
        }
        if let Some((element, other)) = race {
            self.observe(FaultKind::Race { buffer, element: element as i64, other }, loc, program);
        }
    }
}

impl Machine<'_, '_> {
    pub(super) fn track(
        &mut self,
        buffer: usize,
        address: i64,
        bytes: usize,
        _store: bool,
        loc: Loc,
    ) -> Result<()> {
        let (_, offset) = self.memory.locate(address);
        let program = self.program;
        if let Some(t) = &mut self.tracker {
            t.read(buffer, offset as usize, offset as usize + bytes, loc, program);
        }
        Ok(())
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
            let changed: Vec<bool> = before.iter().zip(after).map(|(a, b)| a != b).collect();
            t.write(buffer, offset as usize, &changed, loc, program);
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
