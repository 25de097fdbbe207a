//! How the lanes of a group lie in memory, as far as its code has to know.

use crate::exec::group::{FusedGroup, Home, MaskForm, Micro, PtrForm};
use crate::exec::registers::{Bounds, SReg};
use crate::exec::simd::partials;
use crate::exec::views::Dims;
use crate::lane::Lane;
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

/// Byte offsets of what says how far a run of the code goes: so many rows, and in each of them the lanes from `start` up to
/// `first` with masks, up to `end` without, up to `last` with masks again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs {
    pub(super) rows: i32,
    pub(super) start: i32,
    pub(super) first: i32,
    pub(super) end: i32,
    pub(super) last: i32,
}

/// Rows of lanes, and what the code finds behind its argument pointer: addresses, limits of masks, extent of the run.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Lanes in a row; all accesses step evenly inside a row and from row to row.
    pub(super) row: usize,
    pub(super) rows: usize,
    reduces: bool,
    /// Of the accesses, then of the views, then of the results of reductions.
    pub(super) walks: Vec<Walk>,
    /// Different masks.
    pub(super) boxes: Vec<Bounds>,
    /// The block's shape, as the masks see it.
    pub(super) shape: SmallVec<[usize; 4]>,
    /// Which of its dimensions counts the lanes of a row, and which the rows; `None` where masks cut it otherwise.
    masked: Option<MaskedDims>,
}

#[derive(Debug, Clone, Copy)]
struct MaskedDims {
    lanes: usize,
    rows: Option<usize>,
}

/// The lanes and rows that a mask leaves on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct On {
    pub(super) lanes: (usize, usize),
    pub(super) rows: (usize, usize),
}

impl On {
    pub(super) fn is_nothing(&self) -> bool {
        self.lanes.0 >= self.lanes.1 || self.rows.0 >= self.rows.1
    }

    /// What is left on in one row, taken by itself.
    pub(super) fn in_row(&self, row: usize) -> On {
        let lanes = match (self.rows.0..self.rows.1).contains(&row) {
            true => self.lanes,
            false => (0, 0),
        };
        On { lanes, rows: (0, 1) }
    }
}

impl Layout {
    /// `None` if the lanes do not fall into rows. `in_arena`: whether all accesses are to blocks of the arena.
    pub(super) fn of(group: &FusedGroup, in_arena: bool) -> Option<Layout> {
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
        let (boxes, shape) = boxes(group);
        if in_arena && let Some(few) = few_lanes(group, &places) {
            return Some(few);
        }
        let row = places.iter().filter_map(|(dims, ..)| dims.last().map(|d| d.0)).min();
        let mut row = row.unwrap_or(group.lanes).min(group.lanes);
        for reduction in &group.reductions {
            row = row.min(reduction.row);
        }
        if let [.., last] = shape[..]
            && last.is_multiple_of(WIDTH)
        {
            // Masks cut rows.
            row = row.min(last);
        }
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
        let mut walks = places.iter().map(walk).collect::<Option<Vec<Walk>>>()?;
        for reduction in &group.reductions {
            if reduction.row != row {
                return None;
            }
            walks.push(Walk { inner: 0, outer: 4, start: i32::try_from(reduction.to).ok()? });
        }
        let rows = group.lanes / row;
        let masked = masked_dims(&shape, row, rows);
        let reduces = !group.reductions.is_empty();
        Some(Layout { row, rows, reduces, walks, boxes, shape, masked })
    }

    /// Lanes that are worked on in one go: as many as reductions have partial results.
    pub(super) fn lanes_at_once(&self) -> usize {
        if self.reduces { partials(self.row) } else { WIDTH }
    }

    /// Whether there are masks, and they can be computed from the numbers of lane and row.
    pub(super) fn has_partial(&self) -> bool {
        !self.boxes.is_empty() && self.masked.is_some()
    }

    /// Whether a mask may be off for the first lanes of a row and on for later ones.
    pub(super) fn has_low(&self) -> bool {
        self.boxes.iter().flatten().any(|(low, _)| low.is_some())
    }

    /// Whether a mask leaves everything on.
    pub(super) fn is_whole(&self, bounds: &Bounds, int: impl Fn(SReg) -> i64) -> bool {
        bounds.iter().zip(&self.shape).all(|(&(low, high), &size)| {
            low.is_none_or(|r| int(r) <= 0) && high.is_none_or(|r| int(r) >= size as i64)
        })
    }

