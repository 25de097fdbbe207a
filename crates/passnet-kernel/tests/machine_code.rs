//! Machine code gives the bits of the interpreter: every operation it knows, on floats of all kinds, with and without
//! masked tails and rows.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::{RunOptions, gather};
use passnet_kernel::fixture::Fixture;

/// Every sign and exponent, and numbers of ordinary size.
fn samples(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    (0..count)
        .map(|i| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let bits = (state >> 32) as u32;
            match i % 4 {
                0 => f32::from_bits(bits),
                1 => [0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, 88.8]
                    [bits as usize % 8],
                _ => (bits as f32 / 2f32.powi(31) - 1.0) * 10.0,
            }
        })
        .collect()
}

fn bytes(values: &[f32], dtype: &str) -> Vec<u8> {
    values
        .iter()
        .flat_map(|v| match dtype {
            // Any half will do: the bits of a float's upper part, or of its lower.
            "float16" => ((v.to_bits() >> 3) as u16).to_le_bytes().to_vec(),
            "bfloat16" => ((v.to_bits() >> 16) as u16).to_le_bytes().to_vec(),
            _ => v.to_le_bytes().to_vec(),
        })
        .collect()
}

/// Equal bits, or both NaN.
fn same(a: &[u8], b: &[u8], dtype: &str) -> bool {
    let nan = |x: &[u8]| match dtype {
        "float16" => u16::from_le_bytes([x[0], x[1]]) & 0x7fff > 0x7c00,
        "bfloat16" => u16::from_le_bytes([x[0], x[1]]) & 0x7fff > 0x7f80,
        _ => f32::from_le_bytes([x[0], x[1], x[2], x[3]]).is_nan(),
    };
    let size = if dtype == "float32" { 4 } else { 2 };
    a.len() == b.len()
        && a.chunks_exact(size).zip(b.chunks_exact(size)).all(|(x, y)| x == y || (nan(x) && nan(y)))
}

/// Runs `body` both ways on two inputs of `n` elements and compares the outputs.
fn compare(body: &str, n: usize, dtype: &str) {
    let text = format!(
        "# wrapper: run
# input: x {dtype} [{n}] normal
# input: y {dtype} [{n}] normal
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=-1.5).to(tl.float32)
    y = tl.load(y_ptr + i, mask=mask).to(tl.float32)
    r = {body}
    tl.store(out_ptr + i, r, mask=mask)


def run(x, y):
    out = torch.zeros_like(x)
    kernel[(triton.cdiv({n}, 256),)](x, y, out, {n}, BLOCK=256)
    return out
"
    );
    compare_text(&text, &[n, n], dtype);
}

/// Runs a file both ways on inputs of so many elements and compares the outputs.
fn compare_text(text: &str, elements: &[usize], dtype: &str) {
    let fixture =
        Fixture::new(Source::new("kernel.py", text)).unwrap_or_else(|e| panic!("{text}: {e}"));
    let prepared = fixture.prepare().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut inputs = fixture.buffers(&prepared);
    for (buffer, elements) in elements.iter().enumerate() {
        inputs[buffer] = bytes(&samples(*elements, 7 + buffer as u64), dtype);
    }
    let view = &fixture.plan.returns[0];
    let run = |interpret: bool| {
        let mut buffers: Vec<Aligned> = inputs.iter().map(|bytes| Aligned::new(bytes)).collect();
        let options = RunOptions { interpret, ..RunOptions::default() };
        prepared.run(buffers.iter_mut().map(Aligned::bytes).collect(), options).unwrap();
        gather(view, buffers[view.buffer].bytes())
    };
    assert!(same(&run(false), &run(true), dtype), "{dtype}: {text}");
}

/// Bytes that begin on a cache line, as tensors do.
struct Aligned {
    room: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Aligned {
        let mut room = vec![0; bytes.len() + 64];
        let start = room.as_ptr().align_offset(64);
        room[start..start + bytes.len()].copy_from_slice(bytes);
        Aligned { room, start, len: bytes.len() }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.room[self.start..self.start + self.len]
    }
}

