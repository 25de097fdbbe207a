//! Runs a tape: one program at a time, over scalar registers, an arena and chunk-sized slots.

mod access;
mod blocks;
mod group;
mod prefetch;
mod prepared;
mod reach;
mod steps;
mod strided;

use super::fault::{Fault, FaultKind};
use super::group::CHUNK;
use super::memory::Memory;
#[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
use super::native::Code;
use super::options::RunOptions;
use super::registers::SReg;
use super::tape::Tape;
use super::track::Tracker;
use crate::ir::Loc;
use crate::lane::Lane;
use passnet_cpu::Scratch;
use prefetch::Prefetch;
use prepared::Prepared;

type Result<T> = std::result::Result<T, Box<Fault>>;

/// One thread's working state.
pub(super) struct Machine<'t, 'm> {
    pub(super) tape: &'t Tape,
    pub(super) memory: &'t Memory<'m>,
    pub(super) regs: Vec<u64>,
    arena: Scratch,
    slots: Scratch,
    pub(super) program: [u32; 3],
    iterations: u64,
    max_iterations: u64,
    pub(super) tracker: Option<&'t mut Tracker>,
    /// Scratch of the running group, kept to avoid allocation.
    pointers: Vec<*mut u8>,
    prepared: Vec<Prepared>,
    prefetch: Prefetch,
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) code: Option<&'t Code>,
    /// What the machine code of a group finds behind its argument pointer.
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) words: Vec<u64>,
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) interprets: bool,
    /// Groups that ran as machine code.
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) native_runs: u64,
    /// Where each access of the tape was when its group last ran.
    last_base: Vec<*mut u8>,
}

impl<'t, 'm> Machine<'t, 'm> {
    pub(super) fn new(
        tape: &'t Tape,
        memory: &'t Memory<'m>,
        tracker: Option<&'t mut Tracker>,
        options: RunOptions,
    ) -> Self {
        Machine {
            tape,
            memory,
            regs: tape.image.clone(),
            // 64 bytes to spare so that the base can be aligned to a cache line.
            arena: Scratch::of(tape.arena_bytes / 8 + 16),
            slots: Scratch::of(tape.slots * CHUNK + 16),
            program: [0; 3],
            iterations: 0,
            max_iterations: options.iterations,
            tracker,
            pointers: Vec::new(),
            prepared: Vec::new(),
            prefetch: Prefetch::new(),
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            code: None,
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            words: Vec::new(),
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            interprets: options.interpret,
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            native_runs: 0,
            last_base: vec![std::ptr::null_mut(); tape.accesses],
        }
    }

    /// Lets groups run as this machine code.
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) fn with_code(mut self, code: Option<&'t Code>) -> Self {
        self.code = code;
        self.words = vec![0; code.map_or(0, |code| code.words)];
        self
    }

    pub(super) fn run(&mut self, program: [u32; 3]) -> Result<()> {
        self.program = program;
        self.iterations = 0;
        self.prefetch.clear();
        for (axis, id) in program.into_iter().enumerate() {
            self.regs[axis] = u64::from(id);
        }
        let tape = self.tape;
        self.steps(&tape.steps)
    }

    /// After the last program: what was stored past the caches is there for everybody.
    pub(super) fn settle(&self) {
        #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
        if let Some(code) = self.code {
            code.settle(self.native_runs);
        }
    }

    pub(super) fn int(&self, reg: SReg) -> i64 {
        self.regs[reg.0 as usize] as i64
    }

    pub(super) fn reg_ptr(&self, reg: SReg) -> *const u8 {
        std::ptr::from_ref(&self.regs[reg.0 as usize]).cast()
    }

    /// Pointer into the arena; `offset` comes from the lowering, which sized the arena.
    pub(super) fn arena(&mut self, offset: usize) -> *mut u8 {
        let base = self.arena.as_mut_ptr().cast::<u8>();
        let skew = base.align_offset(64);
        base.wrapping_add(skew + offset)
    }

    pub(super) fn slot(&mut self, slot: usize) -> *mut u8 {
        let base = self.slots.as_mut_ptr().cast::<u8>();
        let skew = base.align_offset(64);
        base.wrapping_add(skew + slot * CHUNK * 8)
    }

    pub(super) fn fault(&self, kind: FaultKind, loc: Loc) -> Box<Fault> {
        Box::new(Fault { kind, loc, program: self.program })
    }
}

/// One lane as a register holds it.
pub(super) fn read_lane(at: *const u8, lane: Lane) -> u64 {
    // SAFETY: callers pass a pointer to a whole lane of this type; alignment is not assumed.
    unsafe {
        match lane {
            Lane::F32 => u64::from(at.cast::<u32>().read_unaligned()),
            Lane::F64 | Lane::I64 => at.cast::<u64>().read_unaligned(),
            Lane::I32 => i64::from(at.cast::<i32>().read_unaligned()) as u64,
            Lane::B8 => u64::from(at.read()),
        }
    }
}

fn write_lane(at: *mut u8, bits: u64, lane: Lane) {
    // SAFETY: callers pass a pointer to a whole lane of this type.
    unsafe {
        match lane {
            Lane::F32 | Lane::I32 => at.cast::<u32>().write_unaligned(bits as u32),
            Lane::F64 | Lane::I64 => at.cast::<u64>().write_unaligned(bits),
            Lane::B8 => at.write(bits as u8),
        }
    }
}

fn fill(at: *mut u8, bits: u64, lane: Lane, lanes: usize) {
    // SAFETY: callers pass a block of `lanes` aligned lanes.
    unsafe {
        match lane {
            Lane::F32 | Lane::I32 => {
                std::slice::from_raw_parts_mut(at.cast::<u32>(), lanes).fill(bits as u32)
            }
            Lane::F64 | Lane::I64 => {
                std::slice::from_raw_parts_mut(at.cast::<u64>(), lanes).fill(bits)
            }
            Lane::B8 => std::slice::from_raw_parts_mut(at, lanes).fill(bits as u8),
        }
    }
}
