//! Machine code for groups, where the processor has AVX-512 and the system allows new code.
//!
//! The interpreter runs a group kernel by kernel over chunks; here one loop does all of it on registers, so memory and
//! arithmetic overlap and nothing is written in between. Every operation rounds as the interpreter's does, so results
//! are the same bits. Groups with anything unusual keep to the interpreter, and so does every checked run.

mod assembler;
mod cut;
mod emit;
mod functions;
mod layout;
mod pages;
mod stage;

use super::lane::Lane;
use super::run::{Machine, read_lane};
use super::simd::Isa;
use super::tape::{
    Access, Group, MaskForm, Micro, Place, PtrForm, SReg, Step, drop_unread, written,
};
use super::views::span;
use crate::types::Elem;
use assembler::Assembler;
use emit::Variant;
use layout::{Layout, On, WIDTH, Walk};
use pages::Pages;
use smallvec::SmallVec;
use stage::{Found, Stage};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Arguments, scalar registers, constants, arena.
type Entry = unsafe extern "sysv64" fn(*const u64, *const u64, *const u32, *mut u8);

/// The code of all groups of a tape.
#[derive(Debug)]
pub(crate) struct Code {
    pages: Pages,
    constants: Vec<u32>,
    /// Words that the arguments of a group take at most.
    pub(super) words: usize,
    /// Bytes of the arena that the blocks of the tape and of stages need.
    pub(crate) arena_bytes: usize,
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
    entry: usize,
    /// The group as the code was made for it, where that is not how the interpreter runs it.
    rewritten: Option<Box<Group>>,
    stages: Vec<Stage>,
    layout: Layout,
    accesses: Vec<Reach>,
    /// Whether rows of some access have addresses of their own.
    looks_up: bool,
    /// Whether all accesses are to memory that code walks along.
    is_plain: bool,
    /// The masks of what is stored, where nothing else is kept: lanes that all of them switch off need no work.
    stored: Option<Vec<usize>>,
    /// Whether everything that is stored may go past the caches, as far as the group itself tells.
    may_stream: bool,
    /// Code for other runs than most, made when it is first needed; `None` where there can be none.
    variants: Arc<[OnceLock<Made>; MOST_VARIANTS]>,
}

/// Code that was made, or tried to be, for some runs.
type Made = (Variant, Option<Code>);

/// Masks of a group: each has a bit of a word.
const MOST_MASKS: usize = 32;
/// Variants of a group's code.
const MOST_VARIANTS: usize = 8;
/// What is stored in a buffer of so many bytes has left the second-level cache before anybody reads it.
const LARGE_BUFFER: usize = 8 << 20;

/// What has to be known of an access to find its place in memory.
#[derive(Debug, Clone)]
struct Reach {
    base: SReg,
    /// Where in the arena the addresses of the rows are, and how far apart.
    rows: Option<(usize, usize)>,
    /// Where in the arena its block is, if it has one in place of memory.
    staged: Option<usize>,
    /// First byte and byte after the last from lane 0, all lanes on.
    span: (i64, i64),
    size: i64,
    is_store: bool,
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
pub(crate) fn compile(steps: &mut [Step], arena_bytes: usize, isa: Isa) -> Option<Code> {
    if isa != Isa::Avx512 {
        return None;
    }
    let mut compiler =
        Compiler { asm: Assembler::new(WIDTH), words: 0, blocks: arena_bytes, arena_bytes };
    compiler.steps(steps);
    let Compiler { asm, words, arena_bytes, .. } = compiler;
    let pages = Pages::new(&asm.code)?;
    Some(Code { pages, constants: asm.constants, words, arena_bytes })
}

struct Compiler {
    asm: Assembler,
    words: usize,
    /// Bytes of the arena that the tape's own blocks take; those of stages lie behind.
    blocks: usize,
    arena_bytes: usize,
}

impl Compiler {
    fn steps(&mut self, steps: &mut [Step]) {
        for step in steps {
            match step {
                Step::Group(group) => {
                    group.native = compile_group(group, &mut self.asm, self.blocks).map(Box::new);
                    if let Some(native) = &group.native {
                        self.words = native.layout.words().max(self.words);
                        self.arena_bytes = stage::end(&native.stages, group).max(self.arena_bytes);
                    }
                }
                Step::If { then, otherwise, .. } => {
                    self.steps(then);
                    self.steps(otherwise);
                }
                Step::For { body, .. } => self.steps(body),
                Step::While { condition_steps, body, .. } => {
                    self.steps(condition_steps);
                    self.steps(body);
                }
                _ => {}
            }
        }
    }
}

/// The group with pointers that are known row by row in that form, without the work for each lane's address.
fn by_rows(group: &Group) -> Cow<'_, Group> {
    if group.accesses.iter().all(|access| access.rows.is_none()) {
        return Cow::Borrowed(group);
    }
    let mut group = group.clone();
    for access in &mut group.accesses {
        if let Some(rows) = &access.rows {
            let (base, dims) = (rows.base, rows.dims.clone());
            access.span = span(access.elem, &dims, dims.iter().map(|d| (0, d.0)));
            access.ptr = PtrForm::Affine { base, dims };
            access.mask = rows.mask.clone();
        }
    }
    let kept = group.places.iter().map(|(place, _)| matches!(place, Place::Full(_))).collect();
    drop_unread(&mut group.micros, &group.accesses, kept);
    Cow::Owned(group)
}

