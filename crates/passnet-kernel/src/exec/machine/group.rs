//! Runs a fused group: all its operations on one chunk of lanes, then the next chunk.

use super::access::{Covered, Limits, for_box_rows};
use super::prepared::{AccessMode, Prepared};
use super::{Machine, Result, fill, write_lane};
use crate::exec::group::{Access, Cost, FusedGroup, Home, Micro};
use crate::exec::registers::{Bounds, Src, VReg};
use crate::exec::simd::Kernel;
use crate::exec::views::{Dims, for_rows};
use crate::lane::Lane;

impl<'t> Machine<'t, '_> {
    pub(super) fn group(&mut self, group: &'t FusedGroup) -> Result<()> {
        #[cfg(all(target_arch = "x86_64", unix, feature = "machine-code"))]
        if self.native(group) {
            return Ok(());
        }
        let mut prepared = std::mem::take(&mut self.prepared);
        prepared.clear();
        for access in &group.accesses {
            prepared.push(self.prepare(access)?);
        }
        self.predict(group, &prepared);
        // A chunk of memory may stand in for a register only while nobody writes that buffer.
        for i in 0..prepared.len() {
            if prepared[i].mode == AccessMode::Direct {
                let written = group.accesses.iter().zip(&prepared).any(|(a, p)| {
                    a.is_store && (p.mode == AccessMode::PerLane || p.buffer == prepared[i].buffer)
                });
                // A store may stand for its value only where nothing else touches the buffer.
                let others = || {
                    prepared.iter().enumerate().any(|(j, p)| {
                        j != i && (p.mode == AccessMode::PerLane || p.buffer == prepared[i].buffer)
                    })
                };
                let barred = if group.accesses[i].is_store { others() } else { written };
                if barred || self.tracker.is_some() || self.memory.overlapping {
                    prepared[i].mode = AccessMode::Affine;
                }
            }
        }
        let mut pointers = std::mem::take(&mut self.pointers);
        pointers.clear();
        pointers.resize(group.homes.len(), std::ptr::null_mut());
        let mut start = 0;
        let mut result = Ok(());
        while start < group.lanes && result.is_ok() {
            let count = group.chunk.min(group.lanes - start);
            self.prefetch_next(group, &prepared, start + count);
            self.prefetch.spread(group.steps);
            for (slot, &(place, lane)) in pointers.iter_mut().zip(&group.homes) {
                *slot = match place {
                    Home::Slot(s) => self.slot(usize::from(s)),
                    Home::Full(offset) => self.arena(offset).wrapping_add(start * lane.size()),
                };
            }
            result = self.chunk(group, &prepared, &mut pointers, start, count);
            start += count;
        }
        self.pointers = pointers;
        self.prepared = prepared;
        result?;
        for reduction in &group.reductions {
            if let (Home::Full(from), _) = group.homes[usize::from(reduction.from.0)] {
                let (to, from) = (self.arena(reduction.to), self.arena(from));
                // SAFETY: the block holds the group's lanes and the results have a place of their own.
                unsafe { (reduction.f)(to, from, group.lanes / reduction.row, reduction.row, 1) };
            }
        }
        Ok(())
    }

    fn src(&self, src: Src, pointers: &[*mut u8]) -> *const u8 {
        match src {
            Src::V(VReg(r)) => pointers[usize::from(r)],
            Src::S(r) => self.reg_ptr(r),
            Src::None => std::ptr::NonNull::<u64>::dangling().as_ptr().cast(),
        }
    }

    fn chunk(
        &mut self,
        group: &'t FusedGroup,
        prepared: &[Prepared],
        pointers: &mut [*mut u8],
        start: usize,
        count: usize,
    ) -> Result<()> {
        for &(reg, access) in &group.stored {
            let p = prepared[access];
            if p.mode == AccessMode::Direct {
                let size = group.accesses[access].elem.size();
                pointers[usize::from(reg.0)] = p.base.wrapping_add(start * size);
            }
        }
        for micro in &group.micros {
            self.prefetch.step();
            match micro {
                Micro::Map { f, dst, a, b, c, cost, .. } => {
                    let d = pointers[usize::from(dst.0)];
                    let [a, b, c] = [*a, *b, *c];
                    let from =
                        (self.src(a, pointers), self.src(b, pointers), self.src(c, pointers));
                    if *cost == Cost::Light {
                        // SAFETY: registers hold `count` lanes of the kernel's types; the lowering gives a result a
                        // place of its own; unused operands are never read.
                        unsafe { f(d, from.0, from.1, from.2, count) };
                    } else {
                        let step = |src: Src| lane_bytes(group, src);
                        let steps = (step(Src::V(*dst)), step(a), step(b), step(c));
                        self.map_in_pieces(*f, (d, from), steps, count, *cost);
                    }
                }
                Micro::Splat { dst, from } => {
                    let lane = group.homes[usize::from(dst.0)].1;
                    fill(pointers[usize::from(dst.0)], self.regs[from.0 as usize], lane, count);
                }
                Micro::Iota { dst, base, dims } => {
                    let lane = group.homes[usize::from(dst.0)].1;
                    iota(pointers[usize::from(dst.0)], self.int(*base), dims, lane, start, count);
                }
                Micro::Divided { dst, base, dims, divisor, quotient } => {
                    let lane = group.homes[usize::from(dst.0)].1;
                    let numbers = (self.int(*base), self.int(*divisor));
                    let dst = pointers[usize::from(dst.0)];
                    divided(dst, numbers, dims, lane, *quotient, (start, count));
                }
                Micro::SelectBox { dst, bounds, shape, a, b } => {
                    let place = group.homes[usize::from(dst.0)];
                    self.select_box(
                        *dst,
                        place,
                        (bounds, shape),
                        (*a, *b),
                        pointers,
                        (start, count),
                    );
                }
                Micro::BoxMask { dst, bounds, shape } => {
                    let limits = self.limits(bounds, shape.iter().copied());
                    box_mask(pointers[usize::from(dst.0)], &limits, shape, start, count);
                }
                Micro::Strided { dst, from, dims } => {
                    let lane = group.homes[usize::from(dst.0)].1;
                    let from = self.arena(*from);
                    strided(pointers[usize::from(dst.0)], from, dims, lane.size(), start, count);
                }
                Micro::Load { dst, access } => {
                    let (a, p) = (&group.accesses[*access], prepared[*access]);
                    let d = usize::from(dst.0);
                    if p.mode == AccessMode::Direct && matches!(group.homes[d].0, Home::Slot(_)) {
                        pointers[d] = p.base.wrapping_add(start * a.elem.size());
                    } else {
                        self.load(a, p, pointers, pointers[d], start, count)?;
                    }
                }
                Micro::Store { src, access, only_use } => {
                    let (a, p) = (&group.accesses[*access], prepared[*access]);
                    if *only_use && p.mode == AccessMode::Direct {
                        continue;
                    }
                    let s = self.src(*src, pointers);
                    self.store(a, p, pointers, s, start, count)?;
                }
            }
        }
        Ok(())
    }

    /// Lanes of `a` inside a box, of `b` outside.
    fn select_box(
        &self,
        dst: VReg,
        (place, lane): (Home, Lane),
        (bounds, shape): (&Bounds, &[usize]),
        (a, b): (Src, Src),
        pointers: &mut [*mut u8],
        (start, count): (usize, usize),
    ) {
        let only = match self.covered(bounds, shape.iter().copied()) {
            Covered::All => Some(a),
            Covered::Part => None,
            Covered::Nothing => Some(b),
        };
        if let (Some(Src::V(r)), Home::Slot(_)) = (only, place) {
            // The result is one of the operands.
            pointers[usize::from(dst.0)] = pointers[usize::from(r.0)];
            return;
        }
        let to = pointers[usize::from(dst.0)];
        self.copy_lanes(only.unwrap_or(b), pointers, to, lane, (0, count));
        if only.is_none() {
            let limits = self.limits(bounds, shape.iter().copied());
            let dims: Dims = shape.iter().map(|&size| (size, 0)).collect();
            for_box_rows(&dims, Some(&limits), start, count, |at, run, _, _| {
                self.copy_lanes(a, pointers, to, lane, (at, run));
            });
        }
    }

    /// Runs a kernel that takes long piece by piece, with requests to memory in between. `steps` are the bytes from
    /// one lane to the next, none for a scalar.
    fn map_in_pieces(
        &mut self,
        f: Kernel,
        (d, (a, b, c)): (*mut u8, (*const u8, *const u8, *const u8)),
        steps: (usize, usize, usize, usize),
        count: usize,
        cost: Cost,
    ) {
        let piece = cost.piece();
        let mut at = 0;
        while at < count {
            self.prefetch.step();
            let lanes = piece.min(count - at);
            // SAFETY: as for whole chunks; a piece ends inside its chunk.
            unsafe {
                f(
                    d.add(at * steps.0),
                    a.wrapping_add(at * steps.1),
                    b.wrapping_add(at * steps.2),
                    c.wrapping_add(at * steps.3),
                    lanes,
                );
            }
            at += lanes;
        }
    }

    /// Guesses where the accesses will be when the group runs next: as far on as they came since the last time.
    fn predict(&mut self, group: &FusedGroup, prepared: &[Prepared]) {
        for (i, (access, p)) in group.accesses.iter().zip(prepared).enumerate() {
            let Some(last) = self.last_base.get_mut(group.first_access + i) else { continue };
            let before = std::mem::replace(last, p.base);
            let moved = p.base.addr().wrapping_sub(before.addr());
            if p.contiguous > 0 && !before.is_null() && moved != 0 {
                let first = p.contiguous.min(group.chunk * access.elem.size());
                self.prefetch.push(p.base.wrapping_add(moved), first);
            }
        }
    }

    /// Requests the chunk that begins at `start`, if the group has one.
    fn prefetch_next(&mut self, group: &FusedGroup, prepared: &[Prepared], start: usize) {
        if start >= group.lanes {
            return;
        }
        let count = group.chunk.min(group.lanes - start);
        for (access, p) in group.accesses.iter().zip(prepared) {
            if p.contiguous > 0 {
                let size = access.elem.size();
                self.prefetch.push(p.base.wrapping_add(start * size), count * size);
            }
        }
    }

    /// Whether an element lies in a buffer, and in the one the pointer belongs to.
    pub(super) fn reaches(&self, access: &Access, address: i64) -> bool {
        self.reach(access.buffer, address, 0, access.elem.size() as i64).is_some()
    }

    pub(super) fn copy_lanes(
        &self,
        src: Src,
        pointers: &[*mut u8],
        to: *mut u8,
        lane: Lane,
        (at, run): (usize, usize),
    ) {
        let to = to.wrapping_add(at * lane.size());
        match src {
            Src::V(VReg(r)) => {
                let from = pointers[usize::from(r)].wrapping_add(at * lane.size());
                // SAFETY: both registers hold the chunk's lanes; `copy` allows them to be the same.
                unsafe { std::ptr::copy(from, to, run * lane.size()) };
            }
            Src::S(r) => fill(to, self.regs[r.0 as usize], lane, run),
            Src::None => fill(to, 0, lane, run),
        }
    }
}

