//! The loads and stores of a fused group: where they lie, which lanes they touch, how they are done.

use super::prepared::{AccessMode, Prepared};
use super::{Machine, Result, read_lane};
use crate::exec::fault::Fault;
use crate::exec::group::{Access, CHUNK, MaskForm, PtrForm};
use crate::exec::registers::{Bounds, VReg};
use crate::exec::views::{Dims, for_rows, span};
use crate::lane::Lane;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Covered {
    All,
    Part,
    Nothing,
}

/// Bounds of a box as numbers.
pub(super) type Limits = smallvec::SmallVec<[(usize, usize); 4]>;

impl<'t> Machine<'t, '_> {
    /// How much of a block lies inside a box.
    pub(super) fn covered(&self, bounds: &Bounds, shape: impl Iterator<Item = usize>) -> Covered {
        let mut covered = Covered::All;
        for (&(low, high), size) in bounds.iter().zip(shape) {
            let low = low.map_or(0, |r| self.int(r).max(0));
            let high = high.map_or(size as i64, |r| self.int(r).min(size as i64));
            if low >= high {
                return Covered::Nothing;
            }
            if low > 0 || high < size as i64 {
                covered = Covered::Part;
            }
        }
        covered
    }

    pub(super) fn limits(&self, bounds: &Bounds, shape: impl Iterator<Item = usize>) -> Limits {
        let mut limits = Limits::new();
        for (&(low, high), size) in bounds.iter().zip(shape) {
            let low = low.map_or(0, |r| self.int(r).clamp(0, size as i64) as usize);
            let high = high.map_or(size, |r| self.int(r).clamp(0, size as i64) as usize);
            limits.push((low, high));
        }
        limits
    }

    /// Decides how an access runs and checks the whole of an affine one at once.
    pub(super) fn prepare(&mut self, access: &Access) -> Result<Prepared> {
        let nothing = Prepared {
            base: std::ptr::null_mut(),
            address: 0,
            buffer: usize::MAX,
            mode: AccessMode::PerLane,
            whole: false,
            contiguous: 0,
        };
        if let MaskForm::Uniform(r) = access.mask
            && self.regs[r.0 as usize] & 1 == 0
        {
            return Ok(Prepared { mode: AccessMode::Empty, ..nothing });
        }
        let PtrForm::Affine { base, dims } = &access.ptr else { return Ok(nothing) };
        if matches!(access.mask, MaskForm::Lanes(_)) {
            return Ok(Prepared { address: self.int(*base), ..nothing });
        }
        let address = self.int(*base);
        let covered = match &access.mask {
            MaskForm::Box(bounds) => self.covered(bounds, dims.iter().map(|d| d.0)),
            _ => Covered::All,
        };
        let limits = match covered {
            Covered::All => None,
            Covered::Part => self.access_limits(access, dims),
            Covered::Nothing => return Ok(Prepared { mode: AccessMode::Empty, ..nothing }),
        };
        let whole = covered == Covered::All;
        let (low, high) = match &limits {
            None => access.span,
            Some(limits) => span(access.elem.size(), dims, limits.iter().copied()),
        };
        let Some((buffer, ptr)) = self.reach(access.buffer, address, low, high) else {
            return Err(self.first_outside(access, address, dims, limits.as_ref()));
        };
        let size = access.elem.size();
        let stored_as_lanes = size == access.lane.size() && access.elem != crate::types::Elem::I1;
        let direct =
            whole && stored_as_lanes && access.contiguous && ptr.addr() % access.lane.size() == 0;
        let mode = if direct { AccessMode::Direct } else { AccessMode::Affine };
        let contiguous = if access.contiguous { (high - low) as usize } else { 0 };
        Ok(Prepared { base: ptr, address, buffer, mode, whole, contiguous })
    }

    /// The first lane that leaves its buffer, for the message.
    pub(super) fn first_outside(
        &self,
        access: &Access,
        address: i64,
        dims: &Dims,
        limits: Option<&Limits>,
    ) -> Box<Fault> {
        let lanes: usize = dims.iter().map(|d| d.0).product();
        for lane in 0..lanes {
            let mut rest = lane;
            let mut offset = 0i64;
            let mut on = true;
            for (d, &(n, stride)) in dims.iter().enumerate().rev() {
                let index = rest % n;
                rest /= n;
                offset = offset.wrapping_add((index as i64).wrapping_mul(stride));
                on &= limits.is_none_or(|l| (l[d].0..l[d].1).contains(&index));
            }
            let at = address.wrapping_add(offset);
            if on && !self.reaches(access, at) {
                return self.out_of_bounds(at, lane, access.elem, access.is_store, access.loc);
            }
        }
        self.out_of_bounds(address, 0, access.elem, access.is_store, access.loc)
    }

    pub(super) fn load(
        &mut self,
        a: &Access,
        p: Prepared,
        pointers: &[*mut u8],
        dst: *mut u8,
        start: usize,
        count: usize,
    ) -> Result<()> {
        let lane = a.lane;
        let masked = !matches!(a.mask, MaskForm::All);
        if p.mode == AccessMode::Empty || (masked && !p.whole) {
            self.copy_lanes(a.other, pointers, dst, lane, (0, count));
        }
        match p.mode {
            AccessMode::Empty => Ok(()),
            AccessMode::Affine | AccessMode::Direct => {
                let PtrForm::Affine { dims, .. } = &a.ptr else { return Ok(()) };
                let limits = if p.whole { None } else { self.access_limits(a, dims) };
                let tracked = self.tracker.is_some();
                let mut rows = Vec::new();
                for_box_rows(dims, limits.as_ref(), start, count, |at, run, offset, stride| {
                    // SAFETY: `prepare` resolved every lane that is on; the register holds `count` lanes.
                    unsafe {
                        (a.load)(
                            dst.add(at * lane.size()),
                            p.base.offset(offset as isize),
                            stride as isize,
                            run,
                        );
                    }
                    if tracked {
                        rows.push((offset, stride, run));
                    }
                });
                for (offset, stride, run) in rows {
                    for i in 0..run as i64 {
                        self.track(
                            p.buffer,
                            p.address.wrapping_add(offset + i * stride),
                            a.elem.size(),
                            a.loc,
                        );
                    }
                }
                Ok(())
            }
            AccessMode::PerLane => {
                self.each_lane(a, p, pointers, start, count, |this, at, address, buffer, ptr| {
                    this.track(buffer, address, a.elem.size(), a.loc);
                    // SAFETY: the lane's element was resolved inside a buffer.
                    unsafe { (a.load)(dst.add(at * lane.size()), ptr, 0, 1) };
                    Ok(())
                })
            }
        }
    }

    pub(super) fn access_limits(&self, a: &Access, dims: &Dims) -> Option<Limits> {
        match &a.mask {
            MaskForm::Box(bounds) => Some(self.limits(bounds, dims.iter().map(|d| d.0))),
            _ => None,
        }
    }

    pub(super) fn store(
        &mut self,
        a: &Access,
        p: Prepared,
        pointers: &[*mut u8],
        src: *const u8,
        start: usize,
        count: usize,
    ) -> Result<()> {
        let lane = a.lane;
        match p.mode {
            AccessMode::Empty => Ok(()),
            AccessMode::Affine | AccessMode::Direct if self.tracker.is_none() => {
                let PtrForm::Affine { dims, .. } = &a.ptr else { return Ok(()) };
                let limits = if p.whole { None } else { self.access_limits(a, dims) };
                for_box_rows(dims, limits.as_ref(), start, count, |at, run, offset, stride| {
                    // SAFETY: `prepare` resolved every lane that is on; the register holds `count` lanes.
                    unsafe {
                        (a.store)(
                            p.base.offset(offset as isize),
                            src.add(at * lane.size()),
                            stride as isize,
                            run,
                        );
                    }
                });
                Ok(())
            }
            AccessMode::Affine | AccessMode::Direct | AccessMode::PerLane => {
                self.each_lane(a, p, pointers, start, count, |this, at, address, buffer, ptr| {
                    let size = a.elem.size();
                    let before = this.before_write(ptr, size);
                    // SAFETY: the lane's element was resolved inside a buffer.
                    unsafe { (a.store)(ptr, src.add(at * lane.size()), size as isize, 1) };
                    this.after_write(buffer, address, ptr, size, before, a.loc)
                })
            }
        }
    }

    /// Visits every lane that is on, each checked on its own.
    pub(super) fn each_lane(
        &mut self,
        a: &Access,
        p: Prepared,
        pointers: &[*mut u8],
        start: usize,
        count: usize,
        mut visit: impl FnMut(&mut Self, usize, i64, usize, *mut u8) -> Result<()>,
    ) -> Result<()> {
        let size = a.elem.size() as i64;
        let mask = match a.mask {
            MaskForm::Lanes(VReg(r)) => Some(pointers[usize::from(r)]),
            _ => None,
        };
        let mut addresses = [0i64; CHUNK];
        let mut on = [true; CHUNK];
        match &a.ptr {
            PtrForm::Lanes(VReg(r)) => {
                let from = pointers[usize::from(*r)];
                for (i, slot) in addresses.iter_mut().enumerate().take(count) {
                    *slot = read_lane(from.wrapping_add(i * 8), Lane::I64) as i64;
                }
            }
            PtrForm::Affine { dims, .. } => {
                let limits = self.access_limits(a, dims);
                if limits.is_some() {
                    on = [false; CHUNK];
                }
                for_box_rows(dims, limits.as_ref(), start, count, |at, run, offset, stride| {
                    for i in 0..run {
                        addresses[at + i] = p.address.wrapping_add(offset + i as i64 * stride);
                        on[at + i] = true;
                    }
                });
            }
        }
        for i in 0..count {
            let masked_off = mask.is_some_and(|m| read_lane(m.wrapping_add(i), Lane::B8) == 0);
            if masked_off || !on[i] {
                continue;
            }
            match self.reach(a.buffer, addresses[i], 0, size) {
                Some((buffer, ptr)) => {
                    visit(self, i, addresses[i], buffer, ptr)?;
                }
                _ => {
                    return Err(self.out_of_bounds(
                        addresses[i],
                        start + i,
                        a.elem,
                        a.is_store,
                        a.loc,
                    ));
                }
            }
        }
        Ok(())
    }
}

/// As [`for_rows`], restricted to a box.
#[inline]
pub(super) fn for_box_rows(
    dims: &Dims,
    limits: Option<&Limits>,
    start: usize,
    count: usize,
    mut row: impl FnMut(usize, usize, i64, i64),
) {
    let Some(limits) = limits else {
        for_rows(dims, start, count, row);
        return;
    };
    let inner = dims.len() - 1;
    let (low, high) = limits[inner];
    let width = dims[inner].0;
    let mut lane = start;
    let end = start + count;
    while lane < end {
        let column = lane % width;
        let run = (width - column).min(end - lane);
        let mut rest = lane / width;
        let mut offset = 0i64;
        let mut on = true;
        for d in (0..inner).rev() {
            let (size, stride) = dims[d];
            let index = rest % size;
            rest /= size;
            on &= (limits[d].0..limits[d].1).contains(&index);
            offset = offset.wrapping_add(index as i64 * stride);
        }
        let (from, to) = (column.max(low), (column + run).min(high));
        if on && from < to {
            let stride = dims[inner].1;
            row(
                lane - start + (from - column),
                to - from,
                offset.wrapping_add(from as i64 * stride),
                stride,
            );
        }
        lane += run;
    }
}
