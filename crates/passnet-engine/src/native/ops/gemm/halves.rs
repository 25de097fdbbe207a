//! Products of half-precision matrices: a few rows and columns at a time are widened to single precision, multiplied and
//! rounded, so that no matrix is ever held in single precision as a whole.

use super::dots::{self, Dots};
use super::panel::{self, Factors, multiply_panel};
use super::{LONG_ROW, Sizes, Target, WORTH_SHARING};
use crate::native::error::Result;
use crate::native::tensor::convert::{Load, loader, storer};
use crate::native::tensor::layout::{Runs, numel};
use crate::native::tensor::{Buffer, Read, Tensor};
use passnet_cpu::parallel::Shared;
use passnet_cpu::vector::Vectors;
use passnet_cpu::{run_tasks, threads};
use passnet_graph::DType;

/// Columns that dot products are computed for at a time.
const DOT_COLUMNS: usize = 6 * dots::COLUMNS;
/// Tasks that a product is cut into at least, where it is worth sharing.
const TASKS: usize = 8;

/// A batch of half-precision matrices where they lie.
pub(crate) struct Halves<'a> {
    memory: Read<'a, u8>,
    load: Load<f32>,
    /// Where each matrix starts.
    starts: Vec<usize>,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Halves<'a> {
    /// The matrices in the last two dimensions.
    pub(crate) fn new(tensor: &'a Tensor) -> Result<Self> {
        let outer = tensor.ndim() - 2;
        let (shape, strides) = (tensor.shape(), tensor.strides());
        Ok(Halves {
            memory: tensor.read::<u8>()?,
            load: loader::<f32>(tensor.dtype()),
            starts: Runs::new(&shape[..outer], &strides[..outer], tensor.storage_offset())
                .collect(),
            row_stride: strides[outer],
            column_stride: strides[outer + 1],
        })
    }

    /// Widens `width` neighbours of each line into lines of `out`, which start `line` apart.
    fn widen(&self, from: Corner, width: usize, out: &mut [f32], line: usize) {
        let Corner { matrix, row, column, by_column } = from;
        let (rows, columns) = (self.row_stride, self.column_stride);
        let (between, within) = if by_column { (columns, rows) } else { (rows, columns) };
        let first = self.starts[matrix] + row * rows + column * columns;
        if width == 0 {
            return;
        }
        for (i, out) in out.chunks_mut(line).enumerate() {
            (self.load)(&self.memory, first + i * between, within, &mut out[..width]);
        }
    }
}

/// Where in a batch a block starts, and whether its lines are columns.
#[derive(Clone, Copy)]
struct Corner {
    matrix: usize,
    row: usize,
    column: usize,
    by_column: bool,
}

/// `alpha · a · b + base`, all in single precision until it is rounded once.
pub(crate) struct HalfProduct<'a> {
    pub(crate) sizes: Sizes,
    pub(crate) a: Halves<'a>,
    pub(crate) b: Halves<'a>,
    /// Whether the right matrices are seen as rows of weights, so that long ones are multiplied as dot products.
    pub(crate) weights: bool,
    pub(crate) alpha: f32,
    /// What is added to the product, and its factor.
    pub(crate) base: Option<(Halves<'a>, f32)>,
}

/// How a product is cut into blocks.
struct Blocks {
    dots: bool,
    rows: usize,
    columns: usize,
    column_blocks: usize,
    /// Rows of one task's block of columns.
    group: usize,
    groups: usize,
    /// Where the lines of a widened right block start, for panels.
    offsets: Vec<usize>,
}