/// Bytes from one lane of an operand to the next.
fn lane_bytes(group: &FusedGroup, src: Src) -> usize {
    match src {
        Src::V(r) => group.homes[usize::from(r.0)].1.size(),
        Src::S(_) | Src::None => 0,
    }
}

fn iota(dst: *mut u8, base: i64, dims: &Dims, lane: Lane, start: usize, count: usize) {
    for_rows(dims, start, count, |at, run, offset, stride| {
        let first = base.wrapping_add(offset);
        // SAFETY: the register holds `count` lanes of this type.
        unsafe {
            match lane {
                Lane::I32 => {
                    let lanes = std::slice::from_raw_parts_mut(dst.cast::<i32>().add(at), run);
                    let (first, stride) = (first as i32, stride as i32);
                    for (i, slot) in lanes.iter_mut().enumerate() {
                        *slot = first.wrapping_add((i as i32).wrapping_mul(stride));
                    }
                }
                _ => {
                    let lanes = std::slice::from_raw_parts_mut(dst.cast::<i64>().add(at), run);
                    for (i, slot) in lanes.iter_mut().enumerate() {
                        *slot = first.wrapping_add((i as i64).wrapping_mul(stride));
                    }
                }
            }
        }
    });
}

/// Quotients or remainders from run to run: one division a row.
fn divided(
    dst: *mut u8,
    (base, divisor): (i64, i64),
    dims: &Dims,
    lane: Lane,
    quotient: bool,
    (start, count): (usize, usize),
) {
    let put =
        |at: usize, value: i64| write_lane(dst.wrapping_add(at * lane.size()), value as u64, lane);
    for_rows(dims, start, count, |at, run, offset, stride| {
        let first = base.wrapping_add(offset);
        let simple = divisor > 0 && first >= 0 && (0..divisor).contains(&stride);
        if !simple {
            for i in 0..run {
                let x = first.wrapping_add((i as i64).wrapping_mul(stride));
                put(
                    at + i,
                    match (divisor, quotient) {
                        (0, _) => 0,
                        (_, true) => x.wrapping_div(divisor),
                        (_, false) => x.wrapping_rem(divisor),
                    },
                );
            }
            return;
        }
        let (mut q, mut r) = (first / divisor, first % divisor);
        for i in 0..run {
            put(at + i, if quotient { q } else { r });
            r += stride;
            if r >= divisor {
                r -= divisor;
                q += 1;
            }
        }
    });
}

