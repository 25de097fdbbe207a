//! Operations that leave the lanes as they are give their operand back. What follows must still find it, in whichever form
//! the operand was held, and a loop must not overwrite what its next values are made of.

use passnet_graph::syntax::Source;
use passnet_kernel::exec::{RunOptions, gather};
use passnet_kernel::fixture::{Fixture, Header};

/// Runs a file, interpreted or not; the inputs and the first result as they lie in memory.
fn run(text: &str, interpret: bool) -> (Vec<Vec<u8>>, Vec<u8>) {
    let source = Source::new("kernel.py", text);
    let header = Header::parse(&source).unwrap();
    let inputs = (0..header.inputs.len()).map(|i| header.data(i)).collect();
    let fixture = Fixture::new(source).unwrap_or_else(|e| panic!("{text}: {e}"));
    let prepared = fixture.prepare().unwrap_or_else(|e| panic!("{text}: {e}"));
    let mut buffers = fixture.buffers(&prepared);
    let options = RunOptions { interpret, ..RunOptions::default() };
    prepared.run(buffers.iter_mut().map(Vec::as_mut_slice).collect(), options).unwrap();
    let view = &fixture.plan.returns[0];
    (inputs, gather(view, &buffers[view.buffer]))
}

/// A number of one of the narrow types, as the kernel sees it.
fn number(bytes: &[u8], dtype: &str, index: usize) -> f32 {
    match dtype {
        "int8" => f32::from(bytes[index] as i8),
        "uint8" => f32::from(bytes[index]),
        "int16" => f32::from(i16::from_le_bytes([bytes[2 * index], bytes[2 * index + 1]])),
        "bfloat16" => f32::from_bits(
            u32::from(bytes[2 * index]) << 16 | u32::from(bytes[2 * index + 1]) << 24,
        ),
        _ => f32::from_le_bytes(bytes[4 * index..4 * index + 4].try_into().unwrap()),
    }
}

const ROWS: usize = 4;
const COLUMNS: usize = 8;

/// A tile of zeros plus `expression`, with `b` and `n` at hand; what is added to row `i` and column `j`.
fn tile(dtype: &str, expression: &str) -> Vec<(Vec<u8>, Vec<f32>)> {
    let to = if dtype.contains("int") { "int32" } else { "float32" };
    let expression = expression.replace("WIDE", &format!("tl.{to}"));
    let text = format!(
        "# wrapper: run
# input: b {dtype} [{COLUMNS}] int 1 100
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(b, out, R: tl.constexpr, C: tl.constexpr):
    m = tl.arange(0, R)
    n = tl.arange(0, C)
    wide = {expression}
    t = tl.zeros([R, C], dtype=tl.float32) + wide
    tl.store(out + m[:, None] * C + n[None, :], t)


def run(b):
    out = torch.empty(({ROWS}, {COLUMNS}), dtype=torch.float32, device=b.device)
    kernel[(1,)](b, out, R={ROWS}, C={COLUMNS})
    return out
"
    );
    [false, true]
        .into_iter()
        .map(|interpret| {
            let (mut inputs, out) = run(&text, interpret);
            let result = (0..ROWS * COLUMNS).map(|i| number(&out, "float32", i)).collect();
            (inputs.remove(0), result)
        })
        .collect()
}

#[test]
fn a_cast_that_keeps_the_lanes_keeps_the_block() {
    let by_column = [
        "tl.load(b + n)[None, :].to(WIDE)",
        "tl.load(b + n).to(WIDE)[None, :]",
        "tl.expand_dims(tl.load(b + n), 0).to(WIDE)",
        "tl.broadcast_to(tl.load(b + n)[None, :].to(WIDE), [R, C])",
        "tl.trans(tl.trans(tl.load(b + n)[None, :]).to(WIDE))",
        "tl.reshape(tl.load(b + n), [1, C]).to(WIDE)",
        "tl.reshape(tl.reshape(tl.load(b + n), [2, C // 2]).to(WIDE), [1, C])",
    ];
    for dtype in ["bfloat16", "int8", "uint8", "int16"] {
        for expression in by_column {
            for (input, result) in tile(dtype, expression) {
                let expected: Vec<f32> =
                    (0..ROWS * COLUMNS).map(|i| number(&input, dtype, i % COLUMNS)).collect();
                assert_eq!(result, expected, "{dtype}: {expression}");
            }
        }
        // The rows get what the first columns hold.
        for (input, result) in tile(dtype, "tl.load(b + m)[:, None].to(WIDE)") {
            let expected: Vec<f32> =
                (0..ROWS * COLUMNS).map(|i| number(&input, dtype, i / COLUMNS)).collect();
            assert_eq!(result, expected, "{dtype}: a column");
        }
    }
}

/// Runs a loop of three turns over carried values and gives the first lane of `x`.
fn after_loop(start: &str, body: &str) -> Vec<f32> {
    let text = format!(
        "# wrapper: run
# input: b float32 [8] arange
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(b, out, turns):
    n = tl.arange(0, 8)
{start}
    for k in range(0, turns):
{body}
    tl.store(out + n, x.to(tl.float32))


def run(b):
    out = torch.empty((8,), dtype=torch.float32, device=b.device)
    kernel[(1,)](b, out, 3)
    return out
"
    );
    let results = [false, true].map(|interpret| {
        let (_, out) = run(&text, interpret);
        (0..8).map(|i| number(&out, "float32", i)).collect::<Vec<f32>>()
    });
    assert_eq!(results[0], results[1], "{text}");
    results[0].clone()
}

/// `s` counts the turns; `x` is made of the `s` from before it moves on, whichever is carried first.
#[test]
fn a_loop_makes_blocks_of_the_numbers_from_before() {
    let uniform = "        t = s\n        s = s + 1.0\n        x = tl.full([8], t, tl.float32)\n";
    for start in ["    s = 0.0\n    x = tl.load(b + n)\n", "    x = tl.load(b + n)\n    s = 0.0\n"]
    {
        assert_eq!(after_loop(start, uniform), [2.0; 8], "{start}");
    }
    let affine = "        t = s\n        s = s + 1\n        x = n + t\n";
    for start in [
        "    s = 0\n    x = tl.load(b + n).to(tl.int32)\n",
        "    x = tl.load(b + n).to(tl.int32)\n    s = 0\n",
    ] {
        assert_eq!(after_loop(start, affine), [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], "{start}");
    }
    // A mask is made of a number that moves on.
    let mask = "        t = s\n        s = s + 2\n        x = n < t\n";
    for start in
        ["    s = 0\n    x = tl.load(b + n) > 3\n", "    x = tl.load(b + n) > 3\n    s = 0\n"]
    {
        assert_eq!(after_loop(start, mask), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], "{start}");
    }
}
