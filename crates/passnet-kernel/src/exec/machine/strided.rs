//! Lanes moved from one strided block of the arena to another.

use crate::exec::views::{Dims, for_rows};

/// Rows of the source that are shorter than this are taken side by side, so that the inner loop stays long.
const SHORT: usize = 8;

/// Copies all lanes of a view, in row-major order, to those of another.
///
/// # Safety
/// Both views have as many lanes, and each of them is inside memory that may be read or written; no lane is in both.
pub(super) unsafe fn copy_lanes(
    target: *mut u8,
    to: &Dims,
    source: *const u8,
    from: &Dims,
    size: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match size {
            1 => copy::<1>(target, to, source, from),
            2 => copy::<2>(target, to, source, from),
            4 => copy::<4>(target, to, source, from),
            8 => copy::<8>(target, to, source, from),
            _ => unreachable!("a lane has 1, 2, 4 or 8 bytes"),
        }
    }
}

/// # Safety
/// As for [`copy_lanes`], of lanes of `SIZE` bytes.
unsafe fn copy<const SIZE: usize>(target: *mut u8, to: &Dims, source: *const u8, from: &Dims) {
    let (target, source) = (target.cast::<[u8; SIZE]>(), source.cast::<[u8; SIZE]>());
    let lanes: usize = from.iter().map(|d| d.0).product();
    if let ([(_, 1)], [outer @ .., (rows, step), (inner, inner_step)]) = (&to[..], &from[..])
        && *inner < SHORT
        && inner < rows
    {
        let block = rows * inner;
        let place = |at: usize, offset: i64| {
            for lane in 0..*inner {
                let from = offset + lane as i64 * inner_step;
                // SAFETY: as the caller promises.
                unsafe {
                    let to = target.add(at * block + lane);
                    row(to, *inner as i64, source.offset(from as isize), *step, *rows);
                }
            }
        };
        match outer {
            [] => place(0, 0),
            _ => for_rows(&Dims::from_slice(outer), 0, lanes / block, |at, run, offset, stride| {
                (0..run).for_each(|i| place(at + i, offset + i as i64 * stride));
            }),
        }
        return;
    }
    for_rows(from, 0, lanes, |at, run, offset, stride| {
        for_rows(to, at, run, |inner, count, to_offset, to_stride| {
            let from = offset + inner as i64 * stride;
            // SAFETY: as the caller promises.
            unsafe {
                let (to, from) = (target.offset(to_offset as isize), source.offset(from as isize));
                row(to, to_stride, from, stride, count);
            }
        });
    });
}

/// One row: lanes at even distances.
///
/// # Safety
/// `count` lanes at these distances are inside memory that may be read or written; no lane is in both.
#[inline]
unsafe fn row<const SIZE: usize>(
    target: *mut [u8; SIZE],
    to: i64,
    source: *const [u8; SIZE],
    from: i64,
    count: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        if to == 1 && from == 1 {
            std::ptr::copy_nonoverlapping(source, target, count);
            return;
        }
        for i in 0..count as i64 {
            *target.offset((i * to) as isize) = *source.offset((i * from) as isize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn copied(to: &Dims, from: &Dims, room: usize) -> Vec<u16> {
        let source: Vec<u16> = (0..64).collect();
        let mut target = vec![999u16; room];
        // SAFETY: the dimensions below stay inside.
        unsafe { copy_lanes(target.as_mut_ptr().cast(), to, source.as_ptr().cast(), from, 2) };
        target
    }

    #[test]
    fn every_pair_of_layouts_copies_in_row_major_order() {
        // Each of four lanes twice in a row, by blocks of ten.
        let doubled: Dims = smallvec![(2, 10), (4, 1), (2, 0)];
        let expected = [0, 0, 1, 1, 2, 2, 3, 3, 10, 10, 11, 11, 12, 12, 13, 13];
        assert_eq!(copied(&smallvec![(16, 1)], &doubled, 16), expected);
        assert_eq!(copied(&smallvec![(8, 1)], &smallvec![(4, 1), (2, 0)], 8), expected[..8]);
        let spread: Vec<u16> = copied(&smallvec![(16, 2)], &doubled, 32);
        assert_eq!(spread.iter().step_by(2).copied().collect::<Vec<_>>(), expected);
        assert!(spread.iter().skip(1).step_by(2).all(|lane| *lane == 999));
        // A transposition, and a plain copy.
        assert_eq!(copied(&smallvec![(6, 1)], &smallvec![(3, 1), (2, 3)], 6), [0, 3, 1, 4, 2, 5]);
        assert_eq!(copied(&smallvec![(5, 1)], &smallvec![(5, 1)], 5), [0, 1, 2, 3, 4]);
    }
}