fn compile_group(group: &Group, asm: &mut Assembler, blocks: usize) -> Option<NativeGroup> {
    let (group, stages) = stage::staged(by_rows(group), blocks)?;
    if !emit::is_candidate(&group) {
        return None;
    }
    let layout = Layout::of(&group, stages.len() == group.accesses.len())?;
    if layout.boxes.len() > MOST_MASKS {
        return None;
    }
    let before = asm.code.len();
    let Some(entry) = emit::function(asm, &group, &layout, Variant::default()) else {
        asm.code.truncate(before);
        return None;
    };
    let mut accesses: Vec<Reach> =
        group.accesses.iter().map(|a| reach(a, &layout)).collect::<Option<_>>()?;
    stages.iter().for_each(|stage| accesses[stage.access].staged = Some(stage.at));
    let stored = stored_masks(&group, &accesses);
    let variants = Arc::default();
    let looks_up = accesses.iter().any(|access| access.rows.is_some());
    let may_stream = may_stream(&group, &accesses, &layout);
    let rewritten = match group {
        Cow::Owned(group) => Some(Box::new(group)),
        Cow::Borrowed(_) => None,
    };
    Some(NativeGroup {
        entry,
        rewritten,
        is_plain: !looks_up && stages.is_empty(),
        stages,
        layout,
        accesses,
        looks_up,
        stored,
        may_stream,
        variants,
    })
}