/// Runs `body` both ways on `rows` by `columns` elements and one number for each row, tile by tile.
fn compare_tiles(body: &str, (rows, columns): (usize, usize), tile: (usize, usize), dtype: &str) {
    let (height, width) = tile;
    let text = format!(
        "# wrapper: run
# input: x {dtype} [2, {rows}, {columns}] normal
# input: y {dtype} [{rows}] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    tiles = tl.cdiv(rows, ROWS)
    slab = tl.program_id(0) // tiles
    row = tl.program_id(0) % tiles * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    row_inside = row < rows
    column_inside = column < columns
    inside = row_inside & column_inside
    place = slab * rows * columns + row * columns + column
    x = tl.load(x_ptr + place, mask=inside, other=-1.5).to(tl.float32)
    y = tl.load(y_ptr + row, mask=row_inside, other=2.0).to(tl.float32)
    r = {body}
    tl.store(out_ptr + place, r, mask=inside)


def run(x, y):
    out = torch.zeros_like(x)
    grid = (2 * triton.cdiv({rows}, {height}), triton.cdiv({columns}, {width}))
    kernel[grid](x, y, out, {rows}, {columns}, ROWS={height}, COLUMNS={width})
    return out
"
    );
    compare_text(&text, &[2 * rows * columns, rows], dtype);
}