    /// What a mask leaves on: everything, something that code can compute, or `None`.
    pub(super) fn on(&self, bounds: &Bounds, int: impl Fn(SReg) -> i64) -> Option<On> {
        let mut on = On { lanes: (0, self.row), rows: (0, self.rows) };
        let mut is_off = false;
        for (dim, (&(low, high), &size)) in bounds.iter().zip(&self.shape).enumerate() {
            let low = low.map_or(0, |r| int(r).clamp(0, size as i64) as usize);
            let high = high.map_or(size, |r| int(r).clamp(0, size as i64) as usize);
            if low == 0 && high == size {
                continue;
            }
            let masked = self.masked?;
            if dim == masked.lanes {
                on.lanes = (low, high);
            } else if masked.rows == Some(dim) {
                on.rows = (low, high);
            } else {
                // A dimension of one: on or off.
                is_off = true;
            }
        }
        if is_off {
            on.rows = (0, 0);
        }
        Some(on)
    }

    /// Byte offsets of a mask's limits.
    pub(super) fn limits(&self, index: usize) -> (i32, i32) {
        let at = 8 * (self.walks.len() + 2 * index) as i32;
        (at, at + 8)
    }

    pub(super) fn runs(&self) -> Runs {
        let at = 8 * (self.walks.len() + 2 * self.boxes.len()) as i32;
        Runs { rows: at, start: at + 8, first: at + 16, end: at + 24, last: at + 32 }
    }

    /// Words behind the argument pointer.
    pub(super) fn words(&self) -> usize {
        self.runs().last as usize / 8 + 1
    }
}

/// A group of less than a register that touches nothing but blocks of the arena, which begin and end on whole registers:
/// what is computed in the lanes beyond does no harm.
fn few_lanes(group: &FusedGroup, views: &[(Dims, i64, i32)]) -> Option<Layout> {
    let aligned = |at: usize| at.is_multiple_of(4 * WIDTH);
    let even = |(dims, _, start): &(Dims, i64, i32)| match dims[..] {
        [(_, 0)] => true,
        [(_, 4)] => aligned(*start as usize),
        _ => false,
    };
    // A block may be a part of another.
    let whole = |(place, _): &(Home, Lane)| !matches!(place, Home::Full(at) if !aligned(*at));
    let selects = |micro: &Micro| matches!(micro, Micro::SelectBox { .. });
    let fits = group.lanes < WIDTH
        && group.reductions.is_empty()
        && !group.micros.iter().any(selects)
        && group.homes.iter().all(whole)
        && views.iter().all(even);
    let walks = views.iter().map(|(dims, _, start)| Walk {
        inner: dims[0].1 as i32,
        outer: 0,
        start: *start,
    });
    fits.then(|| Layout {
        row: WIDTH,
        rows: 1,
        reduces: false,
        walks: walks.collect(),
        boxes: Vec::new(),
        shape: SmallVec::new(),
        masked: None,
    })
}

/// The different masks of a group, and the shape that they cut.
fn boxes(group: &FusedGroup) -> (Vec<Bounds>, SmallVec<[usize; 4]>) {
    let mut boxes: Vec<Bounds> = Vec::new();
    let mut shape = SmallVec::new();
    let mut add = |bounds: &Bounds, of: SmallVec<[usize; 4]>| {
        shape = of;
        if !boxes.contains(bounds) {
            boxes.push(bounds.clone());
        }
    };
    for access in &group.accesses {
        if let (MaskForm::Box(bounds), PtrForm::Affine { dims, .. }) = (&access.mask, &access.ptr) {
            add(bounds, dims.iter().map(|d| d.0).collect());
        }
    }
    for micro in &group.micros {
        if let Micro::SelectBox { bounds, shape, .. } = micro {
            add(bounds, shape.clone());
        }
    }
    (boxes, shape)
}

fn masked_dims(shape: &[usize], row: usize, rows: usize) -> Option<MaskedDims> {
    let mut long = (0..shape.len()).filter(|dim| shape[*dim] > 1);
    match (long.next(), long.next(), long.next()) {
        (Some(lanes), None, _) if shape[lanes] == row && rows == 1 => {
            Some(MaskedDims { lanes, rows: None })
        }
        (Some(outer), Some(lanes), None) if shape[lanes] == row && shape[outer] == rows => {
            Some(MaskedDims { lanes, rows: Some(outer) })
        }
        _ => None,
    }
}

/// Neighbouring dimensions that step evenly as one.
pub(super) fn merge(dims: &Dims) -> Dims {
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
