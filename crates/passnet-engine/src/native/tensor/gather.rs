//! Elements of a region of memory in row-major order, and back.

use super::convert::loader;
use super::element::{Compute, Plain};
use super::layout::{self, Region, Runs};
use passnet_cpu::parallel::{GRAIN, for_each_chunk};
use passnet_graph::DType;

/// Side of the square tiles in which a transposition is done, so that both sides stay in cache.
const TILE: usize = 32;

/// Writes the elements of a region to `out` in row-major order, converted.
pub(super) fn converted<C: Compute>(source: &[u8], dtype: DType, region: &Region, out: &mut [C]) {
    let (shape, strides) = layout::coalesce(&region.shape, &[&region.strides]);
    let load = loader::<C>(dtype);
    walk(&shape, &strides[0], region.offset, out, |offset, stride, out: &mut [C]| {
        load(source, offset, stride, out);
    });
}

/// As `converted`, for elements that only move.
pub(super) fn words<W: Plain>(source: &[W], region: &Region, out: &mut [W]) {
    let (shape, strides) = layout::coalesce(&region.shape, &[&region.strides]);
    walk(&shape, &strides[0], region.offset, out, |offset, stride, out: &mut [W]| match stride {
        1 => out.copy_from_slice(&source[offset..offset + out.len()]),
        0 => out.fill(source[offset]),
        _ => {
            for (o, v) in out.iter_mut().zip(source[offset..].iter().step_by(stride)) {
                *o = *v;
            }
        }
    });
}

/// Calls `copy(offset, stride, out)` for every innermost run, in parallel over fixed chunks of the output.
fn walk<C: Plain>(
    shape: &[usize],
    strides: &[usize],
    offset: usize,
    out: &mut [C],
    copy: impl Fn(usize, usize, &mut [C]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    let last = shape.len() - 1;
    let (inner, step) = (shape[last], strides[last]);
    let (outer_shape, outer_strides) = (&shape[..last], &strides[..last]);
    let transposed = last > 0 && step > 1 && strides[last - 1] == 1 && shape[last - 1] >= 4;
    if transposed && inner >= 4 {
        let rows = shape[last - 1];
        let band = TILE.min(rows);
        let bands = rows.div_ceil(band);
        let outer = &shape[..last - 1];
        // One chunk holds the bands of one matrix; matrices with few rows are grouped by the chunk helper itself.
        for (matrix, base) in Runs::new(outer, &strides[..last - 1], offset).enumerate() {
            let matrix_out = &mut out[matrix * rows * inner..(matrix + 1) * rows * inner];
            let chunk = (bands.div_ceil(16).max(1)) * band * inner;
            for_each_chunk(matrix_out, chunk, |index, piece| {
                let first_row = index * chunk / inner;
                transpose_rows(base + first_row, step, inner, piece, &copy);
            });
        }
        return;
    }
    let rows_per_chunk = (GRAIN / inner.max(1)).max(1);
    let chunk = rows_per_chunk * inner;
    if outer_shape.is_empty() {
        // A single long run: split it anywhere.
        for_each_chunk(out, GRAIN, |index, piece| {
            copy(offset + index * GRAIN * step, step, piece);
        });
        return;
    }
    for_each_chunk(out, chunk, |index, piece| {
        let runs = Runs::starting_at(outer_shape, outer_strides, offset, index * rows_per_chunk);
        for (row, base) in piece.chunks_mut(inner).zip(runs) {
            copy(base, step, row);
        }
    });
}

/// Fills rows of `inner` elements whose sources lie `step` apart, rows being neighbours in memory.
fn transpose_rows<C: Plain>(
    base: usize,
    step: usize,
    inner: usize,
    out: &mut [C],
    copy: &(impl Fn(usize, usize, &mut [C]) + Sync),
) {
    for (band, rows) in out.chunks_mut(TILE * inner).enumerate() {
        let first = base + band * TILE;
        for column in (0..inner).step_by(TILE) {
            let width = TILE.min(inner - column);
            for (r, row) in rows.chunks_mut(inner).enumerate() {
                copy(first + r + column * step, step, &mut row[column..column + width]);
            }
        }
    }
}

/// Writes row-major elements into a strided region.
pub(super) fn scatter<T: Plain>(
    target: &mut [T],
    shape: &[usize],
    strides: &[usize],
    offset: usize,
    values: &[T],
) {
    if values.is_empty() {
        return;
    }
    let (shape, strides) = layout::coalesce(shape, &[strides]);
    let strides = &strides[0];
    let last = shape.len() - 1;
    let (inner, step) = (shape[last], strides[last]);
    let runs = Runs::new(&shape[..last], &strides[..last], offset);
    for (row, base) in values.chunks(inner).zip(runs) {
        if step == 1 {
            target[base..base + inner].copy_from_slice(row);
        } else {
            for (i, v) in row.iter().enumerate() {
                target[base + i * step] = *v;
            }
        }
    }
}