fn box_mask(dst: *mut u8, limits: &Limits, shape: &[usize], start: usize, count: usize) {
    // SAFETY: the register holds `count` bytes.
    let out = unsafe { std::slice::from_raw_parts_mut(dst, count) };
    out.fill(0);
    let dims: Dims = shape.iter().map(|&s| (s, 0)).collect();
    if dims.is_empty() {
        return;
    }
    for_box_rows(&dims, Some(limits), start, count, |at, run, _, _| out[at..at + run].fill(1));
}

fn strided(dst: *mut u8, from: *const u8, dims: &Dims, size: usize, start: usize, count: usize) {
    for_rows(dims, start, count, |at, run, offset, stride| {
        // SAFETY: the view stays inside its block; the register holds `count` lanes of `size` bytes.
        unsafe {
            let from = from.offset(offset as isize * size as isize);
            let to = dst.add(at * size);
            match (stride, size) {
                (1, _) => std::ptr::copy_nonoverlapping(from, to, run * size),
                (0, 4) => std::slice::from_raw_parts_mut(to.cast::<u32>(), run).fill(*from.cast()),
                (_, 4) => {
                    let to = std::slice::from_raw_parts_mut(to.cast::<u32>(), run);
                    for (i, slot) in to.iter_mut().enumerate() {
                        *slot = *from.cast::<u32>().offset(i as isize * stride as isize);
                    }
                }
                (_, 8) => {
                    let to = std::slice::from_raw_parts_mut(to.cast::<u64>(), run);
                    for (i, slot) in to.iter_mut().enumerate() {
                        *slot = *from.cast::<u64>().offset(i as isize * stride as isize);
                    }
                }
                _ => {
                    for i in 0..run {
                        *to.add(i) = *from.offset(i as isize * stride as isize);
                    }
                }
            }
        }
    });
}
