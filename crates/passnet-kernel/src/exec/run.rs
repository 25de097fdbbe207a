//! Runs a tape: one program at a time, over scalar registers, an arena and chunk-sized slots.

use super::fault::{Fault, FaultKind};
use super::memory::Memory;
use super::plan_run::RunOptions;
use super::prefetch::Prefetch;
use super::strided::copy_lanes;
use super::tape::{BoundKind, Group, IntOp, SReg, Step, Tape};
use super::track::Tracker;
use crate::lane::Lane;
use crate::types::Elem;
use passnet_cpu::{Isa, Scratch};

pub(super) type Result<T> = std::result::Result<T, Box<Fault>>;

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
    pub(super) pointers: Vec<*mut u8>,
    pub(super) prepared: Vec<super::group_access::Prepared>,
    pub(super) prefetch: Prefetch,
    /// What the machine code of a group finds behind its argument pointer.
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) words: Vec<u64>,
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) interprets: bool,
    /// Groups that ran as machine code.
    #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
    pub(super) native_runs: u64,
    /// Where each access of the tape was when its group last ran.
    pub(super) last_base: Vec<*mut u8>,
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
            slots: Scratch::of(tape.slots * super::tape::CHUNK + 16),
            program: [0; 3],
            iterations: 0,
            max_iterations: options.iterations,
            tracker,
            pointers: Vec::new(),
            prepared: Vec::new(),
            prefetch: Prefetch::new(),
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            words: vec![0; tape.code.as_ref().map_or(0, |code| code.words)],
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            interprets: options.interpret,
            #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
            native_runs: 0,
            last_base: vec![std::ptr::null_mut(); tape.accesses],
        }
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
        if let Some(code) = &self.tape.code {
            super::native::settle();
            code.count(self.native_runs);
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
        base.wrapping_add(skew + slot * super::tape::CHUNK * 8)
    }

    pub(super) fn fault(&self, kind: FaultKind, loc: crate::ir::Loc) -> Box<Fault> {
        Box::new(Fault { kind, loc, program: self.program })
    }

    fn steps(&mut self, steps: &'t [Step]) -> Result<()> {
        for step in steps {
            self.step(step)?;
        }
        Ok(())
    }

    fn step(&mut self, step: &'t Step) -> Result<()> {
        match step {
            Step::Scalar { f, dst, a, b, c } => {
                let mut out = 0u64;
                // SAFETY: registers are aligned 64-bit words; the kernel touches one lane of each, and `out` is apart.
                unsafe {
                    f(
                        std::ptr::from_mut(&mut out).cast(),
                        self.reg_ptr(*a),
                        self.reg_ptr(*b),
                        self.reg_ptr(*c),
                        1,
                    )
                };
                self.regs[dst.0 as usize] = out;
            }
            Step::Int { op, dst, a, b } => {
                let (a, b) = (self.regs[a.0 as usize], self.regs[b.0 as usize]);
                self.regs[dst.0 as usize] = match op {
                    IntOp::Add => a.wrapping_add(b),
                    IntOp::Sub => a.wrapping_sub(b),
                    IntOp::Mul => a.wrapping_mul(b),
                };
            }
            Step::Move { dst, src } => self.regs[dst.0 as usize] = self.regs[src.0 as usize],
            Step::Bound { dst, base, stride, kind, size } => {
                let value = bound(self.int(*base), *stride, *kind, *size);
                self.regs[dst.0 as usize] = value as u64;
            }
            Step::Guard { base, low, high, elem, loc } => {
                let base = i128::from(self.int(*base));
                let (type_low, type_high) = elem.int_range();
                if base + i128::from(*low) < type_low || base + i128::from(*high) > type_high {
                    return Err(self.fault(FaultKind::IndexOverflow { elem: *elem }, *loc));
                }
            }
            Step::Group(group) => self.group(group)?,
            Step::LoadScalar { dst, ptr, mask, other, elem, buffer, loc } => {
                let on = mask.is_none_or(|m| self.regs[m.0 as usize] & 1 != 0);
                self.regs[dst.0 as usize] = if on {
                    self.load_scalar((self.int(*ptr), *buffer), *elem, *loc)?
                } else {
                    other.map_or(0, |o| self.regs[o.0 as usize])
                };
            }
            Step::StoreScalar { ptr, value, mask, elem, buffer, loc } => {
                if mask.is_none_or(|m| self.regs[m.0 as usize] & 1 != 0) {
                    let (address, bits) = (self.int(*ptr), self.regs[value.0 as usize]);
                    self.store_scalar((address, *buffer), bits, *elem, *loc)?;
                }
            }
            Step::Extract { dst, from, lane } => {
                let at = self.arena(*from);
                self.regs[dst.0 as usize] = read_lane(at, *lane);
            }
            Step::Fill { to, from, lane, lanes } => {
                let (at, bits) = (self.arena(*to), self.regs[from.0 as usize]);
                fill(at, bits, *lane, *lanes);
            }
            Step::CopyFull { to, from, bytes } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: both blocks lie in the arena and hold `bytes`; the lowering never overlaps two blocks.
                unsafe { std::ptr::copy(from, to, *bytes) };
            }
            Step::CopyView { to, from, size } => self.copy_view(to, from, *size),
            Step::Reduce { f, to, from, axis } => {
                self.prefetch.step();
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: blocks of the sizes the lowering allocated, in different places.
                unsafe { f(to, from, axis.outer, axis.size, axis.inner) };
            }
            Step::Scan { f, to, from, axis, reverse } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: as above.
                unsafe { f(to, from, axis.outer, axis.size, axis.inner, *reverse) };
            }
            Step::MapFull { f, to, from, lanes } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                // SAFETY: as above.
                unsafe { f(to, from, from, from, *lanes) };
            }
            Step::Dot { f, c, a, b, batch, m, n, k, lane } => {
                let (c, a, b) = (self.arena(*c), self.arena(*a), self.arena(*b));
                for i in 0..*batch {
                    let s = lane.size();
                    // SAFETY: the operands hold `batch` matrices of these sizes.
                    unsafe {
                        f(
                            c.add(i * m * n * s),
                            a.add(i * m * k * s),
                            b.add(i * k * n * s),
                            *m,
                            *n,
                            *k,
                        )
                    };
                }
            }
            Step::ArgReduce { value, index, from, order, axis, max, tie_left } => {
                let (value, index, from) =
                    (self.arena(*value), self.arena(*index), self.arena(*from));
                super::block_run::arg_reduce(value, index, from, *order, axis, *max, *tie_left);
            }
            Step::Sort { block, order, rows, size, descending } => {
                let at = self.arena(*block);
                super::block_run::sort(at, *order, *rows, *size, *descending);
            }
            Step::Histogram { to, bins, from, lane, lanes, mask } => {
                let (to, from) = (self.arena(*to), self.arena(*from));
                let mask = mask.map(|m| self.arena(m).cast_const());
                super::block_run::histogram(to, *bins, from, *lane, *lanes, mask);
            }
            Step::Gather { to, from, index, index_lane, size, axis, source, loc } => {
                let (to, from, index) = (self.arena(*to), self.arena(*from), self.arena(*index));
                if let Err(found) =
                    super::block_run::gather(to, from, index, *index_lane, *size, axis, *source)
                {
                    return Err(
                        self.fault(FaultKind::GatherIndex { index: found, size: *source }, *loc)
                    );
                }
            }
            Step::Combine(combine) => self.combine(combine)?,
            Step::Atomic(atomic) => self.atomic(atomic)?,
            Step::Assert { from, lanes, message, loc } => {
                let at = self.arena(*from);
                // SAFETY: the block holds `lanes` bytes.
                let lanes = unsafe { std::slice::from_raw_parts(at, *lanes) };
                if lanes.contains(&0) {
                    return Err(self.fault(FaultKind::Assert(message.clone()), *loc));
                }
            }
            Step::If { condition, then, otherwise } => {
                let taken = if self.regs[condition.0 as usize] & 1 != 0 { then } else { otherwise };
                self.steps(taken)?;
            }
            Step::For { low, high, step, index, body, loc } => {
                let (mut i, high, step) = (self.int(*low), self.int(*high), self.int(*step));
                if step == 0 {
                    return Err(self.fault(FaultKind::EndlessLoop, *loc));
                }
                while if step > 0 { i < high } else { i > high } {
                    self.tick(*loc)?;
                    self.regs[index.0 as usize] = i as u64;
                    self.steps(body)?;
                    match i.checked_add(step) {
                        Some(next) => i = next,
                        None => break,
                    }
                }
            }
            Step::While { condition_steps, condition, body, loc } => loop {
                self.tick(*loc)?;
                self.steps(condition_steps)?;
                if self.regs[condition.0 as usize] & 1 == 0 {
                    break;
                }
                self.steps(body)?;
            },
        }
        Ok(())
    }

    fn tick(&mut self, loc: crate::ir::Loc) -> Result<()> {
        self.iterations += 1;
        if self.iterations > self.max_iterations {
            return Err(self.fault(FaultKind::EndlessLoop, loc));
        }
        Ok(())
    }

    /// Like [`Memory::resolve`], for bytes in the buffer that the pointer belongs to; where that is not known, in some
    /// buffer of this launch. What was proved about a launch (what it writes, that its programs keep apart) holds only
    /// while no pointer wanders from one buffer into another.
    #[inline]
    pub(super) fn reach(
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

    fn load_scalar(
        &mut self,
        (address, own): (i64, Option<usize>),
        elem: Elem,
        loc: crate::ir::Loc,
    ) -> Result<u64> {
        let size = elem.size();
        let Some((buffer, ptr)) = self.reach(own, address, 0, size as i64) else {
            return Err(self.out_of_bounds(address, 0, elem, false, loc));
        };
        self.track(buffer, address, size, loc);
        let mut word = [0u64; 1];
        let f = super::simd::load_row(Isa::Base, elem);
        // SAFETY: the element is inside a buffer; the word is large enough for one lane.
        unsafe { f(word.as_mut_ptr().cast(), ptr, 0, 1) };
        Ok(read_lane(word.as_mut_ptr().cast(), Lane::of_elem(elem)))
    }

    fn store_scalar(
        &mut self,
        (address, own): (i64, Option<usize>),
        bits: u64,
        elem: Elem,
        loc: crate::ir::Loc,
    ) -> Result<()> {
        let size = elem.size();
        let Some((buffer, ptr)) = self.reach(own, address, 0, size as i64) else {
            return Err(self.out_of_bounds(address, 0, elem, true, loc));
        };
        let f = super::simd::store_row(Isa::Base, elem);
        let word = [bits; 1];
        let before = self.before_write(ptr, size);
        // SAFETY: the element is inside a buffer; the low bytes of the word are the lane.
        unsafe { f(ptr, word.as_ptr().cast(), size as isize, 1) };
        self.after_write(buffer, address, ptr, size, before, loc)
    }

    fn copy_view(
        &mut self,
        to: &super::tape::ArenaView,
        from: &super::tape::ArenaView,
        size: usize,
    ) {
        let (target, source) = (self.arena(to.offset), self.arena(from.offset));
        // SAFETY: both views stay inside their blocks, which the lowering made large enough.
        unsafe { copy_lanes(target, &to.dims, source, &from.dims, size) };
    }

    fn combine(&mut self, c: &'t super::tape::Combine) -> Result<()> {
        let axis = &c.axis;
        for outer in 0..axis.outer {
            for inner in 0..axis.inner {
                for k in 0..axis.size {
                    let row = if c.reverse { axis.size - 1 - k } else { k };
                    let at = (outer * axis.size + row) * axis.inner + inner;
                    for (i, (from, lane)) in c.inputs.iter().enumerate() {
                        let ptr = self.arena(*from).wrapping_add(at * lane.size());
                        let bits = read_lane(ptr, *lane);
                        let reg = if k == 0 { c.accumulators[i] } else { c.elements[i] };
                        self.regs[reg.0 as usize] = bits;
                    }
                    if k > 0 {
                        self.steps(&c.body)?;
                        let results: Vec<u64> =
                            c.results.iter().map(|r| self.regs[r.0 as usize]).collect();
                        for (reg, bits) in c.accumulators.iter().zip(results) {
                            self.regs[reg.0 as usize] = bits;
                        }
                    }
                    if c.scan || k + 1 == axis.size {
                        let out = if c.scan { at } else { outer * axis.inner + inner };
                        for (i, (to, lane)) in c.outputs.iter().enumerate() {
                            let bits = self.regs[c.accumulators[i].0 as usize];
                            let ptr = self.arena(*to).wrapping_add(out * lane.size());
                            write_lane(ptr, bits, *lane);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Index of the first lane where `base + stride * index` crosses zero, clamped to the block; `stride > 0`.
fn bound(base: i64, stride: i64, kind: BoundKind, size: i64) -> i64 {
    if stride == 1 && base.unsigned_abs() < 1 << 62 {
        let zero = -base;
        let value = match kind {
            BoundKind::FirstNonNegative | BoundKind::Zero => zero,
            BoundKind::FirstPositive | BoundKind::AfterZero => zero + 1,
        };
        return value.clamp(0, size);
    }
    let below = i128::from(base).wrapping_neg();
    let stride = i128::from(stride);
    let ceil = |x: i128| x.div_euclid(stride) + i128::from(x.rem_euclid(stride) != 0);
    let exact = below.rem_euclid(stride) == 0;
    let size = i128::from(size);
    let value = match kind {
        BoundKind::FirstNonNegative => ceil(below),
        BoundKind::FirstPositive => below.div_euclid(stride) + 1,
        BoundKind::Zero => {
            if exact {
                below.div_euclid(stride)
            } else {
                size
            }
        }
        BoundKind::AfterZero => {
            if exact {
                below.div_euclid(stride) + 1
            } else {
                0
            }
        }
    };
    value.clamp(0, size) as i64
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

pub(super) fn write_lane(at: *mut u8, bits: u64, lane: Lane) {
    // SAFETY: callers pass a pointer to a whole lane of this type.
    unsafe {
        match lane {
            Lane::F32 | Lane::I32 => at.cast::<u32>().write_unaligned(bits as u32),
            Lane::F64 | Lane::I64 => at.cast::<u64>().write_unaligned(bits),
            Lane::B8 => at.write(bits as u8),
        }
    }
}

pub(super) fn fill(at: *mut u8, bits: u64, lane: Lane, lanes: usize) {
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

/// What a group's register points at while one chunk runs.
pub(super) fn group_registers(group: &Group) -> usize {
    group.places.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_agree_with_trying_every_lane() {
        for base in -40i64..40 {
            for stride in 1i64..7 {
                let lanes: Vec<i64> = (0..16).map(|i| base + stride * i).collect();
                let first =
                    |p: &dyn Fn(i64) -> bool| lanes.iter().position(|&x| p(x)).unwrap_or(16) as i64;
                assert_eq!(
                    bound(base, stride, BoundKind::FirstNonNegative, 16),
                    first(&|x| x >= 0)
                );
                assert_eq!(bound(base, stride, BoundKind::FirstPositive, 16), first(&|x| x > 0));
                let (low, high) = (
                    bound(base, stride, BoundKind::Zero, 16),
                    bound(base, stride, BoundKind::AfterZero, 16),
                );
                for (i, &x) in lanes.iter().enumerate() {
                    assert_eq!((low..high).contains(&(i as i64)), x == 0, "{base} {stride} {i}");
                }
            }
        }
    }
}