/// Whether stores begin every row on a whole register if the first one does.
fn may_stream(group: &Group, accesses: &[Reach], layout: &Layout) -> bool {
    let mut stores =
        group.accesses.iter().zip(accesses).zip(&layout.walks).filter(|((it, _), _)| it.is_store);
    let even = |((access, reach), walk): ((&Access, &Reach), &Walk)| {
        access.elem == Elem::F32
            && reach.rows.is_none()
            && reach.staged.is_none()
            && walk.inner == 4
            && (layout.rows == 1 || (walk.outer as usize).is_multiple_of(4 * WIDTH))
    };
    let any = group.accesses.iter().any(|access| access.is_store);
    any && stores.all(even)
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
        rows: access.rows.as_ref().map(|rows| (rows.at, rows.step)),
        staged: None,
        span: access.span,
        size: access.elem.size() as i64,
        is_store: access.is_store,
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
        let int = |r: SReg| self.regs[r.0 as usize] as i64;
        let layout = &native.layout;
        if native.is_plain && layout.boxes.iter().all(|bounds| layout.is_whole(bounds, int)) {
            return self.run_whole(code, group, native);
        }
        let group = native.rewritten.as_deref().unwrap_or(group);
        self.run_masked(code, group, native)
    }

    /// Runs code in which no mask is off, with addresses that are known right away. Many groups take less time than finding
    /// out where their lanes are.
    fn run_whole(&mut self, code: &'t Code, group: &Group, native: &'t NativeGroup) -> bool {
        let layout = &native.layout;
        let arena = self.arena(0);
        let mut streams = native.may_stream;
        for (index, access) in native.accesses.iter().enumerate() {
            if let Mask::Uniform(r) = access.mask
                && self.regs[r.0 as usize] & 1 == 0
            {
                return false;
            }
            let (low, high) = access.span;
            match self.memory.resolve(self.int(access.base), low, high) {
                Some((buffer, at)) if access.buffer.is_none_or(|b| b == buffer) => {
                    streams = streams && (!access.is_store || self.suits_streams(buffer, at));
                    self.words[index] = at.expose_provenance() as u64;
                }
                _ => return false,
            }
        }
        let first_view = native.accesses.len();
        for (word, walk) in self.words[first_view..].iter_mut().zip(&layout.walks[first_view..]) {
            *word = (arena.expose_provenance() + walk.start as usize) as u64;
        }
        let (row, at) = (layout.row as u64, layout.runs().rows as usize / 8);
        self.words[at..at + 5].copy_from_slice(&[layout.rows as u64, 0, 0, row, row]);
        let (code, entry) = native.code(code, group, Variant { off: 0, streams });
        // SAFETY: as in `Call::run`; all lanes are on.
        unsafe {
            let constants = code.constants.as_ptr();
            code.entry(entry)(self.words.as_ptr(), self.regs.as_ptr(), constants, arena);
        }
        true
    }

    /// Whether rows that begin there may go past the caches.
    fn suits_streams(&self, buffer: usize, at: *mut u8) -> bool {
        at.addr().is_multiple_of(4 * WIDTH) && self.memory.len(buffer) >= LARGE_BUFFER
    }

    #[inline(never)]
    fn run_masked(&mut self, code: &'t Code, group: &'t Group, native: &'t NativeGroup) -> bool {
        let layout = &native.layout;
        let arena = self.arena(0);
        let int = |r: SReg| self.regs[r.0 as usize] as i64;
        let mut on: SmallVec<[On; 4]> = SmallVec::new();
        for bounds in &layout.boxes {
            let Some(found) = layout.on(bounds, int) else { return false };
            on.push(found);
        }
        let everything = On { lanes: (0, layout.row), rows: (0, layout.rows) };
        if on.iter().all(|on| *on == everything) {
            // No masks, no limits.
            on.clear();
        }
        let mut streams = native.may_stream;
        let mut bases: SmallVec<[usize; 8]> = SmallVec::new();
        for (access, walk) in native.accesses.iter().zip(&layout.walks) {
            if access.rows.is_some() {
                // Found row by row.
                bases.push(0);
                continue;
            }
            if let Some(at) = access.staged {
                bases.push(arena.expose_provenance() + at);
                continue;
            }
            let (mut low, mut high) = access.span;
            match access.mask {
                Mask::On => {}
                Mask::Uniform(r) if self.regs[r.0 as usize] & 1 != 0 => {}
                Mask::Uniform(_) => return false,
                Mask::Box(_) if on.is_empty() => {}
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
                    streams = streams && (!access.is_store || self.suits_streams(buffer, at));
                    bases.push(at.expose_provenance());
                }
                _ => return false,
            }
        }
        for walk in &layout.walks[bases.len()..] {
            bases.push(arena.expose_provenance() + walk.start as usize);
        }
        let found = match native.looks_up {
            true => match self.row_bases(native, &on, arena) {
                Some(found) => found,
                None => return false,
            },
            false => Vec::new(),
        };
        let Some(staged) = self.fill_stages(native, arena) else { return false };
        let regs = self.regs.as_ptr();
        let words = &mut self.words[..layout.words()];
        let mut call = Call { group, native, code, regs, words, arena, streams };
        if native.looks_up {
            call.looked_up_rows(&mut bases, &found, &on);
        } else if on.iter().all(|on| on.rows == everything.rows) {
            call.rows(&bases, 0..layout.rows, &on);
        } else {
            call.cut_rows(&bases, &on);
        }
        if !staged.is_empty() {
            drain_stages(native, &staged, arena);
        }
        true
    }

    /// Finds the stages of a group, and fills those that are loaded; `None` where one is left to the interpreter.
    #[inline]
    fn fill_stages(&self, native: &NativeGroup, arena: *mut u8) -> Option<Vec<Found>> {
        if native.stages.is_empty() { Some(Vec::new()) } else { self.fill_each(native, arena) }
    }

    #[inline(never)]
    fn fill_each(&self, native: &NativeGroup, arena: *mut u8) -> Option<Vec<Found>> {
        let found: Vec<Found> =
            native.stages.iter().map(|stage| stage.find(self)).collect::<Option<_>>()?;
        for (stage, found) in native.stages.iter().zip(&found).filter(|(it, _)| !it.is_store) {
            // SAFETY: found just now; the arena was made large enough for all stages of the tape.
            unsafe { stage.fill(found, &self.regs, arena) };
        }
        Some(found)
    }

    /// The addresses of the rows that are looked up, row after row; `None` where one of them leaves its buffer.
    fn row_bases(&self, native: &NativeGroup, on: &[On], arena: *const u8) -> Option<Vec<usize>> {
        let layout = &native.layout;
        let mut found = Vec::with_capacity(layout.rows * native.accesses.len());
        for row in 0..layout.rows {
            for (access, walk) in native.accesses.iter().zip(&layout.walks) {
                let Some((at, step)) = access.rows else { continue };
                let lanes = match access.mask {
                    Mask::Box(index) if !on.is_empty() => on[index].in_row(row).lanes,
                    Mask::Uniform(r) if self.regs[r.0 as usize] & 1 == 0 => return None,
                    _ => (0, layout.row),
                };
                if lanes.0 >= lanes.1 {
                    // All lanes are masked off: any address does.
                    found.push(self.regs.as_ptr().addr());
                    continue;
                }
                let first = read_lane(arena.wrapping_add(at + row * step), Lane::I64) as i64;
                let inner = i64::from(walk.inner);
                let low = lanes.0 as i64 * inner;
                let high = (lanes.1 as i64 - 1) * inner + access.size;
                let address = first.wrapping_add(self.regs[access.base.0 as usize] as i64);
                match self.memory.resolve(address, low, high) {
                    Some((buffer, at)) if access.buffer.is_none_or(|b| b == buffer) => {
                        found.push(at.expose_provenance());
                    }
                    _ => return None,
                }
            }
        }
        Some(found)
    }
}

