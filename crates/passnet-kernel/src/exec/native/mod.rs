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
use super::tape::{Access, Group, MaskForm, Micro, Place, PtrForm, SReg, Step, written};
use crate::ir::ReduceOp;
use assembler::Assembler;
use emit::Part;
use layout::{Layout, On, WIDTH, Walk};
use pages::Pages;
use smallvec::SmallVec;

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
    /// For all rows, where no mask is off.
    whole: usize,
    /// For lanes of one row.
    by_row: Option<ByRow>,
    layout: Layout,
    accesses: Vec<Reach>,
    /// The masks of what is stored, where nothing else is kept: lanes that all of them switch off need no work.
    stored: Option<Vec<usize>>,
}

/// Code for one row.
#[derive(Debug, Clone, Copy)]
struct ByRow {
    /// For lanes where no mask is off.
    whole: usize,
    /// For lanes where masks decide.
    partial: usize,
}

/// What has to be known of an access to find its place in memory.
#[derive(Debug, Clone)]
struct Reach {
    base: SReg,
    /// First byte and byte after the last from lane 0, all lanes on.
    span: (i64, i64),
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
    let mut all = || {
        let whole = emit::function(asm, group, &layout, Part::AllRows)?;
        if !layout.has_partial() {
            return Some((whole, None));
        }
        let row = match layout.rows {
            1 => whole,
            _ => emit::function(asm, group, &layout, Part::Row)?,
        };
        let partial = emit::function(asm, group, &layout, Part::MaskedRow)?;
        Some((whole, Some(ByRow { whole: row, partial })))
    };
    let Some((whole, by_row)) = all() else {
        asm.code.truncate(before);
        return None;
    };
    let accesses: Vec<Reach> =
        group.accesses.iter().map(|a| reach(a, &layout)).collect::<Option<_>>()?;
    let stored = stored_masks(group, &accesses);
    Some(NativeGroup { whole, by_row, layout, accesses, stored })
}

fn stored_masks(group: &Group, accesses: &[Reach]) -> Option<Vec<usize>> {
    let keeps = |micro: &Micro| {
        let place = written(micro).map(|dst| group.places[usize::from(dst.0)].0);
        matches!(place, Some(Place::Full(_)))
    };
    if !group.reductions.is_empty() || group.micros.iter().any(keeps) {
        return None;
    }
    let stores = group.accesses.iter().zip(accesses).filter(|(access, _)| access.is_store);
    let masks = stores.map(|(_, reach)| match reach.mask {
        Mask::Box(index) => Some(index),
        _ => None,
    });
    masks.collect()
}

