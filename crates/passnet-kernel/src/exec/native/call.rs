//! Running a group's code: where its lanes are in this program, which masks are off, and which variant that asks for.

use super::detour::{Detour, Found};
use super::emit::{self, Variant};
use super::layout::{On, WIDTH};
use super::{Assembler, Code, LARGE_BUFFER, Mask, NativeGroup, Pages, Reach, cut};
use crate::exec::group::FusedGroup;
use crate::exec::machine::{Machine, read_lane};
use crate::exec::registers::SReg;
use crate::lane::Lane;
use smallvec::SmallVec;
use std::ops::Range;

impl<'t> Machine<'t, '_> {
    /// Runs the group's code, if it has any that fits this run. Whatever is unusual, faults too, is left to the
    /// interpreter.
    pub(in crate::exec) fn native(&mut self, group: &'t FusedGroup) -> bool {
        let (Some(code), Some(index)) = (self.code, group.code) else { return false };
        let native = &code.groups[index];
        if self.tracker.is_some() || self.memory.overlapping || self.interprets {
            return false;
        }
        let int = |r: SReg| self.regs[r.0 as usize] as i64;
        let layout = &native.layout;
        let ran =
            if native.is_plain && layout.boxes.iter().all(|bounds| layout.is_whole(bounds, int)) {
                self.run_whole(code, group, native)
            } else {
                let group = native.rewritten.as_deref().unwrap_or(group);
                self.run_masked(code, group, native)
            };
        self.native_runs += u64::from(ran);
        ran
    }

    /// Runs code in which no mask is off, with addresses that are known right away. Many groups take less time than finding
    /// out where their lanes are.
    fn run_whole(&mut self, code: &'t Code, group: &FusedGroup, native: &'t NativeGroup) -> bool {
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
            match self.reach(access.buffer, self.int(access.base), low, high) {
                Some((buffer, at)) => {
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

    fn run_masked(
        &mut self,
        code: &'t Code,
        group: &'t FusedGroup,
        native: &'t NativeGroup,
    ) -> bool {
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
        let Some((mut bases, streams)) = self.bases(native, &on, arena) else { return false };
        let found = match native.looks_up {
            true => match self.row_bases(native, &on, arena) {
                Some(found) => found,
                None => return false,
            },
            false => Vec::new(),
        };
        let Some(blocks) = self.fill_detours(native, arena) else { return false };
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
        for (detour, found) in native.detours.iter().zip(&blocks).filter(|(it, _)| it.is_store) {
            // SAFETY: found by the same program, in the same arena.
            unsafe { detour.drain(found, arena) };
        }
        true
    }

    /// Where each access of a group begins, and whether its stores may go past the caches; `None` where an access is left to
    /// the interpreter.
    fn bases(
        &self,
        native: &NativeGroup,
        on: &[On],
        arena: *mut u8,
    ) -> Option<(SmallVec<[usize; 8]>, bool)> {
        let mut streams = native.may_stream;
        let mut bases: SmallVec<[usize; 8]> = SmallVec::new();
        for (access, walk) in native.accesses.iter().zip(&native.layout.walks) {
            if access.rows.is_some() {
                // Found row by row.
                bases.push(0);
                continue;
            }
            if let Some(at) = access.detour {
                bases.push(arena.expose_provenance() + at);
                continue;
            }
            let (mut low, mut high) = access.span;
            match access.mask {
                Mask::On => {}
                Mask::Uniform(r) if self.regs[r.0 as usize] & 1 != 0 => {}
                Mask::Uniform(_) => return None,
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
            let base = self.regs[access.base.0 as usize] as i64;
            let (buffer, at) = self.reach(access.buffer, base, low, high)?;
            streams = streams && (!access.is_store || self.suits_streams(buffer, at));
            bases.push(at.expose_provenance());
        }
        for walk in &native.layout.walks[bases.len()..] {
            bases.push(arena.expose_provenance() + walk.start as usize);
        }
        Some((bases, streams))
    }

    /// Finds the detours of a group, and fills those that are loaded; `None` where one is left to the interpreter.
    fn fill_detours(&self, native: &NativeGroup, arena: *mut u8) -> Option<Vec<Found>> {
        let found: Vec<Found> =
            native.detours.iter().map(|detour| self.find(detour)).collect::<Option<_>>()?;
        for (detour, found) in native.detours.iter().zip(&found).filter(|(it, _)| !it.is_store) {
            // SAFETY: found just now; the arena was made large enough for all detours of the tape.
            unsafe { detour.fill(found, &self.regs, arena) };
        }
        Some(found)
    }

    fn find(&self, detour: &Detour) -> Option<Found> {
        let reach = |address, low, high| self.reach(detour.buffer, address, low, high);
        detour.find(|r| self.int(r), reach)
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
                let (_, at) = self.reach(access.buffer, address, low, high)?;
                found.push(at.expose_provenance());
            }
        }
        Some(found)
    }
}

/// A run of a group's code by one program.
struct Call<'c> {
    group: &'c FusedGroup,
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
    fn code<'c>(
        &'c self,
        all: &'c Code,
        group: &FusedGroup,
        variant: Variant,
    ) -> (&'c Code, usize) {
        let other = (variant != Variant::default()).then(|| self.variant(group, variant)).flatten();
        other.map_or((all, self.entry), |code| (code, 0))
    }

    fn variant(&self, group: &FusedGroup, variant: Variant) -> Option<&Code> {
        let group = self.rewritten.as_deref().unwrap_or(group);
        let make = || {
            let mut asm = Assembler::new(WIDTH);
            emit::function(&mut asm, group, &self.layout, variant)?;
            let pages = Pages::new(&asm.code)?;
            Some(Code::new(pages, asm.constants, Vec::new()))
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