/// Waits until everything that this thread stored past the caches is in memory.
pub(super) fn settle() {
    // SAFETY: every processor of this architecture has the instruction.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

/// Stores what the code left in stages.
#[inline(never)]
fn drain_stages(native: &NativeGroup, found: &[Found], arena: *mut u8) {
    for (stage, found) in native.stages.iter().zip(found).filter(|(it, _)| it.is_store) {
        // SAFETY: found by the same program, in the same arena.
        unsafe { stage.drain(found, arena) };
    }
}

/// A run of a group's code by one program.
struct Call<'c> {
    group: &'c Group,
    native: &'c NativeGroup,
    code: &'c Code,
    regs: *const u64,
    words: &'c mut [u64],
    arena: *mut u8,
    streams: bool,
}

impl Call<'_> {
    /// Rows each of which has addresses of its own.
    #[inline(never)]
    fn looked_up_rows(&mut self, bases: &mut [usize], found: &[usize], on: &[On]) {
        let accesses = &self.native.accesses;
        let looked_up = accesses.iter().filter(|access| access.rows.is_some()).count();
        for (row, found) in found.chunks(looked_up).enumerate() {
            let places = bases.iter_mut().zip(accesses);
            let places = places.filter(|(_, access)| access.rows.is_some());
            places.zip(found).for_each(|((base, _), found)| *base = *found);
            let limits: SmallVec<[On; 4]> = on.iter().map(|on| on.in_row(row)).collect();
            self.rows(bases, row..row + 1, &limits);
        }
    }

    /// All rows; those that masks cut in the same way run together.
    #[inline(never)]
    fn cut_rows(&mut self, bases: &[usize], on: &[On]) {
        let mut edges: SmallVec<[usize; 8]> = SmallVec::from_slice(&[0, self.native.layout.rows]);
        on.iter().for_each(|on| edges.extend([on.rows.0, on.rows.1]));
        edges.sort_unstable();
        edges.dedup();
        for edge in edges.windows(2) {
            let limits: SmallVec<[On; 4]> = on.iter().map(|on| on.in_row(edge[0])).collect();
            self.rows(bases, edge[0]..edge[1], &limits);
        }
    }

    /// Rows that masks cut in the same way; no limits where none is off.
    fn rows(&mut self, bases: &[usize], rows: Range<usize>, limits: &[On]) {
        let lanes = self.native.lanes(limits);
        // Code for parts of the row pays where most of its lanes would need masks.
        let few = 2 * (lanes.end - lanes.first) >= lanes.last;
        if few || !self.group.reductions.is_empty() {
            let variant = Variant { off: 0, streams: self.streams };
            let code = self.native.code(self.code, self.group, variant);
            self.run(code, bases, rows, limits, lanes);
        } else {
            self.parts(bases, rows, limits);
        }
    }

    #[inline(never)]
    fn parts(&mut self, bases: &[usize], rows: Range<usize>, limits: &[On]) {
        for part in cut::runs(limits, self.native.layout.row) {
            let nothing = |mask: &usize| part.off.is_some_and(|off| off >> mask & 1 != 0);
            if self.native.stored.as_ref().is_some_and(|masks| masks.iter().all(nothing)) {
                continue;
            }
            let (off, streams) = (part.off.unwrap_or(0), self.streams);
            let code = self.native.code(self.code, self.group, Variant { off, streams });
            let (start, last) = part.lanes;
            let is_own = std::ptr::eq(code.0, self.code);
            let masked = part.off.is_none_or(|off| off != 0 && is_own);
            let end = if masked { start } else { last };
            self.run(code, bases, rows.clone(), limits, Lanes { start, first: start, end, last });
        }
    }

    fn run(
        &mut self,
        (code, entry): (&Code, usize),
        bases: &[usize],
        rows: Range<usize>,
        limits: &[On],
        lanes: Lanes,
    ) {
        let (native, layout) = (self.native, &self.native.layout);
        for ((word, base), walk) in self.words.iter_mut().zip(bases).zip(&layout.walks) {
            let from = rows.start as i64 * i64::from(walk.outer);
            *word = base.wrapping_add(from as usize) as u64;
        }
        if !limits.is_empty()
            && let Some(mapped) = native.accesses.iter().position(|it| !it.is_off(limits))
        {
            // Where no lane is on, an address that is mapped spares the processor the suppression of a fault.
            for (index, access) in native.accesses.iter().enumerate() {
                if access.is_off(limits) {
                    self.words[index] = self.words[mapped];
                }
            }
        }
        for (index, on) in limits.iter().enumerate() {
            let at = layout.limits(index).0 as usize / 8;
            (self.words[at], self.words[at + 1]) = (on.lanes.0 as u64, on.lanes.1 as u64);
        }
        let extent = [rows.len(), lanes.start, lanes.first, lanes.end, lanes.last];
        let at = layout.runs().rows as usize / 8;
        self.words[at..].iter_mut().zip(extent).for_each(|(word, n)| *word = n as u64);
        // SAFETY: every lane that is on was resolved inside its buffer; the arena, which holds all rows of the group's
        // blocks and the results of its reductions, the registers and the words have the places the code was made for;
        // the processor has AVX-512.
        unsafe {
            let arena = self.arena.add(4 * rows.start * layout.row);
            let constants = code.constants.as_ptr();
            code.entry(entry)(self.words.as_ptr(), self.regs, constants, arena);
        }
    }
}

