//! Bookkeeping of the checked mode: which bytes were written and read, by which program, and whether readers found data.

use super::fault::{Conflict, FaultKind};
use crate::ir::Loc;

/// No program was at this byte in the current launch. Others stand for themselves as their number plus one.
const NOBODY: u32 = 0;
/// In the entry of a writer: it wrote by atomic operations only, which other such operations do not disturb.
const ATOMICALLY: u32 = 1 << 31;
/// More than one program was here.
const SEVERAL: u32 = ATOMICALLY - 1;

/// State of one buffer.
#[derive(Debug, Clone)]
pub(crate) struct BufferState {
    /// One bit a byte: holds defined data.
    pub(crate) defined: Vec<u64>,
    /// Last writer of each byte in this launch; empty until something is written.
    writer: Vec<u32>,
    /// The reader of each byte in this launch; empty until something is read, and where nothing can be written.
    reader: Vec<u32>,
    may_be_written: bool,
    len: usize,
    pub(crate) elem_size: usize,
}

impl BufferState {
    pub(crate) fn new(bytes: usize, elem_size: usize, defined: bool) -> BufferState {
        let word = if defined { u64::MAX } else { 0 };
        BufferState {
            defined: vec![word; bytes.div_ceil(64)],
            writer: Vec::new(),
            reader: Vec::new(),
            may_be_written: false,
            len: bytes,
            elem_size: elem_size.max(1),
        }
    }

    pub(crate) fn define_range(&mut self, from: usize, to: usize) {
        for (word, bits) in words(from, to) {
            if let Some(known) = self.defined.get_mut(word) {
                *known |= bits;
            }
        }
    }

    /// The opposite: what was there is of no use any more.
    pub(crate) fn forget_range(&mut self, from: usize, to: usize) {
        for (word, bits) in words(from, to) {
            if let Some(known) = self.defined.get_mut(word) {
                *known &= !bits;
            }
        }
    }

    /// First byte of a range that holds no defined data.
    pub(crate) fn first_undefined(&self, from: usize, to: usize) -> Option<usize> {
        words(from, to).find_map(|(word, bits)| {
            let missing = bits & !self.defined.get(word).copied().unwrap_or(0);
            (missing != 0).then(|| word * 64 + missing.trailing_zeros() as usize)
        })
    }
}

