//! Accesses that code cannot walk along, because they step through memory in another direction or hold less than a
//! register: what they load is put into a block of the arena before the code runs, what they store is taken from one
//! afterwards.

use super::layout::{WIDTH, merge};
use crate::exec::group::{Access, FusedGroup, MaskForm, Micro, PtrForm};
use crate::exec::registers::{SReg, Src};
use crate::exec::simd::{Columns, LoadRow, StoreRow, load_columns, store_columns};
use crate::exec::views::{Dims, span};
use crate::lane::Lane;
use crate::types::Elem;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;

/// Bytes that the blocks of one group take, at most.
const MOST_BYTES: usize = 16 << 20;

#[derive(Debug, Clone)]
pub(super) struct Detour {
    /// Which of the group's accesses it stands for.
    pub(super) access: usize,
    /// Where its block begins in the arena.
    pub(super) at: usize,
    pub(super) is_store: bool,
    base: SReg,
    /// Sizes and byte strides in memory; in the block the lanes lie one behind the other.
    dims: Dims,
    mask: MaskForm,
    /// What masked-off lanes read.
    other: Option<SReg>,
    size: usize,
    pub(super) buffer: Option<usize>,
    load: LoadRow,
    store: StoreRow,
    /// The dimensions of rows and columns, where memory holds column after column.
    columns: Option<(usize, usize)>,
}

/// Where a detour's lanes are in one program.
pub(super) struct Found {
    /// Lane 0, which itself may be off and outside of any buffer.
    first: *mut u8,
    /// The lanes that are on, dimension by dimension.
    on: SmallVec<[(usize, usize); 4]>,
}

impl Found {
    fn is_nothing(&self) -> bool {
        self.on.iter().any(|(low, high)| low >= high)
    }
}

/// The group with blocks of the arena, from `free` on, in place of accesses that code cannot walk along. `None` where
/// one of them must be left to the interpreter.
pub(super) fn with_detours<'g>(
    group: Cow<'g, FusedGroup>,
    free: usize,
) -> Option<(Cow<'g, FusedGroup>, Vec<Detour>)> {
    let needed: Vec<usize> =
        (0..group.accesses.len()).filter(|at| needs_detour(&group, &group.accesses[*at])).collect();
    if needed.is_empty() {
        return Some((group, Vec::new()));
    }
    let mut group = group.into_owned();
    let mut detours = Vec::new();
    let lanes = group.lanes.max(WIDTH);
    if needed.len().saturating_mul(4 * lanes) > MOST_BYTES {
        return None;
    }
    for access in needed {
        if !may_move(&group.micros, access) {
            return None;
        }
        let at = (free + detours.len() * 4 * lanes).next_multiple_of(4 * WIDTH);
        let detour = Detour::of(access, &group.accesses[access], at)?;
        let access = &mut group.accesses[access];
        access.ptr = PtrForm::Affine { base: detour.base, dims: smallvec![(lanes, 4)] };
        (access.mask, access.other, access.elem) = (MaskForm::All, Src::None, Elem::F32);
        detours.push(detour);
    }
    Some((Cow::Owned(group), detours))
}

/// Bytes of the arena that the blocks of detours need.
pub(super) fn end(detours: &[Detour], group: &FusedGroup) -> usize {
    detours.iter().map(|detour| detour.at + 4 * group.lanes.max(WIDTH)).max().unwrap_or(0)
}

fn needs_detour(group: &FusedGroup, access: &Access) -> bool {
    let PtrForm::Affine { dims, .. } = &access.ptr else { return false };
    if access.rows.is_some() {
        return false;
    }
    let merged = merge(dims);
    let walks = match merged[..] {
        [(_, step)] | [_, (_, step)] => step == 0 || step == access.elem.size() as i64,
        _ => false,
    };
    let short = merged.len() == 2 && !merged[1].0.is_multiple_of(WIDTH);
    group.lanes < WIDTH || !walks || short
}

/// Loads move to the front and stores to the end: none of the other kind may lie between.
fn may_move(micros: &[Micro], access: usize) -> bool {
    let is_own = |micro: &Micro| match micro {
        Micro::Load { access: own, .. } | Micro::Store { access: own, .. } => *own == access,
        _ => false,
    };
    let Some(at) = micros.iter().position(is_own) else { return false };
    match micros[at] {
        Micro::Load { .. } => !micros[..at].iter().any(|m| matches!(m, Micro::Store { .. })),
        _ => !micros[at..].iter().any(|m| matches!(m, Micro::Load { .. })),
    }
}

impl Detour {
    fn of(index: usize, access: &Access, at: usize) -> Option<Detour> {
        let PtrForm::Affine { base, dims } = &access.ptr else { return None };
        let other = match access.other {
            Src::S(r) => Some(r),
            Src::None => None,
            Src::V(_) => return None,
        };
        if access.lane != Lane::F32 || matches!(access.mask, MaskForm::Lanes(_)) {
            return None;
        }
        let size = access.elem.size();
        let mut long = (0..dims.len()).filter(|dim| dims[*dim].0 > 1);
        let columns = match (long.next(), long.next(), long.next()) {
            (Some(rows), Some(columns), None) if dims[rows].1 == size as i64 => {
                Some((rows, columns))
            }
            _ => None,
        };
        Some(Detour {
            access: index,
            at,
            is_store: access.is_store,
            base: *base,
            dims: dims.clone(),
            mask: access.mask.clone(),
            other,
            size,
            buffer: access.buffer,
            load: access.load,
            store: access.store,
            columns,
        })
    }

