//! Machine code for groups, where the processor has AVX-512 and the system allows new code.
//!
//! The interpreter runs a group kernel by kernel over chunks; here one loop does all of it on registers, so memory and
//! arithmetic overlap and nothing is written in between. Every operation rounds as the interpreter's does, so results
//! are the same bits. Groups with anything unusual keep to the interpreter, and so does every checked run.

mod assembler;
mod emit;
mod functions;
mod layout;
mod pages;

use super::run::Machine;
use super::simd::Isa;
use super::tape::{Access, Group, MaskForm, PtrForm, SReg, Step};
use crate::ir::ReduceOp;
use assembler::Assembler;
use layout::{Layout, WIDTH};
use pages::Pages;

/// Arguments, scalar registers, constants, first lane, lane after the last, arena.
type Entry = unsafe extern "sysv64" fn(*mut u64, *const u64, *const u32, usize, usize, *mut u8);

/// The code of all groups of a tape.
#[derive(Debug)]
pub(crate) struct Code {
    pages: Pages,
    constants: Vec<u32>,
    /// Words that the arguments of a group take at most.
    pub(super) words: usize,
}

impl Code {
    fn entry(&self, offset: usize) -> Entry {
        // SAFETY: `offset` is where `emit::function` began a function of this type in these pages.
        unsafe { std::mem::transmute::<*const u8, Entry>(self.pages.at(offset)) }
    }
}

/// Where a group's code is.
#[derive(Debug, Clone)]
pub(crate) struct NativeGroup {
    /// For lanes where no mask is off.
    whole: usize,
    /// For lanes where masks decide.
    partial: Option<usize>,
    layout: Layout,
    accesses: Vec<Reach>,
}

/// What has to be known of an access to find its place in memory.
#[derive(Debug, Clone)]
struct Reach {
    base: SReg,
    /// First byte and byte after the last from lane 0, all lanes on.
    span: (i64, i64),
    /// Bytes from lane to lane, where a mask may cut the lanes short.
    stride: i64,
    size: i64,
    buffer: Option<usize>,
    mask: Mask,
}

#[derive(Debug, Clone, Copy)]
enum Mask {
    On,
    Uniform(SReg),
    /// One of the boxes of the layout.
    Box(usize),
}

/// Gives every group that can have it machine code.
pub(crate) fn compile(steps: &mut [Step], isa: Isa) -> Option<Code> {
    if isa != Isa::Avx512 {
        return None;
    }
    let mut asm = Assembler::new(WIDTH);
    let mut words = 0;
    compile_steps(steps, &mut asm, &mut words);
    let pages = Pages::new(&asm.code)?;
    Some(Code { pages, constants: asm.constants, words })
}

fn compile_steps(steps: &mut [Step], asm: &mut Assembler, words: &mut usize) {
    for step in steps {
        match step {
            Step::Group(group) => {
                group.native = compile_group(group, asm).map(Box::new);
                if let Some(native) = &group.native {
                    *words = native.layout.words(group.reductions.len()).max(*words);
                }
            }
            Step::If { then, otherwise, .. } => {
                compile_steps(then, asm, words);
                compile_steps(otherwise, asm, words);
            }
            Step::For { body, .. } => compile_steps(body, asm, words),
            Step::While { condition_steps, body, .. } => {
                compile_steps(condition_steps, asm, words);
                compile_steps(body, asm, words);
            }
            _ => {}
        }
    }
}

fn compile_group(group: &Group, asm: &mut Assembler) -> Option<NativeGroup> {
    if !emit::is_candidate(group) {
        return None;
    }
    let layout = Layout::of(group)?;
    if layout.rows > 1 && !group.reductions.is_empty() {
        return None;
    }
    let before = asm.code.len();
    let mut both = || {
        let whole = emit::function(asm, group, &layout, false)?;
        let partial = if layout.has_partial() {
            Some(emit::function(asm, group, &layout, true)?)
        } else {
            None
        };
        Some((whole, partial))
    };
    let Some((whole, partial)) = both() else {
        asm.code.truncate(before);
        return None;
    };
    let accesses = group.accesses.iter().map(|a| reach(a, &layout)).collect::<Option<_>>()?;
    Some(NativeGroup { whole, partial, layout, accesses })
}

fn reach(access: &Access, layout: &Layout) -> Option<Reach> {
    let PtrForm::Affine { base, dims } = &access.ptr else { return None };
    let mask = match &access.mask {
        MaskForm::All => Mask::On,
        MaskForm::Uniform(r) => Mask::Uniform(*r),
        MaskForm::Box(bounds) => Mask::Box(layout.boxes.iter().position(|b| b == bounds)?),
        MaskForm::Lanes(_) => return None,
    };
    Some(Reach {
        base: *base,
        span: access.span,
        stride: dims.last()?.1,
        size: access.elem.size() as i64,
        buffer: access.buffer,
        mask,
    })
}