impl Blocks {
    fn new(sizes: Sizes, batch: usize, weights: bool) -> Self {
        let Sizes { m, n, k } = sizes;
        let dots = n == 1 || weights && (k >= LONG_ROW || m == 1);
        // A single row is not worth a wide block.
        let (rows, columns) = match (dots, m) {
            (true, 1) => (1, dots::COLUMNS),
            (true, _) => (dots::ROWS, DOT_COLUMNS),
            (false, 1) => (1, f32::LANES),
            (false, _) => (panel::ROWS, panel::COLUMNS),
        };
        let (rows, columns) = (rows.min(m), columns.min(n));
        let column_blocks = n.div_ceil(columns);
        let cuts = TASKS.div_ceil(batch * column_blocks);
        let group = m.div_ceil(cuts).next_multiple_of(rows);
        let line = columns.next_multiple_of(f32::LANES);
        let offsets = if dots { Vec::new() } else { (0..k).map(|i| i * line).collect() };
        let groups = m.div_ceil(group);
        Blocks { dots, rows, columns, column_blocks, group, groups, offsets }
    }

    /// From one line of a widened right block to the next.
    fn right_line(&self, k: usize) -> usize {
        if self.dots { k } else { self.columns.next_multiple_of(f32::LANES) }
    }

    /// Elements of a widened right block.
    fn right_len(&self, k: usize) -> usize {
        self.right_line(k) * if self.dots { self.columns } else { k }
    }
}

impl HalfProduct<'_> {
    /// The products of the batch as a row-major tensor.
    pub(crate) fn run(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let Sizes { m, n, .. } = self.sizes;
        let count = numel(shape)?;
        let mut out = Buffer::<u8>::for_elements(count, dtype)?;
        if count > 0 {
            let batch = count / (m * n);
            let blocks = Blocks::new(self.sizes, batch, self.weights);
            self.run_blocks(&blocks, batch, &mut out, dtype)?;
        }
        Tensor::from_memory(out.into_memory(), dtype, shape)
    }

    fn run_blocks(
        &self,
        blocks: &Blocks,
        batch: usize,
        out: &mut [u8],
        dtype: DType,
    ) -> Result<()> {
        let Sizes { m, n, k } = self.sizes;
        let per_product = blocks.groups * blocks.column_blocks;
        let units = batch * per_product;
        let work = blocks.group.min(m) * blocks.columns * k;
        let together = (WORTH_SHARING / work.max(1)).clamp(1, units);
        let tasks = units.div_ceil(together);
        let users = threads().min(tasks);
        let (left, right) = (blocks.rows * k, blocks.right_len(k));
        let tile = blocks.rows * blocks.columns;
        let own = left + right + 2 * tile;
        let mut scratch = Buffer::<f32>::new(users * own)?;
        let scratch = Shared::new(&mut scratch);
        let out = Shared::new(out);
        run_tasks(tasks, users, &|task, thread| {
            // SAFETY: tasks of one thread follow one another.
            let scratch = unsafe { scratch.slice(thread * own, own) };
            let mut held = None;
            for unit in task * together..units.min((task + 1) * together) {
                let (matrix, rest) = (unit / per_product, unit % per_product);
                let (group, block) = (rest / blocks.column_blocks, rest % blocks.column_blocks);
                let column = block * blocks.columns;
                let unit = Unit {
                    matrix,
                    rows: group * blocks.group..m.min((group + 1) * blocks.group),
                    column,
                    width: blocks.columns.min(n - column),
                };
                self.run_unit(blocks, &unit, scratch, &mut held, out, dtype);
            }
        });
        Ok(())
    }

    /// Some columns of one product, a block of rows after the other.
    fn run_unit(
        &self,
        blocks: &Blocks,
        unit: &Unit,
        scratch: &mut [f32],
        held: &mut Option<(usize, usize)>,
        out: Shared<'_, u8>,
        dtype: DType,
    ) {
        let Sizes { m, n, k } = self.sizes;
        let Unit { matrix, column, width, .. } = *unit;
        let (left, scratch) = scratch.split_at_mut(blocks.rows * k);
        let (right, scratch) = scratch.split_at_mut(blocks.right_len(k));
        let (tile, base) = scratch.split_at_mut(blocks.rows * blocks.columns);
        self.widen_right(blocks, unit, right);
        let store = storer::<f32>(dtype);
        let size = dtype.size();
        for row in unit.rows.clone().step_by(blocks.rows) {
            let rows = blocks.rows.min(unit.rows.end - row);
            let (left, tile) = (&mut left[..rows * k], &mut tile[..rows * width]);
            let from = Corner { matrix, row, column: 0, by_column: false };
            if *held != Some((matrix, row)) {
                self.a.widen(from, k, left, k);
                *held = Some((matrix, row));
            }
            if k == 0 {
                tile.fill(0.0);
            } else if blocks.dots {
                f32::run_vectors(Dots {
                    sizes: Sizes { m: rows, n: width, k },
                    target: Target::new(tile, width),
                    accumulate: false,
                    a: left,
                    a_stride: k,
                    b: right,
                    b_stride: k,
                });
            } else {
                let factors = Factors { data: left, stride: k, rows };
                multiply_panel(factors, right, &blocks.offsets, width, |row, from, sums| {
                    let count = sums.len().min(width - from);
                    tile[row * width + from..][..count].copy_from_slice(&sums[..count]);
                });
            }
            if self.alpha != 1.0 {
                tile.iter_mut().for_each(|v| *v *= self.alpha);
            }
            if let Some((values, beta)) = &self.base {
                let base = &mut base[..tile.len()];
                values.widen(Corner { column, ..from }, width, base, width);
                for (v, b) in tile.iter_mut().zip(base) {
                    *v += if *beta == 1.0 { *b } else { *b * beta };
                }
            }
            for (i, line) in tile.chunks(width).enumerate() {
                let at = (matrix * m + row + i) * n + column;
                // SAFETY: every element belongs to one unit.
                store(line, unsafe { out.slice(at * size, width * size) });
            }
        }
    }

    /// A block of columns: each a line for dot products, else in lines of neighbouring columns.
    fn widen_right(&self, blocks: &Blocks, unit: &Unit, right: &mut [f32]) {
        let k = self.sizes.k;
        let &Unit { matrix, column, width, .. } = unit;
        let from = Corner { matrix, row: 0, column, by_column: blocks.dots };
        if blocks.dots {
            self.b.widen(from, k, &mut right[..width * k], k);
        } else {
            self.b.widen(from, width, right, blocks.right_line(k));
        }
    }
}