/// Rows that are looked up, or follow each other in any order, with sums along them.
#[test]
fn rows_of_a_table_give_the_bits_of_the_interpreter() {
    let bodies = [
        "t * 2.0 + x",
        "t - tl.sum(tl.where(column_inside, tl.minimum(tl.maximum(t, -3.0), 3.0), 0.0), axis=1, keep_dims=True)",
    ];
    for body in bodies {
        for (columns, width, height) in [(64, 64, 4), (50, 64, 4), (100, 128, 1), (17, 32, 16)] {
            for dtype in ["float32", "float16", "bfloat16"] {
                let text = format!(
                    "# wrapper: run
# input: x {dtype} [10, {columns}] normal
# input: table {dtype} [9, {columns}] normal
# input: index int64 [10] int 0 9
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, table_ptr, index_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    row_inside = row < rows
    column_inside = column < columns
    inside = row_inside & column_inside
    index = tl.load(index_ptr + row, mask=row_inside, other=0)
    t = tl.load(table_ptr + index * columns + column, mask=inside, other=1.5).to(tl.float32)
    x = tl.load(x_ptr + (row + 3) % rows // 2 * columns + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * columns + column, {body}, mask=inside)


def run(x, table, index):
    out = torch.zeros_like(x)
    kernel[(triton.cdiv(10, {height}),)](x, table, index, out, 10, {columns}, ROWS={height}, COLUMNS={width})
    return out
"
                );
                compare_text(&text, &[10 * columns, 9 * columns], dtype);
            }
        }
    }
}

/// A loop carries a column of addresses and, made from it, addresses of whole rows: these are the ones from before the
/// column moves on, whichever is carried first.
#[test]
fn a_loop_carries_rows_made_of_what_it_carries() {
    let sum = |body: &str| {
        let text = format!(
            "# wrapper: run
# input: table float32 [12, 16] normal
# input: index int64 [4] int 0 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(table_ptr, index_ptr, out_ptr):
    row = tl.arange(0, 4)[:, None]
    column = tl.arange(0, 16)[None, :]
    index = tl.load(index_ptr + row)
    first = table_ptr + index * 16
    total = tl.zeros([4, 16], dtype=tl.float32)
{body}
    tl.store(out_ptr + row * 16 + column, total)


def run(table, index):
    out = torch.zeros((4, 16), dtype=torch.float32, device=table.device)
    kernel[(1,)](table, index, out)
    return out
"
        );
        let fixture = Fixture::new(Source::new("kernel.py", &*text)).unwrap();
        let prepared = fixture.prepare().unwrap();
        let mut buffers = fixture.buffers(&prepared);
        let options = RunOptions::default();
        prepared.run(buffers.iter_mut().map(Vec::as_mut_slice).collect(), options).unwrap();
        let view = &fixture.plan.returns[0];
        gather(view, &buffers[view.buffer])
    };
    let carried = "    places = first + column
    for step in range(0, 3):
        total += tl.load(places)
        places = first + column
        first = first + (index + 1) * 16";
    let unrolled = "    total += tl.load(first + column)
    total += tl.load(first + column)
    total += tl.load(first + (index + 1) * 16 + column)";
    assert_eq!(sum(carried), sum(unrolled));
}

/// A block of three dimensions, the first of one: a mask may switch all of it off, rows or not.
#[test]
fn a_dimension_of_one_switches_everything_off() {
    let text = "# wrapper: run
# input: x float32 [3, 8, 50] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, slabs, rows, columns):
    slab = tl.program_id(0) + tl.arange(0, 1)[:, None, None]
    row = tl.arange(0, 8)[None, :, None]
    column = tl.arange(0, 64)[None, None, :]
    inside = (slab < slabs) & (row < rows) & (column < columns)
    place = slab * 400 + row * 50 + column
    x = tl.load(x_ptr + place, mask=inside, other=1.0)
    tl.store(out_ptr + place, x * 2.0, mask=inside)


def run(x):
    out = torch.zeros_like(x)
    kernel[(3,)](x, out, 2, 7, 50)
    return out
";
    compare_text(text, &[3 * 8 * 50], "float32");
}

#[test]
fn tiles_give_the_bits_of_the_interpreter() {
    let bodies = [
        "x * y",
        "tl.exp(x) - y",
        "tl.where(slab > 0, x, y)",
        "tl.where(column < 7, x, -x) + y",
        "x - tl.sum(tl.where(column_inside, x, 0.0), axis=1, keep_dims=True)",
        "x / tl.max(tl.where(inside, x, y), axis=1, keep_dims=True)",
        // Sums that are numbers, of each row.
        "x - tl.sum(tl.where(column_inside, tl.minimum(tl.maximum(x, -3.0), 3.0), 0.0), axis=1, keep_dims=True)",
        "x + tl.sum(tl.where(x > 0.5, 1.25, -0.75), axis=1, keep_dims=True) * tl.min(tl.where(x < 9.0, x, 9.0), axis=1, keep_dims=True)",
        // Parts that are joined by rows, and by columns.
        "tl.where(row < 3, x, tl.load(x_ptr + place - 5, mask=inside & (row >= 3), other=2.5).to(tl.float32)) * 3.0",
        "tl.where(column < 16, -x, tl.load(x_ptr + place - 5, mask=inside & (column >= 16), other=0.0).to(tl.float32)) + y",
        "tl.load(x_ptr + place, mask=inside & (column >= 5) & (row >= 2) & (column < 37), other=0.75).to(tl.float32)",
        // Memory holds columns one behind the other, or every other element is read.
        "tl.load(x_ptr + slab * rows * columns + column * rows + row, mask=inside, other=1.25).to(tl.float32) - y",
        "x + tl.sum(tl.load(x_ptr + column * rows + row, mask=inside & (column >= 3), other=0.5).to(tl.float32), axis=1, keep_dims=True)",
        "x * tl.load(x_ptr + place + column, mask=inside & (column * 2 < columns), other=0.25).to(tl.float32)",
        // What is read where a mask is off matters inside.
        "x * 0.5 + tl.load(x_ptr + place - 5, mask=inside & (column >= 5), other=3.0).to(tl.float32)",
    ];
    // Whole tiles; rows cut; columns cut, inside a register too; a tile of one row; more rows than there are.
    let tiles = [
        ((8, 64), (4, 32)),
        ((7, 64), (4, 64)),
        ((8, 49), (4, 64)),
        ((5, 100), (1, 128)),
        ((3, 30), (16, 16)),
        ((9, 33), (2, 32)),
    ];
    for body in bodies {
        for (sizes, tile) in tiles {
            for dtype in ["float32", "float16", "bfloat16"] {
                compare_tiles(body, sizes, tile, dtype);
            }
        }
    }
}

/// Results that are too large to stay in a cache, in rows that begin on a cache line or do not, whole or cut.
#[test]
fn large_results_give_the_bits_of_the_interpreter() {
    // 16 MB and more. Rows that begin on a whole register and rows that do not, one at a time and several.
    for (sizes, tile) in [
        ((2, 1 << 20), (1, 4096)),
        ((1800, 1200), (4, 1024)),
        ((2100, 1001), (1, 1024)),
        ((2100, 1001), (2, 1024)),
    ] {
        compare_tiles("x * y + 0.5", sizes, tile, "float32");
        compare_tiles(
            "x - tl.sum(tl.where(column_inside, tl.minimum(tl.maximum(x, -3.0), 3.0), 0.0), axis=1, keep_dims=True)",
            sizes,
            tile,
            "float32",
        );
    }
}

/// Results that lie in memory column by column, or every other element of it.
#[test]
fn stores_across_rows_give_the_bits_of_the_interpreter() {
    for place in ["column * rows + row", "row * columns * 2 + column * 2"] {
        for ((rows, columns), (height, width)) in
            [((8, 64), (4, 32)), ((7, 49), (4, 64)), ((40, 37), (16, 64)), ((3, 5), (4, 8))]
        {
            for dtype in ["float32", "float16", "bfloat16"] {
                let text = format!(
                    "# wrapper: run
# input: x {dtype} [{rows}, {columns}] normal
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + {place}, tl.exp(x) * 0.5, mask=inside)


def run(x):
    out = torch.zeros(({rows} * {columns} * 2,), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv({rows}, {height}), triton.cdiv({columns}, {width}))
    kernel[grid](x, out, {rows}, {columns}, ROWS={height}, COLUMNS={width})
    return out
"
                );
                compare_text(&text, &[rows * columns], dtype);
            }
        }
    }
}

