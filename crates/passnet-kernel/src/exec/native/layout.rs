//! How the lanes of a group lie in memory, as far as its code has to know.

use crate::exec::tape::{Bounds, Dims, Group, MaskForm, Micro, PtrForm};
use smallvec::SmallVec;

/// Lanes of one register.
pub(super) const WIDTH: usize = 16;

/// How one place in memory moves through the loops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Walk {
    /// Bytes from lane to lane: the element's size, or none.
    pub(super) inner: i32,
    /// Bytes from row to row.
    pub(super) outer: i32,
    /// Where a view of the arena begins in it.
    pub(super) start: i32,
}

/// Rows of lanes, and what the code finds behind its argument pointer: addresses, limits of masks, partial results.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Lanes in a row; all accesses step evenly inside a row and from row to row.
    pub(super) row: usize,
    pub(super) rows: usize,
    /// Of the accesses, then of the views.
    pub(super) walks: Vec<Walk>,
    pub(super) accesses: usize,
    /// Different masks.
    pub(super) boxes: Vec<Bounds>,
    /// The block's shape, as the masks see it.
    pub(super) shape: SmallVec<[usize; 4]>,
}

impl Layout {
    /// `None` if the lanes do not fall into rows.
    pub(super) fn of(group: &Group) -> Option<Layout> {
        let mut places: Vec<(Dims, i64, i32)> = Vec::new();
        for access in &group.accesses {
            let PtrForm::Affine { dims, .. } = &access.ptr else { return None };
            places.push((merge(dims), access.elem.size() as i64, 0));
        }
        for micro in &group.micros {
            if let Micro::Strided { from, dims, .. } = micro {
                let bytes = dims.iter().map(|&(n, stride)| (n, stride * 4)).collect();
                places.push((merge(&bytes), 4, i32::try_from(*from).ok()?));
            }
        }
        let row = places.iter().filter_map(|(dims, ..)| dims.last().map(|d| d.0)).min();
        let row = row.unwrap_or(group.lanes).min(group.lanes);
        if row == 0 || !row.is_multiple_of(WIDTH) || !group.lanes.is_multiple_of(row) {
            return None;
        }
        let walk = |(dims, size, start): &(Dims, i64, i32)| {
            let (inner, outer) = match dims[..] {
                [(_, stride)] => (stride, stride.checked_mul(row as i64)?),
                [(_, outer), (n, inner)] if n == row => (inner, outer),
                _ => return None,
            };
            let fits = inner == 0 || inner == *size;
            let (inner, outer) = (i32::try_from(inner).ok()?, i32::try_from(outer).ok()?);
            fits.then_some(Walk { inner, outer, start: *start })
        };
        let walks = places.iter().map(walk).collect::<Option<Vec<Walk>>>()?;
        let mut boxes: Vec<Bounds> = Vec::new();
        let mut shape = SmallVec::new();
        let mut add = |bounds: &Bounds, of: SmallVec<[usize; 4]>| {
            shape = of;
            if !boxes.contains(bounds) {
                boxes.push(bounds.clone());
            }
        };
        for access in &group.accesses {
            if let (MaskForm::Box(bounds), PtrForm::Affine { dims, .. }) =
                (&access.mask, &access.ptr)
            {
                add(bounds, dims.iter().map(|d| d.0).collect());
            }
        }
        for micro in &group.micros {
            if let Micro::SelectBox { bounds, shape, .. } = micro {
                add(bounds, shape.clone());
            }
        }
        let rows = group.lanes / row;
        Some(Layout { row, rows, walks, accesses: group.accesses.len(), boxes, shape })
    }

    /// Whether masks can be computed from the number of the lane alone.
    pub(super) fn has_partial(&self) -> bool {
        self.rows == 1 && !self.boxes.is_empty() && self.shape.len() == 1
    }

    /// Byte offsets of a mask's limits.
    pub(super) fn limits(&self, index: usize) -> (i32, i32) {
        let at = 8 * (self.accesses + 2 * index) as i32;
        (at, at + 8)
    }

    /// Byte offset of a reduction's partial results.
    pub(super) fn accumulator(&self, index: usize) -> i32 {
        (8 * (self.accesses + 2 * self.boxes.len()) + 4 * WIDTH * index) as i32
    }

    /// Words behind the argument pointer.
    pub(super) fn words(&self, reductions: usize) -> usize {
        self.accumulator(reductions) as usize / 8
    }
}

/// Neighbouring dimensions that step evenly as one.
fn merge(dims: &Dims) -> Dims {
    let mut merged = Dims::new();
    for &(size, stride) in dims {
        match merged.last_mut() {
            _ if size == 1 => {}
            Some(last) if last.1 == stride.wrapping_mul(size as i64) => {
                *last = (last.0 * size, stride)
            }
            _ => merged.push((size, stride)),
        }
    }
    if merged.is_empty() {
        merged.push((1, 0));
    }
    merged
}
