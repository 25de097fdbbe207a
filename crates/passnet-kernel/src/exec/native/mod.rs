//! Machine code for groups, where the processor has AVX-512 and the system allows new code.
//!
//! The interpreter runs a group kernel by kernel over chunks; here one loop does all of it on registers, so memory and
//! arithmetic overlap and nothing is written in between. Every operation rounds as the interpreter's does, so results
//! are the same bits. Groups with anything unusual keep to the interpreter, and so does every checked run.

mod assembler;
mod call;
mod cut;
#[cfg(test)]
mod decoded;
mod detour;
mod emit;
mod functions;
mod layout;
mod pages;

use super::group::{Access, FusedGroup, Home, MaskForm, Micro, PtrForm, drop_unread, written};
use super::registers::SReg;
use super::tape::{Step, Tape};
use super::views::span;
use crate::types::Elem;
use assembler::Assembler;
use detour::Detour;
use emit::Variant;
use layout::{Layout, WIDTH, Walk};
use pages::Pages;
use passnet_cpu::Isa;
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Arguments, scalar registers, constants, arena.
type Entry = unsafe extern "sysv64" fn(*const u64, *const u64, *const u32, *mut u8);

/// The code of all groups of a tape.
#[derive(Debug)]
pub(crate) struct Code {
    pages: Pages,
    constants: Vec<u32>,
    groups: Vec<NativeGroup>,
    /// Words that the arguments of a group take at most.
    pub(super) words: usize,
    /// Groups that ran as this code, in all machines that have finished.
    runs: AtomicU64,
}

impl Code {
    fn new(pages: Pages, constants: Vec<u32>, groups: Vec<NativeGroup>) -> Code {
        let words = groups.iter().map(|group| group.layout.words()).max().unwrap_or(0);
        Code { pages, constants, groups, words, runs: AtomicU64::new(0) }
    }

    /// A machine has finished, in which so many groups ran as machine code. Waits until everything that its thread stored
    /// past the caches is in memory.
    pub(crate) fn settle(&self, runs: u64) {
        // SAFETY: every processor of this architecture has the instruction.
        unsafe { std::arch::x86_64::_mm_sfence() };
        self.runs.fetch_add(runs, Ordering::Relaxed);
    }

    /// The instructions, for tests that read them.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.pages.code()
    }

    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

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
    rewritten: Option<Box<FusedGroup>>,
    detours: Vec<Detour>,
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
/// What is stored in a buffer of so many bytes has left the caches before anybody reads it; of less, the cache that all cores
/// share may still hold a good part.
const LARGE_BUFFER: usize = 16 << 20;

/// What has to be known of an access to find its place in memory.
#[derive(Debug, Clone)]
struct Reach {
    base: SReg,
    /// Where in the arena the addresses of the rows are, and how far apart.
    rows: Option<(usize, usize)>,
    /// Where in the arena its block is, if it has one in place of memory.
    detour: Option<usize>,
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
pub(crate) fn compile(mut tape: Tape) -> (Tape, Option<Code>) {
    if Isa::detect() != Isa::Avx512 {
        return (tape, None);
    }
    let blocks = tape.arena_bytes;
    let mut compiler =
        Compiler { asm: Assembler::new(WIDTH), groups: Vec::new(), blocks, arena_bytes: blocks };
    compiler.steps(&mut tape.steps);
    let Compiler { asm, groups, arena_bytes, .. } = compiler;
    let Some(pages) = Pages::new(&asm.code) else { return (tape, None) };
    tape.arena_bytes = arena_bytes;
    (tape, Some(Code::new(pages, asm.constants, groups)))
}

struct Compiler {
    asm: Assembler,
    groups: Vec<NativeGroup>,
    /// Bytes of the arena that the tape's own blocks take; those of detours lie behind.
    blocks: usize,
    /// Bytes of the arena that both need.
    arena_bytes: usize,
}

impl Compiler {
    fn steps(&mut self, steps: &mut [Step]) {
        for step in steps {
            match step {
                Step::Group(group) => {
                    if let Some(native) = compile_group(group, &mut self.asm, self.blocks) {
                        self.arena_bytes =
                            detour::end(&native.detours, group).max(self.arena_bytes);
                        group.code = Some(self.groups.len());
                        self.groups.push(native);
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
fn by_rows(group: &FusedGroup) -> Cow<'_, FusedGroup> {
    if group.accesses.iter().all(|access| access.rows.is_none()) {
        return Cow::Borrowed(group);
    }
    let mut group = group.clone();
    for access in &mut group.accesses {
        if let Some(rows) = &access.rows {
            let (base, dims) = (rows.base, rows.dims.clone());
            access.span = span(access.elem.size(), &dims, dims.iter().map(|d| (0, d.0)));
            access.ptr = PtrForm::Affine { base, dims };
            access.mask = rows.mask.clone();
        }
    }
    let kept = group.homes.iter().map(|(place, _)| matches!(place, Home::Full(_))).collect();
    drop_unread(&mut group.micros, &group.accesses, kept);
    Cow::Owned(group)
}

fn compile_group(group: &FusedGroup, asm: &mut Assembler, blocks: usize) -> Option<NativeGroup> {
    let (group, detours) = detour::with_detours(by_rows(group), blocks)?;
    if !emit::is_candidate(&group) {
        return None;
    }
    let layout = Layout::of(&group, detours.len() == group.accesses.len())?;
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
    detours.iter().for_each(|detour| accesses[detour.access].detour = Some(detour.at));
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
        is_plain: !looks_up && detours.is_empty(),
        detours,
        layout,
        accesses,
        looks_up,
        stored,
        may_stream,
        variants,
    })
}

/// Whether stores begin every row on a whole register if the first one does.
fn may_stream(group: &FusedGroup, accesses: &[Reach], layout: &Layout) -> bool {
    let mut stores =
        group.accesses.iter().zip(accesses).zip(&layout.walks).filter(|((it, _), _)| it.is_store);
    let even = |((access, reach), walk): ((&Access, &Reach), &Walk)| {
        access.elem == Elem::F32
            && reach.rows.is_none()
            && reach.detour.is_none()
            && walk.inner == 4
            && (layout.rows == 1 || (walk.outer as usize).is_multiple_of(4 * WIDTH))
    };
    let any = group.accesses.iter().any(|access| access.is_store);
    any && stores.all(even)
}

fn stored_masks(group: &FusedGroup, accesses: &[Reach]) -> Option<Vec<usize>> {
    let keeps = |micro: &Micro| {
        let place = written(micro).map(|dst| group.homes[usize::from(dst.0)].0);
        matches!(place, Some(Home::Full(_)))
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
        detour: None,
        span: access.span,
        size: access.elem.size() as i64,
        is_store: access.is_store,
        buffer: access.buffer,
        mask,
    })
}