/// The lanes from `start` up to `first` need masks, those up to `end` none, those up to `last` masks again.
struct Lanes {
    start: usize,
    first: usize,
    end: usize,
    last: usize,
}

impl NativeGroup {
    /// How far masks reach; where none is off there are no limits.
    fn lanes(&self, limits: &[On]) -> Lanes {
        let row = self.layout.row;
        let step = self.layout.lanes_at_once();
        let first = limits.iter().map(|on| on.lanes.0.next_multiple_of(step)).max();
        let end = limits.iter().map(|on| on.lanes.1 / step * step).min();
        let last = match &self.stored {
            Some(masks) if !limits.is_empty() => {
                masks.iter().map(|mask| limits[*mask].lanes.1).max()
            }
            _ => None,
        };
        let last = last.map_or(row, |last| last.next_multiple_of(step));
        let end = end.unwrap_or(row).max(first.unwrap_or(0)).min(last);
        Lanes { start: 0, first: first.unwrap_or(0).min(end), end, last }
    }

    /// The code for some runs and where it begins: that for all of them where it has no variant.
    fn code<'c>(&'c self, all: &'c Code, group: &Group, variant: Variant) -> (&'c Code, usize) {
        let other = (variant != Variant::default()).then(|| self.variant(group, variant)).flatten();
        other.map_or((all, self.entry), |code| (code, 0))
    }

    fn variant(&self, group: &Group, variant: Variant) -> Option<&Code> {
        let group = self.rewritten.as_deref().unwrap_or(group);
        let make = || {
            let mut asm = Assembler::new(WIDTH);
            emit::function(&mut asm, group, &self.layout, variant)?;
            let pages = Pages::new(&asm.code)?;
            Some(Code { pages, constants: asm.constants, words: 0, arena_bytes: 0 })
        };
        // Whoever comes first to an empty place fills it.
        let mut known = self.variants.iter().map(|place| place.get_or_init(|| (variant, make())));
        known.find(|(known, _)| *known == variant)?.1.as_ref()
    }
}

impl Reach {
    /// Whether no lane of these rows is on.
    fn is_off(&self, limits: &[On]) -> bool {
        match self.mask {
            Mask::Box(index) => limits.get(index).is_some_and(|on| on.lanes == (0, 0)),
            _ => false,
        }
    }
}
