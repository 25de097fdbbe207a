//! Blocks that memory holds column by column, turned into rows and back in registers.

use super::access::{LoadRow, StoreRow};
use std::arch::x86_64::*;

/// Rows and columns of the square that registers hold.
const SIDE: usize = 16;

/// A block of `rows` times `columns` that lies in memory column by column.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) start: *mut u8,
    /// Bytes of an element: the elements of a column lie one behind the other.
    pub(crate) size: usize,
    /// Bytes from column to column.
    pub(crate) step: isize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

/// Which part of the block a square holds.
struct Square {
    row: usize,
    rows: usize,
    column: usize,
    columns: usize,
}

impl Columns {
    fn squares(self) -> impl Iterator<Item = Square> {
        let starts = |size: usize| (0..size).step_by(SIDE).map(move |at| (at, SIDE.min(size - at)));
        // Columns outermost: the rows of a column are neighbours.
        starts(self.columns).flat_map(move |(column, columns)| {
            starts(self.rows).map(move |(row, rows)| Square { row, rows, column, columns })
        })
    }

    fn at(self, square: &Square, column: usize) -> *mut u8 {
        let column = (square.column + column) as isize * self.step;
        self.start.wrapping_offset(column).wrapping_add(square.row * self.size)
    }
}

/// Copies a block to rows of `width` lanes.
///
/// # Safety
/// All elements of the block may be read with `load`, and all rows written; the processor has AVX-512.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn load_columns(to: *mut f32, width: usize, from: Columns, load: LoadRow) {
    let mut lanes = [0f32; SIDE * SIDE];
    for square in from.squares() {
        // SAFETY: as the caller promises; squares stay inside the block, and a prefetch never faults.
        unsafe {
            for column in 0..square.columns {
                let at = from.at(&square, column);
                _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(SIDE * from.size).cast_const().cast());
                let to = lanes.as_mut_ptr().add(column * SIDE);
                match from.size {
                    4 => _mm512_storeu_ps(to, _mm512_maskz_loadu_ps(first(square.rows), at.cast())),
                    size => load(to.cast(), at, size as isize, square.rows),
                }
            }
            let turned = transposed(rows_of(&lanes));
            for (row, lanes) in turned.iter().enumerate().take(square.rows) {
                let to = to.add((square.row + row) * width + square.column);
                _mm512_mask_storeu_ps(to, first(square.columns), *lanes);
            }
        }
    }
}

/// Copies rows of `width` lanes to a block.
///
/// # Safety
/// All elements of the block may be written with `store`, and all rows read; the processor has AVX-512.
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn store_columns(to: Columns, from: *const f32, width: usize, store: StoreRow) {
    let mut lanes = [0f32; SIDE * SIDE];
    for square in to.squares() {
        // SAFETY: as the caller promises; squares stay inside the block.
        unsafe {
            for row in 0..square.rows {
                let from = from.add((square.row + row) * width + square.column);
                let held = _mm512_maskz_loadu_ps(first(square.columns), from);
                _mm512_storeu_ps(lanes.as_mut_ptr().add(row * SIDE), held);
            }
            let turned = transposed(rows_of(&lanes));
            for (column, held) in turned.iter().enumerate().take(square.columns) {
                let at = to.at(&square, column);
                match to.size {
                    4 => _mm512_mask_storeu_ps(at.cast(), first(square.rows), *held),
                    size => {
                        let mut lanes = [0f32; SIDE];
                        _mm512_storeu_ps(lanes.as_mut_ptr(), *held);
                        store(at, lanes.as_ptr().cast(), size as isize, square.rows);
                    }
                }
            }
        }
    }
}

/// The first so many lanes.
fn first(lanes: usize) -> __mmask16 {
    ((1u32 << lanes) - 1) as __mmask16
}

// Loops and no closures: what takes a function must be made for the same processor to be inlined.

#[inline]
#[target_feature(enable = "avx512f")]
fn rows_of(lanes: &[f32; SIDE * SIDE]) -> [__m512; SIDE] {
    let mut rows = [_mm512_setzero_ps(); SIDE];
    for (row, held) in rows.iter_mut().enumerate() {
        // SAFETY: every row lies inside.
        *held = unsafe { _mm512_loadu_ps(lanes.as_ptr().add(row * SIDE)) };
    }
    rows
}

#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(rows: [__m512; SIDE]) -> [__m512; SIDE] {
    let mut pairs = [_mm512_setzero_pd(); SIDE];
    for i in (0..SIDE).step_by(2) {
        pairs[i] = _mm512_castps_pd(_mm512_unpacklo_ps(rows[i], rows[i + 1]));
        pairs[i + 1] = _mm512_castps_pd(_mm512_unpackhi_ps(rows[i], rows[i + 1]));
    }
    // Four rows each: a quarter of register 4 i + j holds one column of rows 4 i to 4 i + 3.
    let mut fours = [_mm512_setzero_ps(); SIDE];
    for i in (0..SIDE).step_by(4) {
        for j in 0..2 {
            let (a, b) = (pairs[i + j], pairs[i + j + 2]);
            fours[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            fours[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    let mut turned = [_mm512_setzero_ps(); SIDE];
    for j in 0..4 {
        let [a, b, c, d] = [fours[j], fours[4 + j], fours[8 + j], fours[12 + j]];
        let (ab, cd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0x88>(c, d));
        turned[j] = _mm512_shuffle_f32x4::<0x88>(ab, cd);
        turned[8 + j] = _mm512_shuffle_f32x4::<0xdd>(ab, cd);
        let (ab, cd) = (_mm512_shuffle_f32x4::<0xdd>(a, b), _mm512_shuffle_f32x4::<0xdd>(c, d));
        turned[4 + j] = _mm512_shuffle_f32x4::<0x88>(ab, cd);
        turned[12 + j] = _mm512_shuffle_f32x4::<0xdd>(ab, cd);
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::super::{load_row, store_row};
    use super::*;
    use crate::types::Elem;
    use passnet_cpu::Isa;

    #[test]
    fn blocks_of_every_size_come_back_as_they_were() {
        if !is_x86_feature_detected!("avx512f") {
            // Machine code, the only user, is not made then.
            return;
        }
        for (rows, columns) in [(1, 1), (4, 37), (16, 16), (19, 33), (33, 5)] {
            for elem in [Elem::F32, Elem::BF16] {
                let (size, gap) = (elem.size(), 3);
                let height = rows + gap;
                let mut memory: Vec<u8> = (0..columns * height * size).map(|i| i as u8).collect();
                let before = memory.clone();
                let block = Columns {
                    start: memory.as_mut_ptr(),
                    size,
                    step: (height * size) as isize,
                    rows,
                    columns,
                };
                let width = columns + 2;
                let mut lanes = vec![7f32; rows * width];
                // SAFETY: the block and the rows lie inside; the feature was looked for.
                unsafe {
                    load_columns(lanes.as_mut_ptr(), width, block, load_row(Isa::Base, elem))
                };
                for (row, lanes) in lanes.chunks(width).enumerate() {
                    for (column, lane) in lanes[..columns].iter().enumerate() {
                        let at = (column * height + row) * size;
                        let bits = before[at..at + size].iter().rev();
                        let bits = bits.fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
                        assert_eq!(lane.to_bits(), bits << (32 - 8 * size));
                    }
                    assert_eq!(lanes[columns..], [7.0, 7.0]);
                }
                // SAFETY: as above.
                unsafe {
                    store_columns(block, lanes.as_ptr(), width, store_row(Isa::Base, elem));
                }
                assert_eq!(memory, before);
            }
        }
    }
}