    /// `None` where a lane that is on leaves the buffer, or one condition switches all lanes off: the interpreter knows what
    /// to do then.
    pub(super) fn find(
        &self,
        int: impl Fn(SReg) -> i64,
        reach: impl Fn(i64, i64, i64) -> Option<(usize, *mut u8)>,
    ) -> Option<Found> {
        let mut on: SmallVec<[(usize, usize); 4]> = self.dims.iter().map(|d| (0, d.0)).collect();
        match &self.mask {
            MaskForm::All => {}
            MaskForm::Uniform(r) if int(*r) & 1 != 0 => {}
            MaskForm::Uniform(_) | MaskForm::Lanes(_) => return None,
            MaskForm::Box(bounds) => {
                for ((low, high), on) in bounds.iter().zip(&mut on) {
                    let limit = |r: &SReg| int(*r).clamp(0, on.1 as i64) as usize;
                    *on = (low.as_ref().map_or(0, limit), high.as_ref().map_or(on.1, limit));
                }
            }
        }
        let mut found = Found { first: std::ptr::null_mut(), on };
        if found.is_nothing() {
            return Some(found);
        }
        let (low, high) = span(self.size, &self.dims, found.on.iter().copied());
        (_, found.first) = reach(int(self.base), low, high)?;
        Some(found)
    }

    /// Puts what is loaded into the block.
    ///
    /// # Safety
    /// `found` was found in this program, and the block lies in the arena that begins at `arena`.
    pub(super) unsafe fn fill(&self, found: &Found, regs: &[u64], arena: *mut u8) {
        // SAFETY: the arena has room for the block.
        let block = unsafe { arena.add(self.at) }.cast::<f32>();
        let other = self.other.map_or(0.0, |r| f32::from_bits(regs[r.0 as usize] as u32));
        let by_columns = self.square(found);
        // SAFETY: rows lie in the block, and lanes that are on in their buffer; machine code is there, so AVX-512 is.
        unsafe {
            self.for_each_row(found, |row, width, on, from| {
                let row = std::slice::from_raw_parts_mut(block.add(row * width), width);
                row[..on.0].fill(other);
                row[on.1..].fill(other);
                if by_columns.is_none() && on.0 < on.1 {
                    let step = self.dims.last().map_or(0, |d| d.1) as isize;
                    (self.load)(row[on.0..].as_mut_ptr().cast(), from, step, on.1 - on.0);
                }
            });
            if let Some((place, width, columns)) = by_columns {
                load_columns(block.add(place), width, columns, self.load);
            }
        }
    }

    /// Stores what the code left in the block.
    ///
    /// # Safety
    /// As for [`Detour::fill`].
    pub(super) unsafe fn drain(&self, found: &Found, arena: *mut u8) {
        // SAFETY: as in `fill`.
        unsafe {
            let block = arena.add(self.at).cast::<f32>();
            if let Some((place, width, columns)) = self.square(found) {
                return store_columns(columns, block.add(place), width, self.store);
            }
            self.for_each_row(found, |row, width, on, to| {
                if on.0 < on.1 {
                    let step = self.dims.last().map_or(0, |d| d.1) as isize;
                    let from = block.add(row * width + on.0).cast();
                    (self.store)(to.cast_mut(), from, step, on.1 - on.0);
                }
            });
        }
    }

    /// The lanes that are on as columns in memory: where they begin in the block, the lanes of its rows, and they.
    fn square(&self, found: &Found) -> Option<(usize, usize, Columns)> {
        let (rows, columns) = self.columns.filter(|_| !found.is_nothing())?;
        let (width, step) = self.dims[columns];
        let (row, column) = (found.on[rows], found.on[columns]);
        let start = found.first.wrapping_add(row.0 * self.size);
        Some((
            row.0 * width + column.0,
            width,
            Columns {
                start: start.wrapping_offset(column.0 as isize * step as isize),
                size: self.size,
                step: step as isize,
                rows: row.1 - row.0,
                columns: column.1 - column.0,
            },
        ))
    }

    /// Every row of the innermost dimension: its number, its lanes, those that are on, and where the first of them is.
    fn for_each_row(
        &self,
        found: &Found,
        mut visit: impl FnMut(usize, usize, (usize, usize), *const u8),
    ) {
        let Some((&(width, step), outer)) = self.dims.split_last() else { return };
        let on = found.on[outer.len()];
        let rows: usize = outer.iter().map(|d| d.0).product();
        for row in 0..rows {
            // Rows that are off may lie anywhere.
            let mut offset = (on.0 as i64).wrapping_mul(step);
            let (mut rest, mut is_on) = (row, !found.is_nothing());
            for (&(size, stride), &(low, high)) in outer.iter().zip(&found.on).rev() {
                let index = rest % size;
                rest /= size;
                offset = offset.wrapping_add((index as i64).wrapping_mul(stride));
                is_on &= (low..high).contains(&index);
            }
            let on = if is_on { on } else { (width, width) };
            visit(row, width, on, found.first.wrapping_offset(offset as isize));
        }
    }
}