impl<'t> Machine<'t, '_> {
    /// Runs the group's code, if it has any that fits this run. Whatever is unusual, faults too, is left to the
    /// interpreter.
    pub(super) fn native(&mut self, group: &'t Group) -> bool {
        let (Some(code), Some(native)) = (&self.tape.code, &group.native) else { return false };
        if self.tracker.is_some() || self.overlapping {
            return false;
        }
        let layout = &native.layout;
        let accesses = native.accesses.len();
        let words = &mut self.words[..layout.words(group.reductions.len())];
        let (pointers, rest) = words.split_at_mut(accesses);
        let (limits, partials) = rest.split_at_mut(2 * layout.boxes.len());
        let int = |r: SReg| self.regs[r.0 as usize] as i64;
        let (mut first, mut end) = (0, group.lanes);
        let mut whole = true;
        for (bounds, pair) in layout.boxes.iter().zip(limits.chunks_exact_mut(2)) {
            for (&(low, high), &size) in bounds.iter().zip(&layout.shape) {
                let low = low.map_or(0, |r| int(r).clamp(0, size as i64) as usize);
                let high = high.map_or(size, |r| int(r).clamp(0, size as i64) as usize);
                whole &= low == 0 && high == size;
                (pair[0], pair[1]) = (low as u64, high as u64);
                first = first.max(low.next_multiple_of(WIDTH));
                end = end.min(high / WIDTH * WIDTH);
            }
        }
        if !whole && native.partial.is_none() {
            return false;
        }
        for (access, pointer) in native.accesses.iter().zip(pointers) {
            let (mut low, mut high) = access.span;
            match access.mask {
                Mask::On => {}
                Mask::Uniform(r) if self.regs[r.0 as usize] & 1 != 0 => {}
                Mask::Uniform(_) => return false,
                Mask::Box(_) if whole => {}
                Mask::Box(index) => {
                    let (from, to) = (limits[2 * index] as i64, limits[2 * index + 1] as i64);
                    if from >= to {
                        // All lanes are masked off: any address does.
                        *pointer = self.regs.as_ptr().addr() as u64;
                        continue;
                    }
                    low = from * access.stride;
                    high = (to - 1) * access.stride + access.size;
                }
            }
            match self.memory.resolve(int(access.base), low, high) {
                Some((buffer, at)) if access.buffer.is_none_or(|b| b == buffer) => {
                    *pointer = at.expose_provenance() as u64;
                }
                _ => return false,
            }
        }
        for (r, words) in group.reductions.iter().zip(partials.chunks_exact_mut(WIDTH / 2)) {
            let bits = u64::from(identity(r.op).to_bits());
            words.fill(bits << 32 | bits);
        }
        let arena = self.arena(0);
        let (args, regs) = (self.words.as_mut_ptr(), self.regs.as_ptr());
        let call = |offset: usize, from: usize, to: usize| {
            if from < to {
                // SAFETY: every lane that is on was resolved inside its buffer above; the arena, the registers and the
                // words have the places the code was made for; the processor has AVX-512.
                unsafe { code.entry(offset)(args, regs, code.constants.as_ptr(), from, to, arena) };
            }
        };
        match native.partial {
            Some(partial) if !whole => {
                let end = end.max(first).min(group.lanes);
                let first = first.min(end);
                call(partial, 0, first);
                call(native.whole, first, end);
                call(partial, end, group.lanes);
            }
            _ => call(native.whole, 0, layout.row),
        }
        for (i, r) in group.reductions.iter().enumerate() {
            let at = layout.accumulator(i) as usize / 8;
            let partials = self.words[at..at + WIDTH / 2].as_ptr().cast::<[f32; WIDTH]>();
            // SAFETY: eight words hold sixteen lanes, of any bits.
            let lanes = unsafe { partials.read_unaligned() };
            let to = self.arena(r.to).cast::<f32>();
            // SAFETY: the lowering gave the result a place of one lane in the arena.
            unsafe { to.write(total(r.op, lanes)) };
        }
        true
    }
}

/// What changes no number it is combined with.
fn identity(op: ReduceOp) -> f32 {
    match op {
        // Zero would lose the sign of a negative zero.
        ReduceOp::Sum => -0.0,
        ReduceOp::Prod => 1.0,
        _ => f32::NAN,
    }
}

/// The partial results folded in halves, as the interpreter folds them.
fn total(op: ReduceOp, lanes: [f32; WIDTH]) -> f32 {
    match op {
        ReduceOp::Sum => fold(lanes, |x, y| x + y),
        ReduceOp::Prod => fold(lanes, |x, y| x * y),
        ReduceOp::Max => fold(lanes, |x, y| if x.is_nan() || y > x { y } else { x }),
        _ => fold(lanes, |x, y| if x.is_nan() || y < x { y } else { x }),
    }
}

#[inline(always)]
fn fold(mut lanes: [f32; WIDTH], combine: impl Fn(f32, f32) -> f32) -> f32 {
    for width in [8, 4, 2, 1] {
        for i in 0..width {
            lanes[i] = combine(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}