/// What is computed at a time: rows of some columns of one product.
struct Unit {
    matrix: usize,
    rows: std::ops::Range<usize>,
    column: usize,
    width: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small whole numbers, so that every order of summing is exact.
    fn matrix(rows: usize, columns: usize, dtype: DType) -> Tensor {
        let count = rows * columns;
        let values: Vec<f32> = (0..count).map(|i| ((i * 7 + rows) % 5) as f32 - 2.0).collect();
        Tensor::from_slice(&values, &[rows, columns]).unwrap().to_dtype(dtype).unwrap()
    }

    /// Blocks that do not fill, one row, one column, several threads.
    #[test]
    fn blocks_make_up_the_product() {
        for (weights, [m, n, k]) in
            [(true, [7, 30, 130]), (true, [1, 9, 20]), (false, [9, 50, 5]), (false, [20, 1, 7])]
        {
            let dtype = if weights { DType::Float16 } else { DType::BFloat16 };
            let (a, b, base) = (matrix(m, k, dtype), matrix(k, n, dtype), matrix(m, n, dtype));
            let (left, right, added) = (
                a.to_vec::<f32>().unwrap(),
                b.to_vec::<f32>().unwrap(),
                base.to_vec::<f32>().unwrap(),
            );
            let product = HalfProduct {
                sizes: Sizes { m, n, k },
                a: Halves::new(&a).unwrap(),
                b: Halves::new(&b).unwrap(),
                weights,
                alpha: 2.0,
                base: Some((Halves::new(&base).unwrap(), 0.5)),
            };
            let found = product.run(&[m, n], dtype).unwrap().to_vec::<f32>().unwrap();
            for (at, found) in found.into_iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let sum: f32 = (0..k).map(|i| left[row * k + i] * right[i * n + column]).sum();
                assert_eq!(found, 2.0 * sum + 0.5 * added[at], "{m}x{n}x{k} at {row}, {column}");
            }
        }
    }
}