fn reach(access: &Access, layout: &Layout) -> Option<Reach> {
    let PtrForm::Affine { base, .. } = &access.ptr else { return None };
    let mask = match &access.mask {
        MaskForm::All => Mask::On,
        MaskForm::Uniform(r) => Mask::Uniform(*r),
        MaskForm::Box(bounds) => Mask::Box(layout.boxes.iter().position(|b| b == bounds)?),
        MaskForm::Lanes(_) => return None,
    };
    Some(Reach {
        base: *base,
        span: access.span,
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
        if self.tracker.is_some() || self.overlapping || self.interprets {
            return false;
        }
        let layout = &native.layout;
        let int = |r: SReg| self.regs[r.0 as usize] as i64;
        let mut on: SmallVec<[On; 4]> = SmallVec::new();
        for bounds in &layout.boxes {
            let Some(found) = layout.on(bounds, int) else { return false };
            on.push(found);
        }
        let everything = On { lanes: (0, layout.row), rows: (0, layout.rows) };
        let whole = on.iter().all(|on| *on == everything);
        let mut bases: SmallVec<[usize; 8]> = SmallVec::new();
        for (access, walk) in native.accesses.iter().zip(&layout.walks) {
            let (mut low, mut high) = access.span;
            match access.mask {
                Mask::On => {}
                Mask::Uniform(r) if self.regs[r.0 as usize] & 1 != 0 => {}
                Mask::Uniform(_) => return false,
                Mask::Box(_) if whole => {}
                Mask::Box(index) => {
                    let on = on[index];
                    if on.is_nothing() {
                        // All lanes are masked off: any address does.
                        bases.push(self.regs.as_ptr().addr());
                        continue;
                    }
                    let (outer, inner) = (i64::from(walk.outer), i64::from(walk.inner));
                    let rows = [on.rows.0 as i64 * outer, (on.rows.1 as i64 - 1) * outer];
                    low = rows[0].min(rows[1]) + on.lanes.0 as i64 * inner;
                    high = rows[0].max(rows[1]) + (on.lanes.1 as i64 - 1) * inner + access.size;
                }
            }
            match self.memory.resolve(int(access.base), low, high) {
                Some((buffer, at)) if access.buffer.is_none_or(|b| b == buffer) => {
                    bases.push(at.expose_provenance());
                }
                _ => return false,
            }
        }
        let arena = self.arena(0);
        for walk in &layout.walks[bases.len()..] {
            bases.push(arena.expose_provenance() + walk.start as usize);
        }
        let words = &mut self.words[..layout.words(group.reductions.len())];
        for (i, r) in group.reductions.iter().enumerate() {
            let bits = u64::from(identity(r.op).to_bits());
            words[layout.accumulator(i) as usize / 8..][..WIDTH / 2].fill(bits << 32 | bits);
        }
        let regs = self.regs.as_ptr();
        let call = |offset: usize, words: &mut [u64], row: usize, (from, to): (usize, usize)| {
            if from < to {
                // SAFETY: every lane that is on was resolved inside its buffer above; the arena, which holds all rows of
                // the group's blocks, the registers and the words have the places the code was made for; the processor
                // has AVX-512.
                unsafe {
                    let arena = arena.add(4 * row * layout.row);
                    let constants = code.constants.as_ptr();
                    code.entry(offset)(words.as_mut_ptr(), regs, constants, from, to, arena);
                }
            }
        };
        match native.by_row {
            Some(by_row) if !whole => {
                let cuts_rows = on.iter().any(|on| on.rows != everything.rows);
                let is_off = |access: &Reach, row: usize| match access.mask {
                    Mask::Box(index) => on[index].in_row(row) == (0, 0),
                    _ => false,
                };
                for row in 0..layout.rows {
                    let at = |(base, walk): (&usize, &Walk)| {
                        base.wrapping_add((row as i64 * i64::from(walk.outer)) as usize) as u64
                    };
                    let places = bases.iter().zip(&layout.walks);
                    words.iter_mut().zip(places).for_each(|(word, place)| *word = at(place));
                    // Where no lane is on, an address that is mapped spares the processor the suppression of a fault.
                    if cuts_rows
                        && let Some(mapped) = native.accesses.iter().position(|it| !is_off(it, row))
                    {
                        for (index, access) in native.accesses.iter().enumerate() {
                            if is_off(access, row) {
                                words[index] = words[mapped];
                            }
                        }
                    }
                    let (mut first, mut end) = (0, layout.row);
                    for (index, on) in on.iter().enumerate() {
                        let (low, high) = on.in_row(row);
                        let at = layout.limits(index).0 as usize / 8;
                        (words[at], words[at + 1]) = (low as u64, high as u64);
                        first = first.max(low.next_multiple_of(WIDTH));
                        end = end.min(high / WIDTH * WIDTH);
                    }
                    let last = match &native.stored {
                        Some(masks) => masks.iter().map(|mask| on[*mask].in_row(row).1).max(),
                        None => None,
                    };
                    let last = last.map_or(layout.row, |last| last.next_multiple_of(WIDTH));
                    let end = end.max(first).min(last);
                    let first = first.min(end);
                    call(by_row.partial, words, row, (0, first));
                    call(by_row.whole, words, row, (first, end));
                    call(by_row.partial, words, row, (end, last));
                }
            }
            _ => {
                words.iter_mut().zip(&bases).for_each(|(word, base)| *word = *base as u64);
                call(native.whole, words, 0, (0, layout.row));
            }
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