/// The words of a bit set that a range touches, with the bits of the range in each.
fn words(from: usize, to: usize) -> impl Iterator<Item = (usize, u64)> {
    (from / 64..to.div_ceil(64)).map(move |word| {
        let (first, last) = (from.max(word * 64) - word * 64, to.min(word * 64 + 64) - word * 64);
        let below = |bit: usize| if bit == 64 { u64::MAX } else { (1 << bit) - 1 };
        (word, below(last) & !below(first))
    })
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
    /// A new launch begins, which may write into these buffers: programs of earlier launches no longer race.
    pub(crate) fn begin(
        &mut self,
        grid: [u32; 3],
        lens: &[usize],
        written: impl Iterator<Item = usize>,
    ) {
        self.grid = grid;
        for (state, &len) in self.buffers.iter_mut().zip(lens) {
            state.writer.clear();
            state.reader.clear();
            state.may_be_written = false;
            state.len = len;
        }
        for buffer in written {
            if let Some(state) = self.buffers.get_mut(buffer) {
                state.may_be_written = true;
            }
        }
    }

    fn linear(&self, program: [u32; 3]) -> u32 {
        let [x, y, z] = program.map(u64::from);
        let [gx, gy, _] = self.grid.map(u64::from);
        (((z * gy + y) * gx + x) % u64::from(SEVERAL - 1)) as u32
    }

    fn observe(&mut self, kind: FaultKind, loc: Loc, program: [u32; 3]) {
        let same = |o: &Observation| {
            o.loc == loc && std::mem::discriminant(&o.kind) == std::mem::discriminant(&kind)
        };
        if self.observations.len() < MAX_OBSERVATIONS && !self.observations.iter().any(same) {
            self.observations.push(Observation { kind, loc, program });
        }
    }

    fn observe_race(
        &mut self,
        (buffer, byte): (usize, usize),
        how: Conflict,
        other: u32,
        (loc, program): (Loc, [u32; 3]),
    ) {
        let other = Some(other & !ATOMICALLY).filter(|&p| p != SEVERAL).map(|p| p - 1);
        let size = self.buffers.get(buffer).map_or(1, |state| state.elem_size);
        let element = (byte / size) as i64;
        self.observe(FaultKind::Race { buffer, element, how, other }, loc, program);
    }

    pub(super) fn look(&mut self, buffer: usize, from: usize, to: usize, by: (Loc, [u32; 3])) {
        let Some(state) = self.buffers.get(buffer) else { return };
        if let Some(byte) = state.first_undefined(from, to) {
            let element = (byte / state.elem_size) as i64;
            self.observe(FaultKind::Uninitialized { buffer, element }, by.0, by.1);
        }
    }

    pub(super) fn read(&mut self, buffer: usize, from: usize, to: usize, by: (Loc, [u32; 3])) {
        self.look(buffer, from, to, by);
        let me = self.linear(by.1) + 1;
        let Some(state) = self.buffers.get_mut(buffer).filter(|s| s.may_be_written) else { return };
        if state.reader.is_empty() {
            state.reader.resize(state.len, NOBODY);
        }
        for reader in state.reader.get_mut(from..to).into_iter().flatten() {
            *reader = if *reader == NOBODY || *reader == me { me } else { SEVERAL };
        }
        let written = state.writer.get(from..to).unwrap_or_default();
        let others = written.iter().position(|w| *w != NOBODY && *w & !ATOMICALLY != me);
        if let Some(at) = others {
            let other = written[at];
            self.observe_race((buffer, from + at), Conflict::ReadsWritten, other, by);
        }
    }

    pub(super) fn write(&mut self, write: &Write<'_>, by: (Loc, [u32; 3])) {
        let me = self.linear(by.1) + 1;
        let &Write { buffer, from, before, after } = write;
        let Some(state) = self.buffers.get_mut(buffer) else { return };
        let to = (from + after.len()).min(state.len);
        if state.writer.is_empty() {
            state.writer.resize(state.len, NOBODY);
        }
        state.define_range(from, to);
        let Some(writers) = state.writer.get_mut(from..to) else { return };
        // Nearly always nobody else wrote here; that question has no branches and vectorises.
        let is_mine = |all: bool, writer: &u32| all & ((*writer == NOBODY) | (*writer == me));
        let race = match writers.iter().fold(true, is_mine) {
            true => None,
            false => writers.iter().zip(before.iter().zip(after)).position(|(writer, bytes)| {
                *writer != NOBODY && *writer & !ATOMICALLY != me && bytes.0 != bytes.1
            }),
        };
        let other = race.and_then(|at| writers.get(at).map(|writer| (at, *writer)));
        writers.fill(me);
        let readers = state.reader.get(from..to).unwrap_or_default();
        let reader = readers.iter().zip(before.iter().zip(after)).enumerate().find_map(
            |(at, (reader, bytes))| {
                let is_race = *reader != NOBODY && *reader != me && bytes.0 != bytes.1;
                is_race.then_some((at, *reader))
            },
        );
        if let Some((at, other)) = other {
            self.observe_race((buffer, from + at), Conflict::WritesWritten, other, by);
        } else if let Some((at, other)) = reader {
            self.observe_race((buffer, from + at), Conflict::WritesRead, other, by);
        }
    }

    /// An atomic operation has written: it races with what others read or write in another way.
    pub(super) fn write_atomically(
        &mut self,
        buffer: usize,
        (from, to): (usize, usize),
        changed: bool,
        by: (Loc, [u32; 3]),
    ) {
        let me = self.linear(by.1) + 1;
        let Some(state) = self.buffers.get_mut(buffer) else { return };
        let to = to.min(state.len);
        if state.writer.is_empty() {
            state.writer.resize(state.len, NOBODY);
        }
        state.define_range(from, to);
        let Some(writers) = state.writer.get_mut(from..to) else { return };
        let plain = |w: &u32| *w != NOBODY && *w != me && *w & ATOMICALLY == 0;
        let written = writers.iter().position(plain).map(|at| (at, writers[at]));
        for writer in writers {
            *writer = match *writer {
                // A plain write of one's own stays one.
                own if own == me => me,
                NOBODY => me | ATOMICALLY,
                own if own == me | ATOMICALLY => own,
                _ => SEVERAL | ATOMICALLY,
            };
        }
        let readers = state.reader.get(from..to).unwrap_or_default();
        let read = readers.iter().position(|r| changed && *r != NOBODY && *r != me);
        let read = read.map(|at| (at, readers[at]));
        if let Some((at, other)) = written {
            self.observe_race((buffer, from + at), Conflict::WritesWritten, other, by);
        } else if let Some((at, other)) = read {
            self.observe_race((buffer, from + at), Conflict::WritesRead, other, by);
        }
    }
}

/// Bytes of a buffer as they were and as they are now.
pub(super) struct Write<'a> {
    pub(super) buffer: usize,
    pub(super) from: usize,
    pub(super) before: &'a [u8],
    pub(super) after: &'a [u8],
}