#[test]
fn every_operation_gives_the_bits_of_the_interpreter() {
    let bodies = [
        "tl.exp(x)",
        "tl.exp2(x)",
        "tl.log(x)",
        "tl.sigmoid(x)",
        "tl.erf(x)",
        "libdevice.tanh(x)",
        "tl.sqrt(x)",
        "tl.rsqrt(x)",
        "tl.floor(x) + tl.ceil(y)",
        "tl.abs(x) * -y",
        "x + y - 0.25",
        "(2.0 - x) / y",
        "tl.maximum(x, y) + tl.minimum(x, 0.5)",
        "tl.maximum(0.0, x)",
        "tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)",
        "tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)",
        "tl.fma(x, y, x)",
        "tl.where(x > y, x, y * 3.0)",
        "tl.where((x <= y), 1.0, x) + tl.where(x == y, 2.0, 0.0) + tl.where(x != x, y, 0.5)",
        "tl.where(mask, x * y, 4.0)",
        "x.to(tl.float16).to(tl.float32) + y.to(tl.bfloat16).to(tl.float32)",
        "x + tl.sum(x, axis=0)",
        "x - tl.max(x, axis=0)",
        "tl.exp(x - tl.min(y, axis=0))",
        // More values at once than registers for four sets.
        "((x + 1.0) * (y + 2.0) + (x + 3.0) * (y + 4.0)) * ((x - 1.0) * (y - 2.0) + (x - 3.0) * (y - 4.0)) + tl.exp(x) * tl.exp(y)",
    ];
    for body in bodies {
        // Whole blocks; a tail inside a register; a tail of more than one program.
        for n in [1024, 1000, 777] {
            compare(body, n, "float32");
        }
        compare(body, 1000, "float16");
        compare(body, 1000, "bfloat16");
    }
}
